//! Plans and records for tests.

use std::collections::BTreeMap;

use kduel_protocol::{Better, Facts, Knobs, Sample, Topology, TrialSpec};

use crate::boot::Accel;
use crate::config::{DebianSpec, KernelSpec};
use crate::fault::{Failure, FailureClass};
use crate::id::BootId;
use crate::plan::{Block, Measure, PLAN_FORMAT, Pairing, Plan, PlannedExperiment, PlannedSide};

use super::{BootOutcome, BootRecord, BootResult};

/// A plan of one experiment `fork` with the workload `fork-exit` as trial 0, three iterations.
pub fn plan(sides: &[&str], pairs: usize) -> Plan {
    let experiment = PlannedExperiment {
        name: "fork".into(),
        sides: sides.iter().map(|name| side(name)).collect(),
        topology: Topology::default(),
        topology_name: "1s1c".into(),
        trials: vec![trial(0, "fork-exit")],
        files: Vec::new(),
        image: None,
        monitors: Vec::new(),
        monitor_terms: Default::default(),
        settle_s: 0,
        patience: crate::plan::Patience::default(),
        grants: crate::boot::Grants::default(),
        blocks: (0..pairs)
            .map(|index| Block {
                index,
                order: order(sides.len(), index),
                layout_seed: 1,
                cpu: None,
                sentinel: None,
            })
            .collect(),
        margin: crate::plan::MarginTerms::default(),
        calibrated: Vec::new(),
        exact: None,
        pairing: Pairing::Interleave,
        placements: Vec::new(),
        claims: Vec::new(),
    };
    Plan {
        format: PLAN_FORMAT.into(),
        measure: Measure::Time,
        seed: 7,
        quick: false,
        statistic: crate::plan::Statistic::default(),
        aa: false,
        calibrate: false,
        experiments: vec![experiment],
    }
}

/// Forwards and backwards in turn.
fn order(sides: usize, block: usize) -> Vec<usize> {
    if block.is_multiple_of(2) { (0..sides).collect() } else { (0..sides).rev().collect() }
}

fn side(name: &str) -> PlannedSide {
    let suite = if name == "patched" { "trixie" } else { "bookworm" };
    PlannedSide {
        name: name.into(),
        kernel_name: format!("debian:{suite}"),
        kernel: KernelSpec::Debian(DebianSpec {
            suite: suite.into(),
            flavour: "cloud-amd64".into(),
            version: None,
        }),
        knobs: Knobs::default(),
    }
}

/// A trial with three kept iterations.
pub fn trial(id: u32, workload: &str) -> TrialSpec {
    TrialSpec {
        id,
        workload: workload.into(),
        params: BTreeMap::new(),
        command: None,
        warmup: 2,
        iterations: 3,
        min_interval_ns: 0,
        deadline_s: 60,
    }
}

/// A sample of trial 0 in nanoseconds.
pub fn sample(metric: &str, iteration: u32, value: f64) -> Sample {
    Sample {
        trial: 0,
        iteration,
        metric: metric.into(),
        unit: "ns".into(),
        better: Better::Lower,
        value,
        ops: 1000,
    }
}

/// A completed boot with these samples of trial 0, each an iteration of its metric.
pub fn completed(
    experiment: &str,
    side: &str,
    block: usize,
    samples: &[(&str, f64)],
) -> BootRecord {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let samples = samples
        .iter()
        .map(|(metric, value)| {
            let next = seen.entry(metric).or_default();
            let sample = sample(metric, *next, *value);
            *next += 1;
            sample
        })
        .collect();
    let facts = Facts {
        release: release(side).into(),
        version: "#1 SMP Debian".into(),
        build_id: Some(format!("{:0<40}", side.len())),
        cmdline: "console=ttyS0 panic=-1 kduel.nonce=5f".into(),
        clocksource: "tsc".into(),
        ..Facts::default()
    };
    let result =
        BootResult { facts, settled_ms: 1200, idle: true, samples, ..BootResult::default() };
    record(experiment, side, block, BootOutcome::Completed(Box::new(result)))
}

fn release(side: &str) -> &'static str {
    if side == "patched" { "6.12.48-cloud-amd64" } else { "6.1.0-57-cloud-amd64" }
}

/// A boot that failed, with its title as the console's last line too.
pub fn failed(
    experiment: &str,
    side: &str,
    block: usize,
    class: FailureClass,
    title: &str,
) -> BootRecord {
    let mut failure = Failure::new(class, title);
    failure.console_tail = vec!["[    1.000000] last words".into(), title.into()];
    record(experiment, side, block, BootOutcome::Failed(Box::new(failure)))
}

fn record(experiment: &str, side: &str, block: usize, outcome: BootOutcome) -> BootRecord {
    BootRecord {
        sentinel: false,
        boot: BootId::new(experiment, block, side, 0),
        experiment: experiment.into(),
        side: side.into(),
        block,
        attempt: 0,
        slot: usize::from(side != "base"),
        started: jiff::Timestamp::UNIX_EPOCH,
        ready_ms: matches!(outcome, BootOutcome::Completed(_)).then_some(6400),
        first_sample_ms: None,
        took_ms: 9100,
        accel: Accel::Tcg,
        exact: None,
        placement: None,
        outcome,
    }
}

/// Pairs of completed boots whose `time` differs from base to side by these factors.
pub fn pairs(side: &str, factors: &[f64]) -> Vec<BootRecord> {
    let mut records = Vec::new();
    for (block, factor) in factors.iter().enumerate() {
        // Boots differ among each other; pairs share most of it.
        let level = 150_000.0 * (1.0 + 0.01 * (block % 3) as f64);
        let times = |scale: f64| [0.99, 1.0, 1.01].map(|wobble| ("time", level * scale * wobble));
        records.push(completed("fork", "base", block, &times(1.0)));
        records.push(completed("fork", side, block, &times(*factor)));
    }
    records
}
