//! Which workload here does what a report's benchmark does, and what that is good for. Pure.

use kduel_protocol::{Parallelism, ParamKind, workload};

use crate::collect::parse::{Format, Role, Row, Table};
use crate::config::defaults;
use crate::plan::Prognosis;

/// A workload with the parameters that differ from its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// Its name.
    pub name: &'static str,
    /// Parameters as they are written, in the workload's order.
    pub params: Vec<(&'static str, String)>,
    /// What was made smaller, in a sentence; empty if nothing.
    pub scaled: String,
}

/// CPUs of the report's machine, if it tells, and of this host.
#[derive(Debug, Clone, Copy)]
pub struct Cpus {
    /// Of the report.
    pub report: Option<u32>,
    /// Here.
    pub host: u32,
}

impl Cpus {
    /// Whether this host has too few.
    pub fn lacking(self) -> bool {
        self.report.is_some_and(|report| report > self.host)
    }
}

impl Mapped {
    fn new(name: &'static str, params: &[(&'static str, &str)]) -> Self {
        let params = params.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { name, params, scaled: String::new() }
    }

    /// As its series is called.
    pub fn label(&self) -> String {
        let telling = |(name, value): &&(&'static str, String)| {
            let param = workload(self.name)
                .and_then(|info| info.params.iter().find(|param| param.name == *name));
            param.is_none_or(|param| {
                let words = [value.clone()];
                param.default.contains(',')
                    || match param.kind {
                        ParamKind::Choice(_) => param.default != words[0],
                        _ => {
                            defaults(param).first().map(ToString::to_string)
                                != Some(words[0].clone())
                        }
                    }
            })
        };
        let params = self.params.iter().filter(telling);
        params.fold(self.name.to_owned(), |label, (name, value)| format!("{label} {name}={value}"))
    }

    /// Whether several of its tasks run at a time.
    pub fn is_parallel(&self) -> bool {
        workload(self.name).is_some_and(|info| info.parallel == Parallelism::Parallel)
    }
}

/// The workload that does what a row's benchmark does.
pub fn map(table: &Table, row: &Row, cpus: Cpus) -> Option<Mapped> {
    let metric = row.metric.as_str();
    if row.role != Role::Result {
        return None;
    }
    match table.format {
        Format::Lmbench => lmbench(metric),
        Format::Hackbench => Some(hackbench(table, cpus)),
        Format::PerfBench => match parameter(table, "benchmark")? {
            "sched/pipe" => Some(Mapped::new("pipe-roundtrip", &[])),
            "sched/messaging" => Some(hackbench(table, cpus)),
            "syscall/basic" => Some(Mapped::new("syscall", &[("call", "getppid")])),
            _ => None,
        },
        Format::PerfStat => {
            let command = parameter(table, "command")?;
            let moves = command.starts_with("cgexec ") && metric == "elapsed";
            moves.then(|| Mapped::new("cgroup-exec", &[]))
        }
        Format::Unixbench => unixbench(metric),
        Format::StressNg => match metric {
            "fork ops/s" => Some(Mapped::new("fork-exit", &[])),
            "context ops/s" | "switch ops/s" => Some(Mapped::new("pipe-roundtrip", &[])),
            "futex ops/s" => Some(Mapped::new("futex-wake", &[])),
            "pthread ops/s" => Some(Mapped::new("clone-join", &[])),
            _ => None,
        },
        Format::Robot if metric.starts_with("hackbench.throughput") => Some(hackbench(table, cpus)),
        Format::Mmtests | Format::Robot if metric.contains("hackbench") => {
            Some(hackbench(table, cpus))
        }
        _ => None,
    }
}

fn lmbench(metric: &str) -> Option<Mapped> {
    let call = |call| Some(Mapped::new("syscall", &[("call", call)]));
    let socket = |kind| Some(Mapped::new("socket-roundtrip", &[("kind", kind), ("bytes", "1")]));
    match metric {
        "Process fork+exit" => Some(Mapped::new("fork-exit", &[])),
        "Process fork+execve" => Some(Mapped::new("fork-exec", &[])),
        "Process fork+/bin/sh -c" => Some(Mapped::new("fork-shell", &[])),
        "Simple syscall" => call("getppid"),
        "Simple read" => call("read-1"),
        "Simple write" => call("write-1"),
        "Simple stat" => call("stat"),
        "Simple open/close" => call("open-close"),
        "Pipe latency" => Some(Mapped::new("pipe-roundtrip", &[("bytes", "1")])),
        "AF_UNIX sock stream latency" => socket("unix"),
        "TCP latency using localhost" => socket("tcp"),
        "UDP latency using localhost" => socket("udp"),
        "Signal handler overhead" => Some(Mapped::new("event", &[("kind", "signal")])),
        _ => None,
    }
}

fn unixbench(metric: &str) -> Option<Mapped> {
    match metric {
        "Process Creation" => Some(Mapped::new("fork-exit", &[])),
        "Execl Throughput" => Some(Mapped::new("fork-exec", &[])),
        "Pipe-based Context Switching" => Some(Mapped::new("pipe-roundtrip", &[])),
        "System Call Overhead" => Some(Mapped::new("syscall", &[("call", "getppid")])),
        _ => None,
    }
}

/// The same groups, or fewer in the ratio of the CPUs.
fn hackbench(table: &Table, cpus: Cpus) -> Mapped {
    let mut mapped = Mapped::new("hackbench", &[]);
    for name in ["groups", "fds", "loops", "bytes"] {
        let Some(number) = parameter(table, name).and_then(|text| text.parse::<u64>().ok()) else {
            continue;
        };
        let mut value = number;
        if let ("groups", Some(report), true) = (name, cpus.report, cpus.lacking()) {
            value = (number * u64::from(cpus.host) / u64::from(report)).max(1);
            mapped.scaled = format!("hackbench: {number} groups became {value}, as the CPUs did");
        }
        mapped.params.push((name, value.to_string()));
    }
    if parameter(table, "mode") == Some("thread") {
        mapped.params.push(("mode", "thread".to_owned()));
    }
    mapped
}

/// What a program was told.
fn parameter<'t>(table: &'t Table, name: &str) -> Option<&'t str> {
    table.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// What is to be thought of a claim before it is tried.
pub fn prognosis(mapped: Option<&Mapped>, metric: &str, cpus: Cpus) -> Prognosis {
    const CONTENDED: &[&str] = &["lock", "contention", "spin", "futex hash"];
    let parallel = mapped.is_none_or(Mapped::is_parallel);
    let contended = CONTENDED.iter().any(|word| metric.contains(word));
    match (parallel, cpus.lacking()) {
        (false, _) => Prognosis::Exactly,
        (true, _) if contended => Prognosis::Contention,
        (true, true) => Prognosis::NeedsCpus,
        (true, false) => Prognosis::ByTime,
    }
}

/// Workloads that are nearest to a benchmark that has none here; what they show cannot be held against
/// its figures.
pub fn stand_ins(format: Format) -> &'static [&'static str] {
    match format {
        Format::Kernbench | Format::Mmtests | Format::Diffprofile | Format::Readprofile => {
            &["fork-exec", "page-fault"]
        }
        Format::Vmstat | Format::Schbench | Format::Robot => &["hackbench"],
        Format::Sysbench => &["futex-wake"],
        _ => &[],
    }
}
