//! Call chains to bytes and back.

use super::wire::{Cursor, Payload};
use super::{
    CallRecord, ChainShortfall, Chains, Counts, FunctionRecord, NodeCount, NodeRecord, RootEntry,
    TAG_CHAIN_WINDOW, TAG_CHAINS, TAG_TRACE, TraceRecord,
};
use crate::class::Class;

/// Appends all records of the chains; gives how many.
pub(super) fn write(chains: &Chains, file: &mut Vec<u8>) -> usize {
    tree(chains).seal(TAG_CHAINS, file);
    for window in &chains.windows {
        nodes(window).seal(TAG_CHAIN_WINDOW, file);
    }
    for record in &chains.traces {
        trace(record).seal(TAG_TRACE, file);
    }
    1 + chains.windows.len() + chains.traces.len()
}

fn tree(chains: &Chains) -> Payload {
    let mut payload = Payload::default();
    let ChainShortfall { returns_from_before, moved_returns, unmatched_returns, unreadable } =
        chains.shortfall;
    for number in [returns_from_before, moved_returns, unmatched_returns, unreadable] {
        payload.number(number);
    }
    payload.size(chains.functions.len());
    for function in &chains.functions {
        payload.number(function.address);
        payload.bytes(function.name.as_bytes());
    }
    payload.size(chains.nodes.len());
    for node in &chains.nodes {
        payload.size(node.parent.map_or(0, |parent| parent + 1));
        payload.size(node.function);
    }
    payload
}

fn nodes(window: &[Vec<NodeCount>]) -> Payload {
    let mut payload = Payload::default();
    payload.size(window.len());
    for counts in window {
        payload.size(counts.len());
        let mut before = 0;
        for count in counts {
            payload.size(count.node - before);
            payload.number(count.calls);
            payload.number(count.instructions);
            before = count.node;
        }
    }
    payload
}

fn trace(trace: &TraceRecord) -> Payload {
    let mut payload = Payload::default();
    payload.size(trace.window);
    payload.number(u64::from(trace.whole));
    payload.number(trace.syscalls);
    payload.number(trace.exceptions);
    payload.size(trace.calls.len());
    for (place, call) in trace.calls.iter().enumerate() {
        // The call before, or one not far back.
        payload.size(call.parent.map_or(0, |parent| place - parent));
        payload.size(call.function);
        payload.number(call.instructions);
        payload.number(match call.entry {
            None => 0,
            Some(RootEntry::Syscall) => 1,
            Some(RootEntry::Exception) => 2,
        });
    }
    payload
}

/// Takes the tree of chains.
pub(super) fn read_tree(payload: &[u8]) -> Option<Chains> {
    let mut cursor = Cursor(payload);
    let shortfall = ChainShortfall {
        returns_from_before: cursor.number()?,
        moved_returns: cursor.number()?,
        unmatched_returns: cursor.number()?,
        unreadable: cursor.number()?,
    };
    let function = |cursor: &mut Cursor<'_>| {
        let address = cursor.number()?;
        let name = String::from_utf8(cursor.bytes()?.to_vec()).ok()?;
        Some(FunctionRecord { name, address })
    };
    let functions =
        (0..cursor.length()?).map(|_| function(&mut cursor)).collect::<Option<Vec<_>>>()?;
    let node = |place: usize, cursor: &mut Cursor<'_>| {
        let parent = cursor.size()?.checked_sub(1);
        let function = cursor.size()?;
        let fits = parent.is_none_or(|parent| parent < place) && function < functions.len();
        fits.then_some(NodeRecord { parent, function })
    };
    let nodes =
        (0..cursor.length()?).map(|place| node(place, &mut cursor)).collect::<Option<Vec<_>>>()?;
    if !cursor.0.is_empty() {
        return None;
    }
    Some(Chains { shortfall, functions, nodes, ..Chains::default() })
}

/// Takes what one window executed, and checks it against the window.
pub(super) fn read_window(payload: &[u8], counts: &mut Counts) -> Result<(), &'static str> {
    let chains = counts.chains.as_mut().ok_or("chains of a window before their tree")?;
    let window = counts.windows.get(chains.windows.len()).ok_or("chains of no window")?;
    let found = nodes_of(payload, chains.nodes.len()).ok_or("chains of a window")?;
    if found.len() != window.contexts.len() {
        return Err("chains of other contexts than the window's");
    }
    for (part, nodes) in window.contexts.iter().zip(&found) {
        let sum = nodes.iter().try_fold(0u64, |sum, node| sum.checked_add(node.instructions));
        if sum != Some(part.totals[Class::Instructions]) {
            return Err("the sums are not those of the chains");
        }
    }
    chains.windows.push(found);
    Ok(())
}

fn nodes_of(payload: &[u8], known: usize) -> Option<Vec<Vec<NodeCount>>> {
    let mut cursor = Cursor(payload);
    let context = |cursor: &mut Cursor<'_>| {
        let mut before = 0usize;
        let mut count = |cursor: &mut Cursor<'_>| {
            before = before.checked_add(cursor.size()?).filter(|node| *node < known)?;
            let (calls, instructions) = (cursor.number()?, cursor.number()?);
            Some(NodeCount { node: before, calls, instructions })
        };
        (0..cursor.length()?).map(|_| count(cursor)).collect::<Option<Vec<_>>>()
    };
    let contexts = (0..cursor.length()?).map(|_| context(&mut cursor)).collect::<Option<_>>()?;
    cursor.0.is_empty().then_some(contexts)
}

/// Takes the recorded calls of one window.
pub(super) fn read_trace(payload: &[u8], counts: &mut Counts) -> Option<()> {
    let windows = counts.windows.len();
    let chains = counts.chains.as_mut()?;
    let functions = chains.functions.len();
    let mut cursor = Cursor(payload);
    let window = cursor.size().filter(|window| *window < windows)?;
    let (whole, syscalls, exceptions) = (cursor.number()? != 0, cursor.number()?, cursor.number()?);
    let call = |place: usize, cursor: &mut Cursor<'_>| {
        let parent = match cursor.size()? {
            0 => None,
            back => Some(place.checked_sub(back)?),
        };
        let function = cursor.size().filter(|function| *function < functions)?;
        let instructions = cursor.number()?;
        let entry = match cursor.number()? {
            0 => None,
            1 => Some(RootEntry::Syscall),
            2 => Some(RootEntry::Exception),
            _ => return None,
        };
        Some(CallRecord { parent, function, instructions, entry })
    };
    let calls =
        (0..cursor.length()?).map(|place| call(place, &mut cursor)).collect::<Option<_>>()?;
    chains.traces.push(TraceRecord { window, whole, syscalls, exceptions, calls });
    cursor.0.is_empty().then_some(())
}
