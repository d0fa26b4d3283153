//! `source:` and `extends:`: kernels that are built here.

use super::check::Check;
use super::config_parts::{self, is_whole};
use super::files::string;
use super::node::{Content, Entry, Node};
use super::patches;
use super::source_words::{self, WORKING_TREE, one_of};
use super::spec;
use super::{ConfigPart, KernelSpec, Origin, SourceSpec, Toolchain};

const KINDS: [&str; 4] = ["debian", "tarball", "folder", "git"];

const KEYS: [&str; 7] = ["debian", "suite", "version", "tarball", "folder", "git", "rev"];

/// Reads a kernel with `source:`.
pub fn source(check: &mut Check<'_>, entries: &[Entry], node: &Node) -> Option<SourceSpec> {
    let begun = match &node.content {
        Content::Map(_) => origin(check, node).map(|origin| (origin, Vec::new())),
        _ => by_word(check, node),
    };
    let own = own(check, entries, begun.as_ref().map(|(origin, _)| origin));
    let (origin, mut patches) = begun?;
    patches.extend(own.patches);
    let mut config = own.config;
    if matches!(config.first(), None | Some(ConfigPart::Item { .. })) {
        config.insert(0, ConfigPart::Minimal);
    }
    let toolchain = own.toolchain.unwrap_or_default();
    Some(SourceSpec { origin, patches, config, toolchain, cflags: own.cflags, over: None })
}

/// Reads a kernel that has all that `parent` has, and more. A whole config takes the place of the
/// parent's, anything else lies over it.
pub fn extended(check: &mut Check<'_>, entries: &[Entry], parent: &SourceSpec) -> SourceSpec {
    let own = own(check, entries, Some(&parent.origin));
    let mut spec = parent.clone();
    spec.over = Some(Box::new(parent.clone()));
    spec.patches.extend(own.patches);
    if own.config.first().is_some_and(is_whole) {
        spec.config.clear();
    }
    spec.config.extend(own.config);
    spec.toolchain = own.toolchain.unwrap_or(spec.toolchain);
    spec.cflags.extend(own.cflags);
    spec
}

/// What a kernel adds to its source.
#[derive(Default)]
struct Own {
    patches: Vec<String>,
    config: Vec<ConfigPart>,
    toolchain: Option<Toolchain>,
    cflags: Vec<String>,
}

fn own(check: &mut Check<'_>, entries: &[Entry], origin: Option<&Origin>) -> Own {
    let mut own = Own::default();
    for entry in entries {
        match entry.key.as_str() {
            "patches" => own.patches = patch_files(check, &entry.value),
            "config" => own.config = config_parts::read(check, &entry.value, origin),
            "toolchain" => own.toolchain = config_parts::toolchain(check, &entry.value),
            "cflags" => own.cflags = config_parts::cflags(check, &entry.value),
            _ => {}
        }
    }
    own
}

fn patch_files(check: &mut Check<'_>, node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    for item in check.one_or_more(node, "`patches`").unwrap_or_default() {
        let Some(written) = check.text(item, "a patch") else { continue };
        match patches::expand(&written, &check.files) {
            Ok(files) => found.extend(files),
            Err((message, hint)) => {
                check.defer(item.spot, message, hint);
                found.push(string(&check.files.absolute(&written)));
            }
        }
    }
    found
}

/// A SPEC of a kernel that is built here.
fn by_word(check: &mut Check<'_>, node: &Node) -> Option<(Origin, Vec<String>)> {
    let text = check.text(node, "`source`")?;
    match spec::parse(&text, &check.files, &[]) {
        Ok(KernelSpec::Source(spec)) => Some((spec.origin, spec.patches)),
        // Built or not, its source is what was asked for.
        Ok(KernelSpec::Tree { .. }) => folder(check, node).map(|origin| (origin, Vec::new())),
        Ok(_) => {
            let hint = "a source is a revision, `.`, a tarball, a source tree, or a map such as { debian: linux-source-6.1, suite: bookworm }";
            check.advise(node.spot, format!("`{text}` is no source of a kernel"), hint);
            None
        }
        Err(error) => {
            super::kernels::wrong(check, node, error);
            None
        }
    }
}

fn origin(check: &mut Check<'_>, node: &Node) -> Option<Origin> {
    let entries = check.map(node, "`source`", &KEYS)?;
    let mut kinds = entries.iter().filter(|entry| KINDS.contains(&entry.key.as_str()));
    let Some(kind) = kinds.next() else {
        let hint = "give it one of `debian`, `tarball`, `folder`, `git`";
        if KINDS.iter().all(|kind| check.lacks(node, kind)) {
            check.advise(node.spot, "`source` does not say where the source comes from", hint);
        }
        return None;
    };
    if let Some(other) = kinds.next() {
        let message = format!("`source` cannot have both `{}` and `{}`", kind.key, other.key);
        check.complain(other.spot, message);
    }
    for entry in entries {
        let belongs = match entry.key.as_str() {
            "suite" | "version" => "debian",
            "rev" => "git",
            _ => continue,
        };
        if kind.key != belongs {
            let message = format!("`{}` goes with `{belongs}`, not with `{}`", entry.key, kind.key);
            check.complain(entry.spot, message);
        }
    }
    match kind.key.as_str() {
        "debian" => debian(check, node, &kind.value),
        "tarball" => {
            let path = super::kernels::file(check, &kind.value, "tarball")?;
            Some(Origin::Tarball { path })
        }
        "folder" => folder(check, &kind.value),
        _ => git(check, node, &kind.value),
    }
}

