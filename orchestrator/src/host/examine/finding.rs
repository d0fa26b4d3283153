use serde::Serialize;

/// How bad something is for measurements on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Good,
    /// It could be better, and runs are made so that it need not be.
    Fair,
    /// Runs work, but numbers are worse or something is slower for it.
    Worse,
    /// Timed runs say little until it is changed.
    Bad,
    /// It would matter with KVM, and guests are emulated here.
    Moot,
    /// The host does not tell; that says nothing about it.
    Absent,
    /// Runs do not work without it.
    Missing,
}

impl State {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Worse => "worse",
            Self::Bad => "BAD",
            Self::Moot => "moot",
            Self::Absent => "absent",
            Self::Missing => "MISSING",
        }
    }

    /// Whether it asks for something.
    pub fn asks(self) -> bool {
        matches!(self, Self::Fair | Self::Worse | Self::Bad | Self::Missing)
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// Its name: `governor`.
    pub what: &'static str,
    /// How it is.
    pub state: State,
    /// What was seen; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// What it does to measurements if it is not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<&'static str>,
    /// The command, or the deed, that would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// `kduel tune apply` can change it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tunable: bool,
}

impl Finding {
    /// As it should be.
    pub fn good(what: &'static str, found: String) -> Self {
        Self::new(what, State::Good, found, None)
    }

    /// Something without which runs do not work.
    pub fn missing(what: &'static str, found: &str, fix: Option<String>) -> Self {
        Self::new(what, State::Missing, found.to_owned(), fix)
    }

    /// Something of which no more is to be said than what was found and how to change it.
    pub fn new(what: &'static str, state: State, found: String, fix: Option<String>) -> Self {
        Self { what, state, found: Some(found), effect: None, fix, tunable: false }
    }
}

/// What a check saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) state: State,
    pub(super) found: String,
    pub(super) fix: Option<String>,
}

impl Seen {
    pub(super) fn good(found: impl Into<String>) -> Self {
        Self { state: State::Good, found: found.into(), fix: None }
    }

    pub(super) fn new(state: State, found: impl Into<String>, fix: &str) -> Self {
        Self { state, found: found.into(), fix: Some(fix.to_owned()) }
    }

    /// Good if `fine`, else `state` with `fix`.
    pub(super) fn either(fine: bool, state: State, found: impl Into<String>, fix: &str) -> Self {
        if fine { Self::good(found) } else { Self::new(state, found, fix) }
    }
}
