use super::check::Check;
use super::diagnostic::{Diagnostic, Spot};
use super::files::string;
use super::node::{Content, Entry, Node};
use super::spec::{self, DEFAULT_FLAVOUR, SpecError};
use super::{DebianSpec, KernelSpec, source_words, sources};

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
    "debian",
    "deb",
    "image",
    "modules",
    "config",
    "tree",
    "host",
    "source",
    "extends",
    "patches",
    "toolchain",
    "cflags",
];

/// Reads `kernels:`.
pub fn read(check: &mut Check<'_>, node: &Node) -> Vec<NamedKernel> {
    let Some(entries) = check.section(node, "`kernels`") else { return Vec::new() };
    let mut reader =
        Reader { entries, read: entries.iter().map(|_| None).collect(), open: Vec::new() };
    for index in 0..entries.len() {
        reader.read(check, index);
    }
    reader.read.into_iter().flatten().collect()
}

/// Kernels may extend others that stand behind them, so each is read when it is needed first.
struct Reader<'n> {
    entries: &'n [Entry],
    read: Vec<Option<NamedKernel>>,
    /// Those that are being read, each extending the next.
    open: Vec<usize>,
}

impl Reader<'_> {
    fn read(&mut self, check: &mut Check<'_>, index: usize) {
        if self.read[index].is_some() {
            return;
        }
        let entry = &self.entries[index];
        check.name(entry.spot, "a kernel", &entry.key);
        let outer = std::mem::take(&mut check.deferred);
        self.open.push(index);
        let kernel = match entry.value.content {
            Content::Scalar { .. } if !entry.value.is_null() => by_spec(check, &entry.value, &[]),
            _ => self.by_keys(check, entry),
        };
        self.open.pop();
        let deferred = std::mem::replace(&mut check.deferred, outer);
        self.read[index] = Some(NamedKernel { name: entry.key.clone(), kernel, deferred });
    }

    fn by_keys(&mut self, check: &mut Check<'_>, entry: &Entry) -> Option<KernelSpec> {
        let what = format!("kernel `{}`", entry.key);
        let entries = check.map(&entry.value, &what, KEYS)?;
        let mut kinds = entries.iter().filter(|entry| KINDS.contains(&entry.key.as_str()));
        let Some(kind) = kinds.next() else {
            let message = format!("{what} does not say where it comes from");
            let hint =
                "give it one of `debian`, `deb`, `image`, `tree`, `host`, `source`, `extends`";
            check.advise(entry.spot, message, hint);
            return None;
        };
        for other in kinds {
            let message = format!("{what} cannot have both `{}` and `{}`", kind.key, other.key);
            check.complain(other.spot, message);
        }
        extra_keys(check, entries, &kind.key);
        match kind.key.as_str() {
            "debian" => debian(check, &kind.value).map(KernelSpec::Debian),
            "deb" => deb(check, &kind.value),
            "image" => image(check, entries, &kind.value),
            "tree" => tree(check, &kind.value),
            "host" => host(check, &kind.value),
            "source" => sources::source(check, entries, &kind.value)
                .map(|spec| KernelSpec::Source(Box::new(spec))),
            _ => self.extends(check, entries, &kind.value),
        }
    }

    fn extends(
        &mut self,
        check: &mut Check<'_>,
        entries: &[Entry],
        node: &Node,
    ) -> Option<KernelSpec> {
        let name = check.text(node, "`extends`")?;
        let Some(index) = self.entries.iter().position(|entry| entry.key == name) else {
            let names: Vec<&str> = self.entries.iter().map(|entry| entry.key.as_str()).collect();
            check.unknown(node.spot, "kernel", &name, &names);
            return None;
        };
        if let Some(begin) = self.open.iter().position(|open| *open == index) {
            let names = self.open[begin..].iter().chain([&index]);
            let names: Vec<&str> = names.map(|index| self.entries[*index].key.as_str()).collect();
            let message = format!("kernels extend each other in a circle: {}", names.join(" -> "));
            check.advise(node.spot, message, "one of them needs a `source`");
            return None;
        }
        self.read(check, index);
        let parent = self.read[index].as_ref()?;
        check.deferred.extend(parent.deferred.iter().cloned());
        match parent.kernel.clone()? {
            KernelSpec::Source(parent) => {
                Some(KernelSpec::Source(Box::new(sources::extended(check, entries, &parent))))
            }
            _ => {
                let message =
                    format!("kernel `{name}` is not built here, so it cannot be extended");
                let hint = "extend a kernel that has a `source`, for example { debian: linux-source-6.1, suite: bookworm }";
                check.advise(node.spot, message, hint);
                None
            }
        }
    }
}

/// The kernel that a word means: one of the document's, or a SPEC.
pub fn resolve(check: &mut Check<'_>, node: &Node, kernels: &[NamedKernel]) -> Option<KernelSpec> {
    let word = check.text(node, "a kernel")?;
    if let Some((name, files)) = source_words::with_patches(&word)
        && let Some(named) = kernels.iter().find(|kernel| kernel.name == name)
    {
        check.deferred.extend(named.deferred.iter().cloned());
        return patched(check, node, named.kernel.clone()?, &word, &files);
    }
    match kernels.iter().find(|kernel| kernel.name == word) {
        Some(named) => {
            check.deferred.extend(named.deferred.iter().cloned());
            named.kernel.clone()
        }
        None => by_spec(check, node, kernels),
    }
}

/// A kernel of the document with patches on top.
fn patched(
    check: &mut Check<'_>,
    node: &Node,
    kernel: KernelSpec,
    word: &str,
    files: &[&str],
) -> Option<KernelSpec> {
    match source_words::patched(word, Ok(kernel.clone()), files, &check.files) {
        Ok(KernelSpec::Source(mut spec)) => {
            if let KernelSpec::Source(parent) = kernel {
                spec.over = Some(parent);
            }
            Some(KernelSpec::Source(spec))
        }
        Ok(other) => Some(other),
        Err(error) => {
            wrong(check, node, error);
            None
        }
    }
}

/// Complains about a SPEC, or part of it.
pub fn wrong(check: &mut Check<'_>, node: &Node, error: SpecError) {
    let spot = node.part(error.part.0, error.part.1);
    if error.deferred {
        check.defer(spot, error.message, error.hint);
    } else {
        check.advise(spot, error.message, error.hint);
    }
}

fn by_spec(check: &mut Check<'_>, node: &Node, kernels: &[NamedKernel]) -> Option<KernelSpec> {
    let text = check.text(node, "a kernel")?;
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    match spec::parse(&text, &check.files, &names) {
        Ok(kernel) => Some(kernel),
        Err(error) => {
            wrong(check, node, error);
            None
        }
    }
}

/// Keys that only go with another kind of kernel.
fn extra_keys(check: &mut Check<'_>, entries: &[Entry], kind: &str) {
    let is_source = matches!(kind, "source" | "extends");
    for entry in entries {
        let key = entry.key.as_str();
        let goes_with = match key {
            "modules" if kind != "image" => "`image`",
            "config" if kind != "image" && !is_source => "`image`, `source` and `extends`",
            "patches" | "toolchain" | "cflags" if !is_source => "`source` and `extends`",
            _ => continue,
        };
        let message = format!("`{key}` goes with {goes_with}, not with `{kind}`");
        if kind == "debian" {
            let hint = "a kernel that is built here begins with its source: source: { debian: linux-source-6.1, suite: bookworm }";
            check.advise(entry.spot, message, hint);
        } else {
            check.complain(entry.spot, message);
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
