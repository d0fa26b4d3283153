//! The base initramfs of a kernel: agent, shell, SSH server and the modules for its network card.
//! It is made anew each time, which takes milliseconds, and kept under the digest of its bytes: so
//! nothing that went into it can be out of date.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kduel_protocol::{AGENT_PATH, FILES_DIR, MODULES_LIST};

use super::archive::{Archive, merge_usr};
use super::elf;
use super::libraries::{GuestFiles, Program, add_needs};
use super::modules::Module;
use crate::fault::{Failure, FailureClass};
use crate::host::tool::Tool;

/// Small files that every guest has.
const SETTINGS: &[(&str, &str)] = &[
    ("etc/group", include_str!("../../../images/init/etc/group")),
    ("etc/hosts", include_str!("../../../images/init/etc/hosts")),
    ("etc/nsswitch.conf", include_str!("../../../images/init/etc/nsswitch.conf")),
    ("etc/passwd", include_str!("../../../images/init/etc/passwd")),
    ("etc/profile", include_str!("../../../images/init/etc/profile")),
    ("etc/shells", include_str!("../../../images/init/etc/shells")),
];

/// The programs of the host that every guest gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestPrograms {
    /// The agent, a static ELF program.
    pub agent: PathBuf,
    /// busybox.
    pub busybox: PathBuf,
    /// dropbear, the server.
    pub dropbear: PathBuf,
}

impl GuestPrograms {
    /// busybox, where Debian and others install it.
    pub fn find_busybox() -> Option<PathBuf> {
        first_there(&["/bin/busybox", "/usr/bin/busybox", "/sbin/busybox"])
    }

    /// dropbear, where Debian and others install it: a user's PATH often lacks these folders.
    pub fn find_dropbear() -> Option<PathBuf> {
        first_there(&["/usr/sbin/dropbear", "/usr/bin/dropbear", "/usr/local/sbin/dropbear"])
    }

    /// With this agent, and busybox and dropbear where Debian and others install them.
    ///
    /// # Errors
    /// If one is missing: all that are, at once.
    pub fn find(agent: PathBuf) -> Result<Self, Failure> {
        match (Self::find_busybox(), Self::find_dropbear()) {
            (Some(busybox), Some(dropbear)) => Ok(Self { agent, busybox, dropbear }),
            (busybox, dropbear) => {
                let missing = [(busybox, "busybox-static"), (dropbear, "dropbear-bin")];
                let missing: Vec<&str> = missing
                    .iter()
                    .filter(|(path, _)| path.is_none())
                    .map(|(_, name)| *name)
                    .collect();
                let missing = missing.join(" ");
                Err(Failure::new(
                    FailureClass::ToolMissing,
                    format!("guests need programs that this host does not have: {missing}"),
                )
                .hint(format!("install them: apt-get install {missing}")))
            }
        }
    }
}

fn first_there(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.exists())
}

/// The bytes of the base archive.
///
/// # Errors
/// If a program is missing or is not what it should be.
pub fn base(
    programs: &GuestPrograms,
    release: &str,
    modules: &[Module],
) -> Result<Vec<u8>, Failure> {
    let mut archive = Archive::new();
    add_skeleton(&mut archive);
    add_agent(&mut archive, &programs.agent)?;
    add_program(&mut archive, &programs.busybox, Path::new("/bin/busybox"))?;
    for applet in applets(&programs.busybox)? {
        archive.link(Path::new("/usr/bin").join(applet), "busybox");
    }
    add_program(&mut archive, &programs.dropbear, Path::new("/usr/sbin/dropbear"))?;
    add_modules(&mut archive, release, modules);
    archive
        .to_bytes()
        .map_err(|error| Failure::new(FailureClass::Internal, format!("initramfs: {error}")))
}

fn add_skeleton(archive: &mut Archive) {
    merge_usr(archive);
    for folder in ["dev", "etc/dropbear", "proc", "run", "sys", "var/log", "usr/local/bin"] {
        archive.folder(folder, 0o755);
    }
    archive.folder(FILES_DIR, 0o755);
    archive.folder("root", 0o700);
    archive.folder("tmp", 0o1777);
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.character_device("dev/null", 0o666, (1, 3));
    for (path, text) in SETTINGS {
        archive.file(path, 0o644, *text);
    }
}

