//! Files of counts: what is read is what was written, and nothing else is read.

use kduel_counts::{
    Block, BlockCount, BlockRecord, Class, Context, ContextRecord, Counts, Kind, ReadError, Totals,
    WindowRecord, read, write,
};
use proptest::prelude::*;

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        any::<u16>().prop_map(Kind::User),
        proptest::option::of(0..0x7fffu16).prop_map(Kind::Syscall),
        any::<u8>().prop_map(Kind::Exception),
        any::<u8>().prop_map(Kind::Interrupt),
        any::<u16>().prop_map(Kind::SystemInterrupt),
        Just(Kind::Waiting),
    ]
}

/// A window of one context in which the only block was executed so often.
fn counts() -> impl Strategy<Value = Counts> {
    let numbers = (any::<u64>(), any::<u64>(), 1..1u64 << 40, any::<bool>(), "[a-z_]{0,9}");
    (numbers, kinds(), 0..1000i64).prop_map(
        |((number, address, executions, own, name), kind, by)| {
            let block = Block::decode(address, &[0x90, 0x48, 0x8b, 0x07], &[1, 3]);
            let corrections = vec![(1, -by)];
            let count = BlockCount { block: 0, executions, unfinished: 0, empty: 0, corrections };
            let totals: Totals = count.totals(&block);
            let context = Context { own, kind };
            let part = ContextRecord { context, name, totals, blocks: vec![count] };
            Counts {
                vcpus: 3,
                missing: vec!["do_idle".to_owned()],
                blocks: vec![BlockRecord::of(&block)],
                windows: vec![WindowRecord { number, contexts: vec![part] }],
                ..Counts::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(counts in counts()) {
        prop_assert_eq!(read(&write(&counts)), Ok(counts));
    }

    #[test]
    fn no_changed_bit_goes_unnoticed(counts in counts(), place: prop::sample::Index, bit in 0..8u32) {
        let mut file = write(&counts);
        let place = place.index(file.len());
        file[place] ^= 1u8 << bit;
        prop_assert!(read(&file).is_err());
    }

    #[test]
    fn no_cut_goes_unnoticed(counts in counts(), place: prop::sample::Index) {
        let file = write(&counts);
        prop_assert!(read(&file[..place.index(file.len())]).is_err());
    }

    #[test]
    fn nothing_makes_the_reader_panic(mut bytes: Vec<u8>) {
        bytes.splice(0..0, *b"kducount");
        prop_assert!(read(&bytes).is_err());
    }
}

#[test]
fn refusals_say_why() {
    let file = write(&Counts { vcpus: 1, ..Counts::default() });
    assert_eq!(read(b"something else"), Err(ReadError::Magic));
    assert_eq!(read(&file[..file.len() - 1]), Err(ReadError::CutOff { records: 1 }));
    let mut longer = file.clone();
    longer.push(0);
    assert!(matches!(read(&longer), Err(ReadError::Malformed { record: 1, .. })));
}

#[test]
fn sums_that_are_not_those_of_the_blocks_are_refused() {
    let block = Block::decode(0x1000, &[0x90], &[1]);
    let count =
        BlockCount { block: 0, executions: 5, unfinished: 0, empty: 0, corrections: vec![] };
    let mut totals = count.totals(&block);
    assert_eq!(totals[Class::Instructions], 5);
    totals[Class::Loads] = 1;
    let context = Context { own: true, kind: Kind::User(0) };
    let part = ContextRecord { context, name: String::new(), totals, blocks: vec![count] };
    let counts = Counts {
        vcpus: 1,
        blocks: vec![BlockRecord::of(&block)],
        windows: vec![WindowRecord { number: 1, contexts: vec![part] }],
        ..Counts::default()
    };
    let what = "the sums are not those of the blocks";
    assert_eq!(read(&write(&counts)), Err(ReadError::Malformed { record: 2, what }));
}

#[test]
fn what_completed_adds_up_to_the_total() {
    let block = Block::decode(0x1000, &[0x90, 0x90, 0xf3, 0x48, 0xab], &[1, 1, 3]);
    let count =
        BlockCount { block: 0, executions: 9, unfinished: 4, empty: 0, corrections: vec![(1, -2)] };
    let completed: Vec<u64> = count.completed(3).collect();
    assert_eq!(completed, [9, 7, 3]);
    assert_eq!(count.totals(&block)[Class::Instructions], 19);
}

#[test]
fn the_format_before_system_calls_had_numbers_is_still_read() {
    let context = Context { own: true, kind: Kind::Syscall(None) };
    let part =
        ContextRecord { context, name: String::new(), totals: Totals::default(), blocks: vec![] };
    let windows = vec![WindowRecord { number: 1, contexts: vec![part] }];
    let counts = Counts { vcpus: 1, windows, ..Counts::default() };
    let mut file = write(&counts);
    // Magic, tag, length; then the major version, covered by the record's checksum.
    file[13] = 1;
    let length = u32::from_le_bytes(file[9..13].try_into().unwrap()) as usize;
    let end = 13 + length;
    let sum = crc32c::crc32c(&file[8..end]);
    file[end..end + 4].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(read(&file), Ok(counts));
}
