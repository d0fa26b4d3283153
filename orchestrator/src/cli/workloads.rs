//! `kduel workloads`: what each measures, units, parameters, source of the definition.

use clap::Args;
use kduel_protocol::{
    Better, Duet, Parallelism, ParamInfo, ParamKind, WORKLOADS, WorkloadInfo, workload,
};

use crate::text;
use crate::units;

/// Examples shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  kduel workloads                   all of them, one line each
  kduel workloads pipe-roundtrip    one of them: parameters, units, where its definition comes from";

/// The arguments of `kduel workloads`.
#[derive(Debug, Clone, Args)]
pub struct WorkloadsArgs {
    /// Explain this one.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// The list, or the details of one.
///
/// # Errors
///
/// There is no workload of that name; says which is near.
pub fn render(args: &WorkloadsArgs) -> Result<String, String> {
    let Some(name) = &args.name else { return Ok(list()) };
    workload(name).map(details).ok_or_else(|| {
        let near = text::nearest(name, WORKLOADS.iter().map(|info| info.name));
        let hint = near.map_or_else(
            || "`kduel workloads` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        format!("unknown workload `{}`\n  hint: {hint}", text::escape(name))
    })
}

fn list() -> String {
    let width = WORKLOADS.iter().map(|info| info.name.len()).max().unwrap_or_default();
    let lines = WORKLOADS.iter().map(|info| format!("{:<width$}  {}\n", info.name, info.measures));
    lines.collect::<String>() + "\n`kduel workloads NAME` explains one.\n"
}

fn details(info: &WorkloadInfo) -> String {
    let parallel = match info.parallel {
        Parallelism::Serial => "no, one task runs at a time",
        Parallelism::Parallel => "yes, as far as the guest has CPUs",
    };
    let mut out = format!("{}: {}\n\n", info.name, info.measures);
    out += &field("operation", info.operation);
    for (index, metric) in info.metrics.iter().enumerate() {
        let better = match metric.better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
        };
        let rank = if metric.primary { "" } else { ", shown beside" };
        let title = if index == 0 { "metrics" } else { "" };
        out += &field(title, &format!("{} in {}, {better}{rank}", metric.name, metric.unit));
    }
    out += &field("parallel", parallel);
    out += &field("duet", duet(info.duet));
    out += &field(
        "iterations",
        &format!("{} kept, {} dropped before them", info.iterations, info.warmup),
    );
    if info.min_interval_ms > 0 {
        let interval =
            format!("an iteration repeats the operation for at least {} ms", info.min_interval_ms);
        out += &field("", &interval);
    }
    if !info.suites.is_empty() {
        out += &field("suites", &info.suites.join(", "));
    }
    for (index, param) in info.params.iter().enumerate() {
        out += &field(if index == 0 { "parameters" } else { "" }, &parameter(param));
    }
    out += &field("source", info.source);
    if !info.notes.is_empty() {
        out += &field("notes", info.notes);
    }
    out
}

fn duet(duet: Duet) -> &'static str {
    match duet {
        Duet::Yes => "yes, two guests may run it at the same time",
        Duet::No => "no, two guests would slow each other",
        Duet::Asked => "only if its parameter says that two guests do not slow each other",
    }
}

fn parameter(param: &ParamInfo) -> String {
    let values = match param.kind {
        ParamKind::Integer { min, max } => format!("{min} to {max}"),
        ParamKind::Bytes { min, max } => {
            format!("a size from {} to {}", units::size(min), units::size(max))
        }
        ParamKind::Duration { max_ns } => {
            format!("a duration up to {}", units::written_duration(max_ns))
        }
        ParamKind::Choice(words) => words.join(" | "),
    };
    format!("{}: {values} (default {}); {}", param.name, param.default, param.help)
}

/// One line with its title, wrapped at a width that mails and terminals take.
fn field(title: &str, content: &str) -> String {
    const WIDTH: usize = 78;
    let mut out = String::new();
    let mut line = String::new();
    for word in content.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() >= WIDTH {
            push_line(&mut out, title, &line);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    push_line(&mut out, title, &line);
    out
}

fn push_line(out: &mut String, title: &str, line: &str) {
    let title = if out.is_empty() { title } else { "" };
    *out += &format!("  {title:<11} {line}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_explains_every_workload() {
        let listed = render(&WorkloadsArgs { name: None }).unwrap();
        for info in WORKLOADS {
            assert!(listed.contains(info.name));
            let details = render(&WorkloadsArgs { name: Some(info.name.to_owned()) }).unwrap();
            assert!(details.contains(info.operation), "{details}");
            assert!(details.lines().all(|line| line.chars().count() <= 100), "{details}");
        }
    }

    #[test]
    fn offers_the_nearest() {
        let error = render(&WorkloadsArgs { name: Some("hackbnch".to_owned()) }).unwrap_err();
        assert!(error.contains("did you mean `hackbench`?"), "{error}");
    }
}
