use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::estimate::{TimeLeft, clock_face};
use super::{WatchOptions, lines_of};
use crate::event::{BootPhase, RunEvent};
use crate::units;

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
    time: TimeLeft,
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
            RunEvent::ExperimentBegins { experiment, sides, pairs, expected } => {
                state.clear();
                state.experiment = Some(self.experiment(experiment, sides, *pairs, *expected));
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
                        format!(" [{}, {}]", units::percent(low), units::percent(high))
                    });
                    bar.set_message(format!(
                        "{series}: {}{interval} so far, no verdict",
                        units::percent(*change)
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, template: &str) -> ProgressBar {
        let bar = self.multi.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    fn experiment(
        &self,
        name: &str,
        sides: &[String],
        pairs: usize,
        expected: Duration,
    ) -> Experiment {
        let boots = u32::try_from(pairs * sides.len()).unwrap_or(u32::MAX);
        let head = self.line("{bar:24} {msg}");
        head.set_length(boots.into());
        let width = sides.iter().map(String::len).max().unwrap_or(0);
        let line_of = |side: &String| {
            let bar = self.line("  {prefix} {msg} {elapsed:.dim}");
            bar.set_prefix(format!("{side:width$}"));
            bar.set_message("waiting");
            (side.clone(), bar)
        };
        let experiment = Experiment {
            name: name.to_owned(),
            pairs,
            pair: 0,
            time: TimeLeft::new(expected, boots),
            head,
            sides: sides.iter().map(line_of).collect(),
            series: BTreeMap::new(),
        };
        experiment.tell_head();
        experiment
    }
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
            BootPhase::Done { took } => {
                self.time.boot_done(*took);
                format!("done after {:.1} s", took.as_secs_f64())
            }
        };
        if let Some(bar) = self.sides.get(side) {
            if *phase == BootPhase::Booting {
                bar.reset_elapsed();
            }
            bar.set_message(words);
        }
        self.tell_head();
    }

    fn tell_head(&self) {
        self.head.set_position(self.time.done().into());
        self.head.set_message(format!(
            "{}: pair {} of {}, {} elapsed, about {} left",
            self.name,
            self.pair + 1,
            self.pairs,
            clock_face(self.time.elapsed()),
            clock_face(self.time.left()),
        ));
    }
}
