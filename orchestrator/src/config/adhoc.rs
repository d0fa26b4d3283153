//! An ad-hoc comparison is a document that was not written down: flags become the same tree, so that
//! the same rules hold and `--save` has nothing to translate.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use kduel_protocol::Topology;

use super::check::Check;
use super::diagnostic::{COMMAND_LINE, Source, Spot};
use super::files::{Files, string};
use super::node::{Content, Entry, Node};
use super::source_words;
use super::topologies;
use crate::cli::args::{MeasureArg, RunArgs};
use crate::plan::topology::{self, DEFAULT_TOPOLOGY};
use crate::units;

/// The name of the experiment.
pub const NAME: &str = "adhoc";

/// The words of a command line as a source: one line per flag.
pub struct CommandLine {
    index: usize,
    source: Source,
}

impl CommandLine {
    /// No words yet; `index` is the place that it will have among the sources.
    pub fn new(index: usize) -> Self {
        Self { index, source: Source { name: COMMAND_LINE.to_owned(), lines: Vec::new() } }
    }

    /// Adds a flag with its value, and says where the value stands.
    pub fn word(&mut self, flag: &str, value: &str) -> Spot {
        let value = value.replace(['\n', '\r'], " ");
        let line = if flag.is_empty() { value.clone() } else { format!("{flag} {value}") };
        let column = line.chars().count() - value.chars().count() + 1;
        self.source.lines.push(Arc::from(line));
        let (line, len) = (self.source.lines.len(), value.chars().count().max(1));
        Spot { source: self.index, line, column, len }
    }

    /// As [`Self::word`], the value itself.
    pub fn node(&mut self, flag: &str, value: &str) -> Node {
        Node::word(self.word(flag, value), value)
    }

    /// What was collected.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// Whether the flags compare without a document.
pub fn is_adhoc(args: &RunArgs) -> bool {
    args.base.is_some() || !args.candidates.is_empty()
}

/// Flags that were given and mean nothing beside a document.
pub fn stray_flags(args: &RunArgs) -> Vec<&'static str> {
    [
        ("-w", !args.workloads.is_empty()),
        ("--cpus", args.cpus.is_some()),
        ("--memory", args.memory.is_some()),
        ("--topology", args.topology.is_some()),
        ("--image", args.image.is_some()),
        ("--append", !args.append.is_empty()),
        ("--append-a", !args.append_a.is_empty()),
        ("--append-b", !args.append_b.is_empty()),
        ("--sysctl-a", !args.sysctl_a.is_empty()),
        ("--sysctl-b", !args.sysctl_b.is_empty()),
        ("--config", !args.config.is_empty()),
        ("--config-item", !args.config_item.is_empty()),
        ("--config-item-a", !args.config_item_a.is_empty()),
        ("--config-item-b", !args.config_item_b.is_empty()),
        ("--with-file", !args.with_files.is_empty()),
        ("--metric", !args.metrics.is_empty()),
        ("--save", args.save.is_some()),
        ("--", !args.command.is_empty()),
    ]
    .into_iter()
    .filter_map(|(flag, given)| given.then_some(flag))
    .collect()
}

/// Builds the tree. Paths are written relative to the check's folder; they were given relative to
/// `current`.
pub fn tree(
    check: &mut Check<'_>,
    words: &mut CommandLine,
    args: &RunArgs,
    current: &Files<'_>,
) -> Node {
    let flags = Flags { args, current: *current, folder: check.files.folder.to_owned() };
    let mut kernels = Vec::new();
    let sides = flags.sides(words, &mut kernels);
    flags.useless(check, &kernels);
    let workloads = flags.workloads(words);
    let (topology_name, full) = flags.topology(check, words);
    let nowhere = Spot { source: words.index, ..Spot::default() };
    let mut experiment = vec![
        Entry::new("sides", Node::map(nowhere, sides)),
        Entry::new("topology", topology_name.clone()),
        Entry::new("workloads", Node::list(nowhere, workloads)),
    ];
    experiment.extend(flags.terms(words));
    let mut root = vec![Entry::new("version", Node::word(nowhere, "1"))];
    if !kernels.is_empty() {
        root.push(Entry::new("kernels", Node::map(nowhere, kernels)));
    }
    if let Some(topology) = full {
        let entry =
            Entry { key: string_of(&topology_name), spot: topology_name.spot, value: topology };
        root.push(Entry::new("topologies", Node::map(nowhere, vec![entry])));
    }
    let experiment = Entry::new(NAME, Node::map(nowhere, experiment));
    root.push(Entry::new("experiments", Node::map(nowhere, vec![experiment])));
    Node::map(nowhere, root)
}