fn add_agent(archive: &mut Archive, path: &Path) -> Result<(), Failure> {
    let content = fs::read(path).map_err(|error| {
        Failure::host_io("read", path, &error).hint("build it: cargo xtask setup")
    })?;
    check_agent(path, &content)?;
    archive.file(AGENT_PATH, 0o755, content);
    archive.link("init", AGENT_PATH);
    Ok(())
}

/// The agent runs before there is any library: it must be static, and of this machine.
fn check_agent(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let own = fs::read("/proc/self/exe").ok().and_then(|own| elf::facts(&own));
    let wrong = match (elf::facts(content), own) {
        (None, _) => "is no ELF program",
        (Some(facts), Some(own)) if (facts.machine, facts.is_64) != (own.machine, own.is_64) => {
            "is for another machine"
        }
        (Some(facts), _) if facts.interpreter.is_some() || !facts.needed.is_empty() => {
            "is dynamically linked, but guests have no libraries for it"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(FailureClass::HostIo, format!("the agent {} {wrong}", path.display()))
        .hint("build it: cargo xtask setup"))
}

fn add_program(archive: &mut Archive, host: &Path, guest: &Path) -> Result<(), Failure> {
    let content = fs::read(host).map_err(|error| Failure::host_io("read", host, &error))?;
    let mut files = GuestFiles::new();
    add_needs(&Program { host, guest, content: &content }, &mut files)?;
    archive.file(guest, 0o755, content);
    for (path, content) in files {
        archive.file(path, 0o755, content);
    }
    Ok(())
}

/// The names under which busybox can be called, as it says itself.
fn applets(busybox: &Path) -> Result<Vec<String>, Failure> {
    let output = Tool::new(busybox).args(["--list"]).run(Duration::from_secs(20))?;
    let names = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = names
        .lines()
        .filter(|name| !name.is_empty() && *name != "busybox" && !name.contains('/'))
        .map(str::to_owned)
        .collect();
    if names.iter().any(|name| name == "sh") {
        return Ok(names);
    }
    Err(Failure::new(
        FailureClass::ToolMissing,
        format!("{} has no shell in it", busybox.display()),
    )
    .hint("install a full one: apt-get install busybox-static"))
}

fn add_modules(archive: &mut Archive, release: &str, modules: &[Module]) {
    let folder = Path::new("/lib/modules").join(release);
    let mut list = String::new();
    for module in modules {
        let path = folder.join(format!("{}.ko", module.name));
        list.push_str(&format!("{}\n", path.display()));
        archive.file(path, 0o644, module.content.as_slice());
    }
    archive.file(MODULES_LIST, 0o644, list);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bytes: &[u8]) -> Vec<String> {
        let mut rest = bytes;
        let mut names = Vec::new();
        loop {
            let reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return names;
            }
            names.push(reader.entry().name().to_owned());
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn made_twice_it_is_the_same_and_holds_what_a_guest_needs() {
        let Ok(mut programs) = GuestPrograms::find(PathBuf::new()) else {
            eprintln!("skipped: needs busybox-static and dropbear-bin");
            return;
        };
        // A static program that is surely there stands in for the agent.
        programs.agent = programs.busybox.clone();
        let module = Module { name: "virtio_net".to_owned(), content: b"x".to_vec() };
        let bytes = base(&programs, "6.1", std::slice::from_ref(&module)).unwrap();
        assert_eq!(bytes, base(&programs, "6.1", &[module]).unwrap());
        let names = names(&bytes);
        for wanted in [
            "init",
            "kduel/agent",
            "usr/bin/busybox",
            "usr/bin/sh",
            "usr/sbin/dropbear",
            "etc/passwd",
            "dev/console",
            "kduel/modules.list",
            "usr/lib/modules/6.1/virtio_net.ko",
            "lib64",
        ] {
            assert!(names.iter().any(|name| name == wanted), "{wanted} is not in {names:?}");
        }
        assert!(names.iter().any(|name| name.ends_with("libc.so.6")), "{names:?}");
    }

    #[test]
    fn an_agent_that_could_not_run_is_refused() {
        let path = Path::new("agent");
        assert!(check_agent(path, b"#!/bin/sh\n").unwrap_err().title.contains("no ELF"));
        let own = fs::read("/proc/self/exe").unwrap();
        assert!(check_agent(path, &own).unwrap_err().title.contains("dynamically linked"));
    }
}
