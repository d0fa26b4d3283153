use kduel_protocol::{Monitor, MonitorTerms, Topology};

use super::check::Check;
use super::claims;
use super::diagnostic::Diagnostic;
use super::exact;
use super::image;
use super::kernels::NamedKernel;
use super::monitors;
use super::node::{Content, Entry, Node};
use super::numa::parse_cpu_list;
use super::sides;
use super::topologies::{self, NamedTopology};
use super::workloads::{self, WorkloadUse};
use crate::boot::{Grants, HugePages};
use crate::plan::topology::DEFAULT_TOPOLOGY;
use crate::plan::{
    Claim, MARGIN_HELP, MarginTerms, Measure, Pairing, PlannedImage, PlannedSide, Statistic,
    parse_margin,
};

/// One experiment, checked and with everything filled in.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// As named in the document, `adhoc` without one.
    pub name: String,
    /// Base first; at least two.
    pub sides: Vec<PlannedSide>,
    /// What the guests look like.
    pub topology: Topology,
    /// What the user called it.
    pub topology_name: String,
    /// What runs in every boot.
    pub workloads: Vec<WorkloadUse>,
    /// What is read beside the samples.
    pub monitors: Vec<Monitor>,
    /// How often they look.
    pub monitor_terms: MonitorTerms,
    /// What a report says of the sides.
    pub claims: Vec<Claim>,
    /// How the experiment is carried out.
    pub terms: Terms,
}

/// How an experiment is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// What is measured.
    pub measure: Measure,
    /// Boots of every side; absent: the default.
    pub pairs: Option<usize>,
    /// Iterations kept per trial; absent: the workload's.
    pub iterations: Option<u32>,
    /// Iterations dropped per trial; absent: the workload's.
    pub warmup: Option<u32>,
    /// Longest wait for an idle guest, in seconds.
    pub settle_s: u32,
    /// The longest that a boot may take, in seconds; absent: by the accelerator.
    pub boot_deadline_s: Option<u32>,
    /// The longest that a guest may show no progress, in seconds; absent: by the accelerator.
    pub progress_deadline_s: Option<u32>,
    /// The agent gives a trial up after this, in seconds; absent: by the trial's cost.
    pub deadline_s: Option<u32>,
    /// Few pairs and one look.
    pub quick: bool,
    /// What a timed run is decided by.
    pub statistic: Option<Statistic>,
    /// How the boots of a pair follow one another, in timed runs.
    pub pairing: Option<Pairing>,
    /// What guests get of the host for themselves.
    pub grants: Grants,
    /// What guests mount besides.
    pub image: Option<PlannedImage>,
    /// The change that matters.
    pub margin: MarginTerms,
    /// Sides may be the same.
    pub aa: bool,
    /// Of exact runs only.
    pub exact: exact::Terms,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            measure: Measure::Time,
            pairs: None,
            iterations: None,
            warmup: None,
            settle_s: 10,
            boot_deadline_s: None,
            progress_deadline_s: None,
            deadline_s: None,
            quick: false,
            statistic: None,
            pairing: None,
            grants: Grants::default(),
            image: None,
            margin: MarginTerms::default(),
            aa: false,
            exact: exact::Terms::default(),
        }
    }
}

/// What the document defines for its experiments.
pub struct Definitions {
    /// `kernels:`.
    pub kernels: Vec<NamedKernel>,
    /// `topologies:`.
    pub topologies: Vec<NamedTopology>,
}

/// What the command line says about every experiment.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--measure`.
    pub measure: Option<Measure>,
    /// `--pairs`.
    pub pairs: Option<usize>,
    /// `--iterations`.
    pub iterations: Option<u32>,
    /// `--boot-deadline`, in seconds.
    pub boot_deadline_s: Option<u32>,
    /// `--progress-deadline`, in seconds.
    pub progress_deadline_s: Option<u32>,
    /// `--quick`.
    pub quick: bool,
    /// `--stat`, `--anytime`.
    pub statistic: Option<Statistic>,
    /// `--pairing`.
    pub pairing: Option<Pairing>,
    /// `--cpu-pm`, `--huge-pages`.
    pub grants: Grants,
    /// `--margin`.
    pub margin: MarginTerms,
    /// `--aa`.
    pub aa: bool,
    /// `--monitor`.
    pub monitors: Vec<Monitor>,
    /// `--seeds`, `--cpu`, `--shift`, `--chains`.
    pub exact: exact::Terms,
}

/// An experiment, if nothing was wrong with it, and complaints for those who select it.
pub struct Named {
    /// Its name.
    pub name: String,
    /// What `matrix:` made, and so goes by that word too.
    pub matrix: bool,
    /// Absent if something is wrong with it, which was complained about.
    pub experiment: Option<Experiment>,
    /// Complaints for those who select it.
    pub deferred: Vec<Diagnostic>,
}

