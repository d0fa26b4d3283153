//! What of a host spoils measurements: looked up in its files, nothing is started and nothing changed.

mod cpu;
mod finding;
mod isolation;
mod limits;
mod memory;
mod render;
mod virtualisation;

pub use finding::{Finding, State};
pub use render::render;

use finding::Seen;

use super::files::HostFiles;
use super::tune;
use crate::boot::Accel;

/// One thing to look at.
struct Check {
    what: &'static str,
    /// It only matters where guests run on the host's own processor.
    kvm_only: bool,
    /// What it does to measurements if it is not good.
    effect: &'static str,
    /// Absent where the host does not tell.
    look: fn(&HostFiles) -> Option<Seen>,
}

const fn check(
    what: &'static str,
    look: fn(&HostFiles) -> Option<Seen>,
    effect: &'static str,
) -> Check {
    Check { what, kvm_only: false, effect, look }
}

const fn with_kvm(
    what: &'static str,
    look: fn(&HostFiles) -> Option<Seen>,
    effect: &'static str,
) -> Check {
    Check { what, kvm_only: true, effect, look }
}

const CHECKS: &[&[Check]] =
    &[cpu::CHECKS, memory::CHECKS, isolation::CHECKS, virtualisation::CHECKS, limits::CHECKS];

/// Everything about the host of `files` that matters where guests are executed by `accel`.
pub fn examine(files: &HostFiles, accel: Accel) -> Vec<Finding> {
    let checks = CHECKS.iter().copied().flatten();
    checks.map(|check| finding(check, files, accel)).collect()
}

fn finding(check: &Check, files: &HostFiles, accel: Accel) -> Finding {
    let Some(Seen { state, found, fix }) = (check.look)(files) else {
        return Finding {
            what: check.what,
            state: State::Absent,
            found: None,
            effect: None,
            fix: None,
            tunable: false,
        };
    };
    let moot = check.kvm_only && accel == Accel::Tcg && state.asks();
    Finding {
        what: check.what,
        state: if moot { State::Moot } else { state },
        found: Some(found),
        effect: (state != State::Good).then_some(check.effect),
        fix,
        tunable: state.asks() && tune::can_change(files, check.what),
    }
}
