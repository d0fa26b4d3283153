use kduel_protocol::{Better, CommandSpec, FILES_DIR, MetricSource, MetricSpec};

use super::check::Check;
use super::files::string;
use super::kernels;
use super::node::{Content, Entry, Node};
use super::numa::parse_cpu_list;
use crate::plan::UserFile;

/// Keys of the workload `command` besides its parameters.
pub const KEYS: &[&str] =
    &["argv", "files", "env", "setup", "teardown", "cpus", "cgroup", "nice", "metrics"];

const METRIC_KEYS: &[&str] = &["name", "unit", "better", "regex", "json-pointer"];

/// Reads a benchmark of the user's own and the files that it brings along.
pub fn read(check: &mut Check<'_>, entry: &Entry) -> Option<(Option<CommandSpec>, Vec<UserFile>)> {
    let Some(argv_node) = entry.value.get("argv") else {
        check.advise(entry.spot, "`command` names no program", "add `argv: [./bench, -n, 1000]`");
        return None;
    };
    let mut files = Files::default();
    if let Some(node) = entry.value.get("files") {
        for item in check.one_or_more(node, "`files`")? {
            files.add(check, item)?;
        }
    }
    let argv = argv(check, argv_node, &mut files)?;
    let get = |key: &str| entry.value.get(key);
    let mut texts = |key: &str| match get(key) {
        Some(node) => check.texts(node, &format!("`{key}`")),
        None => Some(Vec::new()),
    };
    let (setup, teardown) = (texts("setup")?, texts("teardown")?);
    let command = CommandSpec {
        argv,
        env: get("env").map_or(Some(Vec::new()), |node| env(check, node))?,
        setup,
        teardown,
        cpus: get("cpus").map_or(Some(None), |node| cpus(check, node).map(Some))?,
        cgroup: get("cgroup").map_or(Some(None), |node| cgroup(check, node).map(Some))?,
        nice: get("nice").map_or(Some(None), |node| nice(check, node).map(Some))?,
        metrics: get("metrics").map_or(Some(Vec::new()), |node| metrics(check, node))?,
    };
    Some((Some(command), files.found))
}

/// Files that go into the guest, with the names they were given on the host.
#[derive(Default)]
struct Files {
    written: Vec<String>,
    found: Vec<UserFile>,
}

impl Files {
    fn add(&mut self, check: &mut Check<'_>, node: &Node) -> Option<()> {
        let host = kernels::file(check, node, "`files`")?;
        let written = node.text()?.to_owned();
        if !self.written.contains(&written) {
            let guest = guest_path(&written);
            self.written.push(written);
            self.found.push(UserFile { host, guest, sha256: None });
        }
        Some(())
    }

    /// The guest's path of a word that names one of the files.
    fn in_guest(&self, word: &str) -> Option<&str> {
        let index = self.written.iter().position(|written| written == word)?;
        Some(&self.found[index].guest)
    }
}

/// Where a file that is named `written` on the host lies in the guest: below one folder, without the
/// steps that would lead out of it.
fn guest_path(written: &str) -> String {
    let parts = written.split('/').filter(|part| !matches!(*part, "" | "." | ".." | "~"));
    format!("{FILES_DIR}/{}", parts.collect::<Vec<_>>().join("/"))
}

/// The command as the guest runs it. A program with a slash in its name comes from the host.
fn argv(check: &mut Check<'_>, node: &Node, files: &mut Files) -> Option<Vec<String>> {
    let Content::List(items) = &node.content else {
        let hint = "write a list, as `argv: [./bench, -n, 1000]`";
        check.advise(node.spot, format!("`argv` must be a list, not {}", node.kind()), hint);
        return None;
    };
    let Some(program) = items.first() else {
        check.complain(node.spot, "`argv` is empty");
        return None;
    };
    if program.text().is_some_and(|word| word.contains('/')) {
        let word = program.text()?;
        if !check.files.is_file(word) {
            let path = string(&check.files.absolute(word));
            let hint = "a program with a slash in its name is taken from the host; without one it is the guest's own";
            check.defer(program.spot, format!("program {path} does not exist"), hint);
        } else {
            files.add(check, program)?;
        }
    }
    let words: Option<Vec<String>> = items
        .iter()
        .map(|item| match &item.content {
            Content::Scalar { text, .. } => Some(text.clone()),
            _ => check.text(item, "a word of `argv`"),
        })
        .collect();
    let in_guest = |word: String| files.in_guest(&word).map(str::to_owned).unwrap_or(word);
    Some(words?.into_iter().map(in_guest).collect())
}

