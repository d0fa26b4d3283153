use kduel_protocol::Better;
use kduel_stats::{Interval, StatsError, Walsh, mean, student_interval};

use crate::report::number;
use crate::text::count;

use super::Verdict;

/// What one comparison is asked: one look at all pairs.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// log(value) - log(base), one per valid pair.
    pub differences: &'a [f64],
    /// Which direction is better.
    pub better: Better,
    /// The change that matters, relative: 0.1 is 10 %.
    pub margin: f64,
    /// Student's t instead of the rank interval.
    pub quick: bool,
}

/// What the pairs say. On the log scale: a change of x is log(1 + x).
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The Hodges-Lehmann estimate; with `quick` the mean, which Student's interval lies around.
    pub estimate: f64,
    /// At least 95 %; absent if there are too few pairs.
    pub interval: Option<Interval>,
    /// What follows.
    pub verdict: Verdict,
    /// Why, in one sentence without its full stop.
    pub reason: String,
}

/// Fewest pairs with a rank interval of 95 %.
const FEWEST_PAIRS: usize = 6;

/// Decides one comparison. The margin counts on the log scale, so that swapping the sides turns a
/// regression into an improvement and changes nothing else.
///
/// # Errors
///
/// No pair, or a difference that is no number.
pub fn decide(question: &Question<'_>) -> Result<Answer, StatsError> {
    let walsh = Walsh::new(question.differences)?;
    let estimate = if question.quick { mean(question.differences)? } else { walsh.estimate() };
    let interval = interval(question, &walsh, 0.05)?;
    // Two one-sided tests at 5 % each.
    let equivalence = self::interval(question, &walsh, 0.10)?;
    let delta = question.margin.ln_1p();
    let margin = number::margin(question.margin);
    let (verdict, reason) = match (interval, equivalence) {
        (Some(interval), _) if interval.excludes_zero() && estimate.abs() >= delta => {
            let reason = format!(
                "the interval excludes 0 and the change is not below the margin of {margin}"
            );
            (direction(estimate, question.better), reason)
        }
        (Some(interval), Some(inner)) if inner.within(delta) => {
            let detectable =
                if interval.excludes_zero() { "; detectable, below the margin" } else { "" };
            (Verdict::NoChange, format!("shown equal within the margin of {margin}{detectable}"))
        }
        (Some(interval), _) => (Verdict::Inconclusive, open(question, &interval, delta)),
        (None, _) => (Verdict::Inconclusive, too_few(question)),
    };
    Ok(Answer { estimate, interval, verdict, reason })
}

fn interval(
    question: &Question<'_>,
    walsh: &Walsh,
    alpha: f64,
) -> Result<Option<Interval>, StatsError> {
    match question.quick {
        false => walsh.interval(alpha),
        true if question.differences.len() < 2 => Ok(None),
        true => student_interval(question.differences, alpha).map(Some),
    }
}

fn direction(estimate: f64, better: Better) -> Verdict {
    let rose = estimate > 0.0;
    if rose == (better == Better::Higher) { Verdict::Improvement } else { Verdict::Regression }
}

fn too_few(question: &Question<'_>) -> String {
    let pairs = count(question.differences.len(), "pair");
    let needed = if question.quick { 2 } else { FEWEST_PAIRS };
    format!("{pairs} cannot give a 95 % interval; at least {needed} are needed")
}

/// Why a comparison stays open, and what it would take.
fn open(question: &Question<'_>, interval: &Interval, delta: f64) -> String {
    let half = interval.half_width();
    let margin = number::margin(question.margin);
    let pairs = question.differences.len() as f64;
    let needed = (pairs * (half / delta).powi(2)).ceil();
    if half < delta {
        return format!("the change lies too near the margin of {margin} to tell from which side");
    }
    let seen = number::percent(half.exp_m1());
    let needed = if needed < 10_000.0 { format!("about {needed}") } else { "over 10000".into() };
    format!(
        "smallest change that could have been seen: {seen}; pairs needed for {margin}: {needed}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(differences: &[f64], margin: f64, quick: bool) -> Answer {
        decide(&Question { differences, better: Better::Lower, margin, quick }).unwrap()
    }

    const SLOWER: [f64; 8] = [0.15, 0.14, 0.16, 0.17, 0.13, 0.15, 0.155, 0.145];
    const NOISE: [f64; 8] = [0.01, -0.02, 0.005, -0.004, 0.012, -0.011, 0.003, 0.0];

    #[test]
    fn beyond_the_margin() {
        assert_eq!(ask(&SLOWER, 0.1, false).verdict, Verdict::Regression);
        assert_eq!(ask(&SLOWER.map(|d| -d), 0.1, false).verdict, Verdict::Improvement);
        let higher =
            Question { differences: &SLOWER, better: Better::Higher, margin: 0.1, quick: false };
        assert_eq!(decide(&higher).unwrap().verdict, Verdict::Improvement);
    }

    #[test]
    fn within_the_margin() {
        let same = ask(&NOISE, 0.1, false);
        assert_eq!(same.verdict, Verdict::NoChange);
        assert!(!same.reason.contains("detectable"), "{}", same.reason);
        let small = ask(&SLOWER, 0.3, false);
        assert_eq!(small.verdict, Verdict::NoChange);
        assert!(small.reason.contains("detectable, below the margin"), "{}", small.reason);
    }

    #[test]
    fn open_questions_say_what_it_would_take() {
        let wide = ask(&NOISE.map(|d| d * 20.0), 0.1, false);
        assert_eq!(wide.verdict, Verdict::Inconclusive);
        // The fourth of 36 Walsh averages from either end; delta = ln 1.1 = .0953: 8 × 4.19 pairs.
        let half = wide.interval.unwrap().half_width();
        assert!((half - 0.195).abs() < 1e-12, "{half}");
        assert!(
            wide.reason.contains("21.5 %") && wide.reason.contains("about 34"),
            "{}",
            wide.reason
        );
        let near = ask(&SLOWER, 0.165, false);
        assert_eq!(near.verdict, Verdict::Inconclusive);
        assert!(near.reason.contains("too near the margin"), "{}", near.reason);
    }

    #[test]
    fn few_pairs_have_an_estimate_and_no_interval() {
        let few = ask(&SLOWER[..5], 0.1, false);
        assert_eq!((few.verdict, few.interval), (Verdict::Inconclusive, None));
        assert!((few.estimate - 0.15).abs() < 1e-9);
        assert!(few.reason.starts_with("5 pairs cannot"), "{}", few.reason);
        assert_eq!(ask(&SLOWER[..5], 0.1, true).verdict, Verdict::Regression);
        assert_eq!(ask(&SLOWER[..1], 0.1, true).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn swapped_sides_mirror_the_verdict_even_at_the_margin() {
        for scale in [0.2, 0.6, 0.63, 0.64, 1.0, 2.0] {
            let (there, back) = (SLOWER.map(|d| d * scale), SLOWER.map(|d| -d * scale));
            let mirrored = match ask(&back, 0.1, false).verdict {
                Verdict::Improvement => Verdict::Regression,
                Verdict::Regression => Verdict::Improvement,
                other => other,
            };
            assert_eq!(ask(&there, 0.1, false).verdict, mirrored, "scale {scale}");
        }
    }

    #[test]
    fn nothing_is_decided_from_what_is_no_number() {
        let bad = [f64::NAN; 8];
        let question =
            Question { differences: &bad, better: Better::Lower, margin: 0.1, quick: false };
        assert_eq!(decide(&question), Err(StatsError::NotFinite));
    }
}
