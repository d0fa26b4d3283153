//! Why a verdict is what it is, in one sentence without its full stop.

use kduel_stats::{Downgrade, Finding, Look, Reason, Rule};

use crate::report::number;
use crate::text::count;

/// Of a finding under `rule`; `margin` is relative.
pub(super) fn words(finding: &Finding, rule: &Rule, margin: f64) -> String {
    let limit = number::margin(margin);
    match &finding.reason {
        Reason::Open { smallest, needed } => {
            let seen = number::percent(smallest.exp_m1());
            let needed =
                if *needed < 10_000.0 { format!("about {needed}") } else { "over 10000".into() };
            format!(
                "smallest change that could have been seen: {seen}; pairs needed for {limit}: {needed}"
            )
        }
        Reason::TooFew { needed } => {
            let confidence = finding.look.map_or(0.95, |look: Look| 1.0 - look.alpha);
            let pairs = count(finding.pairs, "pair");
            let level = number::margin(confidence);
            format!("{pairs} cannot give a {level} interval; at least {needed} are needed")
        }
        Reason::BeforeFirstLook { first } => {
            let (pairs, last) = (count(finding.pairs, "pair"), rule.looks.pairs());
            match last == *first {
                true => format!("{pairs} so far; the look is at {last}"),
                false => format!("{pairs} so far; the first look is at {first} of up to {last}"),
            }
        }
        reason => whatever_is_compared(reason, margin),
    }
}

/// Reasons that are the same for pairs and for two samples of boots.
pub(super) fn whatever_is_compared(reason: &Reason, margin: f64) -> String {
    let margin = number::margin(margin);
    match reason {
        Reason::Beyond => {
            format!("the interval excludes 0 and the change is not below the margin of {margin}")
        }
        Reason::Within { detectable } => {
            let detectable = if *detectable { "; detectable, below the margin" } else { "" };
            format!("shown equal within the margin of {margin}{detectable}")
        }
        Reason::NearMargin => {
            format!("the change lies too near the margin of {margin} to tell from which side")
        }
        Reason::Family { series } => {
            format!("alone it would be decided, as one of {series} series it is not")
        }
        Reason::Downgraded(doubts) => {
            let doubts: Vec<String> = doubts.iter().map(doubt).collect();
            doubts.join("; ")
        }
        Reason::Unusable(error) => error.to_string(),
        Reason::Open { .. } | Reason::TooFew { .. } | Reason::BeforeFirstLook { .. } => {
            "not enough was seen to say".to_owned()
        }
    }
}

fn doubt(doubt: &Downgrade) -> String {
    let percent = |log: f64| number::signed_percent(log.exp_m1());
    match doubt {
        Downgrade::Sentinel { found, allowed } => format!(
            "the same side booted twice differs by {}, more than {}",
            percent(*found),
            number::percent(allowed.exp_m1())
        ),
        Downgrade::ManyDropped { dropped, of } => {
            format!("{dropped} of {} were dropped", count(*of, "pair"))
        }
        Downgrade::UnevenDrops { p } => {
            format!("one side lost more boots than the other (Fisher p = {p:.3})")
        }
        Downgrade::Slot { effect: Some(effect) } => {
            format!("booting second adds {}, and one side did so more often", percent(*effect))
        }
        Downgrade::Slot { effect: None } => "one side always booted first".to_owned(),
        Downgrade::Undeclared => "the sides differ in more than what was declared".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use kduel_stats::{Better, Pair, Series, judge};

    fn said(differences: &[f64], margin: f64, rule: &Rule) -> String {
        let pair = |side: &f64| Some(Pair { base: 0.0, side: *side, base_first: true });
        let pairs = differences.iter().map(pair).collect();
        let series = Series { pairs, delta: margin.ln_1p(), better: Better::Lower, primary: true };
        words(&judge(&[series], rule, false)[0], rule, margin)
    }

    const SLOWER: [f64; 8] = [0.15, 0.14, 0.16, 0.17, 0.13, 0.15, 0.155, 0.145];
    const NOISE: [f64; 8] = [0.01, -0.02, 0.005, -0.004, 0.012, -0.011, 0.003, 0.0];

    #[test]
    fn decided_series_name_their_margin() {
        let rule = Rule::planned(8);
        assert_eq!(
            said(&SLOWER, 0.1, &rule),
            "the interval excludes 0 and the change is not below the margin of 10 %"
        );
        assert_eq!(said(&NOISE, 0.1, &rule), "shown equal within the margin of 10 %");
        assert_eq!(
            said(&SLOWER, 0.3, &rule),
            "shown equal within the margin of 30 %; detectable, below the margin"
        );
    }

    #[test]
    fn open_questions_say_what_it_would_take() {
        let rule = Rule::planned(8);
        // The fourth of 36 Walsh averages from either end is .195 wide; ln 1.1 = .0953: 8 × 4.19.
        assert_eq!(
            said(&NOISE.map(|d| d * 20.0), 0.1, &rule),
            "smallest change that could have been seen: 21.5 %; pairs needed for 10 %: about 34"
        );
        assert_eq!(
            said(&SLOWER, 0.165, &rule),
            "the change lies too near the margin of 16.5 % to tell from which side"
        );
    }

    #[test]
    fn few_pairs_say_how_many_are_needed() {
        assert_eq!(
            said(&SLOWER[..5], 0.1, &Rule::planned(5)),
            "5 pairs cannot give a 95 % interval; at least 6 are needed"
        );
        assert_eq!(
            said(&SLOWER[..5], 0.1, &Rule::planned(30)),
            "5 pairs so far; the first look is at 8 of up to 30"
        );
    }

    #[test]
    fn every_doubt_is_named() {
        let doubts = [
            Downgrade::Sentinel { found: -0.2, allowed: 0.1 },
            Downgrade::ManyDropped { dropped: 3, of: 12 },
            Downgrade::UnevenDrops { p: 0.0137 },
            Downgrade::Slot { effect: Some(0.05) },
        ];
        let said: Vec<String> = doubts.iter().map(doubt).collect();
        assert_eq!(
            said,
            [
                "the same side booted twice differs by -18.1 %, more than 10.5 %",
                "3 of 12 pairs were dropped",
                "one side lost more boots than the other (Fisher p = 0.014)",
                "booting second adds +5.1 %, and one side did so more often",
            ]
        );
    }
}
