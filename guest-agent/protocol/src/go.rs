use serde::{Deserialize, Serialize};

/// The orchestrator's answer to [`crate::Event::Waiting`], one line on the agent's standard input: what
/// starts the kept iterations of a trial in two guests at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Go {
    /// [`crate::TrialSpec::id`].
    pub trial: u32,
    /// The first window opens so long after this line was sent, in nanoseconds.
    pub after_ns: u64,
    /// From the opening of one window to that of the next, in nanoseconds: the same in all guests.
    pub window_ns: u64,
}
