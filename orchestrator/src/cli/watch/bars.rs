use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use super::estimate::{TimeLeft, clock_face};
use super::{WatchOptions, lines_of};
use crate::event::{BootPhase, RunEvent};
use crate::report::number;
use crate::text;

/// Bars on a terminal: one for the experiment, a line per side, a line per series.
pub struct Bars {
    options: WatchOptions,
    multi: MultiProgress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    provisioning: Option<ProgressBar>,
    experiment: Option<Experiment>,
}

struct Experiment {
    name: String,
    pairs: usize,
    pair: usize,
    time: Arc<Mutex<TimeLeft>>,
    head: ProgressBar,
    sides: BTreeMap<String, ProgressBar>,
    series: BTreeMap<String, ProgressBar>,
}

impl Bars {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self { options, multi: MultiProgress::new(), state: Mutex::default() }
    }

    pub(super) fn say(&self, line: &str) {
        // Where the terminal has gone there is nobody left to tell.
        let _ = self.multi.println(line);
    }

    pub(super) fn handle(&self, event: &RunEvent) {
        for line in lines_of(event, &self.options) {
            self.say(&line);
        }
        let mut state = self.state();
        match event {
            RunEvent::Provisioning { what } => {
                let bar = state.provisioning.get_or_insert_with(|| self.line("{spinner} {msg}"));
                bar.set_message(what.clone());
            }
            RunEvent::ExperimentBegins { experiment, sides, pairs, boots, expected } => {
                state.clear();
                let time = TimeLeft::new(*expected, *boots);
                state.experiment = Some(self.experiment(experiment, sides, *pairs, time));
            }
            RunEvent::BootFailed { retried: true, .. } => {
                if let Some(experiment) = &state.experiment {
                    lock(&experiment.time).one_more();
                }
            }
            RunEvent::Boot { side, block, phase, .. } => {
                if let Some(experiment) = &mut state.experiment {
                    experiment.boot(side, *block, phase);
                }
            }
            RunEvent::Estimate { series, change, interval } => {
                if let Some(experiment) = &mut state.experiment {
                    let bar = experiment
                        .series
                        .entry(series.clone())
                        .or_insert_with(|| self.line("  {msg:.dim}"));
                    let interval = interval.map_or_else(String::new, |(low, high)| {
                        format!(" {} %", number::interval(low, high))
                    });
                    bar.set_message(format!(
                        "{}: {}{interval} so far, no verdict",
                        text::escape(series),
                        number::signed_percent(*change)
                    ));
                }
            }
            _ => {}
        }
    }

    pub(super) fn finish(&self) {
        self.state().clear();
        let _ = self.multi.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn line(&self, template: &str) -> ProgressBar {
        let bar = self.multi.add(ProgressBar::new_spinner());
        bar.set_style(style(template));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    fn experiment(&self, name: &str, sides: &[String], pairs: usize, time: TimeLeft) -> Experiment {
        let time = Arc::new(Mutex::new(time));
        let head = self.line("");
        head.set_style(head_style(&time));
        let width = sides.iter().map(String::len).max().unwrap_or(0);
        let line_of = |side: &String| {
            let bar = self.line(RESTING);
            bar.set_prefix(format!("{side:width$}"));
            bar.set_message("waiting");
            (side.clone(), bar)
        };
        let experiment = Experiment {
            name: name.to_owned(),
            pairs,
            pair: 0,
            time,
            head,
            sides: sides.iter().map(line_of).collect(),
            series: BTreeMap::new(),
        };
        experiment.tell_head();
        experiment
    }
}

/// A side whose guest runs, with the time since its start.
const RUNNING: &str = "  {prefix} {msg} {elapsed:.dim}";
/// A side without a guest.
const RESTING: &str = "  {prefix} {msg}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// The clocks go on between two events.
fn head_style(time: &Arc<Mutex<TimeLeft>>) -> ProgressStyle {
    let time = time.clone();
    style("{bar:24} {msg}, {clocks}").with_key(
        "clocks",
        move |_: &ProgressState, line: &mut dyn std::fmt::Write| {
            let time = lock(&time);
            let (elapsed, left) = (clock_face(time.elapsed()), clock_face(time.left()));
            // A formatter of a string does not fail.
            let _ = write!(line, "{elapsed} elapsed, about {left} left");
        },
    )
}

/// The state is only for display: a panicking holder leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn clear(&mut self) {
        if let Some(bar) = self.provisioning.take() {
            bar.finish_and_clear();
        }
        if let Some(experiment) = self.experiment.take() {
            experiment.head.finish_and_clear();
            experiment.sides.values().for_each(ProgressBar::finish_and_clear);
            experiment.series.values().for_each(ProgressBar::finish_and_clear);
        }
    }
}

impl Experiment {
    fn boot(&mut self, side: &str, block: usize, phase: &BootPhase) {
        self.pair = block;
        let words = match phase {
            BootPhase::Booting => "booting".to_owned(),
            BootPhase::Ready { after } => format!("ready after {:.1} s", after.as_secs_f64()),
            BootPhase::Knobs => "setting knobs".to_owned(),
            BootPhase::Settling => "waiting for idle".to_owned(),
            BootPhase::Trial { workload, done, of } => format!("{workload}: {done} of {of}"),
            BootPhase::Stopping => "switching off".to_owned(),
            BootPhase::Done { took, completed } => {
                lock(&self.time).boot_done(*took);
                let end = if *completed { "done" } else { "failed" };
                format!("{end} after {:.1} s", took.as_secs_f64())
            }
        };
        if let Some(bar) = self.sides.get(side) {
            match phase {
                BootPhase::Booting => {
                    bar.reset_elapsed();
                    bar.set_style(style(RUNNING));
                }
                BootPhase::Done { .. } => bar.set_style(style(RESTING)),
                _ => {}
            }
            bar.set_message(words);
        }
        self.tell_head();
    }

    fn tell_head(&self) {
        let (boots, done) = {
            let time = lock(&self.time);
            (time.boots(), time.done())
        };
        self.head.set_length(boots.into());
        self.head.set_position(done.into());
        self.head.set_message(format!("{}: pair {} of {}", self.name, self.pair + 1, self.pairs));
    }
}