/// `[NAME=value]` or `{NAME: value}`.
fn env(check: &mut Check<'_>, node: &Node) -> Option<Vec<String>> {
    let pairs = match &node.content {
        Content::Map(entries) => {
            let mut pairs = Vec::new();
            for entry in entries {
                pairs.push(format!("{}={}", entry.key, check.text(&entry.value, "`env`")?));
            }
            pairs
        }
        _ => check.texts(node, "`env`")?,
    };
    for pair in &pairs {
        let name = pair.split_once('=').map_or("", |(name, _)| name);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            check.advise(node.spot, format!("`{pair}` sets no variable"), "write NAME=value");
        }
    }
    Some(pairs)
}

fn cpus(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let text = check.text(node, "`cpus`")?;
    if parse_cpu_list(&text).is_none() {
        check.advise(node.spot, "`cpus` is no list of CPUs", "write for example 0-3 or 0-3,8");
    }
    Some(text)
}

fn cgroup(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let text = check.text(node, "`cgroup`")?;
    if text.starts_with('/') || text.split('/').any(|part| matches!(part, "" | "." | "..")) {
        let hint = "write a path below the root of cgroup2, for example `bench` or `a/b`";
        check.advise(node.spot, format!("`cgroup` cannot be `{text}`"), hint);
    }
    Some(text)
}

fn nice(check: &mut Check<'_>, node: &Node) -> Option<i32> {
    let text = check.text(node, "`nice`")?;
    let value = text.parse().ok().filter(|nice| (-20..=19).contains(nice));
    if value.is_none() {
        let message = format!("`nice` cannot be `{text}`");
        check.advise(node.spot, message, "write a number from -20 to 19");
    }
    value
}

fn metrics(check: &mut Check<'_>, node: &Node) -> Option<Vec<MetricSpec>> {
    let mut found: Vec<MetricSpec> = Vec::new();
    for item in check.list(node, "`metrics`")? {
        let Some(metric) = metric(check, item) else { continue };
        if found.iter().any(|other| other.name == metric.name) {
            check.complain(item.spot, format!("metric `{}` is described twice", metric.name));
        }
        found.push(metric);
    }
    Some(found)
}

fn metric(check: &mut Check<'_>, item: &Node) -> Option<MetricSpec> {
    check.map(item, "a metric", METRIC_KEYS)?;
    let mut needed = |key: &str| {
        let found = item.get(key);
        if found.is_none() {
            check.complain(item.spot, format!("a metric needs `{key}`"));
        }
        found
    };
    let (name, unit, better) = (needed("name"), needed("unit"), needed("better"));
    let source = match (item.get("regex"), item.get("json-pointer")) {
        (Some(node), None) => regex(check, node),
        (None, Some(node)) => pointer(check, node),
        _ => {
            let hint = "the expression's first group, or the pointer's target, is the number";
            check.advise(item.spot, "a metric needs either `regex` or `json-pointer`", hint);
            None
        }
    };
    let better_text = check.text(better?, "`better`")?;
    let better = match better_text.as_str() {
        "lower" => Better::Lower,
        "higher" => Better::Higher,
        other => {
            check.unknown(better?.spot, "direction", other, &["lower", "higher"]);
            return None;
        }
    };
    let (name, unit) = (check.text(name?, "`name`")?, check.text(unit?, "`unit`")?);
    Some(MetricSpec { name, unit, better, source: source? })
}

fn regex(check: &mut Check<'_>, node: &Node) -> Option<MetricSource> {
    let text = check.text(node, "`regex`")?;
    match regex::Regex::new(&text) {
        Ok(regex) if regex.captures_len() > 1 => Some(MetricSource::Regex(text)),
        Ok(_) => {
            let hint = r"put parentheses round the number, for example `rate: ([0-9.]+)`";
            check.advise(node.spot, "`regex` has no group", hint);
            None
        }
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            check.complain(node.spot, format!("`regex` is no regular expression: {why}"));
            None
        }
    }
}

fn pointer(check: &mut Check<'_>, node: &Node) -> Option<MetricSource> {
    let text = check.text(node, "`json-pointer`")?;
    if !text.starts_with('/') {
        let hint = "write an RFC 6901 pointer, for example /jobs/0/read/iops";
        check.advise(node.spot, format!("`{text}` is no JSON pointer"), hint);
        return None;
    }
    Some(MetricSource::JsonPointer(text))
}
