//! Repositories that git can reach and that are no folder here.

use std::fs;
use std::path::Path;

use super::{LONGEST, Repository, checked, git, missing};
use crate::fault::{Failure, FailureClass};
use crate::host::tool::Tool;
use crate::text;

/// The id of the commit that a branch, a tag or a full id means at `address`.
///
/// # Errors
/// If git cannot reach it, or it has no such revision.
pub fn commit(address: &str, revision: &str) -> Result<String, Failure> {
    if is_id(revision) {
        return Ok(revision.to_owned());
    }
    let list = reaching(Tool::args(git(), ["ls-remote", "--quiet", "--", address]));
    let output = list.run(LONGEST).map_err(missing)?;
    let output = checked("ask the repository", Path::new(address), output)?;
    let output = String::from_utf8_lossy(&output);
    let refs: Vec<(&str, &str)> = output
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(id, name)| (name, id))
        .collect();
    let named = |name: String| refs.iter().find(|(there, _)| *there == name).map(|(_, id)| *id);
    // What an annotated tag stands for is listed behind the tag itself.
    let meant = ["refs/tags/{}^{}", "refs/tags/{}", "refs/heads/{}", "{}"];
    let id = meant.into_iter().find_map(|form| named(form.replacen("{}", revision, 1)));
    id.map(str::to_owned).ok_or_else(|| unknown(address, revision, &refs))
}

fn unknown(address: &str, revision: &str, refs: &[(&str, &str)]) -> Failure {
    let title = format!("{address} has no branch or tag `{revision}`");
    let names = refs.iter().filter_map(|(name, _)| {
        let name = name.strip_prefix("refs/")?;
        name.strip_prefix("tags/").or_else(|| name.strip_prefix("heads/"))
    });
    let hint = match text::nearest(revision, names.filter(|name| !name.ends_with("^{}"))) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name a branch, a tag or a commit by its full id".to_owned(),
    };
    Failure::new(FailureClass::KernelUnusable, title).hint(hint)
}

/// A repository in `folder` that has `commit`, which `address` calls `revision`: fetched without its
/// history if it is not there. For one kduel at a time.
///
/// # Errors
/// If git cannot reach it, or the revision has become another commit.
pub fn fetched(
    address: &str,
    revision: &str,
    commit: &str,
    folder: &Path,
) -> Result<Repository, Failure> {
    let shown = Path::new(address);
    if !folder.join("HEAD").is_file() {
        fs::create_dir_all(folder).map_err(|error| Failure::host_io("make", folder, &error))?;
        let init = git().args(["init", "--quiet", "--bare", "."]).within(folder);
        checked("make a mirror of", shown, init.run(LONGEST).map_err(missing)?)?;
    }
    let store = folder.join("kduel");
    let Some(repository) = Repository::find(folder, &store)? else {
        let title = format!("{} is no repository any more", folder.display());
        return Err(Failure::new(FailureClass::HostIo, title).hint("delete it"));
    };
    if repository.commit(commit)?.is_some() {
        return Ok(repository);
    }
    let mut last = None;
    for wanted in [commit, revision] {
        let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head"];
        let tool = reaching(git().args(fetch).args(["--", address, wanted])).within(folder);
        let output = tool.env("GIT_DIR", folder).run(LONGEST)?;
        last = checked("fetch from", shown, output).err();
        if repository.commit(commit)?.is_some() {
            return Ok(repository);
        }
    }
    Err(last.unwrap_or_else(|| {
        let title = format!("{address} does not give commit {commit} any more");
        Failure::new(FailureClass::KernelUnusable, title)
    }))
}

/// Without a question to a person who is not there.
fn reaching(tool: Tool) -> Tool {
    tool.env("GIT_TERMINAL_PROMPT", "0").env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
}

fn is_id(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}
