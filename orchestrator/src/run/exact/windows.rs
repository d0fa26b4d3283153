//! Joins what the plugin counted to what the agent told. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kduel_counts::{
    ChainShortfall, Chains, Class, Context, ContextRecord, Counts, Kind, Shortfall, Symbols,
    WindowRecord,
};
use kduel_protocol::{Better, COMMAND, ExactMetric, Sample, TrialSpec, window_number};

use crate::collect::{BootResult, TrialFailure, WindowCounts};
use crate::fault::{Failure, FailureClass};
use crate::plan::exact_metric;

/// The agent's metric that is guest time in an exact run.
const TIME: &str = "time";

/// A window without an aim of its own must last so long, in nanoseconds of guest time: fifty ticks of
/// a kernel with 250 Hz.
const SHORTEST_NS: u64 = 200_000_000;

/// What is told apart by how often a function was called: the first name that the kernel has. What
/// stands here more than once is the sum.
const EVENTS: &[(&str, &[&str])] = &[
    ("page-faults", &["exc_page_fault", "do_user_addr_fault", "__do_page_fault"]),
    ("context-switches", &["__switch_to_asm"]),
    ("wake-ups", &["try_to_wake_up"]),
    ("ipis", &["native_smp_send_reschedule"]),
    ("ipis", &["native_send_call_func_single_ipi"]),
    ("ipis", &["native_send_call_func_ipi"]),
];

/// Puts windows into `result`: one sample of `instructions` each, counts beside it, and the agent's
/// own time under the name that says whose time it is.
pub fn join(result: &mut BootResult, counts: &Counts, symbols: &Symbols, trials: &[TrialSpec]) {
    let events = event_blocks(counts, symbols);
    for sample in result.samples.iter_mut().filter(|sample| sample.metric == TIME) {
        ExactMetric::GuestTime.name().clone_into(&mut sample.metric);
    }
    // An iteration's first sample has the workload's operations; others may be of all of it.
    let mut told = BTreeMap::<u64, (u32, u32, u64)>::new();
    for Sample { trial, iteration, ops, .. } in &result.samples {
        told.entry(window_number(*trial, *iteration)).or_insert((*trial, *iteration, *ops));
    }
    for window in &counts.windows {
        let Some(&(trial, iteration, ops)) = told.get(&window.number) else { continue };
        let counted = count(window, &events, counts.shortfall.no_symbols, (trial, iteration, ops));
        result.samples.push(instructions(&counted));
        result.windows.push(counted);
    }
    for trial in trials {
        if let Some(failure) = refused(result, trial) {
            result.samples.retain(|sample| sample.trial != trial.id);
            result.windows.retain(|window| window.trial != trial.id);
            result.failed_trials.push(TrialFailure { trial: trial.id, failure });
        }
    }
}

fn count(
    window: &WindowRecord,
    events: &BTreeMap<usize, &'static str>,
    nobody_is_own: bool,
    (trial, iteration, ops): (u32, u32, u64),
) -> WindowCounts {
    let is_own =
        |context: &Context| Context { own: context.own || nobody_is_own, ..*context }.is_own_work();
    let own = window.totals(|context| is_own(context));
    let mut contexts = BTreeMap::<String, u64>::new();
    let mut happened = BTreeMap::<String, u64>::new();
    for part in &window.contexts {
        let label = label(part, is_own(&part.context));
        *contexts.entry(label).or_default() += part.totals[Class::Instructions];
        for block in &part.blocks {
            if let Some(event) = events.get(&block.block) {
                *happened.entry((*event).to_owned()).or_default() += block.executions;
            }
        }
    }
    let classes = own.iter().filter(|(class, number)| *number > 0 || *class == Class::Instructions);
    WindowCounts {
        trial,
        iteration,
        ops,
        own: classes.map(|(class, number)| (class.name().to_owned(), number)).collect(),
        contexts,
        total: window.totals(|_| true)[Class::Instructions],
        events: happened,
    }
}

/// `own syscall`, `other tasks`, `interrupt apic_timer_interrupt`, `softirqs`, `idle`, `waiting`.
fn label(part: &ContextRecord, own: bool) -> String {
    match part.context.kind {
        Kind::User(_) if own => "own user".to_owned(),
        Kind::Kernel if own => "own kernel".to_owned(),
        Kind::Syscall(_) if own => "own syscall".to_owned(),
        Kind::Exception(_) if own => "own exception".to_owned(),
        Kind::User(_) | Kind::Kernel | Kind::Syscall(_) | Kind::Exception(_) => {
            "other tasks".to_owned()
        }
        Kind::Interrupt(vector) => format!("interrupt {vector}"),
        Kind::SystemInterrupt(number) if part.name.is_empty() => format!("interrupt s{number}"),
        Kind::SystemInterrupt(_) => format!("interrupt {}", part.name),
        Kind::Softirq => "softirqs".to_owned(),
        Kind::Idle => "idle".to_owned(),
        Kind::Waiting => "waiting".to_owned(),
    }
}

