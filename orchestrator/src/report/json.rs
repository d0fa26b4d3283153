use kduel_protocol::{Better, CacheFacts, DomainFacts, KnobReading, Topology};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::analyse::{
    AllPairs, Comparison, CountPair, DistributionSummary, ExactFinding, ExactGuest, ExactWord,
    GeometricLine, OptionDifference, SideNoise, SideSummary, TimedFinding, Verdict, cmdline_words,
    geometric_lines,
};
use crate::boot::Accel;
use crate::fault::Fault;
use crate::plan::{Measure, Pairing, PlannedExperiment};
use crate::text::escape;

use super::Report;
use super::claims::{ClaimJson, claims_json};

/// The format of the JSON report.
pub const REPORT_FORMAT: &str = "kduel-report/1";

/// What [`json`] gives, as a JSON schema (draft 2020-12).
pub const REPORT_SCHEMA: &str = include_str!("report.schema.json");

/// The JSON report, pretty-printed, with a newline at its end. Text that came from a guest is escaped
/// as everywhere, since a report may be shown as it is.
pub fn json(report: &Report<'_>) -> String {
    let analysis = report.analysis;
    let document = Document {
        format: REPORT_FORMAT,
        run: &report.info.id.0,
        runs: &report.info.compared,
        label: report.info.label.as_deref().map(escape),
        started: report.info.started,
        kduel: &report.info.kduel,
        measure: report.plan.measure,
        accelerator: analysis.accel.unwrap_or(report.info.accelerator),
        overcommitted: super::outcome::is_overcommitted(report),
        verdict: analysis.worst,
        basis: &analysis.basis,
        comparisons: analysis.comparisons.iter().map(comparison).collect(),
        sides: analysis.sides.iter().map(|side| self::side(report, side)).collect(),
        geometric_means: geometric_lines(&analysis.comparisons).iter().map(geometric).collect(),
        experiments: report.plan.experiments.iter().map(experiment).collect(),
        distributions: analysis.distributions.iter().map(distribution).collect(),
        monitors: super::monitors_json::monitors(analysis),
        kernel_log: super::monitors_json::kernel_log(analysis),
        claims: claims_json(report),
        warnings: analysis.warnings.iter().map(|warning| escape(warning)).collect(),
    };
    // Only maps with keys that are no strings could fail, and there are none.
    let mut json = serde_json::to_string_pretty(&document).unwrap_or_default();
    json.push('\n');
    json
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'a> {
    format: &'a str,
    run: &'a str,
    /// Of a comparison of runs: their ids.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    runs: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    started: jiff::Timestamp,
    kduel: &'a str,
    measure: Measure,
    accelerator: Accel,
    /// Threads of guests shared the host's CPUs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overcommitted: bool,
    verdict: Verdict,
    basis: &'a str,
    comparisons: Vec<ComparisonJson>,
    sides: Vec<SideJson>,
    experiments: Vec<ExperimentJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    geometric_means: Vec<GeometricJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    distributions: Vec<DistributionJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    monitors: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernel_log: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<ClaimJson>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ComparisonJson {
    experiment: String,
    side: String,
    workload: String,
    metric: String,
    unit: String,
    better: Better,
    primary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    confidence: Option<f64>,
    margin: f64,
    pairs: usize,
    dropped: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_pairs: Option<AllPairs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed: Option<TimedFinding>,
    verdict: Verdict,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<ExactWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkJson>,
}

/// What was counted beside the metric; counts are per operation.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WorkJson {
    cpu: String,
    spread_base: f64,
    spread: f64,
    mixed: Vec<String>,
    classes: Vec<CountPair>,
    contexts: Vec<CountPair>,
    events: Vec<CountPair>,
}

fn work(finding: &ExactFinding) -> WorkJson {
    let pairs = |pairs: &[CountPair]| {
        let safe = |pair: &CountPair| CountPair { name: escape(&pair.name), ..pair.clone() };
        pairs.iter().map(safe).collect()
    };
    WorkJson {
        cpu: escape(&finding.cpu),
        spread_base: finding.spread[0],
        spread: finding.spread[1],
        mixed: finding.mixed.clone(),
        classes: pairs(&finding.classes),
        contexts: pairs(&finding.contexts),
        events: pairs(&finding.events),
    }
}

