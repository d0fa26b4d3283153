//! What a patch says of itself: which files it touches, where its hunks begin.

use std::path::{Component, PathBuf};

/// A hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// Its first line in the old file.
    pub line: u64,
    /// Its lines, the header first.
    pub text: Vec<&'a str>,
}

/// A file that a patch touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its names before and after, without the first folder; more than one if it is renamed.
    pub names: Vec<String>,
    /// Its hunks, in order.
    pub hunks: Vec<Hunk<'a>>,
}

/// Reads a patch; what is no part of a diff is skipped, as `patch` and `git apply` do.
pub fn parse(patch: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            parts.push(Part::default());
            add(&mut parts, same_name(names));
        } else if let Some(name) = moved(line) {
            add(&mut parts, unquoted(name));
        } else if let Some(old) = line.strip_prefix("--- ")
            && let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ "))
        {
            if parts.last().is_none_or(|part| !part.hunks.is_empty()) {
                parts.push(Part::default());
            }
            add(&mut parts, stripped(old));
            add(&mut parts, stripped(new));
            lines.next();
        } else if let Some((start, mut old, mut new)) = header(line)
            && let Some(part) = parts.last_mut()
        {
            let mut hunk = Hunk { line: start, text: vec![line] };
            while old > 0 || new > 0 {
                let Some(line) = lines.next() else { break };
                match line.as_bytes().first() {
                    Some(b'-') => old = old.saturating_sub(1),
                    Some(b'+') => new = new.saturating_sub(1),
                    Some(b'\\') => {}
                    _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
                }
                hunk.text.push(line);
            }
            part.hunks.push(hunk);
        }
    }
    parts.retain(|part| !part.names.is_empty());
    parts
}

/// Names of `parts` as paths, those left out that lead anywhere but into the tree.
pub fn paths(parts: &[Part<'_>]) -> Vec<PathBuf> {
    let names = parts.iter().flat_map(|part| &part.names).map(PathBuf::from);
    let inside = |path: &PathBuf| {
        path.components().count() > 0
            && path.components().all(|part| matches!(part, Component::Normal(_)))
    };
    let mut paths: Vec<PathBuf> = names.filter(inside).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// The hunk of `file` that begins at `line`, its number from 1, and how many the file has.
pub fn hunk<'p, 't>(
    parts: &'p [Part<'t>],
    file: &str,
    line: u64,
) -> Option<(usize, usize, &'p Hunk<'t>)> {
    let of_file = parts.iter().filter(|part| part.names.iter().any(|name| name == file));
    of_file.into_iter().find_map(|part| {
        let at = part.hunks.iter().position(|hunk| hunk.line == line)?;
        Some((at + 1, part.hunks.len(), &part.hunks[at]))
    })
}

fn add(parts: &mut [Part<'_>], name: Option<String>) {
    if let (Some(part), Some(name)) = (parts.last_mut(), name)
        && !part.names.contains(&name)
    {
        part.names.push(name);
    }
}

/// `a/x b/x`: the name, if both are the same; others are named by the lines that follow.
fn same_name(names: &str) -> Option<String> {
    if names.starts_with('"') {
        return None;
    }
    let half = names.len().checked_sub(1)? / 2;
    let (old, new) = (names.get(..half)?, names.get(half + 1..)?);
    let (old, new) = (stripped(old)?, stripped(new)?);
    (old == new).then_some(old)
}

fn moved(line: &str) -> Option<&str> {
    ["rename from ", "rename to ", "copy from ", "copy to "]
        .into_iter()
        .find_map(|key| line.strip_prefix(key))
}

/// A name without its first folder and its time stamp; none for `/dev/null`.
fn stripped(name: &str) -> Option<String> {
    let name = name.split('\t').next().unwrap_or_default().trim_end();
    if name == "/dev/null" {
        return None;
    }
    let name = unquoted(name)?;
    name.split_once('/').map(|(_, rest)| rest.to_owned())
}

/// A name as git quotes one with bytes that are not plain; as it is if it is not quoted.
fn unquoted(name: &str) -> Option<String> {
    let Some(inner) = name.strip_prefix('"') else { return Some(name.to_owned()) };
    let mut bytes = inner.strip_suffix('"')?.bytes().peekable();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        plain.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            first @ b'0'..=b'3' => {
                let (second, third) = (bytes.next()?, bytes.next()?);
                let digit = |byte: u8| byte.wrapping_sub(b'0') & 7;
                (digit(first) << 6) | (digit(second) << 3) | digit(third)
            }
            other => other,
        });
    }
    String::from_utf8(plain).ok()
}

/// `@@ -start,old +start,new @@`: start and numbers of lines.
fn header(line: &str) -> Option<(u64, u64, u64)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let range = |word: &str| -> Option<(u64, u64)> {
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let (start, old) = range(words.next()?)?;
    let (_, new) = range(words.next()?.strip_prefix('+')?)?;
    Some((start, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
Subject: two files

diff --git a/kernel/fork.c b/kernel/fork.c
index 1..2 100644
--- a/kernel/fork.c
+++ b/kernel/fork.c
@@ -1,2 +1,2 @@
-- a/not/a/file
++ b/not/a/file
 int b;
@@ -9 +9 @@ int f(void)
-x
+y
--- linux-6.1/mm/slab.c\t2026-01-01 00:00:00
+++ linux/mm/slab.c\t2026-01-02 00:00:00
@@ -3,0 +4 @@
+z
--- /dev/null
+++ \"b/f\\303\\266.c\"
@@ -0,0 +1 @@
+n
--- a/../../etc/passwd
+++ b/../../etc/passwd
@@ -1 +1 @@
-x
+y
diff --git a/old.c b/new.c
similarity index 100%
rename from old.c
rename to new.c
-- 
2.39
";

    #[test]
    fn files_and_hunks_are_found_and_nothing_else() {
        let parts = parse(PATCH);
        let names: Vec<Vec<&str>> =
            parts.iter().map(|part| part.names.iter().map(String::as_str).collect()).collect();
        assert_eq!(names[..3], [["kernel/fork.c"], ["mm/slab.c"], ["fö.c"]]);
        assert_eq!(names[4], ["old.c", "new.c"]);
        let paths: Vec<String> =
            paths(&parts).iter().map(|path| path.display().to_string()).collect();
        assert_eq!(paths, ["fö.c", "kernel/fork.c", "mm/slab.c", "new.c", "old.c"]);
        let (number, of, second) = hunk(&parts, "kernel/fork.c", 9).unwrap();
        assert_eq!((number, of, second.text.len()), (2, 2, 3));
        assert_eq!(hunk(&parts, "kernel/fork.c", 2), None);
    }

    #[test]
    fn a_patch_that_is_cut_off_ends_with_it() {
        let cut = &PATCH[..PATCH.find(" int b;").unwrap()];
        assert_eq!(parse(cut)[0].hunks[0].text.len(), 3);
        assert_eq!(parse("@@ -1 +1 @@\n-x\n+y\n"), []);
    }
}
