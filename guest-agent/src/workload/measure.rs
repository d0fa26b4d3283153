//! Scales, warms up, repeats; says nothing while anything is being timed.

use std::io;

use kduel_protocol::{Event, Monitor, Sample, TrialProblem, TrialSpec, window_number};

use super::{Iteration, Value, Window, Workload, build, failed};
use crate::clock::{self, SECOND_NS};
use crate::monitor::{Inside, PerIteration};

/// Values per line of a distribution.
const CHUNK: usize = 1000;

/// How often progress is told at most: telling wakes the parent up, beside what is measured.
const TELL_NS: u64 = 2 * SECOND_NS;

type Send<'a> = &'a mut dyn FnMut(&Event) -> io::Result<()>;

/// Measures one trial. Samples are sent when the last iteration is over.
///
/// # Errors
///
/// The workload's problem; what was measured before it has been sent.
pub fn measure(
    trial: &TrialSpec,
    monitors: &[Monitor],
    send: Send<'_>,
) -> Result<(), TrialProblem> {
    let inside = Inside::open(monitors);
    let mut workload = build(trial)?;
    let mut kept = Vec::new();
    let outcome = repeat(trial, &inside, workload.as_mut(), send, &mut kept);
    let finished = workload.finish();
    for event in &kept {
        send(event).map_err(|error| failed("sending a sample", error))?;
    }
    outcome.and(finished)
}

fn repeat(
    trial: &TrialSpec,
    inside: &Inside,
    workload: &mut dyn Workload,
    send: Send<'_>,
    kept: &mut Vec<Event>,
) -> Result<(), TrialProblem> {
    let (mut ops, min_ns) = match workload.fixed_ops() {
        Some(ops) => (ops, 0),
        None => (scale(workload, trial.min_interval_ns)?, trial.min_interval_ns),
    };
    let of = trial.warmup.saturating_add(trial.iterations);
    let mut teller = Teller { send, trial: trial.id, of, told_ns: clock::now_ns() };
    for done in 0..trial.warmup {
        let elapsed_ns = workload.iterate(ops, Window::UNMARKED)?.elapsed_ns;
        // With something to spare: a later one may be shorter, and must not be too short.
        if elapsed_ns < min_ns + min_ns / 32 {
            ops = grown(ops, elapsed_ns, min_ns);
        }
        teller.progress(done + 1)?;
    }
    teller.kept(inside, true)?;
    let watch = inside.begin();
    let mut results = Vec::new();
    let mut outcome = Ok(());
    let mut each = inside.per_iteration();
    for iteration in 0..trial.iterations {
        let window = Window::numbered(window_number(trial.id, iteration));
        match one(workload, ops, window, &mut each) {
            Ok(result) => results.push(result),
            Err(problem) => {
                outcome = Err(problem);
                break;
            }
        }
        teller.progress(trial.warmup + iteration + 1)?;
    }
    let done = ops.saturating_mul(results.len() as u64);
    let monitored = watch.end(trial.id, done);
    teller.kept(inside, false)?;
    for (iteration, result) in (0..).zip(results) {
        kept.extend(events(trial.id, iteration, result)?);
    }
    kept.extend(monitored);
    outcome
}

/// Tells the parent what it must know before the end.
struct Teller<'a> {
    send: Send<'a>,
    trial: u32,
    of: u32,
    told_ns: u64,
}

impl Teller<'_> {
    fn progress(&mut self, done: u32) -> Result<(), TrialProblem> {
        if clock::now_ns() - self.told_ns < TELL_NS {
            return Ok(());
        }
        self.told_ns = clock::now_ns();
        (self.send)(&Event::Progress { trial: self.trial, done, of: self.of })
            .map_err(|error| failed("telling progress", error))
    }

    /// The kept iterations begin, or have ended; told if somebody wants to know.
    fn kept(&mut self, inside: &Inside, begin: bool) -> Result<(), TrialProblem> {
        if !inside.is_sampled() {
            return Ok(());
        }
        (self.send)(&Event::Kept { trial: self.trial, begin })
            .map_err(|error| failed("telling what begins or ends", error))
    }
}

/// One kept iteration, with what the hardware counted in it.
fn one(
    workload: &mut dyn Workload,
    ops: u64,
    window: Window,
    each: &mut PerIteration<'_>,
) -> Result<Iteration, TrialProblem> {
    each.begin();
    let mut result = workload.iterate(ops, window)?;
    let counted = each.end().into_iter().map(|(metric, value, better)| Value {
        metric: metric.to_owned(),
        unit: "count".to_owned(),
        better,
        value: value / ops as f64,
        ops,
    });
    result.values.extend(counted);
    Ok(result)
}

