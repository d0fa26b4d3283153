//! Whole reports, as text at two widths and as JSON.

mod formats;
mod odd;
mod schema;

use super::*;
use crate::analyse::analyse;
use crate::analyse::profile::RunProfiles;
use crate::boot::Accel;
use crate::collect::testing::{completed, failed, pairs, plan, trial};
use crate::collect::{
    BootOutcome, BootRecord, BootResult, Distribution, ExactBoot, HostInfo, KernelIdentity,
    QemuInfo, WindowCounts,
};
use crate::fault::FailureClass;
use crate::id::RunId;
use crate::plan::{ExactTerms, Measure};
use kduel_protocol::{KnobKind, KnobReading, Sample};

fn info() -> RunInfo {
    let command =
        ["kduel", "run", "-a", "debian:bookworm", "-b", "debian:trixie", "--", "./my bench"];
    let mut info = RunInfo::new(Accel::Tcg, command.map(String::from).to_vec());
    info.id = RunId("20261130-164501-3fa9".into());
    info.kduel = "0.0.0".into();
    info.qemu = Some(QemuInfo { path: "qemu-system-x86_64".into(), version: "10.0.2".into() });
    info.host = HostInfo {
        kernel: "6.1.0".into(),
        cpu_model: "A Processor".into(),
        cpus: 2,
        boot_id: "0".into(),
    };
    for (name, release, version) in [
        ("debian:bookworm", "6.1.0-57-cloud-amd64", "6.1.176-1"),
        ("debian:trixie", "6.12.48-cloud-amd64", "6.12.48-1"),
    ] {
        let identity = KernelIdentity {
            release: release.into(),
            origin: format!("linux-image-{release} {version}"),
            image_sha256: "ab".repeat(32),
            initramfs_sha256: "cd".repeat(32),
            source: None,
        };
        info.kernels.insert(name.into(), identity);
    }
    info
}

fn result_mut(record: &mut BootRecord) -> &mut BootResult {
    match &mut record.outcome {
        BootOutcome::Completed(result) => result,
        BootOutcome::Failed(failure) => panic!("{failure}"),
    }
}

/// The report at 80 and at 120 columns; every line fits.
fn both(plan: &Plan, records: &[BootRecord]) -> String {
    let (info, analysis) = (info(), analyse(plan, records));
    let report =
        Report { info: &info, plan, analysis: &analysis, profiles: &RunProfiles::default() };
    let render = |width| {
        let text = text(&report, Look { width, colour: false });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "too long for {width}: {line}");
            assert!(!line.chars().any(char::is_control), "raw control character: {line:?}");
        }
        text
    };
    format!("{}\n{}\n{}", render(80), "=".repeat(120), render(120))
}

fn json_of(plan: &Plan, records: &[BootRecord]) -> String {
    let (info, analysis) = (info(), analyse(plan, records));
    json(&Report { info: &info, plan, analysis: &analysis, profiles: &RunProfiles::default() })
}

const SLOWER: [f64; 8] = [1.15, 1.14, 1.16, 1.17, 1.13, 1.15, 1.155, 1.145];

#[test]
fn regression() {
    let (plan, records) = (plan(&["base", "patched"], 8), pairs("patched", &SLOWER));
    insta::assert_snapshot!("regression", both(&plan, &records));
    insta::assert_snapshot!("regression_json", json_of(&plan, &records));
}

#[test]
fn improvement_under_kvm() {
    let plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &SLOWER.map(|factor| 1.0 / factor));
    records.iter_mut().for_each(|record| record.accel = Accel::Kvm);
    insta::assert_snapshot!("improvement", both(&plan, &records));
}

#[test]
fn inconclusive() {
    let plan = plan(&["base", "patched"], 8);
    let records = pairs("patched", &[1.3, 0.8, 1.02, 0.91, 1.2, 0.85, 1.15, 0.95]);
    insta::assert_snapshot!("inconclusive", both(&plan, &records));
}