const OWN_KEYS: &[&str] = &["sides", "topology", "workloads", "claims"];

/// Keys of [`Terms`], which `matrix:` takes too.
pub const TERM_KEYS: &[&str] = &[
    "measure",
    "pairs",
    "iterations",
    "warmup",
    "settle",
    "boot-deadline",
    "progress-deadline",
    "deadline",
    "quick",
    "stat",
    "pairing",
    "cpu-pm",
    "huge-pages",
    "image",
    "margin",
    "aa",
    "seeds",
    "cpu",
    "shift",
    "chains",
    "monitors",
];

/// Reads one entry of `experiments:`.
pub fn read(
    check: &mut Check<'_>,
    entry: &Entry,
    defined: &Definitions,
    flags: &Overrides,
) -> Named {
    let outer = std::mem::take(&mut check.deferred);
    check.name(entry.spot, "an experiment", &entry.key);
    let experiment = body(check, entry, defined, flags);
    let deferred = std::mem::replace(&mut check.deferred, outer);
    Named { name: entry.key.clone(), matrix: false, experiment, deferred }
}

fn body(
    check: &mut Check<'_>,
    entry: &Entry,
    defined: &Definitions,
    flags: &Overrides,
) -> Option<Experiment> {
    let what = format!("experiment `{}`", entry.key);
    let valid: Vec<&str> = OWN_KEYS.iter().chain(TERM_KEYS).copied().collect();
    let entries = check.map(&entry.value, &what, &valid)?;
    let terms = terms(check, &entry.value, flags);
    let by_key = |key: &str| entries.iter().find(|entry| entry.key == key);
    let sides = match by_key("sides") {
        Some(node) => {
            let complaints = check.found.len();
            let sides = sides::read(check, node, &defined.kernels);
            if !terms.aa && check.found.len() == complaints {
                sides::distinct(check, node, &sides);
            }
            sides
        }
        None => {
            let hint = "add `sides: { base: KERNEL, patched: KERNEL }`";
            if check.lacks(&entry.value, "sides") {
                check.advise(entry.spot, format!("{what} has no sides"), hint);
            }
            Vec::new()
        }
    };
    let (topology_name, topology) = match entry.value.get("topology") {
        Some(node) => {
            (node.text().unwrap_or_default(), topologies::resolve(check, node, &defined.topologies))
        }
        None => (DEFAULT_TOPOLOGY, crate::plan::topology::named(DEFAULT_TOPOLOGY)),
    };
    let workloads = match by_key("workloads") {
        Some(node) => workloads::read(check, &node.value),
        None => {
            let hint = "add for example `workloads: [fork-exit]`; `kduel workloads` lists them";
            if check.lacks(&entry.value, "workloads") {
                check.advise(entry.spot, format!("{what} has no workloads"), hint);
            }
            Vec::new()
        }
    };
    let (monitors, monitor_terms) = monitors::read(check, &entry.value, &flags.monitors);
    let claims = match entry.value.get("claims") {
        Some(node) => claims::read(check, node, &sides, &workloads),
        None => Vec::new(),
    };
    let topology = topology?;
    fits(check, &workloads, &topology);
    image::fits(check, entry, &workloads, &terms, &topology);
    exact::can_say(check, &workloads, &terms);
    in_pages(check, entry, &terms, &topology);
    Some(Experiment {
        name: entry.key.clone(),
        sides,
        topology,
        topology_name: topology_name.to_owned(),
        workloads,
        monitors,
        monitor_terms,
        claims,
        terms,
    })
}

/// A guest and each of its nodes is a whole number of huge pages.
fn in_pages(check: &mut Check<'_>, entry: &Entry, terms: &Terms, topology: &Topology) {
    let Some(pages) = terms.grants.huge_pages else { return };
    let nodes = topology.nodes.iter().map(|node| node.memory_mib);
    let all = nodes.chain([topology.memory_mib]);
    if let Some(mib) = all.into_iter().find(|mib| mib % pages.mib() != 0) {
        let spot = entry.value.get("huge-pages").map_or(entry.spot, |node| node.spot);
        let size = pages.name();
        let message = format!("{mib} MiB of memory are no whole number of huge pages of {size}");
        check.advise(spot, message, "give the guest other memory, or smaller pages");
    }
}

/// Commands are pinned only to CPUs that the guest has.
pub fn fits(check: &mut Check<'_>, workloads: &[WorkloadUse], topology: &Topology) {
    for workload in workloads {
        let cpus = workload.command.as_ref().and_then(|command| command.cpus.as_deref());
        let cpus = cpus.and_then(parse_cpu_list).unwrap_or_default();
        if let Some(cpu) = cpus.into_iter().find(|cpu| *cpu >= topology.cpus()) {
            let message = format!(
                "`command` wants CPU {cpu}, and the guest's last is {}",
                topology.cpus() - 1
            );
            check.complain(workload.spot, message);
        }
    }
}