fn string_of(node: &Node) -> String {
    node.text().unwrap_or_default().to_owned()
}

/// The flags, and where they were given.
pub struct Flags<'a> {
    /// As given.
    pub args: &'a RunArgs,
    /// The current folder.
    pub current: Files<'a>,
    /// The folder of the document that they become.
    pub folder: PathBuf,
}

impl Flags<'_> {
    fn sides(&self, words: &mut CommandLine, kernels: &mut Vec<Entry>) -> Vec<Entry> {
        let mut sides = Vec::new();
        let base_name = if self.args.by_default { "base" } else { "a" };
        if let Some(base) = &self.args.base {
            sides.push(self.side(words, kernels, base_name, true, base));
        }
        for (spec, name) in self.args.candidates.iter().zip('b'..='z') {
            let name = if self.args.by_default { "patched" } else { &name.to_string() };
            sides.push(self.side(words, kernels, name, false, spec));
        }
        sides
    }

    fn side(
        &self,
        words: &mut CommandLine,
        kernels: &mut Vec<Entry>,
        name: &str,
        is_base: bool,
        spec: &str,
    ) -> Entry {
        let kernel = match self.described(words, is_base, spec) {
            Some(described) => {
                let word = Node::word(described.spot, name);
                kernels.push(Entry { key: name.to_owned(), spot: word.spot, value: described });
                word
            }
            None => words.node(flag(is_base), &self.rebased_spec(spec)),
        };
        let spot = kernel.spot;
        let (append, sysctl) = if is_base {
            (("--append-a", &self.args.append_a), ("--sysctl-a", &self.args.sysctl_a))
        } else {
            (("--append-b", &self.args.append_b), ("--sysctl-b", &self.args.sysctl_b))
        };
        let mut knobs = Vec::new();
        let mut cmdline: Vec<Node> =
            self.args.append.iter().map(|word| words.node("--append", word)).collect();
        cmdline.extend(append.1.iter().map(|word| words.node(append.0, word)));
        if let Some(first) = cmdline.first() {
            knobs.push(Entry::new("cmdline", Node::list(first.spot, cmdline)));
        }
        let settings: Vec<Entry> =
            sysctl.1.iter().map(|word| setting(words, sysctl.0, word)).collect();
        if let Some(first) = settings.first() {
            knobs.push(Entry::new("sysctl", Node::map(first.spot, settings)));
        }
        let value = if knobs.is_empty() {
            kernel
        } else {
            knobs.insert(0, Entry::new("kernel", kernel));
            Node::map(spot, knobs)
        };
        Entry { key: name.to_owned(), spot, value }
    }

    /// A SPEC whose path, if it is one, is relative to the document's folder.
    pub fn rebased_spec(&self, spec: &str) -> String {
        if let Some((kernel, patches)) = source_words::with_patches(spec) {
            let patches = patches.iter().map(|patch| self.rebased(patch));
            return std::iter::once(self.rebased_spec(kernel))
                .chain(patches)
                .collect::<Vec<_>>()
                .join("+");
        }
        for scheme in ["deb:", "source:"] {
            if let Some(file) = spec.strip_prefix(scheme)
                && (scheme == "deb:" || self.current.absolute(file).exists())
            {
                return format!("{scheme}{}", self.rebased(file));
            }
        }
        let exists = self.current.is_file(spec) || self.current.is_folder(spec);
        if exists && spec != "host" { self.rebased(spec) } else { spec.to_owned() }
    }

    /// A path as it is written in the document's folder.
    pub fn rebased(&self, written: &str) -> String {
        let relative = !written.starts_with(['/', '~']);
        if relative && self.folder != self.current.folder {
            return string(&relative_path(&self.folder, &self.current.absolute(written)));
        }
        written.to_owned()
    }

    fn workloads(&self, words: &mut CommandLine) -> Vec<Node> {
        let mut found = Vec::new();
        for list in &self.args.workloads {
            let whole = words.word("-w", list);
            let mut column = whole.column;
            for item in list.split(',') {
                let len = item.chars().count();
                found.push(workload(item, Spot { column, len: len.max(1), ..whole }));
                column += len + 1;
            }
        }
        if !self.args.command.is_empty() {
            found.push(self.command(words));
        }
        found
    }

    fn command(&self, words: &mut CommandLine) -> Node {
        let files: Vec<Node> = self
            .args
            .with_files
            .iter()
            .map(|path| words.node("--with-file", &self.rebased(path)))
            .collect();
        let metrics: Vec<Node> =
            self.args.metrics.iter().map(|metric| metric_node(words, metric)).collect();
        let is_file = |word: &str, index: usize| {
            (index == 0 && word.contains('/')) || self.args.with_files.iter().any(|f| f == word)
        };
        let argv: Vec<String> = self
            .args
            .command
            .iter()
            .enumerate()
            .map(|(i, word)| if is_file(word, i) { self.rebased(word) } else { word.clone() })
            .collect();
        let whole = words.word("--", &argv.join(" "));
        let mut column = whole.column;
        let mut nodes = Vec::new();
        for word in argv {
            let len = word.chars().count();
            let spot = Spot { column, len: len.max(1), ..whole };
            let plain = !word.is_empty();
            nodes.push(Node { spot, content: Content::Scalar { text: word, plain } });
            column += len + 1;
        }
        let mut keys = vec![Entry::new("argv", Node::list(whole, nodes))];
        if !files.is_empty() {
            keys.push(Entry::new("files", Node::list(whole, files)));
        }
        if !metrics.is_empty() {
            keys.push(Entry::new("metrics", Node::list(whole, metrics)));
        }
        Node::map(whole, vec![Entry::new(kduel_protocol::COMMAND, Node::map(whole, keys))])
    }

    /// The topology's name, and its description if the document must define it.
    fn topology(&self, check: &mut Check<'_>, words: &mut CommandLine) -> (Node, Option<Node>) {
        let mut name = match (&self.args.topology, &self.args.cpus) {
            (Some(name), _) => words.node("--topology", name),
            (None, Some(cpus)) => {
                let node = words.node("--cpus", cpus);
                check.sources[words.index] = words.source.clone();
                let cpus = check.integer(&node, "--cpus", 1..=topology::MAX_CPUS.into());
                Node::word(node.spot, format!("1s{}c", cpus.unwrap_or(1)))
            }
            (None, None) => {
                Node::word(Spot { source: words.index, ..Spot::default() }, DEFAULT_TOPOLOGY)
            }
        };
        let Some(memory) = &self.args.memory else { return (name, None) };
        let memory = words.node("--memory", memory);
        check.sources[words.index] = words.source.clone();
        let Some(mib) = topologies::memory_mib(check, &memory) else { return (name, None) };
        let Some(topology) = topology::named(&string_of(&name)) else { return (name, None) };
        let word = format!("{}-{}", string_of(&name), units::size(mib << 20));
        name.content = Content::Scalar { text: word, plain: true };
        let described = describe(&topology::with_memory(topology, mib), memory.spot);
        (name, Some(described))
    }

    fn terms(&self, words: &mut CommandLine) -> Vec<Entry> {
        let args = self.args;
        let mut terms = Vec::new();
        if let Some(measure) = args.measure {
            let word = match measure {
                MeasureArg::Time => "time",
                MeasureArg::Instructions => "instructions",
            };
            terms.push(Entry::new("measure", words.node("--measure", word)));
        }
        let numbers = [
            ("pairs", args.pairs),
            ("iterations", args.iterations),
            ("seeds", args.seeds),
            ("shift", args.shift.map(u32::from)),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                terms.push(Entry::new(key, words.node(&format!("--{key}"), &value.to_string())));
            }
        }
        if let Some(image) = &args.image {
            let is_path = image.contains('/') || image.ends_with(".yaml");
            let word = if is_path { self.rebased(image) } else { image.clone() };
            terms.push(Entry::new("image", words.node("--image", &word)));
        }
        if !args.cpu.is_empty() {
            let models: Vec<Node> = args.cpu.iter().map(|m| words.node("--cpu", m)).collect();
            let spot = models[0].spot;
            terms.push(Entry::new("cpu", Node::list(spot, models)));
        }
        if let Some(statistic) = args.statistic() {
            terms.push(Entry::new("stat", words.node("--stat", statistic.name())));
        }
        if let Some(pairing) = args.pairing {
            terms.push(Entry::new("pairing", words.node("--pairing", pairing.pairing().name())));
        }
        if !args.margin.is_empty() {
            let margins: Vec<Node> =
                args.margin.iter().map(|m| words.node("--margin", m)).collect();
            let spot = margins[0].spot;
            terms.push(Entry::new("margin", Node::list(spot, margins)));
        }
        if !args.monitors.is_empty() {
            let names = args.monitors.iter().map(|monitor| words.node("--monitor", monitor.name()));
            let names: Vec<Node> = names.collect();
            terms.push(Entry::new("monitors", Node::list(names[0].spot, names)));
        }
        if let Some(size) = args.huge_pages {
            terms.push(Entry::new("huge-pages", words.node("--huge-pages", size.pages().name())));
        }
        let switches = [
            ("quick", args.quick),
            ("aa", args.aa),
            ("chains", args.chains),
            ("cpu-pm", args.cpu_pm),
        ];
        for (key, given) in switches {
            if given {
                terms
                    .push(Entry::new(key, Node::word(words.word("", &format!("--{key}")), "true")));
            }
        }
        terms
    }
}

