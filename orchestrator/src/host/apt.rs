//! Which mirror and which keyring the host's own apt uses. Nothing here changes the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::fault::Failure;

/// One line of a `.list` file, or one stanza of a `.sources` file, for binary packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptSource {
    /// The archive's address; never shown to anyone.
    pub uri: String,
    /// `bookworm`, `bookworm-updates`, `bookworm/updates`, ….
    pub suites: Vec<String>,
    /// `main`, `contrib`, ….
    pub components: Vec<String>,
    /// The keyring file, where one is named by its path.
    pub signed_by: Option<PathBuf>,
}

/// Where a Debian suite is fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The archive's address; never shown to anyone.
    pub uri: String,
    /// What its signatures are checked with; `None`: apt's trusted keys.
    pub keyring: Option<PathBuf>,
}

const ARCHIVE_KEYRING: &str = "usr/share/keyrings/debian-archive-keyring.gpg";

/// Names under which Debian's releases are listed, whatever stands behind the first `-` or `/`.
const RELEASES: &[&str] = &[
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "experimental",
    "rc-buggy",
];

/// The sources that apt reads under `root` (`/` outside tests), in apt's order.
///
/// # Errors
/// If a file is there and cannot be read.
pub fn sources(root: &Path) -> Result<Vec<AptSource>, Failure> {
    let mut files = vec![root.join("etc/apt/sources.list")];
    let parts = root.join("etc/apt/sources.list.d");
    if let Ok(entries) = fs::read_dir(&parts) {
        let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort();
        files.extend(names);
    }
    let mut found = Vec::new();
    for file in files {
        let parse = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => parse_list,
            Some("sources") => parse_deb822,
            _ => continue,
        };
        match fs::read_to_string(&file) {
            Ok(text) => found.extend(parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::host_io("read", &file, &error)),
        }
    }
    Ok(found)
}

/// Where `suite` is to be fetched from, given what the host lists: the mirror of the suite itself,
/// else of another one of the same archive. `None`: the host lists no Debian archive (for a
/// security suite: no security archive).
pub fn mirror(sources: &[AptSource], suite: &str, root: &Path) -> Option<Mirror> {
    let security = is_security(suite);
    let chosen = sources
        .iter()
        .filter(|source| source.components.iter().any(|component| component == "main"))
        .filter(|source| !source.uri.starts_with("cdrom:"))
        .filter(|source| source.suites.iter().any(|s| is_debian(s) && is_security(s) == security))
        .max_by_key(|source| {
            let is_archive = source.uri.trim_end_matches('/').ends_with(match security {
                true => "debian-security",
                false => "/debian",
            });
            let lists_suite = source.suites.iter().any(|listed| listed == suite);
            (is_archive, lists_suite)
        })?;
    let archive_keyring = root.join(ARCHIVE_KEYRING);
    let keyring = match archive_keyring.exists() {
        true => Some(archive_keyring),
        false => chosen.signed_by.clone(),
    };
    Some(Mirror { uri: chosen.uri.clone(), keyring })
}

fn is_debian(suite: &str) -> bool {
    let release = suite.split(['-', '/']).next().unwrap_or(suite);
    RELEASES.contains(&release)
}

fn is_security(suite: &str) -> bool {
    suite.ends_with("-security") || suite.ends_with("/updates")
}

/// `deb [arch=amd64 signed-by=/a.gpg] URI SUITE COMPONENT…`, one a line.
fn parse_list(text: &str) -> Vec<AptSource> {
    text.lines().filter_map(parse_list_line).collect()
}

fn parse_list_line(line: &str) -> Option<AptSource> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    let signed_by = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="))
        .and_then(keyring_path);
    Some(AptSource {
        uri: words.next()?,
        suites: vec![words.next()?],
        components: words.collect(),
        signed_by,
    })
}

/// Stanzas of `Field: value`, values going on in lines that begin with a space.
fn parse_deb822(text: &str) -> Vec<AptSource> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines.split(|line| line.trim().is_empty()).flat_map(parse_stanza).collect()
}