#[test]
fn fails_with_a_console_that_attacks_the_terminal() {
    let plan = plan(&["base", "patched"], 3);
    let mut records = pairs("patched", &[1.0; 3]);
    for record in records.iter_mut().filter(|record| record.side == "patched") {
        let title = "Kernel panic - not syncing: \u{1b}]0;owned\u{7} Attempted to kill init!";
        *record = failed("fork", "patched", record.block, FailureClass::Panic, title);
        if let BootOutcome::Failed(failure) = &mut record.outcome {
            failure.console_tail = vec![
                "[    1.2] \u{1b}[2J\u{1b}[H verdict: improvement\r".into(),
                "[    1.3] \u{202e}desrever\u{202c} \u{9b}31m \u{200b}hidden".into(),
                format!("[    1.4] long {}", "x".repeat(200)),
            ];
        }
    }
    insta::assert_snapshot!("fails", both(&plan, &records));
    let json = json_of(&plan, &records);
    assert!(json.chars().all(|c| c == '\n' || !c.is_control()));
    insta::assert_snapshot!("fails_json", json);
}

#[test]
fn three_sides_with_knobs_and_single_operations() {
    let mut plan = plan(&["base", "patched", "dynmods"], 6);
    plan.quick = true;
    let experiment = &mut plan.experiments[0];
    experiment.trials.push(trial(1, "cgroup-exec"));
    let mut records = pairs("patched", &SLOWER[..6]);
    records.extend(
        pairs("dynmods", &[1.001, 0.998, 1.002, 1.0, 0.999, 1.0])
            .into_iter()
            .filter(|r| r.side == "dynmods"),
    );
    for record in &mut records {
        let scale = if record.side == "dynmods" { 0.25 } else { 1.0 };
        let (side, block) = (record.side.clone(), record.block);
        let result = result_mut(record);
        let values = |i: u32| 20e6 * scale * (1.0 + 0.02 * f64::from(i) + 0.01 * block as f64);
        let sample = |i: u32| Sample { trial: 1, value: values(i), ..result.samples[0].clone() };
        let samples: Vec<Sample> = (0..3).map(sample).collect();
        result.samples.extend(samples);
        result.distributions.push(Distribution {
            trial: 1,
            iteration: 0,
            metric: "time".into(),
            unit: "ns".into(),
            values: (0..25).map(values).collect(),
        });
        if side == "dynmods" {
            result.knobs.push(KnobReading {
                kind: KnobKind::Mount,
                name: "cgroup2".into(),
                wanted: "favordynmods".into(),
                found: "rw,nosuid,nodev,noexec,relatime,favordynmods".into(),
                took: true,
            });
        }
    }
    insta::assert_snapshot!("three_sides", both(&plan, &records));
    insta::assert_snapshot!("three_sides_json", json_of(&plan, &records));
}

#[test]
fn missing_metric_and_few_pairs() {
    let mut plan = plan(&["base", "patched"], 3);
    plan.experiments[0].trials.push(trial(1, "fork-exec"));
    let mut records = pairs("patched", &[1.1, 1.12, 1.09]);
    for record in records.iter_mut().filter(|record| record.side == "base") {
        let result = result_mut(record);
        let sample = Sample { trial: 1, ..result.samples[0].clone() };
        result.samples.extend((0..3).map(|iteration| Sample { iteration, ..sample.clone() }));
    }
    insta::assert_snapshot!("missing_metric", both(&plan, &records));
}

#[test]
fn nothing_yet() {
    insta::assert_snapshot!("nothing_yet", both(&plan(&["base", "patched"], 3), &[]));
}

#[test]
fn only_verdicts_are_coloured() {
    let (plan, records) = (plan(&["base", "patched"], 8), pairs("patched", &SLOWER));
    let (info, analysis) = (info(), analyse(&plan, &records));
    let report =
        Report { info: &info, plan: &plan, analysis: &analysis, profiles: &RunProfiles::default() };
    let coloured = text(&report, Look { width: 80, colour: true });
    assert_eq!(coloured.matches("\u{1b}[31mregression\u{1b}[0m").count(), 2);
    let plain = coloured.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
    assert_eq!(plain, text(&report, Look { width: 80, colour: false }));
}

