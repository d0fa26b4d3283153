//! What became of the claims of a report. Pure.

use kduel_protocol::Better;
use serde::{Deserialize, Serialize};

use super::{Comparison, ExactWord, Verdict};
use crate::plan::{Claim, Measure, Plan};

/// A claim that is off by more than this factor is not reproduced, though its direction may be.
const SAME_SIZE: f64 = 2.0;

/// A claim of less, as a logarithm, is one of no change.
const NONE: f64 = 0.001;

/// A change that is smaller than the claimed one by more than this factor is a trace of it.
const TRACE: f64 = 10.0;

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The same direction, and a size within a factor of two; or no change, as claimed.
    Reproduced,
    /// The same direction, another size.
    SameDirection,
    /// No change was found that could be told from none.
    NotSeen,
    /// A change in the other direction, or one where none was claimed.
    Opposite,
    /// Nothing here can be held against it.
    NotComparable,
}

impl Answer {
    /// As it is said in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::NotSeen => "not seen",
            Self::Opposite => "opposite",
            Self::NotComparable => "not comparable",
        }
    }
}

/// A claim with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimAnswer<'a> {
    /// Of which experiment.
    pub experiment: &'a str,
    /// The claim.
    pub claim: &'a Claim,
    /// What became of it.
    pub answer: Answer,
    /// What was held against it.
    pub found: Option<&'a Comparison>,
    /// The smallest change that could have been seen, relative; where none was.
    pub could_see: Option<f64>,
    /// What to know about the answer; empty if nothing.
    pub reason: String,
}

/// Answers every claim of a run, in the plan's order.
pub fn answer_claims<'a>(plan: &'a Plan, comparisons: &'a [Comparison]) -> Vec<ClaimAnswer<'a>> {
    let claims = plan.experiments.iter().flat_map(|experiment| {
        experiment.claims.iter().map(|claim| (experiment.name.as_str(), claim))
    });
    claims.map(|(experiment, claim)| answer(experiment, claim, plan.measure, comparisons)).collect()
}

fn answer<'a>(
    experiment: &'a str,
    claim: &'a Claim,
    measure: Measure,
    comparisons: &'a [Comparison],
) -> ClaimAnswer<'a> {
    let none = |found, reason: String| {
        let answer = Answer::NotComparable;
        ClaimAnswer { experiment, claim, answer, found, could_see: None, reason }
    };
    let Some(workload) = &claim.workload else {
        return none(None, "no workload here measures it".to_owned());
    };
    let matching = |c: &&Comparison| {
        c.primary
            && c.series.experiment == experiment
            && c.side == claim.side
            && is_start(workload, &c.series.workload)
    };
    let mut matching = comparisons.iter().filter(matching);
    let (found, more) = (matching.next(), matching.count());
    let Some(found) = found else {
        return none(None, format!("the run has no series {workload} of {}", claim.side));
    };
    if more > 0 {
        let text = format!("{} series of the run begin with {workload}", more + 1);
        return none(None, text);
    }
    if let Some(why) = obstacle(found) {
        return none(Some(found), why);
    }
    let (Some(better), Some(change)) = (claim.better, found.change) else {
        return none(Some(found), "which direction is better is not known".to_owned());
    };
    let (claimed, seen) = (cost(claim.change, better), cost(change, found.better));
    let answer = judge(claimed, seen, found);
    let could_see = (answer == Answer::NotSeen).then(|| visible(found)).flatten();
    let reason = match measure {
        Measure::Instructions if found.series.metric == "instructions" => "by work, not by time",
        Measure::Instructions => "by the guest's own time",
        Measure::Time => "",
    };
    ClaimAnswer {
        experiment,
        claim,
        answer,
        found: Some(found),
        could_see,
        reason: reason.to_owned(),
    }
}

