//! Scales, warms up, repeats; says nothing while anything is being timed.

use std::io;

use kduel_protocol::{Event, Go, Monitor, Sample, TrialProblem, TrialSpec, window_number};

use super::{Iteration, Value, Window, Workload, build, failed};
use crate::clock::{self, SECOND_NS};
use crate::monitor::{Inside, PerIteration};

/// Values per line of a distribution.
const CHUNK: usize = 1000;

/// How often progress is told at most: telling wakes the parent up, beside what is measured.
const TELL_NS: u64 = 2 * SECOND_NS;

/// Sends an event.
pub type Send<'a> = &'a mut dyn FnMut(&Event) -> io::Result<()>;

/// Tells the shortest window that suits this guest, in nanoseconds, and waits for the common start.
pub type Gate<'a> = &'a mut dyn FnMut(u64, Send<'_>) -> io::Result<Go>;

/// An iteration in a guest that runs together with another is made of so many parts at least, so that
/// its window ends near the time when it should.
const PARTS: u64 = 16;

/// Measures one trial. Samples are sent when the last iteration is over. With a `gate`, kept iterations
/// begin when it opens, and end by the clock.
///
/// # Errors
///
/// The workload's problem; what was measured before it has been sent.
pub fn measure(
    trial: &TrialSpec,
    monitors: &[Monitor],
    gate: Option<Gate<'_>>,
    send: Send<'_>,
) -> Result<(), TrialProblem> {
    let inside = Inside::open(monitors);
    let mut workload = build(trial)?;
    let mut kept = Vec::new();
    let outcome = repeat(trial, &inside, workload.as_mut(), gate, send, &mut kept);
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
    gate: Option<Gate<'_>>,
    send: Send<'_>,
    kept: &mut Vec<Event>,
) -> Result<(), TrialProblem> {
    let part_ns = trial.min_interval_ns / if gate.is_some() { PARTS } else { 1 };
    let (mut ops, min_ns) = match workload.fixed_ops() {
        Some(ops) => (ops, 0),
        None => (scale(workload, part_ns)?, part_ns),
    };
    let mut longest_ns = 0;
    let of = trial.warmup.saturating_add(trial.iterations);
    let mut teller = Teller { send, trial: trial.id, of, told_ns: clock::now_ns() };
    for done in 0..trial.warmup {
        let elapsed_ns = workload.iterate(ops, Window::UNMARKED)?.elapsed_ns;
        longest_ns = longest_ns.max(elapsed_ns);
        // With something to spare: a later one may be shorter, and must not be too short.
        if elapsed_ns < min_ns + min_ns / 32 {
            ops = grown(ops, elapsed_ns, min_ns);
        }
        teller.progress(done + 1)?;
    }
    let mut tempo = match gate {
        Some(gate) => {
            let window_ns = trial.min_interval_ns.max(longest_ns + longest_ns / 4);
            let go = gate(window_ns, &mut *teller.send);
            Some(Tempo::begin(go.map_err(|error| failed("waiting for the go", error))?))
        }
        None => None,
    };
    teller.kept(inside, true)?;
    let watch = inside.begin();
    let mut results = Vec::new();
    let mut outcome = Ok(());
    let mut each = inside.per_iteration();
    for iteration in 0..trial.iterations {
        let window = Window::numbered(window_number(trial.id, iteration));
        match one(workload, ops, window, tempo.as_mut(), &mut each) {
            Ok(result) => results.push(result),
            Err(problem) => {
                outcome = Err(problem);
                break;
            }
        }
        teller.progress(trial.warmup + iteration + 1)?;
    }
    let done = results.iter().map(|result: &Iteration| result.ops(ops)).sum();
    let monitored = watch.end(trial.id, done);
    teller.kept(inside, false)?;
    for (iteration, result) in (0..).zip(results) {
        kept.extend(events(trial.id, iteration, result)?);
    }
    kept.extend(monitored);
    outcome
}

/// The beat that guests which run together have in common.
struct Tempo {
    window_ns: u64,
    /// When the running window should end.
    end_ns: u64,
}

impl Tempo {
    /// Waits until the first window opens.
    fn begin(go: Go) -> Self {
        clock::sleep_ns(go.after_ns);
        Self { window_ns: go.window_ns, end_ns: clock::now_ns() + go.window_ns }
    }

    /// Repeats until the window's time is over: at least once, and no shorter for what the one before
    /// took too long.
    fn iterate(
        &mut self,
        workload: &mut dyn Workload,
        ops: u64,
        window: Window,
    ) -> Result<Iteration, TrialProblem> {
        let mut whole = workload.iterate(ops, window)?;
        while clock::now_ns() < self.end_ns {
            whole = whole.and(workload.iterate(ops, window)?);
        }
        self.end_ns += self.window_ns;
        Ok(whole)
    }
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
    tempo: Option<&mut Tempo>,
    each: &mut PerIteration<'_>,
) -> Result<Iteration, TrialProblem> {
    each.begin();
    let mut result = match tempo {
        Some(tempo) => tempo.iterate(workload, ops, window)?,
        None => workload.iterate(ops, window)?,
    };
    let ops = result.ops(ops);
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
    use kduel_protocol::Better;

    use super::super::Value;
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
    fn windows_of_guests_that_run_together_end_by_the_clock() {
        /// Takes 3 ms however many operations.
        struct Real;
        impl Workload for Real {
            fn iterate(&mut self, ops: u64, _: Window) -> Result<Iteration, TrialProblem> {
                clock::sleep_ns(3_000_000);
                Ok(Iteration::timed(ops, 3_000_000))
            }
        }
        let begin = clock::now_ns();
        let mut tempo = Tempo::begin(Go { trial: 0, after_ns: 5_000_000, window_ns: 20_000_000 });
        assert!(clock::now_ns() - begin >= 5_000_000);
        for _ in 0..4 {
            let whole = tempo.iterate(&mut Real, 10, Window::UNMARKED).unwrap();
            assert!(whole.values[0].ops >= 10 && whole.values[0].ops <= 80);
            assert!((whole.values[0].value - 300_000.0).abs() < 1.0);
        }
        assert!(clock::now_ns() - begin >= 85_000_000);
        let late = Tempo { window_ns: 1, end_ns: 0 }.iterate(&mut Real, 1, Window::UNMARKED);
        assert_eq!(late.unwrap().elapsed_ns, 3_000_000, "once at least");
    }

    #[test]
    fn parts_of_an_iteration_are_one() {
        let rate = |ops, elapsed_ns, value| Iteration {
            elapsed_ns,
            singles: vec![1.0],
            values: vec![Value {
                metric: "throughput".to_owned(),
                unit: "1/s".to_owned(),
                better: Better::Higher,
                value,
                ops,
            }],
        };
        let both = rate(100, 1_000_000_000, 100.0).and(rate(100, 3_000_000_000, 100.0 / 3.0));
        assert!((both.values[0].value - 50.0).abs() < 1e-9, "200 in 4 s");
        assert_eq!(
            (both.values[0].ops, both.elapsed_ns, both.singles.len()),
            (200, 4_000_000_000, 2)
        );
        let time = Iteration::timed(100, 1000).and(Iteration::timed(300, 1000));
        assert!((time.values[0].value - 5.0).abs() < 1e-9, "400 in 2000 ns");
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
