use std::collections::BTreeMap;

use kduel_protocol::Knobs;

use super::KernelSpec;
use super::check::Check;
use super::kernels::{self, NamedKernel};
use super::node::{Content, Entry, Node};
use crate::plan::PlannedSide;

const KNOB_KEYS: [&str; 7] =
    ["cmdline", "sysctl", "write", "mount", "modparam", "cpu-flags", "setup"];

const SIDE_KEYS: [&str; 8] =
    ["kernel", "cmdline", "sysctl", "write", "mount", "modparam", "cpu-flags", "setup"];

/// Reads `sides:`; the first is the base. Sides with something wrong are left out.
pub fn read(check: &mut Check<'_>, entry: &Entry, kernels: &[NamedKernel]) -> Vec<PlannedSide> {
    let Some(entries) = check.open_map(&entry.value, "`sides`") else { return Vec::new() };
    if entries.len() < 2 {
        let hint = "add a second one: the first is the base, the others are compared against it";
        check.advise(entry.spot, "an experiment needs at least two sides", hint);
    }
    entries.iter().filter_map(|entry| side(check, entry, kernels)).collect()
}

fn side(check: &mut Check<'_>, entry: &Entry, kernels: &[NamedKernel]) -> Option<PlannedSide> {
    check.name(entry.spot, "a side", &entry.key);
    let what = format!("side `{}`", entry.key);
    let (kernel_node, knobs) = match &entry.value.content {
        Content::Scalar { .. } if !entry.value.is_null() => (&entry.value, Knobs::default()),
        _ => {
            if entry.value.is_null() {
                check.advise(entry.spot, format!("{what} names no kernel"), super::SPEC_HELP);
                return None;
            }
            let entries = check.map(&entry.value, &what, &SIDE_KEYS)?;
            let knobs = knobs(check, entries);
            let Some(kernel) = entry.value.get("kernel") else {
                if check.lacks(&entry.value, "kernel") {
                    let message = format!("{what} names no kernel");
                    check.advise(entry.spot, message, "add `kernel: NAME`");
                }
                return None;
            };
            (kernel, knobs)
        }
    };
    let kernel = kernels::resolve(check, kernel_node, kernels)?;
    let kernel_name = kernel_node.text()?.to_owned();
    Some(PlannedSide { name: entry.key.clone(), kernel_name, kernel, knobs })
}

fn knobs(check: &mut Check<'_>, entries: &[Entry]) -> Knobs {
    let mut knobs = Knobs::default();
    for entry in entries.iter().filter(|entry| KNOB_KEYS.contains(&entry.key.as_str())) {
        let value = &entry.value;
        match entry.key.as_str() {
            "cmdline" => knobs.cmdline = cmdline(check, value),
            "sysctl" => knobs.sysctl = settings(check, entry, "a sysctl", sysctl_name),
            "write" => knobs.write = settings(check, entry, "a path", writable_path),
            "mount" => knobs.mount = settings(check, entry, "a file system", file_system),
            "modparam" => knobs.modparam = settings(check, entry, "a parameter", module_parameter),
            "cpu-flags" => knobs.cpu_flags = cpu_flags(check, value),
            _ => knobs.setup = check.texts(value, "`setup`").unwrap_or_default(),
        }
    }
    knobs
}

/// A map of names to written values, each name checked by `rule`, which says what a good one is.
fn settings(
    check: &mut Check<'_>,
    entry: &Entry,
    what: &str,
    rule: fn(&str) -> Result<(), &'static str>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Some(entries) = check.open_map(&entry.value, &format!("`{}`", entry.key)) else {
        return found;
    };
    for setting in entries {
        if let Err(hint) = rule(&setting.key) {
            let message = format!("`{}` is no name of {what} in `{}`", setting.key, entry.key);
            check.advise(setting.spot, message, hint);
        }
        // What is written is what is set: an empty text is a value, nothing is not.
        if let Content::Scalar { text, plain } = &setting.value.content
            && !(*plain && setting.value.is_null())
        {
            found.insert(setting.key.clone(), text.clone());
        } else {
            let message = format!("`{}` needs a value, not {}", setting.key, setting.value.kind());
            check.complain(setting.value.spot, message);
        }
    }
    found
}

fn sysctl_name(name: &str) -> Result<(), &'static str> {
    let good = name.contains(['.', '/'])
        && !name.contains("..")
        && !name.starts_with(['/', '.'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    good.then_some(())
        .ok_or("write it as sysctl(8) does, for example `kernel.sched_autogroup_enabled: 0`")
}

fn writable_path(path: &str) -> Result<(), &'static str> {
    let below = ["/sys/", "/proc/"].iter().any(|root| path.starts_with(root));
    let good = below && !path.split('/').any(|part| part == "..");
    good.then_some(()).ok_or(
        "write an absolute path below /sys or /proc, for example `/sys/kernel/mm/transparent_hugepage/enabled: never`",
    )
}

