//! What a build adds to the layers below it before it begins: the tree's changes, or those against the
//! tree that the objects below were made from. What is the same keeps its time stamp.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{SourceTree, broken};
use crate::fault::Failure;

/// Writes the files of `tree` that are not those of `below` into `upper`, all of them as new. Gives
/// those that are to be removed.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(tree: &SourceTree, below: &SourceTree, upper: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut places = BTreeSet::new();
    for tree in [tree, below] {
        places.extend(tree.removed.iter().cloned());
        if let Some(changed) = &tree.changed {
            files(changed, Path::new(""), &mut places)
                .map_err(|error| Failure::host_io("read", changed, &error))?;
        }
    }
    let mut removed = Vec::new();
    for place in places {
        match (file(tree, &place), file(below, &place)) {
            (Some(own), other) => {
                let is_same = other.is_some_and(|other| same(&own, &other).unwrap_or(false));
                if !is_same {
                    copy(&own, &upper.join(&place))
                        .map_err(|error| broken("copy", &own, &error))?;
                }
            }
            (None, Some(_)) => removed.push(place),
            (None, None) => {}
        }
    }
    Ok(removed)
}

/// The tree without its changes, which is what lies lowest.
pub fn pristine(tree: &SourceTree) -> SourceTree {
    SourceTree { changed: None, removed: Vec::new(), ..tree.clone() }
}

/// Where the content of a file of the tree is, if it has the file.
fn file(tree: &SourceTree, place: &Path) -> Option<PathBuf> {
    let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir());
    if let Some(changed) = &tree.changed {
        let own = changed.join(place);
        if fs::symlink_metadata(&own).is_ok() {
            return Some(own).filter(|own| is_file(own));
        }
        let covered = place.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        if covered.into_iter().any(|above| is_file(&changed.join(above))) {
            return None;
        }
    }
    let own = tree.pristine.join(place);
    (is_file(&own) && !tree.removed.iter().any(|gone| gone == place)).then_some(own)
}

fn files(dir: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let place = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files(dir, &place, found)?;
        } else {
            found.insert(place);
        }
    }
    Ok(())
}

fn same(a: &Path, b: &Path) -> io::Result<bool> {
    let (of_a, of_b) = (fs::symlink_metadata(a)?, fs::symlink_metadata(b)?);
    if of_a.is_symlink() || of_b.is_symlink() {
        return Ok(of_a.is_symlink()
            && of_b.is_symlink()
            && fs::read_link(a)? == fs::read_link(b)?);
    }
    let executable = |meta: &fs::Metadata| meta.permissions().mode() & 0o100;
    Ok(executable(&of_a) == executable(&of_b)
        && of_a.len() == of_b.len()
        && fs::read(a)? == fs::read(b)?)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // In a copy of the whole tree it lies there already.
    let _ = fs::remove_file(to);
    if fs::symlink_metadata(from)?.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    fs::copy(from, to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_file(dir: &Path, place: &str, text: &str) {
        let path = dir.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tree(dir: &Path, changed: &[(&str, &str)], removed: &[&str]) -> SourceTree {
        let pristine = dir.join("pristine");
        for place in ["kernel/a.c", "kernel/b.c", "mm/c.c"] {
            write_file(&pristine, place, place);
        }
        let files = tempfile::tempdir_in(dir).unwrap().keep();
        for (place, text) in changed {
            write_file(&files, place, text);
        }
        SourceTree {
            pristine,
            pristine_sha256: "p".to_owned(),
            changed: (!changed.is_empty()).then_some(files),
            removed: removed.iter().map(PathBuf::from).collect(),
            sha256: "t".to_owned(),
            origin: "t".to_owned(),
        }
    }

    #[test]
    fn only_what_differs_from_the_tree_below_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let below = tree(
            dir.path(),
            &[("kernel/a.c", "changed"), ("kernel/new.c", "n"), ("both.c", "b")],
            &["mm/c.c"],
        );
        let own = tree(dir.path(), &[("both.c", "b"), ("kernel/b.c", "own")], &[]);
        let upper = dir.path().join("upper");
        let removed = write(&own, &below, &upper).unwrap();
        assert_eq!(removed, [PathBuf::from("kernel/new.c")]);
        let text = |place: &str| fs::read_to_string(upper.join(place)).ok();
        assert_eq!(text("kernel/a.c").unwrap(), "kernel/a.c", "back to what it was");
        assert_eq!(text("kernel/b.c").unwrap(), "own");
        assert_eq!(text("mm/c.c").unwrap(), "mm/c.c");
        assert_eq!(text("both.c"), None);
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_takes_what_was_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let own = tree(dir.path(), &[("mm", "a file")], &["mm/c.c"]);
        assert_eq!(file(&own, Path::new("mm/c.c")), None);
        assert!(file(&own, Path::new("mm")).is_some());
    }
}
