use kduel_protocol::Monitor;

/// What must come out of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expected {
    /// Of an exact run.
    pub exact: Vec<Expectation>,
    /// Of a timed run.
    pub time: Vec<Expectation>,
}

/// One thing that must come out.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Of which experiment.
    pub experiment: String,
    /// The series, or the start of its name.
    pub workload: String,
    /// What is looked at.
    pub subject: Subject,
    /// What it must be.
    pub wanted: Wanted,
}

/// What an expectation looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A metric; absent: the one that decides.
    Metric(Option<String>),
    /// A count of an exact run, per operation: a class of instructions, an event, a context.
    Count(String),
    /// Instructions of one function, per operation, in the workload's own tasks.
    Function(String),
    /// A column of a monitor: the mean of the steady part, or what is told per second or operation.
    Column(Monitor, String),
}

/// What must be so.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// One side against the base.
    Side {
        /// Which.
        side: String,
        /// One of these, as [`OUTCOMES`] has them; empty: any.
        outcomes: Vec<String>,
        /// Side minus base.
        change: Option<Range>,
        /// Side minus base, in calls per operation; of functions.
        calls: Option<Range>,
    },
    /// Each side has more than the one before it.
    Order(Vec<String>),
}

/// Words for what comes out of a series: verdicts, and those of exact runs.
pub const OUTCOMES: [&str; 12] = [
    "regression",
    "improvement",
    "no-change",
    "inconclusive",
    "invalid",
    "fails",
    "more-instructions",
    "fewer-instructions",
    "equivalent",
    "identical",
    "depends-on-cpu",
    "not-exact",
];

/// How ranges are written.
pub const RANGE_HELP: &str = "write a range as `+5%..+20%`, `..-80%` or `20..60`";

/// From one number to another, both among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Absent: as little as it likes.
    pub low: Option<f64>,
    /// Absent: as much as it likes.
    pub high: Option<f64>,
    /// Relative to the base; else in the unit of what is looked at.
    pub relative: bool,
}

impl Range {
    /// Reads [`RANGE_HELP`], or one number that it must be.
    pub fn parse(text: &str) -> Option<Self> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let ends = [low.trim(), high.trim()];
        let relative = ends.iter().any(|end| end.ends_with('%'));
        if ends.iter().any(|end| !end.is_empty() && end.ends_with('%') != relative) {
            return None;
        }
        let [low, high] = ends.map(|end| number(end, relative));
        let (low, high) = (low?, high?);
        let ordered = match (low, high) {
            (Some(low), Some(high)) => low <= high,
            (low, high) => low.is_some() || high.is_some(),
        };
        ordered.then_some(Self { low, high, relative })
    }

    /// Whether `number` lies in it.
    pub fn contains(&self, number: f64) -> bool {
        self.low.is_none_or(|low| number >= low) && self.high.is_none_or(|high| number <= high)
    }
}

/// The number of one end, which may be absent; nothing if it is none.
#[expect(clippy::option_option, reason = "an absent end is not one that cannot be read")]
fn number(end: &str, relative: bool) -> Option<Option<f64>> {
    if end.is_empty() {
        return Some(None);
    }
    let digits = end.strip_suffix('%').unwrap_or(end).trim_end();
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some(Some(if relative { number / 100.0 } else { number }))
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = |end: f64| {
            // Rounded, so that 0.07 * 100 is 7.
            let percent = (end * 1e8).round() / 1e6;
            if self.relative { format!("{percent:+} %") } else { format!("{end:+}") }
        };
        match (self.low, self.high) {
            (Some(low), Some(high)) if low == high => f.write_str(&end(low)),
            (Some(low), Some(high)) => write!(f, "{} to {}", end(low), end(high)),
            (Some(low), None) => write!(f, "{} or more", end(low)),
            (None, Some(high)) => write!(f, "{} or less", end(high)),
            (None, None) => f.write_str("anything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_they_are_written_and_told() {
        let told = |text: &str| Range::parse(text).map(|range| range.to_string());
        assert_eq!(told("+0.1%..+7%").as_deref(), Some("+0.1 % to +7 %"));
        assert_eq!(told("..-80%").as_deref(), Some("-80 % or less"));
        assert_eq!(told("-5% .. ").as_deref(), Some("-5 % or more"));
        assert_eq!(told("20..60").as_deref(), Some("+20 to +60"));
        assert_eq!(told("1").as_deref(), Some("+1"));
        for wrong in ["", "..", "a..b", "1..2%", "5..2", "1%..2", "nan", "..inf"] {
            assert_eq!(told(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ends_belong_to_a_range() {
        let range = Range::parse("-10%..20%").unwrap();
        assert!(range.contains(-0.1) && range.contains(0.2) && !range.contains(0.21));
        assert!(Range::parse("..3").unwrap().contains(f64::NEG_INFINITY));
    }
}
