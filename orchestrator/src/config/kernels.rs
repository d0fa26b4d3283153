use super::check::Check;
use super::diagnostic::{Diagnostic, Spot};
use super::files::string;
use super::node::{Content, Entry, Node};
use super::spec::{self, DEFAULT_FLAVOUR};
use super::{DebianSpec, KernelSpec};

/// A kernel of the document.
pub struct NamedKernel {
    /// As named.
    pub name: String,
    /// Absent if something is wrong with it, which was complained about.
    pub kernel: Option<KernelSpec>,
    /// Complaints for those who use it.
    pub deferred: Vec<Diagnostic>,
}

const KINDS: &[&str] = &["debian", "deb", "image", "tree", "host", "source", "extends"];

const KEYS: &[&str] = &[
    "debian", "deb", "image", "modules", "config", "tree", "host", "source", "extends", "patches",
];

const NOT_YET_HINT: &str =
    "what works: `debian`, `deb`, `image`, `tree` (a built kernel tree) and `host`";

/// Reads `kernels:`.
pub fn read(check: &mut Check<'_>, node: &Node) -> Vec<NamedKernel> {
    let Some(entries) = check.section(node, "`kernels`") else { return Vec::new() };
    entries.iter().map(|entry| named(check, entry)).collect()
}

fn named(check: &mut Check<'_>, entry: &Entry) -> NamedKernel {
    check.name(entry.spot, "a kernel", &entry.key);
    let outer = std::mem::take(&mut check.deferred);
    let kernel = match entry.value.content {
        Content::Scalar { .. } if !entry.value.is_null() => by_spec(check, &entry.value, &[]),
        _ => by_keys(check, entry),
    };
    let deferred = std::mem::replace(&mut check.deferred, outer);
    NamedKernel { name: entry.key.clone(), kernel, deferred }
}

/// The kernel that a word means: one of the document's, or a SPEC.
pub fn resolve(check: &mut Check<'_>, node: &Node, kernels: &[NamedKernel]) -> Option<KernelSpec> {
    let word = check.text(node, "a kernel")?;
    match kernels.iter().find(|kernel| kernel.name == word) {
        Some(named) => {
            check.deferred.extend(named.deferred.iter().cloned());
            named.kernel.clone()
        }
        None => by_spec(check, node, kernels),
    }
}

fn by_spec(check: &mut Check<'_>, node: &Node, kernels: &[NamedKernel]) -> Option<KernelSpec> {
    let text = check.text(node, "a kernel")?;
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    match spec::parse(&text, &check.files, &names) {
        Ok(kernel) => Some(kernel),
        Err(error) => {
            let spot = node.part(error.part.0, error.part.1);
            if error.deferred {
                check.defer(spot, error.message, error.hint);
            } else {
                check.advise(spot, error.message, error.hint);
            }
            None
        }
    }
}

fn by_keys(check: &mut Check<'_>, entry: &Entry) -> Option<KernelSpec> {
    let what = format!("kernel `{}`", entry.key);
    let entries = check.map(&entry.value, &what, KEYS)?;
    let mut kinds = entries.iter().filter(|entry| KINDS.contains(&entry.key.as_str()));
    let Some(kind) = kinds.next() else {
        let message = format!("{what} does not say where it comes from");
        check.advise(
            entry.spot,
            message,
            "give it one of `debian`, `deb`, `image`, `tree`, `host`",
        );
        return None;
    };
    for other in kinds.filter(|other| !is_source(&other.key) || !is_source(&kind.key)) {
        let message = format!("{what} cannot have both `{}` and `{}`", kind.key, other.key);
        check.complain(other.spot, message);
    }
    if is_source(&kind.key) {
        let message =
            format!("`{}`: kernels from source are not supported yet by this version", kind.key);
        check.defer(kind.spot, message, NOT_YET_HINT);
        return None;
    }
    extra_keys(check, entries, &kind.key);
    match kind.key.as_str() {
        "debian" => debian(check, &kind.value).map(KernelSpec::Debian),
        "deb" => deb(check, &kind.value),
        "image" => image(check, entries, &kind.value),
        "tree" => tree(check, &kind.value),
        _ => host(check, &kind.value),
    }
}

fn is_source(kind: &str) -> bool {
    matches!(kind, "source" | "extends")
}

