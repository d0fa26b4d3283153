use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::super::talk::tell;
use super::estimate::{TimeLeft, clock_face};
use super::{WatchOptions, lines_of};
use crate::event::{BootPhase, RunEvent};
use crate::id::BootId;
use crate::text;

/// Plain lines on standard error, one per thing that ended.
pub struct Lines {
    options: WatchOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    experiment: String,
    pairs: usize,
    time: Option<TimeLeft>,
    /// Of guests that run, of which exact runs have several at one time.
    ready: BTreeMap<BootId, Duration>,
}

impl Lines {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self { options, state: Mutex::default() }
    }

    pub(super) fn say(&self, line: &str) {
        tell(line);
    }

    pub(super) fn handle(&self, event: &RunEvent) {
        for line in lines_of(event, &self.options) {
            self.say(&line);
        }
        // A panicking holder leaves nothing half done here: the state is only for display.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(line) = state.line(event) {
            self.say(&line);
        }
    }
}

impl State {
    fn line(&mut self, event: &RunEvent) -> Option<String> {
        match event {
            RunEvent::Provisioning { what } => Some(what.clone()),
            RunEvent::ExperimentBegins { experiment, pairs, boots, expected, .. } => {
                self.experiment.clone_from(experiment);
                self.pairs = *pairs;
                self.time = Some(TimeLeft::new(*expected, *boots));
                let boots = text::count(*boots, "boot");
                Some(format!("{experiment}: {boots}, about {}", clock_face(*expected)))
            }
            RunEvent::Boot { boot, phase: BootPhase::Ready { after }, .. } => {
                self.ready.insert(boot.clone(), *after);
                None
            }
            RunEvent::Boot { boot, side, block, phase: BootPhase::Done { took, completed } } => {
                let ready = self.ready.remove(boot);
                let time = self.time.as_mut()?;
                time.boot_done(*took);
                Some(format!(
                    "{}: pair {} of {}: {side}: {}; {} elapsed, about {} left",
                    self.experiment,
                    block + 1,
                    self.pairs,
                    boot_ended(ready, *took, *completed),
                    clock_face(time.elapsed()),
                    clock_face(time.left()),
                ))
            }
            RunEvent::BootFailed { retried: true, .. } => {
                self.time.as_mut()?.one_more();
                None
            }
            _ => None,
        }
    }
}

fn boot_ended(ready: Option<Duration>, took: Duration, completed: bool) -> String {
    let end = if completed { "done" } else { "failed" };
    let ready = ready.map_or_else(
        || "never ready".to_owned(),
        |after| format!("ready after {:.1} s", after.as_secs_f64()),
    );
    format!("{ready}, {end} after {:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_that_run_at_one_time_are_not_mixed_up() {
        let mut state = State { time: Some(TimeLeft::new(Duration::ZERO, 2)), ..State::default() };
        let mut told = |boot: &str, phase| {
            let side = boot.to_owned();
            state.line(&RunEvent::Boot { boot: BootId(boot.into()), side, block: 0, phase })
        };
        let seconds = Duration::from_secs;
        told("a", BootPhase::Booting);
        told("b", BootPhase::Booting);
        told("b", BootPhase::Ready { after: seconds(3) });
        told("a", BootPhase::Ready { after: seconds(4) });
        told("a", BootPhase::Done { took: seconds(5), completed: true });
        told("a-again", BootPhase::Booting);
        let line = told("b", BootPhase::Done { took: seconds(6), completed: true }).unwrap();
        assert!(line.contains("b: ready after 3.0 s, done after 6.0 s"), "{line}");
    }
}