/// Whether a claim's words are those of a series or its first ones.
fn is_start(words: &str, label: &str) -> bool {
    label.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Why a comparison says nothing of a claim.
fn obstacle(found: &Comparison) -> Option<String> {
    let word = found.exact.as_ref().and_then(|exact| exact.word);
    let unusable = matches!(word, Some(ExactWord::NotExact | ExactWord::DependsOnCpu));
    if unusable || matches!(found.verdict, Verdict::Invalid | Verdict::Fails) {
        return Some(match found.reason.is_empty() {
            true => found.verdict.words().to_owned(),
            false => found.reason.clone(),
        });
    }
    None
}

/// The logarithm of how much more an operation costs: above zero is worse. Twice the throughput is
/// half the time.
fn cost(change: f64, better: Better) -> f64 {
    match better {
        Better::Lower => change.ln_1p(),
        Better::Higher => -change.ln_1p(),
    }
}

fn judge(claimed: f64, seen: f64, found: &Comparison) -> Answer {
    let word = found.exact.as_ref().and_then(|exact| exact.word);
    let shown_equal = match word {
        Some(word) => matches!(word, ExactWord::Identical | ExactWord::Equivalent),
        None => found.verdict == Verdict::NoChange,
    };
    let decided = match word {
        Some(word) => matches!(word, ExactWord::MoreInstructions | ExactWord::FewerInstructions),
        None => matches!(found.verdict, Verdict::Regression | Verdict::Improvement),
    };
    // A trace of what is claimed is told from none, and yet is not what is claimed.
    let told = ends(found).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let changed = decided || told && seen.abs() * TRACE >= claimed.abs();
    let claims_none = claimed.abs() < NONE;
    match changed {
        false if claims_none && shown_equal => Answer::Reproduced,
        false => Answer::NotSeen,
        true if claims_none || claimed * seen < 0.0 => Answer::Opposite,
        true => {
            let within = ends(found).is_some_and(|(low, high)| (low..=high).contains(&claimed));
            let same = within || (1.0 / SAME_SIZE..=SAME_SIZE).contains(&(seen / claimed));
            if same { Answer::Reproduced } else { Answer::SameDirection }
        }
    }
}

/// The interval of what was found, as costs.
fn ends(found: &Comparison) -> Option<(f64, f64)> {
    let (one, other) = (cost(found.low?, found.better), cost(found.high?, found.better));
    Some((one.min(other), one.max(other)))
}

/// The smallest change that a comparison could have shown: half of its interval, or in exact runs the
/// margin.
fn visible(found: &Comparison) -> Option<f64> {
    match ends(found) {
        Some((low, high)) => Some(((high - low) / 2.0).exp_m1()).filter(|size| size.is_finite()),
        None if found.exact.is_some() => Some(found.margin),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{ExactFinding, SeriesName};

    fn claim(change: f64, better: Better) -> Claim {
        Claim {
            side: "patched".into(),
            metric: "Process fork+exit".into(),
            workload: Some("fork-exit".into()),
            base: None,
            value: None,
            unit: "us".into(),
            change,
            better: Some(better),
            prognosis: None,
        }
    }

    fn comparison(change: f64, verdict: Verdict) -> Comparison {
        Comparison {
            series: SeriesName {
                experiment: "e".into(),
                workload: "fork-exit".into(),
                metric: "time".into(),
            },
            side: "patched".into(),
            unit: "ns".into(),
            better: Better::Lower,
            primary: true,
            base: Some(100.0),
            value: Some(100.0 * (1.0 + change)),
            change: Some(change),
            low: Some(change - 0.01),
            high: Some(change + 0.01),
            confidence: Some(0.95),
            margin: 0.05,
            pairs: 12,
            dropped: 0,
            all_pairs: None,
            timed: None,
            verdict,
            reason: String::new(),
            exact: None,
        }
    }

    fn answered(claim: &Claim, found: &[Comparison]) -> (Answer, Option<f64>) {
        let answer = answer("e", claim, Measure::Time, found);
        (answer.answer, answer.could_see)
    }

    #[test]
    fn each_of_the_five_answers() {
        let claim = claim(0.098, Better::Lower);
        let of = |change, verdict| answered(&claim, &[comparison(change, verdict)]);
        assert_eq!(of(0.12, Verdict::Regression).0, Answer::Reproduced);
        assert_eq!(of(0.9, Verdict::Regression).0, Answer::SameDirection);
        assert_eq!(of(-0.2, Verdict::Improvement).0, Answer::Opposite);
        for (change, verdict) in [(0.0, Verdict::NoChange), (0.005, Verdict::Inconclusive)] {
            let (answer, could) = of(change, verdict);
            assert_eq!(answer, Answer::NotSeen);
            assert!((could.unwrap() - 0.01).abs() < 1e-3, "{could:?}");
        }
        // Equality within the margin is none to within an interval that excludes it.
        assert_eq!(of(0.04, Verdict::NoChange).0, Answer::SameDirection);
        assert_eq!(of(-0.04, Verdict::NoChange).0, Answer::Opposite);
        assert_eq!(of(0.1, Verdict::Invalid).0, Answer::NotComparable);
        assert_eq!(of(0.1, Verdict::Fails).0, Answer::NotComparable);
    }

    #[test]
    fn more_throughput_is_less_time() {
        let found = [comparison(-0.5, Verdict::Improvement)];
        assert_eq!(answered(&claim(1.0, Better::Higher), &found).0, Answer::Reproduced);
        assert_eq!(answered(&claim(-0.5, Better::Higher), &found).0, Answer::Opposite);
    }

    #[test]
    fn a_claim_of_no_change_is_reproduced_by_equality_only() {
        let none = claim(0.0, Better::Lower);
        let of = |change, verdict| answered(&none, &[comparison(change, verdict)]).0;
        assert_eq!(of(0.0, Verdict::NoChange), Answer::Reproduced);
        assert_eq!(of(0.0, Verdict::Inconclusive), Answer::NotSeen);
        assert_eq!(of(0.3, Verdict::Regression), Answer::Opposite);
        assert_eq!(of(-0.3, Verdict::Improvement), Answer::Opposite);
    }

    #[test]
    fn exact_runs_answer_by_their_words() {
        let with = |word, change| {
            let mut found = comparison(change, Verdict::NoChange);
            found.exact = Some(Box::new(ExactFinding {
                word: Some(word),
                cpu: "max".into(),
                spread: [0.0; 2],
                classes: Vec::new(),
                contexts: Vec::new(),
                events: Vec::new(),
                mixed: Vec::new(),
            }));
            (found.low, found.high) = (None, None);
            answered(&claim(0.098, Better::Lower), &[found]).0
        };
        assert_eq!(with(ExactWord::MoreInstructions, 0.08), Answer::Reproduced);
        assert_eq!(with(ExactWord::MoreInstructions, 0.01), Answer::SameDirection);
        assert_eq!(with(ExactWord::FewerInstructions, -0.08), Answer::Opposite);
        assert_eq!(with(ExactWord::Identical, 0.0), Answer::NotSeen);
        assert_eq!(with(ExactWord::DependsOnCpu, 0.1), Answer::NotComparable);
    }

    #[test]
    fn what_names_no_or_several_series_is_not_comparable() {
        let mut other = claim(0.098, Better::Lower);
        other.workload = Some("fork".into());
        let found = [comparison(0.1, Verdict::Regression)];
        assert_eq!(answered(&other, &found).0, Answer::NotComparable);
        other.workload = None;
        assert_eq!(answered(&other, &found).0, Answer::NotComparable);
        let mut two = [comparison(0.1, Verdict::Regression), comparison(0.1, Verdict::Regression)];
        two[1].series.workload = "fork-exit mappings=10000".into();
        assert_eq!(answered(&claim(0.1, Better::Lower), &two).0, Answer::NotComparable);
        two[1].side = "third".into();
        assert_eq!(answered(&claim(0.1, Better::Lower), &two).0, Answer::Reproduced);
    }
}
