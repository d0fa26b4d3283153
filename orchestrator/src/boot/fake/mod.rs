//! A machine that plays a script: the whole command, store and report path without a guest.

mod machine;
mod monitors;
mod script;
mod tamper;
mod transcript;

pub use machine::FakeMachine;
pub use script::{BootScript, CutOff, FactsScript, ProblemScript, Script, SideScript};
pub use tamper::Tamper;