/// Reads how an experiment is carried out; flags win.
pub fn terms(check: &mut Check<'_>, node: &Node, flags: &Overrides) -> Terms {
    let mut terms = Terms::default();
    if let Content::Map(entries) = &node.content {
        for entry in entries {
            term(check, entry, &mut terms);
        }
    }
    terms.measure = flags.measure.unwrap_or(terms.measure);
    terms.pairs = flags.pairs.or(terms.pairs);
    terms.iterations = flags.iterations.or(terms.iterations);
    terms.boot_deadline_s = flags.boot_deadline_s.or(terms.boot_deadline_s);
    terms.progress_deadline_s = flags.progress_deadline_s.or(terms.progress_deadline_s);
    terms.quick |= flags.quick;
    terms.aa |= flags.aa;
    terms.statistic = flags.statistic.or(terms.statistic);
    terms.pairing = flags.pairing.or(terms.pairing);
    terms.grants.cpu_pm |= flags.grants.cpu_pm;
    terms.grants.huge_pages = flags.grants.huge_pages.or(terms.grants.huge_pages);
    terms.margin.overridden_by(&flags.margin);
    terms.exact.overridden_by(&flags.exact);
    exact::fits_measure(check, node, &terms);
    terms
}

fn term(check: &mut Check<'_>, entry: &Entry, terms: &mut Terms) {
    let (node, what) = (&entry.value, format!("`{}`", entry.key));
    match entry.key.as_str() {
        "measure" => terms.measure = measure(check, node).unwrap_or(Measure::Time),
        "pairs" => terms.pairs = check.small(node, &what, 1..=1000).map(|n| n as usize),
        "iterations" => terms.iterations = check.small(node, &what, 1..=10_000),
        "warmup" => terms.warmup = check.small(node, &what, 0..=10_000),
        "settle" => terms.settle_s = check.seconds(node, &what).unwrap_or_default(),
        "boot-deadline" => terms.boot_deadline_s = check.seconds(node, &what).filter(|s| *s > 0),
        "progress-deadline" => {
            terms.progress_deadline_s = check.seconds(node, &what).filter(|s| *s > 0);
        }
        "deadline" => terms.deadline_s = check.seconds(node, &what).filter(|s| *s > 0),
        "quick" => terms.quick = check.flag(node, &what).unwrap_or_default(),
        "stat" => {
            terms.statistic = choice(check, entry, "statistic", Statistic::ALL, Statistic::name);
        }
        "pairing" => {
            terms.pairing = choice(check, entry, "pairing", Pairing::ALL, Pairing::name);
        }
        "cpu-pm" => terms.grants.cpu_pm = check.flag(node, &what).unwrap_or_default(),
        "huge-pages" => {
            let kind = "size of huge pages";
            terms.grants.huge_pages = choice(check, entry, kind, HugePages::ALL, HugePages::name);
        }
        "image" => terms.image = image::read(check, node),
        "margin" => terms.margin = margin(check, node),
        "aa" => terms.aa = check.flag(node, &what).unwrap_or_default(),
        key => exact::term(check, key, node, &mut terms.exact),
    }
}

fn measure(check: &mut Check<'_>, node: &Node) -> Option<Measure> {
    match check.text(node, "`measure`")?.as_str() {
        "time" => Some(Measure::Time),
        "instructions" => Some(Measure::Instructions),
        other => {
            check.unknown(node.spot, "measure", other, &["time", "instructions"]);
            None
        }
    }
}

/// One of the words that `all` go by; `kind` is what they are, for messages.
fn choice<T: Copy, const N: usize>(
    check: &mut Check<'_>,
    entry: &Entry,
    kind: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Option<T> {
    let word = check.text(&entry.value, &format!("`{}`", entry.key))?;
    let found = all.into_iter().find(|one| name(*one) == word);
    if found.is_none() {
        check.unknown(entry.value.spot, kind, &word, &all.map(name));
    }
    found
}

fn margin(check: &mut Check<'_>, node: &Node) -> MarginTerms {
    let mut terms = MarginTerms::default();
    for item in check.one_or_more(node, "`margin`").unwrap_or_default() {
        let Some(text) = check.text(item, "`margin`") else { continue };
        match parse_margin(&text) {
            Ok(one) => terms.overridden_by(&one),
            Err(why) => {
                let message = format!("`margin` cannot be `{text}`: {why}");
                check.advise(item.spot, message, MARGIN_HELP);
            }
        }
    }
    terms
}
