//! Installs packages through apt without changing what the host's apt knows.
//!
//! The host's sources of its own release, and for QEMU on Debian 12 the backports, are written
//! into a list of our own, and apt is given folders of our own for what it downloads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::needs;
use super::sources::{self, Source};
use crate::shell::Tool;
use crate::workspace;

/// Where apt keeps lists and archives during the installation; removed after it.
const SCRATCH: &str = "/var/cache/kduel-setup";

/// The release of the host.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// `bookworm`.
    pub codename: String,
    /// Whether QEMU has to come from the backports.
    pub backports: bool,
}

/// The host's release, from the text of its `os-release`.
///
/// # Errors
///
/// It is not Debian, or too old; the message says so.
pub fn release(os_release: &str) -> Result<Release> {
    let value = |name: &str| {
        let mut values =
            os_release.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.next().map(|value| value.trim_matches('"').to_owned())
    };
    let name = value("PRETTY_NAME").unwrap_or_else(|| "this system".to_owned());
    if value("ID").as_deref() != Some("debian") {
        bail!("{name} is not a Debian that this set-up knows");
    }
    let codename = value("VERSION_CODENAME").with_context(|| format!("{name} names no release"))?;
    // Testing and unstable have no number.
    let number: Option<u32> = value("VERSION_ID").and_then(|number| number.parse().ok());
    match number {
        Some(..12) => bail!("{name} is too old: its archive has no QEMU {}", needs::QEMU_MAJOR),
        number => Ok(Release { codename, backports: number == Some(12) }),
    }
}

/// The commands that install `packages`, each to be run as root, in this order.
///
/// Writes the list of sources that they use into kduel's cache.
pub fn commands(release: &Release, packages: &[&str]) -> Result<Vec<Vec<String>>> {
    let qemu = packages.contains(&needs::QEMU);
    let backports = qemu && release.backports;
    let folder = workspace::cache_folder()?.join("setup");
    let list = write_list(&folder, &chosen_sources(release, backports)?)?;
    let options = options(&list, Path::new(SCRATCH));
    let apt = |words: &[&str], packages: &[&str]| -> Vec<String> {
        let options = options.iter().map(String::as_str);
        let words = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
            .into_iter()
            .chain(options)
            .chain(words.iter().copied());
        words.chain(packages.iter().copied()).map(str::to_owned).collect()
    };
    let install = ["install", "--yes", "--no-install-recommends"];
    let folders = ["lists/partial", "archives/partial"].map(|folder| format!("{SCRATCH}/{folder}"));

    let mut commands = vec![
        ["install", "-d"].map(str::to_owned).into_iter().chain(folders).collect(),
        apt(&["update"], &[]),
    ];
    let plain: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|package| !(backports && *package == needs::QEMU))
        .collect();
    if !plain.is_empty() {
        commands.push(apt(&install, &plain));
    }
    if backports {
        // Parts of QEMU from two suites do not install together: those that are there move along.
        let mut parts = installed_parts_of_qemu();
        parts.insert(0, needs::QEMU.to_owned());
        let suite = format!("--target-release={}-backports", release.codename);
        let words: Vec<&str> = install.into_iter().chain([suite.as_str()]).collect();
        commands.push(apt(&words, &parts.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    commands.push(["rm", "-r", SCRATCH].map(str::to_owned).into());
    Ok(commands)
}

fn chosen_sources(release: &Release, backports: bool) -> Result<Vec<Source>> {
    let chosen = sources::for_release(&host_sources()?, &release.codename, backports);
    if chosen.is_empty() {
        bail!(
            "none of the host's apt sources carries {} main\n\
             hint: add it to /etc/apt/sources.list.d and try again",
            release.codename
        );
    }
    Ok(chosen)
}

fn host_sources() -> Result<Vec<Source>> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    for entry in fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten() {
        files.push(entry.context("failed to read /etc/apt/sources.list.d")?.path());
    }
    files.sort();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let parse = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources::one_line_format,
            Some("sources") => sources::deb822_format,
            _ => continue,
        };
        let text = fs::read_to_string(file)
            .with_context(|| format!("failed to read {}", file.display()))?;
        found.extend(parse(&text));
    }
    Ok(found)
}

/// The archive that carries the host's own release, at another `suite`.
pub fn main_archive(suite: &str) -> Result<Source> {
    let host = release(&fs::read_to_string("/etc/os-release").unwrap_or_default())?;
    let ours = chosen_sources(&host, false)?;
    let archive =
        sources::main_archive(&ours).context("no apt source carries the release itself")?;
    Ok(Source { suite: suite.to_owned(), components: vec!["main".to_owned()], ..archive.clone() })
}

/// Writes `sources.list` into `folder`, which is made.
pub fn write_list(folder: &Path, sources: &[Source]) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let file = folder.join("sources.list");
    let text: String = sources.iter().map(|source| source.line() + "\n").collect();
    fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(file)
}

/// Of every apt program: `list` alone, and what it keeps in `scratch`.
pub fn options(list: &Path, scratch: &Path) -> Vec<String> {
    let settings = [
        format!("Dir::Etc::sourcelist={}", list.display()),
        "Dir::Etc::sourceparts=-".to_owned(),
        format!("Dir::State::Lists={}/lists", scratch.display()),
        format!("Dir::Cache={}", scratch.display()),
        "Acquire::Retries=3".to_owned(),
    ];
    settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect()
}

fn installed_parts_of_qemu() -> Vec<String> {
    let query =
        Tool::new("dpkg-query").args(["-W", "-f=${db:Status-Status} ${Package}\n", "qemu-*"]);
    let answer = query.probe().unwrap_or_default();
    let installed = answer.lines().filter_map(|line| line.strip_prefix("installed "));
    installed.filter(|package| *package != needs::QEMU).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOKWORM: &str = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n\
                            VERSION_CODENAME=bookworm\nID=debian\n";

    #[test]
    fn bookworm_needs_backports_and_later_ones_do_not() {
        let codename =
            |text: &str| release(text).map(|release| (release.codename, release.backports));
        assert_eq!(codename(BOOKWORM).unwrap(), ("bookworm".to_owned(), true));
        let trixie = BOOKWORM.replace("12", "13").replace("bookworm", "trixie");
        assert_eq!(codename(&trixie).unwrap(), ("trixie".to_owned(), false));
        let testing = "ID=debian\nVERSION_CODENAME=forky\n";
        assert_eq!(codename(testing).unwrap(), ("forky".to_owned(), false));
    }

    #[test]
    fn what_cannot_be_set_up_is_named() {
        let old = BOOKWORM.replace("12", "11").replace("bookworm", "bullseye");
        let message = release(&old).unwrap_err().to_string();
        assert_eq!(
            message,
            "Debian GNU/Linux 11 (bullseye) is too old: its archive has no QEMU 10"
        );
        let other = release("ID=fedora\nPRETTY_NAME=\"Fedora Linux 43\"\n").unwrap_err();
        assert_eq!(other.to_string(), "Fedora Linux 43 is not a Debian that this set-up knows");
    }
}