/// The flag of a side.
pub fn flag(is_base: bool) -> &'static str {
    if is_base { "-a" } else { "-b" }
}

/// `K=V`.
fn setting(words: &mut CommandLine, flag: &str, word: &str) -> Entry {
    let spot = words.word(flag, word);
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let content = Content::Scalar { text: value.to_owned(), plain: true };
    Entry { key: key.to_owned(), spot, value: Node { spot, content } }
}

/// `NAME[:PARAMETER=VALUE[+VALUE…]]…`.
fn workload(item: &str, spot: Spot) -> Node {
    let mut parts = item.split(':');
    let name = parts.next().unwrap_or_default();
    let params: Vec<Entry> = parts.map(|part| parameter(part, spot)).collect();
    if params.is_empty() {
        return Node::word(spot, name);
    }
    Node::map(spot, vec![Entry { key: name.to_owned(), spot, value: Node::map(spot, params) }])
}

fn parameter(part: &str, spot: Spot) -> Entry {
    let (key, values) = part.split_once('=').unwrap_or((part, ""));
    let mut values: Vec<Node> = values.split('+').map(|value| Node::word(spot, value)).collect();
    let value = if values.len() == 1 { values.remove(0) } else { Node::list(spot, values) };
    Entry { key: key.to_owned(), spot, value }
}

