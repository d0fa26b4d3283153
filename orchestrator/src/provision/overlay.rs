//! What makes one guest different from all others of its kernel: a small archive behind the base.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kduel_protocol::{GuestPlan, PLAN_PATH};

use super::archive::Archive;
use super::cache::{sha256_of, sha256_of_file};
use super::libraries::{GuestFiles, Program, add_needs};
use crate::fault::{Failure, FailureClass};
use crate::plan::UserFile;

/// Where the guest's SSH server finds its host key.
pub const HOST_KEY_PATH: &str = "/etc/dropbear/host_key";

/// The files of one guest.
#[derive(Debug, Clone)]
pub struct Overlay<'a> {
    /// What the agent has to do.
    pub plan: &'a GuestPlan,
    /// What somebody needs to log in; nobody does in a sealed guest, where keys, which are drawn
    /// anew for each boot, would make two guests of one plan different.
    pub keys: Option<GuestKeys<'a>>,
    /// The user's own files, each with what it needs to be started.
    pub files: &'a [UserFile],
}

/// By which guest and host know each other.
#[derive(Debug, Clone, Copy)]
pub struct GuestKeys<'a> {
    /// The second part of [`super::keys::generate`].
    pub host_key: &'a [u8],
    /// [`crate::boot::SshIdentity::client_public_line`].
    pub authorized_key: &'a str,
}

impl Overlay<'_> {
    /// The archive's bytes, a multiple of four long.
    ///
    /// # Errors
    /// If a user's file cannot be read or is no longer what was pinned, or a library it needs is not
    /// on the host.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Failure> {
        let internal = |error: String| Failure::new(FailureClass::Internal, error);
        let plan = serde_json::to_vec(self.plan)
            .map_err(|error| internal(format!("the guest's plan cannot be written: {error}")))?;
        let mut archive = Archive::new();
        let mut needs = GuestFiles::new();
        for file in self.files {
            add_user_file(file, &mut archive, &mut needs)?;
        }
        for (path, content) in needs {
            archive.file(path, 0o755, content);
        }
        archive.folder("/root", 0o700);
        archive.folder("/tmp", 0o1777);
        if let Some(keys) = self.keys {
            archive.folder("/root/.ssh", 0o700);
            archive.file("/root/.ssh/authorized_keys", 0o600, keys.authorized_key);
            archive.file(HOST_KEY_PATH, 0o600, keys.host_key);
        }
        archive.file(PLAN_PATH, 0o644, plan);
        archive.to_bytes().map_err(|error| internal(format!("the guest's files: {error}")))
    }
}

/// Holds on to what `files` are now: a run whose benchmark is built anew in its middle would compare
/// two benchmarks.
///
/// # Errors
/// If one cannot be read.
pub fn pin_files(files: &mut [UserFile]) -> Result<(), Failure> {
    for file in files {
        let path = Path::new(&file.host);
        let digest =
            sha256_of_file(path).map_err(|error| Failure::host_io("read", path, &error))?;
        file.sha256 = Some(digest);
    }
    Ok(())
}

fn add_user_file(
    file: &UserFile,
    archive: &mut Archive,
    needs: &mut GuestFiles,
) -> Result<(), Failure> {
    let (host, guest) = (Path::new(&file.host), Path::new(&file.guest));
    let failed = |error: std::io::Error| Failure::host_io("read", host, &error);
    // A link's target is what is wanted, under the link's name; `$ORIGIN` is the target's folder.
    let target = host.canonicalize().map_err(failed)?;
    let content = fs::read(&target).map_err(failed)?;
    if file.sha256.as_ref().is_some_and(|pinned| *pinned != sha256_of(&content)) {
        let title = format!("{} has changed since the run began", file.host);
        return Err(Failure::new(FailureClass::HostIo, title)
            .hint("start a new run; the finished pairs of this one stay in its report"));
    }
    let mode = fs::metadata(&target).map_err(failed)?.permissions().mode();
    let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    add_needs(&Program { host: &target, guest, content: &content }, needs)?;
    archive.file(guest, mode, content);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kduel_protocol::{FILES_DIR, Knobs, PROTOCOL, Settle, Transport};
    use std::collections::BTreeMap;

    fn modes(bytes: &[u8]) -> BTreeMap<String, u32> {
        let mut rest = bytes;
        let mut found = BTreeMap::new();
        loop {
            let reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return found;
            }
            found.insert(reader.entry().name().to_owned(), reader.entry().mode());
            rest = reader.finish().unwrap();
        }
    }

    fn plan() -> GuestPlan {
        GuestPlan {
            protocol: PROTOCOL,
            nonce: "n".to_owned(),
            knobs: Knobs::default(),
            transport: Transport::Ssh,
            settle: Settle::first_quiet_second(0),
            deadline_s: None,
            together: false,
            image: None,
            trials: Vec::new(),
            monitors: Vec::new(),
            monitor_terms: Default::default(),
        }
    }

    #[test]
    fn keys_are_private_and_programs_bring_their_libraries() {
        let own = std::env::current_exe().unwrap();
        let guest = format!("{FILES_DIR}/bench");
        let files =
            [UserFile { host: own.display().to_string(), guest: guest.clone(), sha256: None }];
        let plan = plan();
        let overlay = Overlay {
            plan: &plan,
            keys: Some(GuestKeys { host_key: b"h", authorized_key: "ssh-ed25519 x\n" }),
            files: &files,
        };
        let bytes = overlay.to_bytes().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let modes = modes(&bytes);
        assert_eq!(modes["root"], 0o040_700);
        assert_eq!(modes["root/.ssh"], 0o040_700);
        assert_eq!(modes["root/.ssh/authorized_keys"], 0o100_600);
        assert_eq!(modes["etc/dropbear/host_key"], 0o100_600);
        assert_eq!(modes["kduel/plan.json"], 0o100_644);
        assert_eq!(modes["kduel/files/bench"], 0o100_755);
        assert!(modes.keys().any(|name| name.ends_with("libc.so.6")), "{:?}", modes.keys());
        assert!(!modes.contains_key("lib64"), "a folder would replace the base's link");
    }

    #[test]
    fn a_sealed_guest_gets_the_same_bytes_each_time_and_no_keys() {
        let plan = plan();
        let bytes = || Overlay { plan: &plan, keys: None, files: &[] }.to_bytes().unwrap();
        assert_eq!(bytes(), bytes());
        let modes = modes(&bytes());
        assert!(!modes.contains_key("root/.ssh") && !modes.contains_key("etc/dropbear/host_key"));
    }

    #[test]
    fn a_benchmark_that_is_built_anew_in_the_middle_of_a_run_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let bench = dir.path().join("bench");
        fs::write(&bench, "#!/bin/sh\necho 1\n").unwrap();
        let (host, guest) = (bench.display().to_string(), format!("{FILES_DIR}/bench"));
        let mut files = [UserFile { host, guest, sha256: None }];
        pin_files(&mut files).unwrap();
        let plan = plan();
        let overlay = Overlay { plan: &plan, keys: None, files: &files };
        overlay.to_bytes().unwrap();
        fs::write(&bench, "#!/bin/sh\necho 2\n").unwrap();
        let failure = overlay.to_bytes().unwrap_err();
        assert!(failure.title.ends_with("has changed since the run began"), "{failure}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let plan = plan();
        let (host, guest) = ("/no/such/bench".to_owned(), "/x".to_owned());
        let files = [UserFile { host, guest, sha256: None }];
        let overlay = Overlay { plan: &plan, keys: None, files: &files };
        assert!(overlay.to_bytes().unwrap_err().title.contains("/no/such/bench"));
    }
}