fn event_blocks(counts: &Counts, symbols: &Symbols) -> BTreeMap<usize, &'static str> {
    let known: BTreeMap<u64, &'static str> = EVENTS
        .iter()
        .filter_map(|(event, names)| {
            Some((names.iter().find_map(|name| symbols.address(name))?, *event))
        })
        .collect();
    let blocks = counts.blocks.iter().enumerate();
    blocks.filter_map(|(place, block)| Some((place, *known.get(&block.address)?))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a window has far fewer than 2^53 instructions")]
fn instructions(window: &WindowCounts) -> Sample {
    let own = window.own.get(Class::Instructions.name()).copied().unwrap_or_default();
    Sample {
        trial: window.trial,
        iteration: window.iteration,
        metric: ExactMetric::Instructions.name().to_owned(),
        unit: "1".to_owned(),
        better: Better::Lower,
        value: own as f64 / window.ops.max(1) as f64,
        ops: window.ops,
    }
}

/// Why a trial's windows are not enough for what it claims.
fn refused(result: &BootResult, trial: &TrialSpec) -> Option<Failure> {
    let of = |metric: ExactMetric, is: bool| {
        let own = result.samples.iter().filter(|sample| sample.trial == trial.id);
        own.filter(move |sample| (sample.metric == metric.name()) == is)
    };
    if exact_metric(trial) != ExactMetric::Instructions
        || result.failed_trials.iter().any(|failed| failed.trial == trial.id)
    {
        return None;
    }
    // A program with metrics of its own may tell no time.
    let told: BTreeSet<u32> = of(ExactMetric::Instructions, false).map(|s| s.iteration).collect();
    let (told, counted) = (told.len(), of(ExactMetric::Instructions, true).count());
    if told == 0 && counted == 0 {
        return None;
    }
    if counted != told {
        let title = format!("{told} iterations were told and {counted} of them counted");
        return Some(
            Failure::new(FailureClass::OutputMalformed, title)
                .hint("agent and plugin are not of one build: build both with `cargo xtask build`"),
        );
    }
    #[expect(clippy::cast_precision_loss, reason = "windows last seconds, not months")]
    let shortest = match trial.min_interval_ns {
        0 if trial.workload != COMMAND => return None,
        0 => SHORTEST_NS,
        aim => aim,
    } as f64;
    #[expect(clippy::cast_precision_loss, reason = "as above")]
    let lasted = |sample: &Sample| sample.value * sample.ops as f64;
    let short = of(ExactMetric::GuestTime, true).map(lasted).find(|lasted| *lasted < shortest)?;
    let title = format!(
        "a window of {:.0} ms is too short: warm-up and ticks are no noise in it",
        short / 1e6
    );
    Some(
        Failure::new(FailureClass::WorkloadFailed, title)
            .hint("let an iteration take 200 ms of guest time or more: a command has `repeat`"),
    )
}

/// What the plugin could not know, in sentences.
pub fn lost(shortfall: &Shortfall) -> Vec<String> {
    let Shortfall {
        no_symbols,
        unfinished_windows,
        nested_windows,
        rootless_windows,
        unreadable,
        unplaced_accesses,
    } = *shortfall;
    let mut lost = Vec::new();
    if no_symbols {
        lost.push(
            "the kernel has no usable symbols: tasks are not told apart, functions have no names, \
             and the counts hold the work of all tasks"
                .to_owned(),
        );
    }
    let numbers = [
        (unfinished_windows, "windows did not end"),
        (nested_windows, "windows began within others"),
        (rootless_windows, "windows began before their task was known"),
        (unreadable, "registers could not be read"),
        (unplaced_accesses, "accesses to devices could not be placed"),
    ];
    let seen = numbers.iter().filter(|(number, _)| *number > 0);
    lost.extend(seen.map(|(number, what)| format!("{number} {what}")));
    lost
}

/// Which call chains the plugin lost, in a sentence.
pub fn lost_chains(chains: &Chains) -> Option<String> {
    let ChainShortfall { unmatched_returns, unreadable, .. } = chains.shortfall;
    (unmatched_returns + unreadable > 0).then(|| {
        format!(
            "call chains begin anew {} times: {unmatched_returns} returns matched no call, \
             {unreadable} times the stack pointer could not be read",
            unmatched_returns + unreadable
        )
    })
}

#[cfg(test)]
mod tests {
    use kduel_counts::{BlockCount, BlockRecord, Totals};

    use super::*;
    use crate::collect::testing::{sample, trial};

    fn part(own: bool, kind: Kind, instructions: u64, blocks: &[(usize, u64)]) -> ContextRecord {
        let mut totals = Totals::default();
        totals[Class::Instructions] = instructions;
        totals[Class::Locked] = instructions / 100;
        let count = |(block, executions): &(usize, u64)| BlockCount {
            block: *block,
            executions: *executions,
            unfinished: 0,
            empty: 0,
            corrections: Vec::new(),
        };
        let name = if kind == Kind::SystemInterrupt(0) { "apic_timer_interrupt" } else { "" };
        ContextRecord {
            context: Context { own, kind },
            name: name.to_owned(),
            totals,
            blocks: blocks.iter().map(count).collect(),
        }
    }

    fn counted(contexts: Vec<ContextRecord>) -> Counts {
        let block = |address| BlockRecord { address, bytes: vec![0x90], lengths: vec![1] };
        Counts {
            vcpus: 1,
            blocks: vec![block(0x100), block(0x200)],
            windows: vec![WindowRecord { number: 1, contexts }],
            ..Counts::default()
        }
    }

    fn told(value: f64) -> BootResult {
        let samples = vec![sample("time", 1, value)];
        BootResult { samples, ..BootResult::default() }
    }

    #[test]
    fn own_work_is_a_sample_and_everything_else_stands_beside_it() {
        let counts = counted(vec![
            part(true, Kind::User(0), 100_000, &[]),
            part(true, Kind::Syscall(None), 900_000, &[(1, 7)]),
            part(false, Kind::Kernel, 500, &[(1, 2)]),
            part(true, Kind::SystemInterrupt(0), 300, &[]),
            part(false, Kind::Idle, 20, &[]),
        ]);
        let symbols = Symbols::parse("200 T try_to_wake_up\n100 T other\n").unwrap();
        let mut result = told(200_000.0);
        join(&mut result, &counts, &symbols, &[trial(0, "fork-exit")]);
        assert_eq!(result.failed_trials, []);
        let [time, work] = &result.samples[..] else { panic!("{:?}", result.samples) };
        assert_eq!((time.metric.as_str(), work.metric.as_str()), ("guest-time", "instructions"));
        assert_eq!((work.value, work.iteration, work.ops), (1000.0, 1, 1000));
        let [window] = &result.windows[..] else { panic!("{:?}", result.windows) };
        assert_eq!(window.own["locked"], 10_000);
        assert_eq!(window.contexts["interrupt apic_timer_interrupt"], 300);
        assert_eq!(window.contexts.values().sum::<u64>(), window.total);
        assert_eq!(window.events["wake-ups"], 9);
    }

    #[test]
    fn a_workload_that_tells_no_time_is_counted_per_operation_all_the_same() {
        let counts = counted(vec![part(true, Kind::User(0), 100_000, &[])]);
        let samples =
            vec![sample("throughput", 1, 5.0), Sample { ops: 1, ..sample("elapsed", 1, 0.2) }];
        let mut result = BootResult { samples, ..BootResult::default() };
        join(&mut result, &counts, &Symbols::default(), &[trial(0, "chat")]);
        assert_eq!(result.failed_trials, []);
        assert_eq!((result.samples[2].value, result.samples[2].ops), (100.0, 1000));
    }

    fn aiming(workload: &str) -> TrialSpec {
        TrialSpec { min_interval_ns: SHORTEST_NS, ..trial(0, workload) }
    }

    #[test]
    fn short_or_missing_windows_are_refused() {
        let counts = counted(vec![part(true, Kind::User(0), 1, &[])]);
        let join = |counts: &Counts, value| {
            let mut result = told(value);
            super::join(&mut result, counts, &Symbols::default(), &[aiming("fork-exit")]);
            assert!(result.samples.is_empty() && result.windows.is_empty());
            result.failed_trials.remove(0).failure
        };
        assert!(join(&counts, 10.0).title.contains("too short"));
        assert!(join(&Counts::default(), 200_000.0).title.contains("0 of them counted"));
        let mut twice = counts;
        twice.windows.extend(twice.windows.clone());
        assert!(join(&twice, 200_000.0).title.contains("2 of them counted"));
    }

    #[test]
    fn a_kernel_without_symbols_still_counts_and_says_what_is_lost() {
        let mut counts = counted(vec![part(false, Kind::Kernel, 5000, &[])]);
        counts.shortfall.no_symbols = true;
        let mut result = told(200_000.0);
        join(&mut result, &counts, &Symbols::default(), &[trial(0, "fork-exit")]);
        assert_eq!(result.samples[1].value, 5.0);
        assert_eq!(lost(&counts.shortfall).len(), 1);
        assert_eq!(lost(&Shortfall::default()), Vec::<String>::new());
    }
}
