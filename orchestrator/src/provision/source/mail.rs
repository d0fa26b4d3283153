//! Mailboxes of patches, such as `b4 am` and `git format-patch --stdout` write them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault::{Failure, FailureClass};
use crate::host::git::{git, missing};
use crate::host::tool::Tool;

const LONGEST: Duration = Duration::from_secs(300);

/// One patch, ready to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// What people call it: the file's name, and of several mails in it which one.
    pub name: String,
    /// The file with the diff in it.
    pub file: PathBuf,
}

/// The patches of one file, in order: one of each mail that has a diff in it, decoded into `scratch`.
/// A file that is no mail is its own patch.
///
/// # Errors
/// If the file cannot be read, or there is no diff in it.
pub fn split(file: &Path, scratch: &Path) -> Result<Vec<Patch>, Failure> {
    let bytes = fs::read(file).map_err(|error| Failure::host_io("read", file, &error))?;
    let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut patches = match is_mail(&bytes) {
        false => vec![Patch { name: shown, file: file.to_owned() }],
        true => mails(file, &shown, scratch)?,
    };
    let mut kept = Vec::new();
    for patch in patches.drain(..) {
        let diff =
            fs::read(&patch.file).map_err(|error| Failure::host_io("read", &patch.file, &error))?;
        if !super::diff::parse(&String::from_utf8_lossy(&diff)).is_empty() {
            kept.push(patch);
        }
    }
    if kept.is_empty() {
        let title = format!("there is no patch in {}", file.display());
        return Err(Failure::new(FailureClass::KernelUnusable, title));
    }
    Ok(kept)
}

/// Whether it begins as a mailbox does, or with the head of a mail that may have to be decoded.
fn is_mail(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"From ") {
        return true;
    }
    let head = &bytes[..bytes.len().min(1 << 16)];
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines()
        .take_while(|line| !line.is_empty())
        .any(|line| line.starts_with("content-transfer-"))
}

fn mails(file: &Path, shown: &str, scratch: &Path) -> Result<Vec<Patch>, Failure> {
    let failed = |why: &str| {
        let title = format!("failed to read the mails in {}", file.display());
        let failure = Failure::new(FailureClass::KernelUnusable, title);
        why.lines().take(4).fold(failure, Failure::detail)
    };
    let run = |tool: Tool| {
        let tool = tool.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = tool.within(scratch).run(LONGEST).map_err(missing)?;
        if output.status.success() { Ok(output.stdout) } else { Err(failed(&output.stderr)) }
    };
    let mut to = std::ffi::OsString::from("-o");
    to.push(scratch);
    run(git().args(["mailsplit", "-b"]).args([to]).args([file]))?;
    let mut numbers: Vec<PathBuf> = fs::read_dir(scratch)
        .map_err(|error| Failure::host_io("read", scratch, &error))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_none())
        .collect();
    numbers.sort();
    let several = numbers.len() > 1;
    let mut patches = Vec::new();
    for mail in numbers {
        let (message, diff) = (mail.with_extension("txt"), mail.with_extension("patch"));
        let about = run(git().args(["mailinfo"]).args([&message, &diff]).input(&mail))?;
        let about = String::from_utf8_lossy(&about).into_owned();
        let subject = about.lines().find_map(|line| line.strip_prefix("Subject: "));
        let name = match subject.filter(|_| several) {
            Some(subject) => format!("{shown}: {subject}"),
            None => shown.to_owned(),
        };
        patches.push(Patch { name, file: diff });
    }
    Ok(patches)
}