fn debian(check: &mut Check<'_>, node: &Node, package: &Node) -> Option<Origin> {
    let text = check.text(package, "`debian`");
    let mut complain = |node: &Node, checked: Result<(), (String, String)>| {
        if let Err((message, hint)) = checked {
            check.advise(node.spot, message, hint);
        }
    };
    if let Some(text) = &text {
        complain(package, source_words::check_package(text));
    }
    let word = |key: &str| node.get(key).map(|node| (node, node.text().unwrap_or_default()));
    let suite = word("suite");
    if let Some((node, suite)) = suite {
        complain(node, spec::check_suite(suite));
    }
    let version = word("version");
    if let Some((node, version)) = version {
        complain(node, spec::check_version(version));
    }
    if suite.is_none() && check.lacks(node, "suite") {
        check.advise(node.spot, "`source` names no suite", "add `suite: bookworm`");
    }
    Some(Origin::Debian {
        package: text?,
        suite: suite?.1.to_owned(),
        version: version.map(|(_, version)| version.to_owned()),
    })
}

fn folder(check: &mut Check<'_>, node: &Node) -> Option<Origin> {
    let written = check.text(node, "`folder`")?;
    if !check.files.is_source(&written) {
        let message =
            format!("{} is no source tree of a kernel", string(&check.files.absolute(&written)));
        let hint = "there must be a Makefile, a Kconfig and arch/ in it";
        check.defer(node.spot, message, hint);
        return None;
    }
    match source_words::origin_of_folder(&written, &check.files) {
        Ok(origin) => Some(origin),
        Err(failure) => {
            check.defer(node.spot, failure.title, failure.hint.unwrap_or_default());
            None
        }
    }
}

/// A repository that is a folder here is asked at once; another one when it is needed.
fn git(check: &mut Check<'_>, node: &Node, place: &Node) -> Option<Origin> {
    let written = check.text(place, "`git`");
    let rev = node.get("rev");
    if rev.is_none() && check.lacks(node, "rev") {
        check.advise(node.spot, "`source` names no revision", "add for example `rev: v6.12`");
    }
    let rev = rev?;
    let revision = check.text(rev, "`rev`")?;
    let written = written?;
    if !check.files.is_folder(&written) {
        let is_address = written.contains("://")
            || (written.contains(':') && !written.starts_with(['/', '.', '~']));
        if !is_address || written.starts_with('-') {
            let path = string(&check.files.absolute(&written));
            let hint = "name a folder, or an address such as https://HOST/linux.git";
            check.defer(place.spot, format!("repository {path} does not exist"), hint);
            return None;
        }
        return Some(Origin::Git { repository: written, revision, commit: String::new() });
    }
    match commit(check, &written, &revision) {
        Ok(origin) => Some(origin),
        Err((is_place, message, hint)) => {
            check.defer(if is_place { place.spot } else { rev.spot }, message, hint);
            None
        }
    }
}

/// What a revision means in a repository that is a folder. An error says whether it is about the
/// folder, and what.
fn commit(
    check: &Check<'_>,
    written: &str,
    revision: &str,
) -> Result<Origin, (bool, String, String)> {
    let failed = |failure: crate::fault::Failure| {
        let text = std::iter::once(failure.title).chain(failure.details).collect::<Vec<_>>();
        (true, text.join("; "), failure.hint.unwrap_or_default())
    };
    let Some(repository) = check.files.repository(written).map_err(failed)? else {
        let path = string(&check.files.absolute(written));
        let hint = "for a source tree without git write `folder:`";
        return Err((true, format!("{path} is no git repository"), hint.to_owned()));
    };
    let top = string(&repository.top);
    if revision == WORKING_TREE {
        let commit = repository.snapshot().map_err(failed)?.commit;
        return Ok(Origin::Git { repository: top, revision: revision.to_owned(), commit });
    }
    match repository.commit(revision).map_err(failed)? {
        Some(commit) => Ok(Origin::Git { repository: top, revision: revision.to_owned(), commit }),
        None => {
            let near = repository.near(revision).unwrap_or_default();
            let hint = match near.as_slice() {
                [] => "name a branch, a tag or a commit".to_owned(),
                near => format!("did you mean {}?", one_of(near)),
            };
            Err((false, format!("no revision `{revision}` in {top}"), hint))
        }
    }
}
