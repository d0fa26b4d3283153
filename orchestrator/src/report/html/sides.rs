//! Who was compared and where, side beside side.

use super::super::markup::safe;
use super::super::text::at_once;
use super::super::{Report, exact, options, sides};
use crate::analyse::{SideSummary, cmdline_words};
use crate::boot::Accel;
use crate::plan::{Measure, PlannedExperiment, shape};
use crate::text::count;

/// The sides of every experiment, the limits of what is said, and the host.
pub(super) fn section(report: &Report<'_>) -> String {
    let mut html = "<section class=\"conditions\">\n".to_owned();
    for experiment in &report.plan.experiments {
        html += &one(report, experiment);
    }
    html += &format!("<h2>Host</h2>\n{}", host(report));
    if report.plan.measure == Measure::Instructions {
        html += &format!("<dl><dt>limits</dt><dd>{}</dd></dl>\n", exact::LIMITS.join("<br>"));
    }
    html + "</section>\n"
}

fn one(report: &Report<'_>, experiment: &PlannedExperiment) -> String {
    let own = report.analysis.sides.iter().filter(|side| side.experiment == experiment.name);
    let own: Vec<&SideSummary> = own.collect();
    let mut html = format!(
        "<h2>Sides of {} on {} ({}){}</h2>\n{}",
        safe(&experiment.name),
        safe(&experiment.topology_name),
        shape::summary(&experiment.topology),
        at_once(experiment),
        table(report, &own)
    );
    let failures: String = own.iter().map(|side| failures(side)).collect();
    if !failures.is_empty() {
        html += &format!("<h3 class=\"series\">Failures</h3>\n<dl>\n{failures}</dl>\n");
    }
    let machine = exact::machine(report, experiment);
    if let Some((first, rest)) = machine.split_first() {
        html += &format!("<dl><dt>CPU</dt>{}\n</dl>\n", folded(first, rest));
    }
    html
}

/// A column for each side; what differs stands out.
fn table(report: &Report<'_>, sides: &[&SideSummary]) -> String {
    let names: String =
        sides.iter().map(|side| format!("<th scope=\"col\">{}</th>", safe(&side.name))).collect();
    let columns: Vec<[(&str, String); 9]> = sides.iter().map(|side| facts(report, side)).collect();
    let mut html = format!(
        "<div class=\"wide\"><table class=\"sides\">\n<thead><tr><td></td>{names}</tr></thead>\n<tbody>\n"
    );
    let rows = columns.first().map_or(0, |column| column.len());
    for row in 0..rows {
        let cells: Vec<&String> = columns.iter().map(|column| &column[row].1).collect();
        if cells.iter().all(|cell| cell.is_empty()) {
            continue;
        }
        // How the boots went is not what was compared.
        let told = row < 7 && cells.iter().any(|cell| *cell != cells[0]);
        let class = if told { " class=\"differs\"" } else { "" };
        let cell = |text: &&String| format!("<td>{}</td>", lines(text));
        let cells: String = cells.iter().map(cell).collect();
        html += &format!("<tr{class}><th scope=\"row\">{}</th>{cells}</tr>\n", columns[0][row].0);
    }
    html + "</tbody>\n</table></div>\n"
}

fn lines(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => text.split('\n').map(safe).collect::<Vec<_>>().join("<br>"),
    }
}

/// In the order of the rows; the first seven are what makes a side what it is.
fn facts(report: &Report<'_>, side: &SideSummary) -> [(&'static str, String); 9] {
    let kernel = report.info.kernels.get(&side.kernel_name);
    let facts = side.facts.as_ref();
    let release = facts.map(|facts| facts.release.clone());
    let release = release.or_else(|| kernel.map(|kernel| kernel.release.clone()));
    let knobs: Vec<String> = side.knobs.iter().map(sides::knob).collect();
    let boots = match side.boots {
        0 => "not booted".to_owned(),
        boots => format!("{} of {} completed", side.completed, count(boots, "boot")),
    };
    let ready = side.ready_ms.map(|ms| format!("{:.1} s", ms / 1000.0));
    let origin = kernel.map(|kernel| kernel.origin.clone());
    let changes = kernel.and_then(|kernel| sides::changes(kernel.source.as_ref()?));
    let from = origin.into_iter().chain(changes).collect::<Vec<_>>().join("\n");
    [
        ("kernel", side.kernel_name.clone()),
        ("release", release.unwrap_or_else(|| "never seen".to_owned())),
        ("from", from),
        ("build id", facts.and_then(|facts| facts.build_id.clone()).unwrap_or_default()),
        (
            "command line",
            facts.map(|facts| cmdline_words(&facts.cmdline).join(" ")).unwrap_or_default(),
        ),
        ("config", options::line(report, side).unwrap_or_default()),
        ("knobs", knobs.join("\n")),
        ("boots", boots),
        ("ready after", ready.unwrap_or_default()),
    ]
}

fn host(report: &Report<'_>) -> String {
    let Report { info, analysis, .. } = report;
    let accel = match analysis.accel.unwrap_or(info.accelerator) {
        Accel::Kvm => "KVM",
        Accel::Tcg => "none: emulated (TCG)",
    };
    let qemu = info.qemu.as_ref().map(|qemu| qemu.version.clone()).unwrap_or_default();
    let rows = [
        ("processor", info.host.cpu_model.clone()),
        ("CPUs", info.host.cpus.to_string()),
        ("kernel", info.host.kernel.clone()),
        ("accelerator", accel.to_owned()),
        ("QEMU", qemu),
        ("kduel", info.kduel.clone()),
        ("started", info.started.strftime("%Y-%m-%d %H:%M UTC").to_string()),
    ];
    let row = |(name, value): &(&str, String)| {
        format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", lines(value))
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<table class=\"sides\">\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// The first line, the others behind it.
fn folded(first: &str, rest: &[String]) -> String {
    let rest: Vec<String> = rest.iter().map(|line| safe(line)).collect();
    if rest.is_empty() {
        return format!("<dd>{}</dd>", safe(first));
    }
    format!("<dd><details><summary>{}</summary>{}</details></dd>", safe(first), rest.join("<br>"))
}

/// What failed in a side's boots, with the console of the first of each kind.
fn failures(side: &SideSummary) -> String {
    let mut html = String::new();
    for group in &side.failures {
        html += &format!(
            "<dt>{}</dt><dd class=\"worse\">{}",
            safe(&side.name),
            safe(&sides::headline(side, group))
        );
        for line in group.first.details.iter().chain(&group.first.hint) {
            html += &format!("<br>{}", safe(line));
        }
        if let Some((boot, lines)) = sides::tail(group).filter(|(_, lines)| !lines.is_empty()) {
            let lines: Vec<String> = lines.iter().map(|line| safe(line)).collect();
            html += &format!(
                "<br>console/{}.log ends with<pre>{}</pre>",
                safe(&boot.0),
                lines.join("\n")
            );
        }
        html += "</dd>\n";
    }
    html
}
