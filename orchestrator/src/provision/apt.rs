//! apt, on one suite, with a sources list and state of our own: the host's are only read.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::clock;
use crate::fault::{Failure, FailureClass};
use crate::host::apt::{Mirror, mirror, sources};
use crate::host::tool::{Tool, ToolOutput};

/// For one call of apt: fetching a kernel over a slow line.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Package lists older than this are fetched again.
const LISTS_LAST: Duration = Duration::from_secs(24 * 60 * 60);

/// One record of a package list: the fields that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its `Depends`: package names with the exact version they ask for, if they do.
    pub depends: Vec<(String, Option<String>)>,
    /// SHA-256 of the `.deb`, lower-case hex; part of what the archive signs.
    pub sha256: String,
    /// Size of the `.deb` in bytes.
    pub size_bytes: u64,
}

/// apt with one Debian suite and nothing else.
#[derive(Debug)]
pub struct Apt {
    suite: String,
    dir: PathBuf,
}

impl Apt {
    /// apt for `suite`, its state in `dir`, with the mirror and proxies of the host under `root`.
    ///
    /// # Errors
    /// If apt is missing, the host lists no mirror, or `dir` cannot be written.
    pub fn new(root: &Path, dir: &Path, suite: &str) -> Result<Self, Failure> {
        if !root.join("usr/bin/apt-get").exists() {
            return Err(Failure::new(
                FailureClass::ToolMissing,
                format!("apt-get is needed to fetch kernels of the Debian suite {suite}"),
            )
            .hint(
                "without apt, give a package file (deb:FILE), a bzImage or a built kernel tree",
            ));
        }
        let mirror = mirror(&sources(root)?, suite, root).ok_or_else(|| no_mirror(suite))?;
        let make = |path: PathBuf| {
            fs::create_dir_all(&path)
                .map_err(|error| Failure::host_io("make folder", &path, &error))
        };
        make(dir.join("lists/partial"))?;
        make(dir.join("cache/archives/partial"))?;
        write(&dir.join("sources.list"), &sources_line(&mirror, suite))?;
        write(&dir.join("status"), "")?;
        write(&dir.join("apt.conf"), &configuration(dir))?;
        Ok(Self { suite: suite.to_owned(), dir: dir.to_owned() })
    }

    /// The suite.
    pub fn suite(&self) -> &str {
        &self.suite
    }

    /// Whether the package lists are there and younger than a day.
    pub fn is_fresh(&self) -> bool {
        let fetched = fs::metadata(self.stamp()).and_then(|meta| meta.modified()).ok();
        let now = SystemTime::try_from(clock::now()).ok();
        let age = fetched.zip(now).and_then(|(at, now)| now.duration_since(at).ok());
        age.is_some_and(|age| age < LISTS_LAST)
    }

    /// Whether there are package lists of any age.
    pub fn has_lists(&self) -> bool {
        self.stamp().exists()
    }

    /// Fetches the package lists; apt checks their signatures.
    ///
    /// # Errors
    /// If they cannot be fetched or are not signed with the archive's key.
    pub fn update(&self) -> Result<(), Failure> {
        let output = self.run("apt-get", &["-q", "update"], &self.dir)?;
        if !output.status.success() {
            return Err(self.failed("fetch the package lists", &output));
        }
        let stamp = self.stamp();
        fs::write(&stamp, "").map_err(|error| Failure::host_io("write", &stamp, &error))
    }

