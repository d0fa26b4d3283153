use kduel_protocol::Better;
use serde::{Deserialize, Serialize};

/// What a report says of a side, to be tried here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Claim {
    /// Of which side it is said, against the base.
    pub side: String,
    /// What the report measured, in its words.
    pub metric: String,
    /// The series here that shows it, or the start of its name; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workload: Option<String>,
    /// The report's figure for the base, in `unit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<f64>,
    /// Its figure for the side.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<f64>,
    /// The unit of both; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// value / base - 1; above -1.
    pub change: f64,
    /// Which direction is better; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub better: Option<Better>,
    /// What was thought of it before it was tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prognosis: Option<Prognosis>,
}

/// How a claim can be tried here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prognosis {
    /// In an exact run.
    Exactly,
    /// In a timed run.
    ByTime,
    /// On a host with more CPUs.
    NeedsCpus,
    /// It is about contention, which shows on the report's machine or one like it.
    Contention,
}

impl Prognosis {
    /// Every prognosis, as it is written.
    pub const ALL: [(&'static str, Self); 4] = [
        ("exactly", Self::Exactly),
        ("by-time", Self::ByTime),
        ("needs-cpus", Self::NeedsCpus),
        ("contention", Self::Contention),
    ];

    /// As it is written in a document.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("", |(word, _)| word)
    }
}
