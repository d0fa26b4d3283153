//! Patches as the user names them, as files.

use std::path::Path;

use super::files::{Files, string};

/// How names of files with patches end.
pub const PATCH_ENDS: [&str; 6] = [".mbx", ".mbox", ".patch", ".diff", ".eml", "series"];

/// The files that one word means, in the order in which they are applied: a file, those that fit a
/// pattern, or those that a quilt `series` lists.
///
/// # Errors
/// Message and hint: what is not there, or cannot be done.
pub fn expand(written: &str, files: &Files<'_>) -> Result<Vec<String>, (String, String)> {
    let path = files.absolute(written);
    let found = files.matching(written);
    if found.is_empty() {
        let path = string(&path);
        let message = match written.contains(['*', '?']) {
            true => format!("no file fits {path}"),
            false => format!("patch {path} does not exist"),
        };
        let hint = "name a patch, a pattern such as patches/*.patch, a quilt series, or an mbox";
        return Err((message, hint.to_owned()));
    }
    let is_series = path.file_name().is_some_and(|name| name == "series")
        || path.extension().is_some_and(|end| end == "series");
    if is_series { series(&path) } else { Ok(found.iter().map(|path| string(path)).collect()) }
}

/// The patches of a quilt series; they lie beside it.
fn series(path: &Path) -> Result<Vec<String>, (String, String)> {
    let shown = string(path);
    let text = std::fs::read_to_string(path)
        .map_err(|error| (format!("failed to read {shown}: {error}"), String::new()))?;
    let mut patches = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split(" #").next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
        if let Some(option) = words.find(|option| *option != "-p1") {
            let message =
                format!("{shown}, line {number}: patches are applied with -p1, not {option}");
            return Err((message, "make the patch anew with `quilt refresh -p1`".to_owned()));
        }
        let patch = path.parent().unwrap_or(path).join(name);
        if !patch.is_file() {
            let message = format!("{shown}, line {number}: {} does not exist", string(&patch));
            return Err((message, "patches of a series lie beside it".to_owned()));
        }
        patches.push(string(&patch));
    }
    if patches.is_empty() {
        return Err((format!("{shown} lists no patch"), "one name a line".to_owned()));
    }
    Ok(patches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn patterns_and_series_become_files_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files { folder: dir.path(), home: None, store: dir.path() };
        for name in ["p/2.patch", "p/1.patch", "p/x.diff", "q/b.patch", "q/a.patch"] {
            crate::host::git::testing::put(dir.path(), name, "x");
        }
        let names = |written: &str| {
            let found = expand(written, &files).unwrap();
            let short = |path: &String| path.rsplit('/').next().unwrap().to_owned();
            found.iter().map(short).collect::<Vec<_>>()
        };
        assert_eq!(names("p/*.patch"), ["1.patch", "2.patch"]);
        assert_eq!(names("p/x.diff"), ["x.diff"]);
        fs::write(dir.path().join("q/series"), "# first\nb.patch -p1 # why\n\na.patch\n").unwrap();
        assert_eq!(names("q/series"), ["b.patch", "a.patch"]);

        let said = |written: &str| expand(written, &files).unwrap_err().0;
        assert!(said("p/*.mbx").contains("no file fits"));
        assert!(said("p/3.patch").contains("p/3.patch does not exist"));
        fs::write(dir.path().join("q/series"), "b.patch\nc.patch\n").unwrap();
        assert!(said("q/series").contains("line 2: ") && said("q/series").contains("c.patch"));
        fs::write(dir.path().join("q/series"), "b.patch -p0\n").unwrap();
        assert!(said("q/series").contains("not -p0"));
    }
}