fn file_system(name: &str) -> Result<(), &'static str> {
    let good = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    good.then_some(())
        .ok_or("write the file system's type and its options, for example `cgroup2: favordynmods`")
}

fn module_parameter(name: &str) -> Result<(), &'static str> {
    let word = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    let good =
        name.split_once('.').is_some_and(|(module, parameter)| word(module) && word(parameter));
    good.then_some(()).ok_or("write module.parameter, for example `zswap.enabled: 1`")
}

/// Words, split as the kernel splits its command line: at blanks outside double quotes.
fn cmdline(check: &mut Check<'_>, node: &Node) -> Vec<String> {
    let Some(texts) = check.texts(node, "`cmdline`") else { return Vec::new() };
    let mut words = Vec::new();
    for text in texts {
        let mut quoted = false;
        let split = text.split(|c: char| {
            quoted ^= c == '"';
            !quoted && c.is_whitespace()
        });
        words.extend(split.filter(|word| !word.is_empty()).map(str::to_owned));
        if text.matches('"').count() % 2 == 1 {
            check.complain(node.spot, "double quote in `cmdline` is not closed");
        }
    }
    for word in words.iter().filter(|word| word.starts_with("init=") || word.starts_with("rdinit="))
    {
        let message = format!("`{word}` would replace the agent, which is the guest's init");
        check.advise(node.spot, message, "remove it");
    }
    words
}

fn cpu_flags(check: &mut Check<'_>, node: &Node) -> Vec<String> {
    let Some(flags) = check.texts(node, "`cpu-flags`") else { return Vec::new() };
    let flags: Vec<String> = flags
        .iter()
        .flat_map(|text| text.split([' ', ',']))
        .filter(|f| !f.is_empty())
        .map(str::to_owned)
        .collect();
    for flag in &flags {
        let good = flag.strip_prefix(['+', '-']).is_some_and(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        });
        if !good {
            let message = format!("`{flag}` is no CPU flag with a sign");
            check.advise(node.spot, message, "write `+pcid` to add a flag, `-erms` to remove one");
        }
    }
    flags
}

/// Complains about sides that differ in nothing, unless this is an A/A run.
pub fn distinct(check: &mut Check<'_>, entry: &Entry, sides: &[PlannedSide]) {
    let Content::Map(entries) = &entry.value.content else { return };
    for (index, side) in sides.iter().enumerate() {
        let same = |other: &&PlannedSide| {
            same_kernel(&other.kernel, &side.kernel) && other.knobs == side.knobs
        };
        if let Some(other) = sides[..index].iter().find(same) {
            let spot = entries.iter().find(|e| e.key == side.name).map_or(entry.spot, |e| e.spot);
            let message = format!("side `{}` is the same as `{}`", side.name, other.name);
            let hint = "give it another kernel or a knob; or write `aa: true` (or --aa) to compare a side with itself";
            check.advise(spot, message, hint);
        }
    }
}

fn same_kernel(one: &KernelSpec, other: &KernelSpec) -> bool {
    match (one, other) {
        (KernelSpec::Source(one), KernelSpec::Source(other)) => one.is_same(other),
        _ => one == other,
    }
}

/// Lets kernels that are built here begin with what the base's build leaves, if they begin with the same
/// source and nothing else was said.
pub fn build_over_base(sides: &mut [PlannedSide]) {
    let Some((base, others)) = sides.split_first_mut() else { return };
    let KernelSpec::Source(base) = &base.kernel else { return };
    for side in others {
        if let KernelSpec::Source(spec) = &mut side.kernel
            && spec.over.is_none()
            && spec.is_beside(base)
            && !spec.is_same(base)
        {
            spec.over = Some(base.clone());
        }
    }
}

/// A name for a side that is only known by its kernel: the kernel's name, or what of a SPEC can stand
/// in a file name; unlike those of `others`.
pub fn name_of(kernel: &str, others: &[PlannedSide]) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    let word: String = kernel.chars().map(safe).collect();
    let word: String = word.trim_start_matches(['-', '.', '_']).chars().take(36).collect();
    let word = if word.is_empty() { "kernel".to_owned() } else { word };
    let taken = |name: &str| others.iter().any(|side| side.name == name);
    let numbered = (2..).map(|n| format!("{word}-{n}"));
    std::iter::once(word.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(word)
}
