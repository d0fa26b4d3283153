use kduel_protocol::Better;
use serde::Serialize;

use crate::collect::mail::Line;

/// What printed a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    Lmbench,
    PerfStat,
    PerfBench,
    Vmstat,
    Kernbench,
    Hackbench,
    /// A profile of one kernel, by function.
    Readprofile,
    /// The difference of two of them.
    Diffprofile,
    Mmtests,
    /// The kernel test robot's table.
    Robot,
    Unixbench,
    Schbench,
    StressNg,
    Fio,
    Sysbench,
    Hyperfine,
    Ktap,
    /// The shell's `time`.
    Time,
}

impl Format {
    /// What it is called.
    pub fn words(self) -> &'static str {
        match self {
            Self::Lmbench => "lmbench",
            Self::PerfStat => "perf stat",
            Self::PerfBench => "perf bench",
            Self::Vmstat => "vmstat",
            Self::Kernbench => "kernbench",
            Self::Hackbench => "hackbench",
            Self::Readprofile => "readprofile",
            Self::Diffprofile => "diffprofile",
            Self::Mmtests => "MMTests",
            Self::Robot => "%stddev table",
            Self::Unixbench => "UnixBench",
            Self::Schbench => "schbench",
            Self::StressNg => "stress-ng",
            Self::Fio => "fio",
            Self::Sysbench => "sysbench",
            Self::Hyperfine => "hyperfine",
            Self::Ktap => "KTAP",
            Self::Time => "time",
        }
    }
}

/// A number that was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Value {
    /// What it is.
    pub number: f64,
    /// What one more in its last digit would add.
    pub step: f64,
    /// The line of the input it stands in.
    pub line: usize,
}

/// How a percentage beside a value is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// How much the number grew.
    Raw,
    /// How much better it is, in parts of the base.
    BetterIsPlus,
    /// The difference of two percentages, in points.
    Points,
}

/// What a table says of a value besides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claimed {
    /// In per cent or points.
    #[serde(flatten)]
    pub value: Value,
    /// What it is.
    pub sense: Sense,
}

/// What one side has of one metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cell {
    /// Its runs or samples; none if it is absent.
    pub values: Vec<Value>,
    /// Relative standard deviation, in per cent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Why there is no value, as it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// The change against the base that the table itself gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Claimed>,
}

impl Cell {
    /// One value.
    pub fn of(value: Value) -> Self {
        Self { values: vec![value], ..Self::default() }
    }

    /// The mean of its values.
    pub fn mean(&self) -> Option<f64> {
        let numbers: Vec<f64> = self.values.iter().map(|value| value.number).collect();
        kduel_stats::mean(&numbers).ok()
    }

    /// How far the true mean may lie from [`Self::mean`] because its values were rounded.
    pub fn rounding(&self) -> f64 {
        self.values.iter().map(|value| value.step / 2.0).fold(0.0, f64::max)
    }
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// What the benchmark is about.
    Result,
    /// What was watched beside it.
    Monitor,
    /// The sum of the others.
    Total,
}

/// One metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// What it is called.
    pub metric: String,
    /// Empty if it has none.
    pub unit: String,
    /// Which direction is better, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// What it is.
    pub role: Role,
    /// One for each side.
    pub cells: Vec<Cell>,
}

impl Row {
    /// A result of one side.
    pub fn result(metric: &str, unit: &str, better: Better, value: Value) -> Self {
        Self { better: Some(better), ..Self::monitor(metric, unit, value) }.with(Role::Result)
    }

    /// A number of one side that was watched.
    pub fn monitor(metric: &str, unit: &str, value: Value) -> Self {
        Self {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better: None,
            role: Role::Monitor,
            cells: vec![Cell::of(value)],
        }
    }

    /// The same as another kind of row.
    pub fn with(self, role: Role) -> Self {
        Self { role, ..self }
    }
}

/// Something to know about a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Note {
    /// The line of the input it is about.
    pub line: usize,
    /// What.
    pub text: String,
}

/// A table as one program printed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Which program.
    pub format: Format,
    /// The sides in it; empty: it is of one side, which something outside of it names.
    pub sides: Vec<String>,
    /// What the program was told.
    pub parameters: Vec<(String, String)>,
    /// What it found.
    pub rows: Vec<Row>,
    /// What to know about it.
    pub notes: Vec<Note>,
    /// Lines, blank ones inside included.
    pub used: usize,
}

impl Block {
    /// Nothing found yet.
    pub fn new(format: Format) -> Self {
        let (sides, parameters, rows, notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { format, sides, parameters, rows, notes, used: 0 }
    }

    /// Adds a parameter.
    pub fn parameter(&mut self, name: &str, value: impl Into<String>) {
        self.parameters.push((name.to_owned(), value.into()));
    }

    /// Adds a note about a line.
    pub fn note(&mut self, line: &Line<'_>, text: impl Into<String>) {
        self.notes.push(Note { line: line.number, text: text.into() });
    }

    /// Itself, of its first `used` lines, if anything was found in them.
    pub fn finish(mut self, used: usize) -> Option<Self> {
        self.used = used;
        (!self.rows.is_empty() || !self.notes.is_empty()).then_some(self)
    }
}
