use super::talk::tell;
use crate::config::Diagnostics;
use crate::exit_code;
use crate::fault::Failure;

/// Why a command ended without doing what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// What the user wrote is wrong; every complaint is in it.
    #[error("{0}")]
    Document(Diagnostics),
    /// Something failed.
    #[error("{0}")]
    Failed(#[from] Failure),
    /// A boot of this side failed, and with it the run.
    #[error("side {0}: {1}")]
    BootFailed(String, #[source] Box<Failure>),
    /// A word that names nothing.
    #[error("{0}")]
    Unknown(String),
    /// Nothing matches what was asked for.
    #[error("{0}")]
    NothingSelected(String),
    /// Standard output is closed or full.
    #[error("failed to write the result: {0}")]
    Output(#[source] std::io::Error),
}

impl From<Diagnostics> for CliError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Document(diagnostics)
    }
}

impl CliError {
    /// What the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Document(_) | Self::Unknown(_) => exit_code::USAGE,
            Self::Failed(failure) => failure.fault().exit_code(),
            Self::BootFailed(_, failure) => failure.fault().exit_code(),
            Self::NothingSelected(_) => exit_code::NOTHING_SELECTED,
            Self::Output(_) => exit_code::RIG,
        }
    }

    /// Tells it on standard error, with colours where `colour` says so.
    pub fn print(&self, colour: bool) {
        match self {
            Self::Document(diagnostics) => tell(diagnostics.render(colour).trim_end()),
            _ => tell(&format!("kduel: {self}")),
        }
    }
}