    /// The names of packages that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// If apt fails.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let output = self.run("apt-cache", &["pkgnames", prefix], &self.dir)?;
        if !output.status.success() {
            return Err(self.failed("list packages", &output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// All versions of these packages; none for a name that the suite does not have.
    ///
    /// # Errors
    /// If apt cannot be started.
    pub fn show(&self, names: &[String]) -> Result<Vec<Package>, Failure> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut args = vec!["show", "--"];
        args.extend(names.iter().map(String::as_str));
        let output = self.run("apt-cache", &args, &self.dir)?;
        Ok(parse_records(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Downloads a package into `folder`; apt checks its hash against the signed lists.
    ///
    /// # Errors
    /// If it cannot be fetched.
    pub fn download(&self, package: &Package, folder: &Path) -> Result<PathBuf, Failure> {
        let wanted = format!("{}={}", package.name, package.version);
        let output = self.run("apt-get", &["-q", "download", "--", &wanted], folder)?;
        let deb = fs::read_dir(folder).ok().and_then(|entries| {
            let mut paths = entries.flatten().map(|entry| entry.path());
            paths.find(|path| path.extension().is_some_and(|end| end == "deb"))
        });
        match deb {
            Some(path) if output.status.success() => Ok(path),
            _ => Err(self.failed(&format!("fetch {wanted}"), &output)),
        }
    }

    /// The suite as a line of `sources.list`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn line(&self) -> Result<String, Failure> {
        let path = self.dir.join("sources.list");
        let line = fs::read_to_string(&path);
        line.map(|line| line.trim().to_owned())
            .map_err(|error| Failure::host_io("read", &path, &error))
    }

    fn stamp(&self) -> PathBuf {
        self.dir.join("updated")
    }

    fn run(&self, program: &str, args: &[&str], folder: &Path) -> Result<ToolOutput, Failure> {
        let configuration = format!("-c={}", self.dir.join("apt.conf").display());
        let all = std::iter::once(configuration.as_str()).chain(args.iter().copied());
        Tool::new(program).args(all).within(folder).run(LONGEST)
    }

    fn failed(&self, doing: &str, output: &ToolOutput) -> Failure {
        let title = format!("apt failed to {doing} of the Debian suite {}", self.suite);
        let lines =
            output.stderr.lines().filter(|line| line.starts_with("E:") || line.starts_with("W:"));
        let failure = lines
            .take(6)
            .fold(Failure::new(FailureClass::HostIo, title), |f, line| f.detail(redact(line)));
        failure.hint("check the name of the suite and the host's network; apt-get update must work")
    }
}

/// Read by apt after the host's own configuration, from which proxies come.
fn configuration(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        r#"// What the host does after an update is not ours to start.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Update::Error-Mode "any";
// Whatever the host allows for its own archives.
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::Retries "3";
// apt's own user cannot write below this folder.
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::Etc::sourcelist "{dir}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
Dir::State::Lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::Cache "{dir}/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "";
"#
    )
}

fn no_mirror(suite: &str) -> Failure {
    let kind = if suite.contains("-security") { "Debian security mirror" } else { "Debian mirror" };
    Failure::new(
        FailureClass::KernelUnusable,
        format!("the host's apt configuration lists no {kind}, so {suite} cannot be fetched"),
    )
    .hint("add one under /etc/apt, or give a package file (deb:FILE), a bzImage or a kernel tree")
}

fn sources_line(mirror: &Mirror, suite: &str) -> String {
    let keyring = mirror.keyring.as_ref();
    let option = keyring.map_or(String::new(), |path| format!("[signed-by={}] ", path.display()));
    format!("deb {option}{} {suite} main\n", mirror.uri)
}

/// Leaves a file alone that has this content: apt builds its index anew when one has been touched.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| Failure::host_io("write", path, &error))
}

/// apt's words without addresses: reports are shown to others.
pub fn redact(line: &str) -> String {
    let words: Vec<&str> = line
        .split(' ')
        .map(|word| if word.contains("://") { "(the mirror)" } else { word })
        .collect();
    words.join(" ")
}

fn parse_records(text: &str) -> Vec<Package> {
    text.split("\n\n").filter_map(parse_record).collect()
}

fn parse_record(record: &str) -> Option<Package> {
    let field = |name: &str| {
        record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
    };
    Some(Package {
        name: field("Package")?.to_owned(),
        version: field("Version")?.to_owned(),
        sha256: field("SHA256")?.to_owned(),
        size_bytes: field("Size")?.parse().ok()?,
        depends: field("Depends")
            .unwrap_or_default()
            .split(',')
            .filter_map(parse_depends)
            .collect(),
    })
}

fn parse_depends(text: &str) -> Option<(String, Option<String>)> {
    let first = text.split('|').next()?.trim();
    let name = first.split([' ', ':']).next().filter(|name| !name.is_empty())?;
    let exact = first.split_once("(= ").map(|(_, rest)| rest.trim_end_matches(')').to_owned());
    Some((name.to_owned(), exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: &str = "\
Package: linux-image-7.2.13+deb14-cloud-amd64
Source: linux-signed-amd64 (7.2.13+1)
Version: 7.2.13-1
Depends: dracut | initramfs-tools (>= 0.120+deb8u2), linux-binary-7.2.13+deb14-cloud-amd64 (= 7.2.13-1)
Pre-Depends: linux-base (>= 4.17~)
Description: Linux
 More.
Size: 1916
SHA256: 100e

Package: linux-image-cloud-amd64
Version: 7.2.13-1
Size: 1500
SHA256: 200e
";

    #[test]
    fn records_are_read_with_the_versions_they_depend_on() {
        let packages = parse_records(RECORDS);
        assert_eq!(packages.len(), 2);
        assert_eq!(packages[0].version, "7.2.13-1");
        assert_eq!(
            packages[0].depends,
            [
                ("dracut".to_owned(), None),
                ("linux-binary-7.2.13+deb14-cloud-amd64".to_owned(), Some("7.2.13-1".to_owned()))
            ]
        );
        assert_eq!(packages[1].depends, []);
    }

    #[test]
    fn addresses_are_left_out_of_messages() {
        let said = redact("E: Failed to fetch http://m.invalid/debian/x.deb 404 Not Found");
        assert_eq!(said, "E: Failed to fetch (the mirror) 404 Not Found");
    }

    /// An archive in a folder, without a signature: apt must not take packages from it.
    #[test]
    fn an_archive_that_is_not_signed_is_refused() {
        if !Path::new("/usr/bin/apt-get").exists() {
            eprintln!("skipped: needs apt");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("usr/bin/apt-get", "");
        put("debian/dists/bookworm/Release", "Suite: bookworm\nComponents: main\n");
        put("debian/dists/bookworm/main/binary-amd64/Packages", RECORDS);
        let archive = root.path().join("debian");
        put("etc/apt/sources.list", &format!("deb file:{} bookworm main\n", archive.display()));
        let apt = Apt::new(root.path(), &root.path().join("state"), "bookworm").unwrap();
        let failure = apt.update().unwrap_err();
        assert!(failure.details.iter().any(|line| line.contains("not signed")), "{failure}");
        assert!(!apt.has_lists());
        assert_eq!(apt.show(&["linux-image-cloud-amd64".to_owned()]).unwrap(), []);
    }

    #[test]
    fn without_apt_it_says_what_still_works() {
        let root = tempfile::tempdir().unwrap();
        let failure = Apt::new(root.path(), root.path(), "sid").unwrap_err();
        assert_eq!(failure.class, FailureClass::ToolMissing);
        assert!(failure.hint.unwrap().contains("deb:FILE"));
    }

    #[test]
    fn without_a_mirror_it_says_which_is_missing() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        fs::write(root.path().join("usr/bin/apt-get"), "").unwrap();
        let failure = Apt::new(root.path(), root.path(), "bookworm-security").unwrap_err();
        assert!(failure.title.contains("no Debian security mirror"), "{failure}");
    }
}
