//! Which of two lists' elements belong together, in order: the best-scoring alignment.

/// A run of elements that only one list has costs so much, however long it is: so matches come in runs
/// and a lone alike `mov` in other code is no match.
const OPENING: i32 = 3;

/// With more pairs than this nothing is aligned: the table would take more memory than it is worth.
const MOST_PAIRS: usize = 100_000_000;

/// A way for an alignment to end, and a place in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Both = 0,
    First = 1,
    Second = 2,
}

const ENDS: [End; 3] = [End::Both, End::First, End::Second];

/// Low enough never to be chosen, high enough to be added to.
const NEVER: i32 = i32::MIN / 2;

/// Pairs places of a list of `first` elements with places of one of `second`. `score` says how much two
/// elements belong together; zero: not at all.
pub(super) fn align(
    first: usize,
    second: usize,
    score: impl Fn(usize, usize) -> i32,
) -> Vec<(Option<usize>, Option<usize>)> {
    if first.saturating_mul(second) > MOST_PAIRS {
        let only_first = (0..first).map(|place| (Some(place), None));
        return only_first.chain((0..second).map(|place| (None, Some(place)))).collect();
    }
    let width = second + 1;
    // Of each cell and end: the end of the cell before it, two bits each.
    let mut before = vec![0u8; (first + 1) * width];
    let mut above = vec![[NEVER; 3]; width];
    let mut row = above.clone();
    for i in 0..=first {
        for j in 0..=second {
            let mut cell = [NEVER; 3];
            let mut from = 0u8;
            if i == 0 && j == 0 {
                cell[End::Both as usize] = 0;
            }
            let together = if i > 0 && j > 0 { score(i - 1, j - 1) } else { 0 };
            if together > 0 {
                let (best, end) = best(above[j - 1], [0; 3]);
                cell[End::Both as usize] = best + together;
                from |= end as u8;
            }
            if i > 0 {
                let (best, end) = best(above[j], [OPENING, 0, OPENING]);
                cell[End::First as usize] = best;
                from |= (end as u8) << 2;
            }
            if j > 0 {
                let (best, end) = best(row[j - 1], [OPENING, OPENING, 0]);
                cell[End::Second as usize] = best;
                from |= (end as u8) << 4;
            }
            row[j] = cell;
            before[i * width + j] = from;
        }
        std::mem::swap(&mut above, &mut row);
    }
    trace(first, second, &before, best(above[second], [0; 3]).1)
}

/// The best of a cell's ends, given what going on from each costs.
fn best(cell: [i32; 3], costs: [i32; 3]) -> (i32, End) {
    let ways = ENDS.map(|end| (cell[end as usize].max(NEVER) - costs[end as usize], end));
    // The first of the best.
    ways.into_iter().rev().max_by_key(|(value, _)| *value).unwrap_or((NEVER, End::Both))
}

fn trace(
    first: usize,
    second: usize,
    before: &[u8],
    mut end: End,
) -> Vec<(Option<usize>, Option<usize>)> {
    let (mut i, mut j) = (first, second);
    let mut pairs = Vec::with_capacity(first.max(second));
    while i > 0 || j > 0 {
        let from = before[i * (second + 1) + j] >> (2 * end as u8) & 3;
        let (take_first, take_second) = (end != End::Second, end != End::First);
        i -= usize::from(take_first);
        j -= usize::from(take_second);
        pairs.push((take_first.then_some(i), take_second.then_some(j)));
        end = ENDS[usize::from(from) % ENDS.len()];
    }
    pairs.reverse();
    // In a run without matches all of the first come before all of the second.
    for run in pairs.split_mut(|(i, j)| i.is_some() && j.is_some()) {
        run.sort_by_key(|(i, _)| i.is_none());
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn aligned(first: &str, second: &str) -> String {
        let (a, b): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
        let pairs = align(a.len(), b.len(), |i, j| if a[i] == b[j] { 2 } else { 0 });
        let shown = pairs.into_iter().map(|pair| match pair {
            (Some(i), Some(_)) => a[i].to_string(),
            (Some(i), None) => format!("-{}", a[i]),
            (None, Some(j)) => format!("+{}", b[j]),
            (None, None) => "?".to_owned(),
        });
        shown.collect()
    }

    #[test]
    fn what_only_one_has_stands_between_what_both_have() {
        assert_eq!(aligned("abcdef", "abcxydef"), "abc+x+ydef");
        assert_eq!(aligned("abcxydef", "abcdef"), "abc-x-ydef");
        assert_eq!(aligned("", "ab"), "+a+b");
        assert_eq!(aligned("", ""), "");
    }

    #[test]
    fn a_lone_match_in_other_code_is_none() {
        assert_eq!(aligned("aaaapqmrsbbbb", "aaaavwmxybbbb").matches('m').count(), 2);
        assert_eq!(aligned("aaaapmmmmsbbbb", "aaaavmmmmybbbb"), "aaaa-p+vmmmm-s+ybbbb");
    }

    #[test]
    fn too_much_is_not_aligned_but_all_there() {
        let pairs = align(20_000, 20_000, |_, _| 1);
        assert_eq!(
            (pairs.len(), pairs[0], pairs[39_999]),
            (40_000, (Some(0), None), (None, Some(19_999)))
        );
    }

    proptest! {
        #[test]
        fn every_element_is_there_once_and_in_order(a in "[abc]{0,20}", b in "[abc]{0,20}") {
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let pairs = align(x.len(), y.len(), |i, j| i32::from(x[i] == y[j]));
            let first: Vec<usize> = pairs.iter().filter_map(|(i, _)| *i).collect();
            let second: Vec<usize> = pairs.iter().filter_map(|(_, j)| *j).collect();
            prop_assert_eq!(first, (0..x.len()).collect::<Vec<_>>());
            prop_assert_eq!(second, (0..y.len()).collect::<Vec<_>>());
            for (i, j) in pairs {
                if let (Some(i), Some(j)) = (i, j) {
                    prop_assert_eq!(x[i], y[j]);
                }
            }
        }
    }
}
