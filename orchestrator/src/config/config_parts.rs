//! `config:`, `toolchain:` and `cflags:` of a kernel from source.

use super::check::{Check, choice_hint, nearest};
use super::files::string;
use super::node::{Content, Node};
use super::spec::{self, DEFAULT_FLAVOUR};
use super::{Compiler, ConfigPart, Origin, Toolchain};

const WORDS: [&str; 4] = ["minimal", "tree", "host", "distribution"];

/// Reads `config:` of a kernel with this origin.
pub fn read(check: &mut Check<'_>, node: &Node, origin: Option<&Origin>) -> Vec<ConfigPart> {
    let Some(items) = check.one_or_more(node, "`config`") else { return Vec::new() };
    items.into_iter().filter_map(|item| part(check, item, origin)).collect()
}

/// Whether a part is a whole config, which takes the place of an inherited one.
pub fn is_whole(part: &ConfigPart) -> bool {
    !matches!(part, ConfigPart::Item { .. } | ConfigPart::File { .. })
}

fn part(check: &mut Check<'_>, node: &Node, origin: Option<&Origin>) -> Option<ConfigPart> {
    if let Content::Map(_) = node.content {
        return by_key(check, node);
    }
    let word = check.text(node, "a part of `config`")?;
    match word.as_str() {
        "minimal" => Some(ConfigPart::Minimal),
        "host" => Some(ConfigPart::Host),
        "tree" => tree(check, node, origin),
        "distribution" => match origin {
            Some(Origin::Debian { suite, .. }) => Some(ConfigPart::Distribution {
                suite: suite.clone(),
                flavour: DEFAULT_FLAVOUR.to_owned(),
            }),
            _ => {
                let hint = "write `{ distribution: { suite: bookworm, flavour: amd64 } }`";
                check.advise(node.spot, "`distribution` does not say of which suite", hint);
                None
            }
        },
        _ if word.contains('=') => item(check, node, &word, false),
        _ => file(check, node, &word),
    }
}

/// `{optional: CONFIG_X=y}`, `{distribution: {suite: …, flavour: …}}`.
fn by_key(check: &mut Check<'_>, node: &Node) -> Option<ConfigPart> {
    let entries = check.map(node, "a part of `config`", &["optional", "distribution"])?;
    let [entry] = entries else {
        check.advise(node.spot, "a part of `config` says one thing", "write a list of parts");
        return None;
    };
    match entry.key.as_str() {
        "optional" => {
            let setting = check.text(&entry.value, "`optional`")?;
            item(check, &entry.value, &setting, true)
        }
        "distribution" => distribution(check, &entry.value),
        _ => None,
    }
}

fn distribution(check: &mut Check<'_>, node: &Node) -> Option<ConfigPart> {
    let entries = check.map(node, "`distribution`", &["suite", "flavour"])?;
    if check.lacks(node, "suite") {
        check.advise(node.spot, "`distribution` names no suite", "add `suite: bookworm`");
    }
    let (mut suite, mut flavour) = (None, DEFAULT_FLAVOUR.to_owned());
    for entry in entries {
        let text = check.text(&entry.value, &format!("`{}`", entry.key))?;
        let checked = match entry.key.as_str() {
            "suite" => spec::check_suite(&text),
            "flavour" => spec::check_flavour(&text),
            _ => continue,
        };
        if let Err((message, hint)) = checked {
            check.advise(entry.value.spot, message, hint);
        }
        if entry.key == "suite" {
            suite = Some(text);
        } else {
            flavour = text;
        }
    }
    Some(ConfigPart::Distribution { suite: suite?, flavour })
}

/// The `.config` that lies in a working tree or folder; a tarball may bring one of its own.
fn tree(check: &mut Check<'_>, node: &Node, origin: Option<&Origin>) -> Option<ConfigPart> {
    let folder = match origin? {
        Origin::Debian { .. } | Origin::Tarball { .. } => return Some(ConfigPart::Tree),
        Origin::Folder { path } => path,
        Origin::Git { repository, .. } => repository,
    };
    let path = format!("{folder}/.config");
    if !check.files.is_file(&path) {
        let hint = "configure the tree, or take `minimal`";
        check.defer(node.spot, format!("`tree`: there is no .config in {folder}"), hint);
    }
    Some(ConfigPart::File { path })
}

fn file(check: &mut Check<'_>, node: &Node, word: &str) -> Option<ConfigPart> {
    if !check.files.is_file(word) && !word.contains(['/', '.']) {
        let hint = match word.starts_with("CONFIG_") {
            true => format!("write `{word}=y`"),
            false => match nearest(word, WORDS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "write minimal, tree, host, distribution, a file, or CONFIG_PSI=y".to_owned()
                }
            },
        };
        check.advise(node.spot, format!("unknown part of a config `{word}`"), hint);
        return None;
    }
    let path = string(&check.files.absolute(word));
    if !check.files.is_file(word) {
        let hint = "relative paths begin at the document's folder";
        check.defer(node.spot, format!("config {path} does not exist"), hint);
    }
    Some(ConfigPart::File { path })
}

fn item(check: &mut Check<'_>, node: &Node, setting: &str, optional: bool) -> Option<ConfigPart> {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    let word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !name.strip_prefix("CONFIG_").is_some_and(word) {
        let hint = match word(name) {
            true => format!("did you mean `CONFIG_{}={value}`?", name.to_ascii_uppercase()),
            false => "an option is written as in a .config: CONFIG_PSI=y".to_owned(),
        };
        check.advise(node.spot, format!("`{setting}` is no config option"), hint);
        return None;
    }
    let is_text = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    let is_number = value.parse::<i64>().is_ok()
        || value.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok());
    if !(matches!(value, "y" | "m" | "n") || is_number || is_text) {
        let message = format!("{name} cannot be `{value}`");
        check.advise(node.spot, message, "write y, m, n, a number, or a text in double quotes");
        return None;
    }
    Some(ConfigPart::Item { setting: setting.to_owned(), optional })
}

/// Reads `toolchain:`.
pub fn toolchain(check: &mut Check<'_>, node: &Node) -> Option<Toolchain> {
    let text = check.text(node, "`toolchain`")?;
    let (name, version) = match text.split_once('-') {
        Some((name, version)) => (name, Some(version)),
        None => (text.as_str(), None),
    };
    let compiler = match name {
        "gcc" => Compiler::Gcc,
        "clang" => Compiler::Clang,
        _ => {
            let hint = choice_hint(name, &["gcc", "clang"]).unwrap_or_default();
            check.advise(node.spot, format!("unknown toolchain `{text}`"), hint);
            return None;
        }
    };
    let number =
        version.map(|version| version.parse::<u32>().ok().filter(|n| (1..=99).contains(n)));
    if number == Some(None) {
        let hint = format!("write {name} or {name}-12, for example");
        check.advise(node.spot, format!("`{text}` names no version of {name}"), hint);
        return None;
    }
    Some(Toolchain { compiler, version: number.flatten() })
}

/// Reads `cflags:`, words in one text or a list.
pub fn cflags(check: &mut Check<'_>, node: &Node) -> Vec<String> {
    let texts = check.texts(node, "`cflags`").unwrap_or_default();
    let words: Vec<String> =
        texts.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let message = format!("`{word}` is no flag of a compiler");
        check.advise(node.spot, message, "flags begin with `-`, for example -O3");
    }
    words
}
