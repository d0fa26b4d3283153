use crate::downgrade::Downgrade;
use crate::looks::Look;
use crate::{Interval, StatsError};

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// What a series comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Worse, by the margin or more.
    Regression,
    /// Better, by the margin or more.
    Improvement,
    /// Shown equivalent, within the margin.
    NoChange,
    /// Not enough was seen to say.
    Inconclusive,
    /// There is nothing to compare.
    Invalid,
}

impl Verdict {
    /// Of a change in this direction.
    pub(crate) fn of_change(estimate: f64, better: Better) -> Self {
        let rose = estimate > 0.0;
        if rose == (better == Better::Higher) { Self::Improvement } else { Self::Regression }
    }

    /// Whether more pairs are not asked for.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Regression | Self::Improvement | Self::NoChange)
    }
}

/// Why a verdict is what it is. Numbers are on the log scale.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// The interval excludes 0, and the estimate is not below the margin.
    Beyond,
    /// The interval for equivalence lies within the margin.
    Within {
        /// The interval at full confidence excludes 0 all the same.
        detectable: bool,
    },
    /// The interval is too wide.
    Open {
        /// Its half width: the smallest change that could have been seen.
        smallest: f64,
        /// Pairs with which it would be as narrow as the margin.
        needed: f64,
    },
    /// The interval is narrow enough, but the change lies so near the margin that it covers it.
    NearMargin,
    /// Alone it would be decided, among so many series it is not.
    Family {
        /// Series in the family.
        series: usize,
    },
    /// So few pairs have no interval at this look's confidence.
    TooFew {
        /// Fewest pairs that have one.
        needed: usize,
    },
    /// No planned look was reached.
    BeforeFirstLook {
        /// Blocks of the first look.
        first: usize,
    },
    /// Something about the run forbids the verdict that the numbers alone would give.
    Downgraded(Vec<Downgrade>),
    /// The values cannot be compared.
    Unusable(StatsError),
}

/// What the looks so far say of one series. Numbers are on the log scale: a change of x is log(1 + x).
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Of the statistic, at the last look taken; before the first look of all pairs so far.
    pub estimate: Option<f64>,
    /// At the last look's confidence, widened for what was selected from a family.
    pub interval: Option<Interval>,
    /// The p-value of "no difference" over all looks taken, before any adjustment.
    pub p: f64,
    /// Valid pairs that this rests on.
    pub pairs: usize,
    /// The last look taken.
    pub look: Option<Look>,
    /// What follows.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
}

impl Finding {
    pub(crate) fn invalid(error: StatsError, pairs: usize, look: Option<Look>) -> Self {
        let reason = Reason::Unusable(error);
        let verdict = Verdict::Invalid;
        Self { estimate: None, interval: None, p: 1.0, pairs, look, verdict, reason }
    }

    /// The finding, inconclusive if there is any reason to doubt it.
    pub fn downgraded(mut self, doubts: Vec<Downgrade>) -> Self {
        if !doubts.is_empty() && self.verdict.is_decided() {
            self.verdict = Verdict::Inconclusive;
            self.reason = Reason::Downgraded(doubts);
        }
        self
    }
}