/// What [`json`] has at its top.
pub(super) fn run_fields(report: &Report<'_>) -> Map<String, Value> {
    let (info, accel) = (report.info, report.analysis.accel.unwrap_or(report.info.accelerator));
    fields(
        &json!({ "run": escape(&info.id.0), "measure": report.plan.measure, "accelerator": accel }),
    )
}

/// The comparisons, as [`json`] has them.
pub(super) fn comparison_fields(report: &Report<'_>) -> Vec<Map<String, Value>> {
    report.analysis.comparisons.iter().map(|found| fields(&comparison(found))).collect()
}

fn fields(of: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// JSON has no infinities: what rose from nothing has no relative change.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

fn comparison(found: &Comparison) -> ComparisonJson {
    ComparisonJson {
        experiment: escape(&found.series.experiment),
        side: escape(&found.side),
        workload: escape(&found.series.workload),
        metric: escape(&found.series.metric),
        unit: escape(&found.unit),
        better: found.better,
        primary: found.primary,
        base: finite(found.base),
        value: finite(found.value),
        change: finite(found.change),
        low: found.low,
        high: found.high,
        confidence: found.confidence,
        margin: found.margin,
        pairs: found.pairs,
        dropped: found.dropped,
        all_pairs: found.all_pairs.clone(),
        timed: found.timed.as_deref().cloned(),
        verdict: found.verdict,
        reason: escape(&found.reason),
        exact: found.exact.as_ref().and_then(|exact| exact.word),
        work: found.exact.as_deref().map(work),
    }
}

/// What was asked for.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ExperimentJson {
    name: String,
    topology_name: String,
    topology: Topology,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairing: Option<Pairing>,
}

