//! Counts to bytes.

use super::wire::Payload;
use super::{
    BlockCount, ContextRecord, Counts, FORMAT, MAGIC, Shortfall, TAG_BLOCK, TAG_END, TAG_HEADER,
    TAG_WINDOW, WindowRecord, chains,
};
use crate::class::Class;

/// The whole file. The same counts always give the same bytes.
pub fn write(counts: &Counts) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    header(counts).seal(TAG_HEADER, &mut file);
    for block in &counts.blocks {
        let mut payload = Payload::default();
        payload.number(block.address);
        payload.bytes(&block.lengths);
        payload.bytes(&block.bytes);
        payload.seal(TAG_BLOCK, &mut file);
    }
    for record in &counts.windows {
        window(record).seal(TAG_WINDOW, &mut file);
    }
    let of_chains = counts.chains.as_ref().map_or(0, |found| chains::write(found, &mut file));
    let mut end = Payload::default();
    end.size(1 + counts.blocks.len() + counts.windows.len() + of_chains);
    end.seal(TAG_END, &mut file);
    file
}

fn header(counts: &Counts) -> Payload {
    let mut payload = Payload(vec![FORMAT.0, FORMAT.1]);
    payload.size(counts.vcpus);
    let Shortfall {
        no_symbols,
        unfinished_windows,
        nested_windows,
        rootless_windows,
        unreadable,
        unplaced_accesses,
    } = counts.shortfall;
    for number in [
        u64::from(no_symbols),
        unfinished_windows,
        nested_windows,
        rootless_windows,
        unreadable,
        unplaced_accesses,
    ] {
        payload.number(number);
    }
    payload.size(counts.missing.len());
    for name in &counts.missing {
        payload.bytes(name.as_bytes());
    }
    payload
}

fn window(window: &WindowRecord) -> Payload {
    let mut payload = Payload::default();
    payload.number(window.number);
    payload.size(window.contexts.len());
    for part in &window.contexts {
        context(&mut payload, part);
    }
    payload
}

fn context(payload: &mut Payload, part: &ContextRecord) {
    let (kind, number) = part.context.kind.code();
    payload.number(u64::from(part.context.own));
    payload.number(u64::from(kind));
    payload.number(u64::from(number));
    payload.bytes(part.name.as_bytes());
    payload.size(Class::ALL.len());
    for (_, total) in part.totals.iter() {
        payload.number(total);
    }
    payload.size(part.blocks.len());
    let mut before = 0;
    for count in &part.blocks {
        block_count(payload, count, count.block - before);
        before = count.block;
    }
}

/// Blocks ascend, so the distance from the one before is a small number.
fn block_count(payload: &mut Payload, count: &BlockCount, distance: usize) {
    payload.size(distance);
    payload.number(count.executions);
    payload.number(count.unfinished);
    payload.number(count.empty);
    payload.size(count.corrections.len());
    for (from, by) in &count.corrections {
        payload.size(*from);
        payload.signed(*by);
    }
}
