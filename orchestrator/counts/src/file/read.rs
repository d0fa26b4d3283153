//! Bytes to counts. What comes from the guest's emulator is not trusted.

use super::wire::Cursor;
use super::{
    BlockCount, BlockRecord, ContextRecord, Counts, FORMAT, MAGIC, OLDEST, Shortfall, TAG_BLOCK,
    TAG_CHAIN_WINDOW, TAG_CHAINS, TAG_END, TAG_HEADER, TAG_TRACE, TAG_WINDOW, WindowRecord, chains,
};
use crate::block::Block;
use crate::class::{Class, Totals};
use crate::context::{Context, Kind};

/// Why a file of counts is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Something else, or nothing.
    #[error("this is no file of counts")]
    Magic,
    /// A newer or older format.
    #[error("the counts have format {0}, this program reads up to {newest}", newest = FORMAT.0)]
    Version(u8),
    /// The end is not there.
    #[error(
        "the counts are cut off after {records} records\n  the guest was killed, or its output reached its limit"
    )]
    CutOff {
        /// Whole records before the cut.
        records: usize,
    },
    /// Bits have changed.
    #[error("record {record} of the counts has a wrong checksum")]
    Checksum {
        /// Counted from zero.
        record: usize,
    },
    /// The checksum is right, what it covers makes no sense.
    #[error("record {record} of the counts is malformed: {what}")]
    Malformed {
        /// Counted from zero.
        record: usize,
        /// What was wrong.
        what: &'static str,
    },
}

/// Reads a whole file and checks all of it, the sums against the blocks, too.
///
/// # Errors
/// [`ReadError`]: any deviation from what [`write()`](super::write()) makes; never half a result.
pub fn read(file: &[u8]) -> Result<Counts, ReadError> {
    let mut rest = file.strip_prefix(&MAGIC).ok_or(ReadError::Magic)?;
    let mut counts = None::<Counts>;
    let mut decoded = Vec::new();
    for record in 0usize.. {
        let (tag, payload) = split(&mut rest, record)?;
        let malformed = |what| ReadError::Malformed { record, what };
        match (&mut counts, tag) {
            (None, TAG_HEADER) => counts = Some(header(payload, record)?),
            (None, _) => return Err(malformed("the header is missing")),
            (Some(counts), TAG_BLOCK) => {
                let block = block(payload).ok_or_else(|| malformed("a block"))?;
                decoded.push(block.decode());
                counts.blocks.push(block);
            }
            (Some(counts), TAG_WINDOW) => {
                let window = window(payload).ok_or_else(|| malformed("a window"))?;
                check(&window, &decoded).map_err(malformed)?;
                counts.windows.push(window);
            }
            (Some(counts), TAG_CHAINS) => {
                let tree = chains::read_tree(payload).ok_or_else(|| malformed("chains"))?;
                counts.chains = Some(tree);
            }
            (Some(counts), TAG_CHAIN_WINDOW) => {
                chains::read_window(payload, counts).map_err(malformed)?;
            }
            (Some(counts), TAG_TRACE) => {
                chains::read_trace(payload, counts).ok_or_else(|| malformed("a trace"))?;
            }
            (Some(_), TAG_END) => {
                let claimed = Cursor(payload).size();
                if claimed != Some(record) || !rest.is_empty() {
                    return Err(malformed("the end is not where it says"));
                }
                break;
            }
            // A later minor version may have more.
            (Some(_), _) => {}
        }
    }
    counts.ok_or(ReadError::Magic)
}

fn split<'a>(rest: &mut &'a [u8], record: usize) -> Result<(u8, &'a [u8]), ReadError> {
    let whole = *rest;
    let parts = || {
        let length = u32::from_le_bytes(whole.get(1..5)?.try_into().ok()?) as usize;
        let end = length.checked_add(5)?;
        let sum = u32::from_le_bytes(whole.get(end..end.checked_add(4)?)?.try_into().ok()?);
        Some((whole.get(..end)?, sum, whole.get(end + 4..)?))
    };
    let (covered, sum, after) = parts().ok_or(ReadError::CutOff { records: record })?;
    if crc32c::crc32c(covered) != sum {
        return Err(ReadError::Checksum { record });
    }
    *rest = after;
    Ok((covered[0], &covered[5..]))
}