fn experiment(experiment: &PlannedExperiment) -> ExperimentJson {
    ExperimentJson {
        name: escape(&experiment.name),
        topology_name: escape(&experiment.topology_name),
        topology: experiment.topology.clone(),
        pairing: match (&experiment.exact, experiment.pairing) {
            (Some(_), _) => None,
            (None, Pairing::Duet) => Some(Pairing::Duet),
            (None, Pairing::Auto | Pairing::Interleave) => Some(Pairing::Interleave),
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SideJson {
    experiment: String,
    name: String,
    kernel: String,
    release: Option<String>,
    origin: Option<String>,
    image_sha256: Option<String>,
    build_id: Option<String>,
    cmdline: Option<String>,
    knobs: Vec<KnobReading>,
    boots: usize,
    completed: usize,
    ready_ms: Option<f64>,
    failures: Vec<FailureJson>,
    /// What is not as in the base's config.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    config_differences: Vec<OptionDifference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<SideNoise>,
    /// What the guest's kernel told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    caches: Vec<CacheFacts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scheduler_domains: Vec<DomainFacts>,
    /// In exact runs, one per CPU model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    guests: Vec<GuestJson>,
}

/// What an exact guest was made of.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct GuestJson {
    identity: String,
    cpu: String,
    shift: u8,
    seed: u64,
    cached: Option<String>,
    dropped_features: Vec<String>,
    vulnerabilities: std::collections::BTreeMap<String, String>,
    features: Vec<String>,
    smp_alternatives: Option<String>,
}

fn guest(guest: &ExactGuest) -> GuestJson {
    let exact = &guest.boot;
    let safe = |(name, value): (&String, &String)| (escape(name), escape(value));
    GuestJson {
        identity: exact.identity.clone(),
        cpu: exact.cpu.clone(),
        shift: exact.shift,
        seed: exact.seed,
        cached: exact.cached.clone(),
        dropped_features: exact.dropped.iter().map(|feature| escape(feature)).collect(),
        vulnerabilities: guest.vulnerabilities.iter().map(safe).collect(),
        features: guest.features.iter().map(|flag| escape(flag)).collect(),
        smp_alternatives: guest.smp_alternatives.as_deref().map(escape),
    }
}

fn side(report: &Report<'_>, side: &SideSummary) -> SideJson {
    let kernel = report.info.kernels.get(&side.kernel_name);
    let facts = side.facts.as_ref();
    let release =
        facts.map(|facts| &facts.release).or_else(|| kernel.map(|kernel| &kernel.release));
    SideJson {
        experiment: escape(&side.experiment),
        name: escape(&side.name),
        kernel: escape(&side.kernel_name),
        release: release.map(|release| escape(release)),
        origin: kernel.map(|kernel| escape(&kernel.origin)),
        image_sha256: kernel.map(|kernel| kernel.image_sha256.clone()),
        build_id: facts.and_then(|facts| facts.build_id.as_deref()).map(escape),
        cmdline: facts.map(|facts| escape(&cmdline_words(&facts.cmdline).join(" "))),
        knobs: side.knobs.iter().map(knob).collect(),
        boots: side.boots,
        completed: side.completed,
        ready_ms: side.ready_ms,
        failures: side.failures.iter().map(failure).collect(),
        config_differences: super::options::of_side(report.info, report.plan, side)
            .unwrap_or_default(),
        noise: side.noise.clone(),
        caches: facts.map(|facts| facts.caches.iter().map(cache).collect()).unwrap_or_default(),
        scheduler_domains: facts
            .map(|facts| facts.domains.iter().map(domain).collect())
            .unwrap_or_default(),
        guests: side.exact.iter().map(guest).collect(),
    }
}

fn cache(cache: &CacheFacts) -> CacheFacts {
    let shared = cache.shared.iter().map(|cpus| escape(cpus)).collect();
    CacheFacts { kind: escape(&cache.kind), shared, ..cache.clone() }
}

fn domain(domain: &DomainFacts) -> DomainFacts {
    let spans = domain.spans.iter().map(|cpus| escape(cpus)).collect();
    DomainFacts { name: domain.name.as_deref().map(escape), spans, ..domain.clone() }
}

fn knob(reading: &KnobReading) -> KnobReading {
    KnobReading {
        kind: reading.kind,
        name: escape(&reading.name),
        wanted: escape(&reading.wanted),
        found: escape(&reading.found),
        took: reading.took,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FailureJson {
    class: crate::fault::FailureClass,
    fault: Fault,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<String>,
    boots: Vec<String>,
    title: String,
    details: Vec<String>,
    console_tail: Vec<String>,
}

fn failure(group: &crate::analyse::FailureGroup) -> FailureJson {
    let lines = |lines: &[String]| lines.iter().map(|line| escape(line)).collect();
    FailureJson {
        class: group.first.class,
        fault: group.fault,
        workload: group.workload.as_deref().map(escape),
        boots: group.boots.iter().map(|boot| escape(&boot.0)).collect(),
        title: escape(&group.first.title),
        details: lines(&group.first.details),
        console_tail: lines(&group.first.console_tail),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct GeometricJson {
    experiment: String,
    side: String,
    unit: String,
    better: Better,
    change: f64,
    series: usize,
    left_out: usize,
}

fn geometric(line: &GeometricLine) -> GeometricJson {
    GeometricJson {
        experiment: escape(&line.experiment),
        side: escape(&line.side),
        unit: escape(&line.unit),
        better: line.better,
        change: line.change,
        series: line.series,
        left_out: line.left_out,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct DistributionJson {
    experiment: String,
    side: String,
    workload: String,
    metric: String,
    unit: String,
    operations: usize,
    p50: f64,
    p99: f64,
    max: f64,
}

fn distribution(summary: &DistributionSummary) -> DistributionJson {
    DistributionJson {
        experiment: escape(&summary.series.experiment),
        side: escape(&summary.side),
        workload: escape(&summary.series.workload),
        metric: escape(&summary.series.metric),
        unit: escape(&summary.unit),
        operations: summary.operations,
        p50: summary.p50,
        p99: summary.p99,
        max: summary.max,
    }
}
