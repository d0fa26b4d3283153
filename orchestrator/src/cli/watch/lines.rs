use std::sync::Mutex;

use super::estimate::{TimeLeft, clock_face};
use super::{WatchOptions, lines_of};
use crate::event::{BootPhase, RunEvent};

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
    ready_s: f64,
}

impl Lines {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self { options, state: Mutex::default() }
    }

    pub(super) fn say(&self, line: &str) {
        eprintln!("{line}");
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
            RunEvent::ExperimentBegins { experiment, sides, pairs, expected } => {
                self.experiment.clone_from(experiment);
                self.pairs = *pairs;
                let boots = u32::try_from(pairs * sides.len()).unwrap_or(u32::MAX);
                self.time = Some(TimeLeft::new(*expected, boots));
                Some(format!("{experiment}: {} boots, about {}", boots, clock_face(*expected)))
            }
            RunEvent::Boot { phase: BootPhase::Ready { after }, .. } => {
                self.ready_s = after.as_secs_f64();
                None
            }
            RunEvent::Boot { side, block, phase: BootPhase::Done { took }, .. } => {
                let time = self.time.as_mut()?;
                time.boot_done(*took);
                Some(format!(
                    "{}: pair {} of {}: {side}: ready after {:.1} s, done after {:.1} s; {} elapsed, about {} left",
                    self.experiment,
                    block + 1,
                    self.pairs,
                    self.ready_s,
                    took.as_secs_f64(),
                    clock_face(time.elapsed()),
                    clock_face(time.left()),
                ))
            }
            _ => None,
        }
    }
}
