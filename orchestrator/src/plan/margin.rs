use std::collections::BTreeMap;

use kduel_stats::Margin;
use serde::{Deserialize, Serialize};

/// The change that matters, as far as the user said it; fixed before the first boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MarginTerms {
    /// Relative, for every metric: 0.1 is 10 %.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub relative: Option<f64>,
    /// In the metric's unit, by that unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub absolute: BTreeMap<String, f64>,
}

impl MarginTerms {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.relative.is_none() && self.absolute.is_empty()
    }

    /// What `over` says wins.
    pub fn overridden_by(&mut self, over: &Self) {
        self.relative = over.relative.or(self.relative);
        self.absolute.extend(over.absolute.iter().map(|(unit, value)| (unit.clone(), *value)));
    }

    /// For a metric with this unit, `default` where nothing was said.
    pub fn of(&self, unit: &str, default: Margin) -> Margin {
        Margin {
            relative: self.relative.unwrap_or(default.relative),
            absolute: self.absolute.get(unit).copied().unwrap_or(default.absolute),
        }
    }
}

/// What a calibration of this host found for one series, taken into the plan when the run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CalibratedSeries {
    /// The workload with its parameters, as in a series' name.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// The relative change that this host can be trusted with.
    pub margin: f64,
    /// Variance of iterations within a boot, of logarithms.
    pub iteration_variance: f64,
    /// Variance of boots without what their iterations add, of logarithms.
    pub boot_variance: f64,
    /// The run that it comes from.
    pub run: String,
}

/// What a margin looks like, for messages.
pub const MARGIN_HELP: &str =
    "write a margin as 2%, 50ns, 3 instructions, or several: the larger one counts";

/// Reads a margin: a change in percent, or a difference in a metric's unit.
///
/// # Errors
///
/// What is wrong with `text`, without the text itself.
pub fn parse_margin(text: &str) -> Result<MarginTerms, String> {
    let mut terms = MarginTerms::default();
    let wrong = || "not a margin".to_owned();
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let (unit, scale) = match unit {
        "%" if value >= 100.0 => return Err("margin of 100 % or more".to_owned()),
        "%" => {
            terms.relative = Some(value / 100.0);
            return Ok(terms);
        }
        "ns" => ("ns", 1.0),
        "us" | "µs" => ("ns", 1e3),
        "ms" => ("ns", 1e6),
        "s" => ("ns", 1e9),
        "instructions" | "instruction" => ("1", 1.0),
        "" => return Err("margin has no unit".to_owned()),
        other if value > 0.0 => (other, 1.0),
        _ => return Err(wrong()),
    };
    terms.absolute.insert(unit.to_owned(), value * scale);
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(words: &[&str]) -> MarginTerms {
        let mut all = MarginTerms::default();
        words.iter().for_each(|word| all.overridden_by(&parse_margin(word).unwrap()));
        all
    }

    #[test]
    fn relative_and_absolute_ones_go_together() {
        let default = Margin { relative: 0.1, absolute: 3.0 };
        let said = terms(&["2 %", "0.5us", "3 instructions"]);
        assert_eq!(said.of("ns", default), Margin { relative: 0.02, absolute: 500.0 });
        assert_eq!(said.of("1", default), Margin { relative: 0.02, absolute: 3.0 });
        assert_eq!(said.of("1/s", default).absolute, 3.0);
        assert_eq!(MarginTerms::default().of("ns", default), default);
        assert_eq!(terms(&["2%", "3%"]).relative, Some(0.03));
    }

    #[test]
    fn what_is_no_margin_says_why() {
        let why = |text| parse_margin(text).unwrap_err();
        assert_eq!(why("5"), "margin has no unit");
        assert_eq!(why("100%"), "margin of 100 % or more");
        for wrong in ["", "%", "-1%", "1.2.3%", "ns", "0 parsecs", "infinity%"] {
            assert_eq!(why(wrong), "not a margin", "{wrong}");
        }
    }
}