fn parse_stanza(lines: &[&str]) -> Vec<AptSource> {
    let field = |name: &str| -> Vec<&str> {
        let mut inside = false;
        let mut words = Vec::new();
        for line in lines {
            let value = match line.strip_prefix([' ', '\t']) {
                Some(more) => more,
                None => {
                    let Some((key, value)) = line.split_once(':') else { continue };
                    inside = key.trim().eq_ignore_ascii_case(name);
                    value
                }
            };
            if inside {
                words.extend(value.split_whitespace());
            }
        }
        words
    };
    let disabled = matches!(field("Enabled").first(), Some(&("no" | "false" | "0" | "off")));
    if disabled || !field("Types").contains(&"deb") {
        return Vec::new();
    }
    let owned = |name| field(name).into_iter().map(str::to_owned).collect::<Vec<_>>();
    field("URIs")
        .into_iter()
        .map(|uri| AptSource {
            uri: uri.to_owned(),
            suites: owned("Suites"),
            components: owned("Components"),
            signed_by: field("Signed-By").first().copied().and_then(keyring_path),
        })
        .collect()
}

fn keyring_path(value: &str) -> Option<PathBuf> {
    value.starts_with('/').then(|| PathBuf::from(value.split(',').next().unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
Types: deb deb-src
# a comment
URIs: http://one.invalid/debian
Suites: bookworm bookworm-updates
Components: main
  contrib
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
URIs: http://one.invalid/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .

Enabled: no
Types: deb
URIs: http://off.invalid/debian
Suites: sid
Components: main
";

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn reads_both_formats_and_skips_what_is_switched_off() {
        let root = tree(&[
            (
                "etc/apt/sources.list",
                "# deb http://c.invalid/debian sid main\ndeb-src http://s.invalid/debian sid main\ndeb [arch=amd64 signed-by=/k.gpg] http://two.invalid/debian trixie main # x\n",
            ),
            ("etc/apt/sources.list.d/debian.sources", DEB822),
            ("etc/apt/sources.list.d/gone.sources.disabled", "Types: deb\n"),
        ]);
        let found = sources(root.path()).unwrap();
        let uris: Vec<&str> = found.iter().map(|source| source.uri.as_str()).collect();
        assert_eq!(
            uris,
            [
                "http://two.invalid/debian",
                "http://one.invalid/debian",
                "http://one.invalid/debian-security"
            ]
        );
        assert_eq!(found[0].signed_by.as_deref(), Some(Path::new("/k.gpg")));
        assert_eq!(found[1].components, ["main", "contrib"]);
        assert_eq!(found[2].signed_by, None);
    }

    #[test]
    fn a_suite_that_is_not_listed_comes_from_the_mirror_of_one_that_is() {
        let root = tree(&[("etc/apt/sources.list.d/debian.sources", DEB822)]);
        let found = sources(root.path()).unwrap();
        let uri = |suite| mirror(&found, suite, root.path()).unwrap().uri;
        assert_eq!(uri("bookworm"), "http://one.invalid/debian");
        assert_eq!(uri("sid"), "http://one.invalid/debian");
        assert_eq!(uri("bookworm-backports"), "http://one.invalid/debian");
        assert_eq!(uri("trixie-security"), "http://one.invalid/debian-security");
    }

    #[test]
    fn foreign_archives_are_no_debian_mirrors() {
        let listed = "deb http://foreign.invalid/linux/debian bookworm stable\n\
                      deb http://foreign.invalid/apt nodistro main\n\
                      deb http://llvm.invalid/bookworm llvm-toolchain-bookworm main\n";
        let found = parse_list(listed);
        assert_eq!(found.len(), 3);
        assert_eq!(mirror(&found, "bookworm", Path::new("/nowhere")), None);
        let with_main = [found, parse_list("deb http://m.invalid/debian/ bookworm main")].concat();
        assert_eq!(
            mirror(&with_main, "bookworm", Path::new("/nowhere")).unwrap().uri,
            "http://m.invalid/debian/"
        );
        assert_eq!(mirror(&with_main, "bookworm-security", Path::new("/nowhere")), None);
    }

    #[test]
    fn the_archive_keyring_is_preferred_to_the_listed_one() {
        let root = tree(&[(ARCHIVE_KEYRING, "")]);
        let found = parse_list("deb [signed-by=/k.gpg] http://m.invalid/debian bookworm main");
        let with = mirror(&found, "sid", root.path()).unwrap().keyring;
        assert_eq!(with, Some(root.path().join(ARCHIVE_KEYRING)));
        let without = mirror(&found, "sid", Path::new("/nowhere")).unwrap().keyring;
        assert_eq!(without, Some(PathBuf::from("/k.gpg")));
    }
}
