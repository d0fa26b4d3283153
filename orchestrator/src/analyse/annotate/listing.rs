//! One function of one side.

use std::rc::Rc;

use super::code::Disassembler;
use super::gather::{Boot, Scope, gather};
use super::names::{Function, Names};

/// An instruction that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Guest virtual address.
    pub address: u64,
    /// As they were when it was executed.
    pub bytes: Box<[u8]>,
    /// Executions in all windows; a repeating string instruction counts once.
    pub executions: u64,
    /// Steps of a string instruction in all windows; zero for every other one.
    pub steps: u64,
    /// Assembly in AT&T syntax, without a target within the function. Holds names that the guest told:
    /// escape it before it is shown.
    pub text: String,
    /// Where a branch within the function goes.
    pub target: Option<u64>,
    /// Bytes before it, up to the instruction above, that were never executed.
    pub gap: u64,
    /// Other bytes were executed at this address, too: the kernel rewrote the code.
    pub rewritten: bool,
    /// File and line of the source, where debug information is at hand.
    pub source: Option<String>,
    pub(super) shape: String,
    pub(super) callee: Option<String>,
}

/// A function as one side executed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Which.
    pub function: Function,
    /// Operations in all windows.
    pub operations: u64,
    /// How many windows.
    pub windows: usize,
    /// Executions of its first instruction in all windows.
    pub calls: u64,
    /// Instructions executed in all windows: the sum of the executions below.
    pub instructions: u64,
    /// By address; where the kernel rewrote the code, several at one.
    pub code: Vec<Instruction>,
    /// Bytes behind the last instruction that were never executed.
    pub gap_after: u64,
}

impl Listing {
    /// What `boots` executed of `function`.
    pub fn of(names: &Rc<Names>, function: &Function, boots: &[Boot<'_>], scope: Scope) -> Self {
        let mut disassembler = Disassembler::new(names, function);
        let mut code: Vec<Instruction> = Vec::new();
        let mut end = function.range.start;
        for ((address, bytes), executed) in gather(boots, scope, &function.range) {
            let text = disassembler.text(address, &bytes);
            let rewritten =
                code.last().is_some_and(|last| address < end || last.address == address);
            if let Some(last) = code.last_mut().filter(|_| rewritten) {
                last.rewritten = true;
            }
            let gap = address.saturating_sub(end);
            end = end.max(address.saturating_add(bytes.len() as u64));
            code.push(Instruction {
                address,
                bytes,
                executions: executed.done,
                steps: executed.steps,
                text: text.text,
                target: text.target,
                gap,
                rewritten,
                source: None,
                shape: text.shape,
                callee: text.callee,
            });
        }
        let windows = || boots.iter().flat_map(|boot| &boot.windows);
        let entries = code.iter().filter(|line| line.address == function.range.start);
        Self {
            operations: windows().map(|(_, operations)| operations).sum(),
            windows: windows().count(),
            calls: entries.map(|line| line.executions).sum(),
            instructions: code.iter().map(|line| line.executions).sum(),
            gap_after: function.range.end.saturating_sub(end),
            function: function.clone(),
            code,
        }
    }

    /// A number of all windows, per operation.
    #[expect(clippy::cast_precision_loss, reason = "windows have far fewer than 2^53 instructions")]
    pub fn per_operation(&self, number: u64) -> f64 {
        number as f64 / self.operations.max(1) as f64
    }

    /// How far into the function an address is.
    pub fn offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.function.range.start)
    }

    /// Whether the kernel rewrote any of it between its executions.
    pub fn is_rewritten(&self) -> bool {
        self.code.iter().any(|line| line.rewritten)
    }

    /// Asks where in the source each instruction comes from.
    pub fn find_sources(&mut self, source: impl Fn(u64) -> Option<String>) {
        for line in &mut self.code {
            line.source = source(line.address);
        }
    }
}