#[test]
fn guest_text_in_every_field_is_escaped() {
    let evil = "\u{1b}[31m\u{202e}";
    let mut plan = plan(&["base", "patched"], 1);
    plan.experiments[0].trials[0].workload = format!("w{evil}");
    let metric = format!("m{evil}");
    let mut records: Vec<BootRecord> =
        ["base", "patched"].map(|side| completed("fork", side, 0, &[(&metric, 1.0)])).to_vec();
    for record in &mut records {
        let result = result_mut(record);
        result.facts.release = evil.into();
        result.facts.cmdline = evil.into();
        result.facts.build_id = Some(evil.into());
        result.samples[0].unit = evil.into();
    }
    let (info, analysis) = (info(), analyse(&plan, &records));
    let report =
        Report { info: &info, plan: &plan, analysis: &analysis, profiles: &RunProfiles::default() };
    for shown in [text(&report, Look::default()), json(&report)] {
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
    }
}

/// Windows of one side, each with these instructions per operation.
fn exact_boot(side: &str, instructions: f64, locked: u64) -> BootRecord {
    let samples = [("instructions", instructions), ("instructions", instructions + 1.0)];
    let mut record = completed("fork", side, 0, &samples);
    record.exact = Some(Box::new(ExactBoot {
        cpu: "Westmere-v1".into(),
        shift: 2,
        seed: 1,
        ..ExactBoot::default()
    }));
    let result = result_mut(&mut record);
    result.facts.cpu_flags = vec!["sse".into(), "x\u{1b}[2J".into()];
    result.facts.vulnerabilities =
        [("meltdown", "Mitigation: PTI"), ("tsa", "Not affected")].map(own).into();
    result.facts.settings = [own(("smp-alternatives", "live"))].into();
    result.samples.iter_mut().for_each(|sample| sample.unit = "1".into());
    let counts = |pairs: &[(&str, u64)]| pairs.iter().map(|p| (p.0.to_owned(), p.1)).collect();
    result.windows = (0..2)
        .map(|iteration| WindowCounts {
            trial: 0,
            iteration,
            ops: 1000,
            own: counts(&[("instructions", 142_510_000), ("locked", locked * 1000)]),
            contexts: counts(&[("own syscall", 142_510_000), ("softirqs", 2_800_000)]),
            total: 145_310_000,
            events: counts(&[("page-faults", 8000)]),
        })
        .collect();
    record
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn exact_plan() -> Plan {
    let mut plan = plan(&["base", "patched"], 1);
    plan.measure = Measure::Instructions;
    plan.experiments[0].exact = Some(ExactTerms { shift: 2, sampled: false, chains: false });
    plan.experiments[0].blocks[0].cpu = Some("Westmere-v1".into());
    plan
}

fn again(of: &BootRecord) -> BootRecord {
    let mut record = of.clone();
    if let Some(exact) = &mut record.exact {
        exact.again = true;
    }
    record
}

#[test]
fn exact_runs_speak_of_work_never_of_speed() {
    let base = exact_boot("base", 142_510.0, 14);
    let mut patched = exact_boot("patched", 120_000.0, 700);
    if let Some(exact) = &mut patched.exact {
        exact.cached = Some("20261130-164501-3fa9".into());
    }
    let records = [base.clone(), patched, again(&base)];
    let shown = both(&exact_plan(), &records);
    assert!(!shown.contains("slower") && !shown.contains("faster"), "{shown}");
    insta::assert_snapshot!("exact", shown);
}

#[test]
fn a_run_that_does_not_repeat_is_called_not_exact() {
    let base = exact_boot("base", 142_510.0, 14);
    let other = again(&exact_boot("base", 142_510.5, 14));
    let records = [base, exact_boot("patched", 120_000.0, 14), other];
    let shown = both(&exact_plan(), &records);
    assert!(shown.starts_with("verdict: not exact\n"), "{shown}");
    assert!(shown.contains("done twice, differs at"), "{shown}");
}
