//! Which chain of calls executed how much, per operation.

use std::collections::BTreeMap;

use kduel_counts::{ChainShortfall, Chains, ContextRecord, Counts, Kind};

use super::align::Call;

/// What the chains of one side came to, for one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChainSums {
    /// Operations in all windows.
    pub ops: u64,
    /// Instructions in all windows, by the names of the functions, the outermost first. Before them
    /// stands whose work it is: `own`, `other tasks`, `softirqs`, ….
    pub chains: BTreeMap<Vec<String>, u64>,
    /// What could not be followed.
    pub shortfall: ChainShortfall,
}

impl ChainSums {
    /// Adds the windows of one boot that are in `ops`: operations by window's number. `false` if
    /// chains were not followed in it.
    pub fn add(&mut self, counts: &Counts, ops: &BTreeMap<u64, u64>) -> bool {
        let Some(chains) = &counts.chains else { return false };
        let names = names(chains);
        for (window, nodes) in counts.windows.iter().zip(&chains.windows) {
            let Some(window_ops) = ops.get(&window.number) else { continue };
            self.ops += window_ops;
            for (context, counted) in window.contexts.iter().zip(nodes) {
                let whose = whose(context);
                for count in counted.iter().filter(|count| count.instructions > 0) {
                    let chain = std::iter::once(&whose).chain(&names[count.node]);
                    *self.chains.entry(chain.cloned().collect()).or_default() += count.instructions;
                }
            }
        }
        self.add_shortfall(&chains.shortfall);
        true
    }

    fn add_shortfall(&mut self, other: &ChainShortfall) {
        let sums = &mut self.shortfall;
        sums.returns_from_before += other.returns_from_before;
        sums.moved_returns += other.moved_returns;
        sums.unmatched_returns += other.unmatched_returns;
        sums.unreadable += other.unreadable;
    }

    /// Of a chain, per operation.
    pub fn per_op(&self, chain: &[String]) -> f64 {
        let sum = self.chains.get(chain).copied().unwrap_or_default();
        #[expect(
            clippy::cast_precision_loss,
            reason = "windows have far fewer than 2^53 instructions"
        )]
        let per_op = sum as f64 / self.ops.max(1) as f64;
        per_op
    }

    /// The same as calls within calls, in thousandths of an instruction per operation.
    pub fn tree(&self) -> Vec<Call> {
        let mut roots = Vec::new();
        for chain in self.chains.keys() {
            add(&mut roots, chain, thousandths(self.per_op(chain)));
        }
        roots
    }

    /// How returns were matched, in a sentence.
    pub fn followed(&self) -> String {
        let ChainShortfall { returns_from_before, moved_returns, unmatched_returns, unreadable } =
            self.shortfall;
        let mut text = format!("{unmatched_returns} returns matched no call");
        if unmatched_returns > 0 {
            text += ", chains begin anew in them";
        }
        text += &format!(
            "; {moved_returns} were matched by their function, since the address had been moved on \
             the stack; {returns_from_before} left calls from before a window"
        );
        if unreadable > 0 {
            text += &format!(
                "; {unreadable} times the stack pointer could not be read: functions are right, who \
                 called them is lost"
            );
        }
        text
    }
}

fn add(calls: &mut Vec<Call>, chain: &[String], instructions: u64) {
    let [name, rest @ ..] = chain else { return };
    // Chains come in the order of their names.
    if calls.last().is_none_or(|call| call.name != *name) {
        calls.push(Call { name: name.clone(), ..Call::default() });
    }
    if let Some(call) = calls.last_mut() {
        call.instructions += instructions;
        add(&mut call.calls, rest, instructions);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are positive")]
fn thousandths(value: f64) -> u64 {
    (value * 1e3).round() as u64
}

/// The names along every chain. A name has neither of the characters that separate names and numbers.
fn names(chains: &Chains) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::with_capacity(chains.nodes.len());
    for node in &chains.nodes {
        let mut names = node.parent.map(|parent| all[parent].clone()).unwrap_or_default();
        names.push(plain_name(&chains.functions[node.function].name));
        all.push(names);
    }
    all
}

/// A function's name as it may stand in a chain.
pub fn plain_name(name: &str) -> String {
    name.replace(|c: char| c == ';' || c.is_whitespace() || c.is_control(), "_")
}

fn whose(part: &ContextRecord) -> String {
    match part.context.kind {
        _ if part.context.is_own_work() => "own".to_owned(),
        Kind::Interrupt(vector) => format!("interrupt {vector}"),
        Kind::SystemInterrupt(number) if part.name.is_empty() => format!("interrupt s{number}"),
        Kind::SystemInterrupt(_) => format!("interrupt {}", plain_name(&part.name)),
        Kind::Softirq => "softirqs".to_owned(),
        Kind::Idle => "idle".to_owned(),
        Kind::Waiting => "waiting".to_owned(),
        _ => "other tasks".to_owned(),
    }
}