/// `NAME:UNIT:lower|higher:REGEX`; what is missing is complained about by the rules for metrics.
fn metric_node(words: &mut CommandLine, metric: &str) -> Node {
    let spot = words.word("--metric", metric);
    let keys = ["name", "unit", "better", "regex"];
    let parts = metric.splitn(keys.len(), ':');
    let entry = |(key, part): (&str, &str)| Entry::new(key, Node::word(spot, part));
    Node::map(spot, keys.into_iter().zip(parts).map(entry).collect())
}

fn describe(topology: &Topology, spot: Spot) -> Node {
    let number = |n: u64| Node::word(spot, n.to_string());
    let mib = |n: u64| Node::word(spot, units::size(n << 20));
    let mut keys = vec![
        Entry::new("sockets", number(topology.sockets.into())),
        Entry::new("cores", number(topology.cores.into())),
        Entry::new("threads", number(topology.threads.into())),
        Entry::new("memory", mib(topology.memory_mib)),
    ];
    if topology.nodes.is_empty() {
        return Node::map(spot, keys);
    }
    let list =
        |numbers: &[u32]| Node::list(spot, numbers.iter().map(|n| number((*n).into())).collect());
    let node = |node: &kduel_protocol::TopologyNode| {
        let cpus = Entry::new("cpus", list(&node.cpus));
        Node::map(spot, vec![cpus, Entry::new("memory", mib(node.memory_mib))])
    };
    let nodes = topology.nodes.iter().map(node).collect();
    let rows = topology.distances.iter().map(|row| list(row)).collect();
    keys.push(Entry::new("nodes", Node::list(spot, nodes)));
    keys.push(Entry::new("distances", Node::list(spot, rows)));
    Node::map(spot, keys)
}

/// How `path` is called from `folder`; both absolute.
fn relative_path(folder: &Path, path: &Path) -> PathBuf {
    let mut from = folder.components().peekable();
    let mut to = path.components().peekable();
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let up = from.map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(to).collect();
    if relative.starts_with("..") { relative } else { Path::new(".").join(relative) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_way_between_folders() {
        let way = |from: &str, to: &str| string(&relative_path(Path::new(from), Path::new(to)));
        assert_eq!(way("/w/docs", "/w/bench"), "../bench");
        assert_eq!(way("/w", "/w/sub/bench"), "./sub/bench");
    }
}
