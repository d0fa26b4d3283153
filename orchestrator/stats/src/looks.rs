/// When a run is looked at, fixed before it starts: a look taken stays taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Looks(Vec<Look>);

/// One look at the first so many blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Blocks that are over, pairs that were dropped among them.
    pub pairs: usize,
    /// The part of the error that this look may spend.
    pub alpha: f64,
    /// All that the looks may spend together.
    pub total: f64,
}

/// The error of a whole run, two-sided.
pub const ALPHA: f64 = 0.05;

/// Pairs of the planned looks, and what each spends; together [`ALPHA`].
const PLANNED: [(usize, f64); 4] = [(8, 0.008), (12, 0.012), (20, 0.015), (30, 0.015)];

/// Pairs of a quick run.
pub const QUICK_PAIRS: usize = 6;

/// Fewest pairs that a sequence without planned looks is looked at with.
const ANYTIME_FROM: usize = 3;

impl Look {
    /// The p-value of a whole run of which this look found `p`.
    pub fn spent(&self, p: f64) -> f64 {
        (p * self.total / self.alpha).min(1.0)
    }
}

impl Looks {
    /// The planned ones: 8, 12, 20 and 30 pairs.
    pub fn planned() -> Self {
        Self::up_to(PLANNED[PLANNED.len() - 1].0)
    }

    /// One look at `pairs` pairs.
    pub fn once(pairs: usize) -> Self {
        Self(vec![Look { pairs, alpha: ALPHA, total: ALPHA }])
    }

    /// The planned looks but the last that come before `pairs`, and one at `pairs` that spends what
    /// they left.
    pub fn up_to(pairs: usize) -> Self {
        let before = PLANNED[..PLANNED.len() - 1].iter().filter(|(at, _)| *at < pairs);
        let mut looks: Vec<Look> = before
            .map(|(pairs, alpha)| Look { pairs: *pairs, alpha: *alpha, total: ALPHA })
            .collect();
        let left = ALPHA - looks.iter().map(|look| look.alpha).sum::<f64>();
        // Without the sum's rounding: .015 is .015.
        let alpha = (left * 1e6).round() / 1e6;
        looks.push(Look { pairs, alpha, total: ALPHA });
        Self(looks)
    }

    /// After every pair up to `pairs`, at the full error each: for a sequence that holds at any time.
    pub fn every(pairs: usize) -> Self {
        let look = |pairs| Look { pairs, alpha: ALPHA, total: ALPHA };
        Self((ANYTIME_FROM.min(pairs)..=pairs).map(look).collect())
    }

    /// In order.
    pub fn all(&self) -> &[Look] {
        &self.0
    }

    /// Blocks of the whole run.
    pub fn pairs(&self) -> usize {
        self.0.last().map_or(0, |look| look.pairs)
    }

    /// The looks taken when `done` blocks are over. `ended`: no more will come, for a reason that is
    /// not in the values (the budget is used up); the blocks behind the last planned look are then
    /// looked at with what the next one would have spent.
    pub fn taken(&self, done: usize, ended: bool) -> Vec<Look> {
        let reached = self.0.partition_point(|look| look.pairs <= done);
        let mut taken = self.0[..reached].to_vec();
        let before = taken.last().map_or(0, |look| look.pairs);
        if let (true, Some(next)) = (ended && done > before, self.0.get(reached)) {
            taken.push(Look { pairs: done, ..*next });
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(looks: &[Look]) -> Vec<(usize, f64)> {
        looks.iter().map(|look| (look.pairs, look.alpha)).collect()
    }

    #[test]
    fn planned_looks_are_those_of_the_method() {
        assert_eq!(shown(Looks::planned().all()), PLANNED);
        assert_eq!(shown(Looks::once(QUICK_PAIRS).all()), [(6, 0.05)]);
    }

    #[test]
    fn any_number_of_pairs_spends_exactly_everything() {
        assert_eq!(shown(Looks::up_to(6).all()), [(6, 0.05)]);
        assert_eq!(shown(Looks::up_to(8).all()), [(8, 0.05)]);
        assert_eq!(shown(Looks::up_to(12).all()), [(8, 0.008), (12, 0.042)]);
        assert_eq!(shown(Looks::up_to(20).all()), [(8, 0.008), (12, 0.012), (20, 0.03)]);
        for pairs in 1..100 {
            let looks = Looks::up_to(pairs);
            let spent: f64 = looks.all().iter().map(|look| look.alpha).sum();
            assert!((spent - ALPHA).abs() < 1e-9 && looks.pairs() == pairs, "{pairs}");
            assert!(looks.all().windows(2).all(|two| two[0].pairs < two[1].pairs), "{pairs}");
        }
    }

    #[test]
    fn looks_are_taken_when_their_blocks_are_over() {
        let looks = Looks::planned();
        assert_eq!(shown(&looks.taken(7, false)), []);
        assert_eq!(shown(&looks.taken(19, false)), PLANNED[..2]);
        assert_eq!(shown(&looks.taken(40, false)), PLANNED);
    }

    #[test]
    fn what_is_left_when_the_budget_is_used_up_is_looked_at_once() {
        let looks = Looks::planned();
        assert_eq!(shown(&looks.taken(7, true)), [(7, 0.008)]);
        assert_eq!(shown(&looks.taken(19, true)), [(8, 0.008), (12, 0.012), (19, 0.015)]);
        assert_eq!(shown(&looks.taken(12, true)), PLANNED[..2]);
        assert_eq!(shown(&looks.taken(0, true)), []);
        assert_eq!(shown(&looks.taken(30, true)), PLANNED);
    }

    #[test]
    fn a_sequence_is_looked_at_after_every_pair() {
        let looks = Looks::every(5);
        assert_eq!(shown(looks.all()), [(3, 0.05), (4, 0.05), (5, 0.05)]);
        assert_eq!(looks.all()[0].spent(0.02), 0.02);
        assert!((Looks::planned().all()[0].spent(0.004) - 0.025).abs() < 1e-12);
        assert_eq!(Looks::planned().all()[0].spent(0.5), 1.0);
    }
}
