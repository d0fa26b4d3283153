//! Kernels of an ad-hoc comparison that a SPEC alone does not describe: those with a config of their own,
//! and those of a git tree that the document is not in.

use super::adhoc::{CommandLine, Flags, flag};
use super::check::Check;
use super::diagnostic::{COMMAND_LINE, Diagnostic};
use super::node::{Entry, Node};
use super::source_words;

impl Flags<'_> {
    /// The `kernels:` entry of a side that needs one.
    pub fn described(&self, words: &mut CommandLine, is_base: bool, spec: &str) -> Option<Node> {
        let (kernel, patches) = source_words::with_patches(spec).unwrap_or((spec, Vec::new()));
        let is_revision = source_words::is_working_tree(kernel)
            || matches!(source_words::revision(kernel, &self.current), Ok(Some(_)));
        let is_moved = is_revision && self.folder != self.current.folder;
        let has_config = self.has_config(is_base) && !self.is_binary(kernel);
        if !is_moved && !has_config {
            return None;
        }
        let spot = words.word(flag(is_base), spec);
        let word = |text: String| Node::word(spot, text);
        let mut keys = Vec::new();
        if is_moved {
            let git = Entry::new("git", word(self.rebased(".")));
            let rev = Entry::new("rev", word(kernel.trim_end_matches('/').to_owned()));
            keys.push(Entry::new("source", Node::map(spot, vec![git, rev])));
            if !patches.is_empty() {
                let patches = patches.iter().map(|patch| word(self.rebased(patch))).collect();
                keys.push(Entry::new("patches", Node::list(spot, patches)));
            }
        } else {
            keys.push(Entry::new("source", word(self.rebased_spec(spec))));
        }
        if has_config {
            let parts = self.config(words, is_base);
            keys.push(Entry::new("config", Node::list(spot, parts)));
        }
        Some(Node::map(spot, keys))
    }

    /// Complains about a config that no side can have.
    pub fn useless(&self, check: &mut Check<'_>, kernels: &[Entry]) {
        let sides = self.args.candidates.len() + usize::from(self.args.base.is_some());
        let given = self.has_config(true) || self.has_config(false);
        if given && sides > 0 && kernels.is_empty() {
            let message = "--config and --config-item are for kernels that are built here";
            let hint = "name a source, for example source:linux-source-6.1@bookworm";
            check.found.push(Diagnostic::whole(COMMAND_LINE, message).hint(hint));
        }
    }

    fn has_config(&self, is_base: bool) -> bool {
        let own = if is_base { &self.args.config_item_a } else { &self.args.config_item_b };
        !(self.args.config.is_empty() && self.args.config_item.is_empty() && own.is_empty())
    }

    fn config(&self, words: &mut CommandLine, is_base: bool) -> Vec<Node> {
        let mut parts = Vec::new();
        for part in &self.args.config {
            let is_file = self.current.is_file(part);
            let part = if is_file { self.rebased(part) } else { part.clone() };
            parts.push(words.node("--config", &part));
        }
        let own = match is_base {
            true => ("--config-item-a", &self.args.config_item_a),
            false => ("--config-item-b", &self.args.config_item_b),
        };
        for (flag, items) in [("--config-item", &self.args.config_item), own] {
            parts.extend(items.iter().map(|item| words.node(flag, item)));
        }
        parts
    }

    /// Whether a SPEC is a kernel that was built elsewhere.
    fn is_binary(&self, spec: &str) -> bool {
        let by_name = spec == "host" || spec.starts_with("debian:") || spec.starts_with("deb:");
        let is_image = self.current.is_file(spec) && !source_words::is_tarball(spec);
        by_name || is_image
    }
}
