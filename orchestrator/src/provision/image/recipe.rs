//! What an image is made of: a suite, packages, files, commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::provision::{sha256_of, sha256_of_file};

/// Recipes that need no file.
pub const BUILT_IN: [(&str, &str); 2] = [
    ("debian", include_str!("../../../../images/debian.yaml")),
    ("kernbench", include_str!("../../../../images/kernbench.yaml")),
];

/// The longest chain of `extends`.
const DEEPEST: usize = 8;

/// The largest recipe that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A recipe with everything that it extends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Recipe {
    /// One Debian suite.
    pub suite: String,
    /// In the order in which they were listed, each once.
    pub packages: Vec<String>,
    /// Path in the image to absolute path on the host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PathBuf>,
    /// Shell scripts, run in the image once packages and files are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
}

/// As it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    extends: Option<String>,
    suite: Option<String>,
    #[serde(default)]
    packages: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    run: Vec<String>,
}

impl Recipe {
    /// The recipe that `word` names in `folder`: a file if it looks like a path, else
    /// `images/WORD.yaml`, else one that is built in.
    ///
    /// # Errors
    ///
    /// Why there is none, in a sentence.
    pub fn find(word: &str, folder: &Path) -> Result<Self, String> {
        let mut made = Self {
            suite: String::new(),
            packages: Vec::new(),
            files: BTreeMap::new(),
            run: Vec::new(),
        };
        made.extend(word, folder, 0)?;
        if made.suite.is_empty() {
            return Err(format!("image `{word}` has no `suite`"));
        }
        Ok(made)
    }

    fn extend(&mut self, word: &str, folder: &Path, depth: usize) -> Result<(), String> {
        if depth == DEEPEST {
            return Err(format!("image `{word}` extends itself, or more than {DEEPEST} others"));
        }
        let (name, text, folder) = source(word, folder)?;
        let written: Written =
            serde_yaml::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        if let Some(base) = &written.extends {
            self.extend(base, &folder, depth + 1)?;
        }
        self.take(written, &folder).map_err(|why| format!("{name}: {why}"))
    }

    fn take(&mut self, written: Written, folder: &Path) -> Result<(), String> {
        if let Some(suite) = written.suite {
            if !is_word(&suite, "-/") {
                return Err(format!("`{suite}` is no name of a suite"));
            }
            self.suite = suite;
        }
        for package in written.packages {
            if !is_word(&package, "+.-")
                || !package.starts_with(|c: char| c.is_ascii_alphanumeric())
            {
                return Err(format!("`{package}` is no name of a package"));
            }
            if !self.packages.contains(&package) {
                self.packages.push(package);
            }
        }
        for (inside, host) in written.files {
            let is_plain = inside.starts_with('/') && !inside.split('/').any(|part| part == "..");
            if !is_plain {
                return Err(format!("`{inside}` is no absolute path in the image"));
            }
            let host = folder.join(host);
            if !host.is_file() {
                return Err(format!("file {} does not exist", host.display()));
            }
            self.files.insert(inside, host);
        }
        self.run.extend(written.run);
        Ok(())
    }

    /// SHA-256 over all that decides the image but for the versions of its packages, lower-case hex.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn digest(&self) -> std::io::Result<String> {
        let mut text = format!("{}\n", self.suite);
        let mut packages = self.packages.clone();
        packages.sort();
        packages.iter().for_each(|package| text += &format!("package {package}\n"));
        for (inside, host) in &self.files {
            text += &format!("file {inside} {}\n", sha256_of_file(host)?);
        }
        self.run
            .iter()
            .for_each(|script| text += &format!("run {}\n", sha256_of(script.as_bytes())));
        Ok(sha256_of(text.as_bytes()))
    }
}

/// Name for messages, text, and the folder in which its paths begin.
fn source(word: &str, folder: &Path) -> Result<(String, String, PathBuf), String> {
    let is_path = word.contains('/') || word.ends_with(".yaml") || word.ends_with(".yml");
    let path = if is_path { folder.join(word) } else { folder.join(format!("images/{word}.yaml")) };
    if path.is_file() {
        let length = path.metadata().map_or(0, |meta| meta.len());
        if length > MAX_BYTES {
            return Err(format!("{} is longer than the 1 MiB allowed", path.display()));
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("failed to read {}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(folder).to_owned();
        return Ok((path.display().to_string(), text, folder));
    }
    // `debian.yaml` beside no such file: that of kduel itself.
    let name = word.strip_suffix(".yaml").unwrap_or(word);
    let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
    match built_in {
        Some((name, text)) => Ok(((*name).to_owned(), (*text).to_owned(), folder.to_owned())),
        None if is_path => Err(format!("file {} does not exist", path.display())),
        None => Err(format!("there is no image `{word}`")),
    }
}

fn is_word(text: &str, also: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || also.contains(c);
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, Result<Recipe, String>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("mine.yaml"), text).unwrap();
        std::fs::write(dir.path().join("x.conf"), "a").unwrap();
        let made = Recipe::find("mine.yaml", dir.path());
        (dir, made)
    }

    #[test]
    fn kernbench_has_a_compiler_and_nothing_that_only_debian_needs() {
        let nowhere = Path::new("/nowhere");
        let (debian, kernbench) =
            (Recipe::find("debian", nowhere).unwrap(), Recipe::find("kernbench", nowhere).unwrap());
        assert_eq!(debian.suite, kernbench.suite);
        assert!(kernbench.packages.iter().any(|package| package == "gcc"));
        assert!(!kernbench.packages.iter().any(|package| debian.packages.contains(package)));
        assert_ne!(debian.digest().unwrap(), kernbench.digest().unwrap());
    }

    #[test]
    fn a_recipe_of_ones_own_extends_another() {
        let (_dir, made) = written(
            "extends: debian.yaml\nsuite: trixie\npackages: [fio, gcc]\nfiles: {/etc/x.conf: x.conf}\n",
        );
        let made = made.unwrap();
        assert_eq!(made.suite, "trixie");
        assert_eq!(made.packages, ["stress-ng", "fio", "rt-tests", "gcc"]);
        assert!(made.files["/etc/x.conf"].ends_with("x.conf"));
    }

    #[test]
    fn the_content_of_files_decides_and_the_order_of_packages_does_not() {
        let digest = |text: &str| written(text).1.unwrap().digest().unwrap();
        let one = digest("suite: sid\npackages: [a1, b1]\n");
        assert_eq!(one, digest("suite: sid\npackages: [b1, a1, b1]\n"));
        assert_ne!(one, digest("suite: sid\npackages: [a1, b1]\nrun: ['true']\n"));
        let (dir, made) = written("suite: sid\nfiles: {/x: x.conf}\n");
        let made = made.unwrap();
        let before = made.digest().unwrap();
        std::fs::write(dir.path().join("x.conf"), "b").unwrap();
        assert_ne!(before, made.digest().unwrap());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, words) in [
            ("packages: [gcc]\n", "has no `suite`"),
            ("suite: sid\npakages: [gcc]\n", "unknown field `pakages`"),
            ("suite: sid\npackages: [--hook]\n", "no name of a package"),
            ("suite: ../sid\n", "no name of a suite"),
            ("suite: sid\nfiles: {x: x.conf}\n", "no absolute path"),
            ("suite: sid\nfiles: {/x: gone}\n", "does not exist"),
            ("extends: mine.yaml\n", "extends itself"),
        ] {
            let why = written(text).1.unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        assert!(Recipe::find("mime", Path::new("/")).unwrap_err().contains("no image `mime`"));
    }
}
