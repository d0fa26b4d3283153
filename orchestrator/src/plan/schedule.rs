use super::Block;
use super::random::Random;

/// Draws `pairs` blocks of `sides` boots each. Blocks go in groups of two: the order of the first is
/// drawn, the second boots in reverse, so that of any two sides each goes first equally often.
pub fn blocks(seed: u64, experiment: &str, sides: usize, pairs: usize) -> Vec<Block> {
    let mut random = Random::new(seed, experiment);
    let mut order: Vec<usize> = (0..sides).collect();
    let mut blocks = Vec::with_capacity(pairs);
    for index in 0..pairs {
        if index % 2 == 0 {
            random.shuffle(&mut order);
        } else {
            order.reverse();
        }
        blocks.push(Block {
            index,
            order: order.clone(),
            layout_seed: random.draw(),
            cpu: None,
            sentinel: None,
        });
    }
    blocks
}

/// How many blocks there are to one with a sentinel.
const SENTINEL_EVERY: usize = 6;

/// Lets a side boot twice in every sixth block, each side in turn.
pub fn with_sentinels(mut blocks: Vec<Block>, sides: usize) -> Vec<Block> {
    for (turn, block) in
        blocks.iter_mut().skip(SENTINEL_EVERY - 1).step_by(SENTINEL_EVERY).enumerate()
    {
        block.sentinel = Some(turn % sides);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use crate::plan::{Pairing, Turn};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_group_of_two_is_balanced(seed: u64, sides in 2..6_usize, groups in 1..20_usize) {
            let drawn = blocks(seed, "x", sides, groups * 2);
            let place = |block: &Block, side| block.order.iter().position(|s| *s == side).unwrap();
            for (i, j) in (0..sides).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let first = drawn.iter().filter(|block| place(block, i) < place(block, j)).count();
                prop_assert_eq!(first, groups);
            }
            for block in &drawn {
                let mut sorted = block.order.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..sides).collect::<Vec<_>>());
            }
        }

        #[test]
        fn a_longer_schedule_begins_like_a_shorter_one(seed: u64, pairs in 0..20_usize) {
            let long = blocks(seed, "x", 3, 30);
            prop_assert_eq!(&blocks(seed, "x", 3, pairs)[..], &long[..pairs]);
        }
    }

    #[test]
    fn every_sixth_block_has_a_sentinel_beside_its_side() {
        let drawn = with_sentinels(blocks(3, "x", 3, 24), 3);
        let sentinels: Vec<(usize, usize)> =
            drawn.iter().filter_map(|block| Some((block.index, block.sentinel?))).collect();
        assert_eq!(sentinels, [(5, 0), (11, 1), (17, 2), (23, 0)]);
        let block = |order: &[usize], sentinel| Block {
            order: order.to_vec(),
            sentinel,
            ..drawn[0].clone()
        };
        let shown = |block: Block, pairing| -> Vec<String> {
            let turn = |turn: &Turn| {
                assert_eq!(block.order.len(), 2);
                format!("{}{}@{}", turn.side, if turn.sentinel { "s" } else { "" }, turn.slot)
            };
            let waves = block.waves(pairing);
            waves.iter().map(|wave| wave.iter().map(turn).collect::<Vec<_>>().join(" ")).collect()
        };
        let one_by_one = |block| shown(block, Pairing::Interleave);
        assert_eq!(one_by_one(block(&[1, 0], Some(0))), ["1@0", "0@1", "0s@2"]);
        assert_eq!(one_by_one(block(&[1, 0], Some(1))), ["1s@0", "1@1", "0@2"]);
        assert_eq!(one_by_one(block(&[1, 0], None)), ["1@0", "0@1"]);
        assert_eq!(shown(block(&[1, 0], Some(0)), Pairing::Duet), ["1@0 0@1", "0s@0 0s@1"]);
        assert_eq!(shown(block(&[1, 0], None), Pairing::Duet), ["1@0 0@1"]);
    }

    #[test]
    fn either_side_may_be_first() {
        let firsts: Vec<usize> = (0..64).map(|seed| blocks(seed, "x", 2, 1)[0].order[0]).collect();
        let base = firsts.iter().filter(|first| **first == 0).count();
        assert!((16..=48).contains(&base), "{base} of 64");
    }
}