/// Keys that only go with another kind of kernel.
fn extra_keys(check: &mut Check<'_>, entries: &[Entry], kind: &str) {
    for entry in entries {
        match entry.key.as_str() {
            "patches" => {
                let message =
                    "`patches`: kernels from source are not supported yet by this version";
                check.defer(entry.spot, message, NOT_YET_HINT);
            }
            "modules" | "config" if kind != "image" => {
                let message = format!("`{}` goes with `image`, not with `{kind}`", entry.key);
                check.complain(entry.spot, message);
            }
            _ => {}
        }
    }
}

fn debian(check: &mut Check<'_>, node: &Node) -> Option<DebianSpec> {
    let entries = check.map(node, "`debian`", &["suite", "flavour", "version"])?;
    if check.lacks(node, "suite") {
        check.advise(node.spot, "`debian` names no suite", "add `suite: bookworm`");
    }
    let mut found =
        DebianSpec { suite: String::new(), flavour: DEFAULT_FLAVOUR.to_owned(), version: None };
    for entry in entries {
        let spot = entry.value.spot;
        let Some(text) = check.text(&entry.value, &format!("`{}`", entry.key)) else { continue };
        let checked = match entry.key.as_str() {
            "suite" => spec::check_suite(&text),
            "flavour" => spec::check_flavour(&text),
            "version" => spec::check_version(&text),
            _ => continue,
        };
        complain_if(check, spot, checked);
        match entry.key.as_str() {
            "suite" => found.suite = text,
            "flavour" => found.flavour = text,
            _ => found.version = Some(text),
        }
    }
    Some(found)
}

fn complain_if(check: &mut Check<'_>, spot: Spot, checked: Result<(), (String, String)>) {
    if let Err((message, hint)) = checked {
        check.advise(spot, message, hint);
    }
}

fn deb(check: &mut Check<'_>, node: &Node) -> Option<KernelSpec> {
    let items = check.one_or_more(node, "`deb`")?;
    let files: Option<Vec<String>> =
        items.into_iter().map(|item| file(check, item, "package")).collect();
    let mut files = files?.into_iter();
    Some(KernelSpec::Deb { file: files.next()?, also: files.collect() })
}

fn image(check: &mut Check<'_>, entries: &[Entry], node: &Node) -> Option<KernelSpec> {
    let image = file(check, node, "image");
    let mut modules = None;
    let mut config = None;
    for entry in entries {
        match entry.key.as_str() {
            "modules" => modules = folder(check, &entry.value),
            "config" if matches!(entry.value.content, Content::List(_)) => check.defer(
                entry.spot,
                "`config` as a list: kernels from source are not supported yet by this version",
                "with `image`, `config` is the path of the kernel's .config",
            ),
            "config" => config = file(check, &entry.value, "config"),
            _ => {}
        }
    }
    Some(KernelSpec::Image { image: image?, modules, config })
}

fn tree(check: &mut Check<'_>, node: &Node) -> Option<KernelSpec> {
    let written = check.text(node, "`tree`")?;
    let path = string(&check.files.absolute(&written));
    if !check.files.is_built_tree(&written) {
        let message = format!("{path} is no built kernel tree");
        check.defer(
            node.spot,
            message,
            "there is no arch/x86/boot/bzImage in it; build the kernel first",
        );
    }
    Some(KernelSpec::Tree { path })
}

fn host(check: &mut Check<'_>, node: &Node) -> Option<KernelSpec> {
    if !node.is_null() && !check.flag(node, "`host`")? {
        check.complain(node.spot, "`host: false` means nothing");
        return None;
    }
    Some(KernelSpec::Host)
}

/// The absolute path of a file, which must be there for who uses it.
pub fn file(check: &mut Check<'_>, node: &Node, what: &str) -> Option<String> {
    let written = check.text(node, what)?;
    let path = string(&check.files.absolute(&written));
    if !check.files.is_file(&written) {
        let message = format!("{what}: file {path} does not exist");
        check.defer(node.spot, message, "relative paths begin at the document's folder");
    }
    Some(path)
}

fn folder(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = check.text(node, "`modules`")?;
    let path = string(&check.files.absolute(&written));
    if !check.files.is_folder(&written) {
        let message = format!("folder {path} does not exist");
        check.defer(node.spot, message, "relative paths begin at the document's folder");
    }
    Some(path)
}