/// Finds how many operations take at least `min_ns`, from intervals of an eighth of that: two in a
/// row, since the first may have been long only because it was the first. Warm-up corrects it.
fn scale(workload: &mut dyn Workload, min_ns: u64) -> Result<u64, TrialProblem> {
    let enough_ns = min_ns / 8;
    let mut ops = 1;
    let mut long_enough = 0;
    loop {
        let elapsed_ns = workload.iterate(ops, Window::UNMARKED)?.elapsed_ns;
        if elapsed_ns < enough_ns {
            long_enough = 0;
            ops = grown(ops, elapsed_ns, enough_ns);
            continue;
        }
        long_enough += 1;
        if long_enough == 2 {
            return Ok(needed(ops, elapsed_ns, min_ns).max(1));
        }
    }
}

/// What was measured says how many operations are needed, plus a sixteenth.
fn needed(ops: u64, elapsed_ns: u64, min_ns: u64) -> u64 {
    let needed = u128::from(ops) * u128::from(min_ns) * 17 / 16 / u128::from(elapsed_ns.max(1));
    u64::try_from(needed).unwrap_or(u64::MAX)
}

/// The next guess after too short an interval: more by an eighth at least, at most sixteen times as
/// many, since the first operations are the slowest.
fn grown(ops: u64, elapsed_ns: u64, min_ns: u64) -> u64 {
    let least = ops.saturating_add(ops.div_ceil(8));
    needed(ops, elapsed_ns, min_ns).clamp(least, ops.saturating_mul(16))
}

/// One iteration as it is sent.
fn events(trial: u32, iteration: u32, result: Iteration) -> Result<Vec<Event>, TrialProblem> {
    let mut events = Vec::new();
    for value in result.values {
        if !value.value.is_finite() {
            return Err(failed(&format!("metric \"{}\"", value.metric), "the value is not finite"));
        }
        events.push(Event::Sample(Sample {
            trial,
            iteration,
            metric: value.metric,
            unit: value.unit,
            better: value.better,
            value: value.value,
            ops: value.ops,
        }));
    }
    events.extend(result.singles.chunks(CHUNK).map(|values| Event::Distribution {
        trial,
        iteration,
        metric: "time".to_owned(),
        unit: "ns".to_owned(),
        values: values.to_vec(),
    }));
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes 100 ns per operation and counts what it is asked for.
    struct Steady(Vec<u64>);

    impl Workload for Steady {
        fn iterate(&mut self, ops: u64, _: Window) -> Result<Iteration, TrialProblem> {
            self.0.push(ops);
            Ok(Iteration::timed(ops, ops * 100))
        }
    }

    #[test]
    fn a_few_short_intervals_tell_the_scale() {
        let mut steady = Steady(Vec::new());
        let ops = scale(&mut steady, 1_000_000).unwrap();
        assert!((10_000..20_000).contains(&ops), "{ops}");
        assert!(steady.0.iter().sum::<u64>() < ops / 2, "{:?}", steady.0);
        assert_eq!(scale(&mut steady, 0).unwrap(), 1);
        assert_eq!(scale(&mut steady, 50).unwrap(), 1, "one operation is longer");
    }

    /// Takes 10 us the first time, 1 us afterwards, per operation.
    struct ColdOnce(bool);

    impl Workload for ColdOnce {
        fn iterate(&mut self, ops: u64, _: Window) -> Result<Iteration, TrialProblem> {
            let each = if std::mem::replace(&mut self.0, false) { 10_000 } else { 1000 };
            Ok(Iteration::timed(ops, ops * each))
        }
    }

    #[test]
    fn a_slow_first_interval_is_no_proof() {
        let ops = scale(&mut ColdOnce(true), 10_000).unwrap();
        assert!(ops >= 10, "{ops}");
    }

    #[test]
    fn growth_is_bounded_and_never_stops() {
        assert_eq!(grown(1, 0, u64::MAX), 16);
        assert_eq!(grown(1, 99, 100), 2);
        assert_eq!(grown(100, 50, 100), 212);
        assert!(grown(u64::MAX, 1, 2) == u64::MAX);
    }

    #[test]
    fn long_distributions_come_in_several_lines() {
        let singles = vec![1.0; 2500];
        let events = events(3, 1, Iteration { singles, ..Iteration::timed(5, 10) }).unwrap();
        assert_eq!(events.len(), 4);
        let Event::Sample(sample) = &events[0] else { panic!("{events:?}") };
        assert_eq!((sample.value, sample.ops, sample.metric.as_str()), (2.0, 5, "time"));
    }

    #[test]
    fn what_is_not_finite_is_refused() {
        assert!(events(0, 0, Iteration::timed(0, 0)).is_err());
    }
}