fn header(payload: &[u8], record: usize) -> Result<Counts, ReadError> {
    let malformed = ReadError::Malformed { record, what: "the header" };
    let [major, _minor, rest @ ..] = payload else { return Err(malformed) };
    if !(OLDEST..=FORMAT.0).contains(major) {
        return Err(ReadError::Version(*major));
    }
    let parsed = header_numbers(Cursor(rest));
    parsed.ok_or(malformed)
}

fn header_numbers(mut cursor: Cursor<'_>) -> Option<Counts> {
    let vcpus = cursor.size()?;
    let shortfall = Shortfall {
        no_symbols: cursor.number()? != 0,
        unfinished_windows: cursor.number()?,
        nested_windows: cursor.number()?,
        rootless_windows: cursor.number()?,
        unreadable: cursor.number()?,
        unplaced_accesses: cursor.number()?,
    };
    let missing = (0..cursor.length()?)
        .map(|_| String::from_utf8(cursor.bytes()?.to_vec()).ok())
        .collect::<Option<_>>()?;
    Some(Counts { vcpus, shortfall, missing, ..Counts::default() })
}

fn block(payload: &[u8]) -> Option<BlockRecord> {
    let mut cursor = Cursor(payload);
    let address = cursor.number()?;
    let lengths = cursor.bytes()?.to_vec();
    let bytes = cursor.bytes()?.to_vec();
    let sum: usize = lengths.iter().map(|&l| usize::from(l)).sum();
    (sum == bytes.len() && cursor.0.is_empty()).then_some(BlockRecord { address, bytes, lengths })
}

fn window(payload: &[u8]) -> Option<WindowRecord> {
    let mut cursor = Cursor(payload);
    let number = cursor.number()?;
    let contexts = (0..cursor.length()?).map(|_| context(&mut cursor)).collect::<Option<_>>()?;
    cursor.0.is_empty().then_some(WindowRecord { number, contexts })
}

fn context(cursor: &mut Cursor<'_>) -> Option<ContextRecord> {
    let own = cursor.number()? != 0;
    let kind = u8::try_from(cursor.number()?).ok()?;
    let kind = Kind::from_code(kind, u16::try_from(cursor.number()?).ok()?)?;
    let name = String::from_utf8(cursor.bytes()?.to_vec()).ok()?;
    let mut totals = Totals::default();
    if cursor.size()? != Class::ALL.len() {
        return None;
    }
    for class in Class::ALL {
        totals[*class] = cursor.number()?;
    }
    let mut before = 0usize;
    let mut block_count = |cursor: &mut Cursor<'_>| {
        before = before.checked_add(cursor.size()?)?;
        let (executions, unfinished, empty) =
            (cursor.number()?, cursor.number()?, cursor.number()?);
        let length = cursor.length()?;
        let corrections =
            (0..length).map(|_| Some((cursor.size()?, cursor.signed()?))).collect::<Option<_>>()?;
        Some(BlockCount { block: before, executions, unfinished, empty, corrections })
    };
    let blocks = (0..cursor.length()?).map(|_| block_count(cursor)).collect::<Option<Vec<_>>>()?;
    Some(ContextRecord { context: Context { own, kind }, name, totals, blocks })
}

/// Adds the blocks up again: the sums in the file must be theirs.
fn check(window: &WindowRecord, blocks: &[Block]) -> Result<(), &'static str> {
    for part in &window.contexts {
        let mut totals = Totals::default();
        totals[Class::MemoryMappedIo] = part.totals[Class::MemoryMappedIo];
        for counted in &part.blocks {
            let block = blocks.get(counted.block).ok_or("a count of no block")?;
            totals.add(&counted.totals(block));
        }
        if totals != part.totals {
            return Err("the sums are not those of the blocks");
        }
    }
    Ok(())
}
