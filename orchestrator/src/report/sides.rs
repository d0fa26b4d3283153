use std::collections::BTreeSet;

use kduel_protocol::KnobReading;

use crate::analyse::{FailureGroup, SideNoise, SideSummary, cmdline_words};
use crate::collect::SourceIdentity;
use crate::host::git::short;
use crate::id::BootId;
use crate::text::count;

use super::page::Page;
use super::{Report, number, options};

/// Who was compared: kernel, build, command line, knobs as they read back.
pub(super) fn sides(page: &mut Page, report: &Report<'_>, sides: &[&SideSummary]) {
    let width = name_width(sides);
    for side in sides {
        let mut lead = format!("  {:<width$}  ", side.name);
        for line in describe(report, side) {
            page.paragraph(&lead, [line.into()]);
            lead = " ".repeat(lead.chars().count());
        }
    }
}

fn name_width(sides: &[&SideSummary]) -> usize {
    sides.iter().map(|side| side.name.chars().count()).max().unwrap_or(0)
}

/// One side in lines: kernel, build, command line, knobs, boots.
pub(super) fn describe(report: &Report<'_>, side: &SideSummary) -> Vec<String> {
    let kernel = report.info.kernels.get(&side.kernel_name);
    let release = side.facts.as_ref().map(|facts| facts.release.as_str());
    let release =
        release.or_else(|| kernel.map(|kernel| kernel.release.as_str())).unwrap_or("never seen");
    let origin = kernel.map(|kernel| format!(", {}", kernel.origin)).unwrap_or_default();
    let mut lines = vec![format!("{release} ({}{origin})", side.kernel_name)];
    lines.extend(kernel.and_then(|kernel| kernel.source.as_ref()).and_then(changes));
    if let Some(facts) = &side.facts {
        if let Some(build_id) = &facts.build_id {
            lines.push(format!("build id {build_id}"));
        }
        lines.push(format!("command line: {}", cmdline_words(&facts.cmdline).join(" ")));
    }
    lines.extend(options::line(report, side));
    lines.extend(side.knobs.iter().map(knob));
    let boots = match side.boots {
        0 => "not booted".to_owned(),
        boots => format!("{} of {} completed", side.completed, count(boots, "boot")),
    };
    let ready = side.ready_ms.map(|ms| format!(", ready after {:.1} s", ms / 1000.0));
    lines.push(format!("{boots}{}", ready.unwrap_or_default()));
    lines.extend(side.noise.as_ref().map(noise));
    lines
}

/// What a kernel's source differs in from what it is based on.
pub(super) fn changes(source: &SourceIdentity) -> Option<String> {
    let SourceIdentity { base, changes, files, added, removed, .. } = source;
    let over = base.as_ref().map(|base| format!(" over {}", short(base))).unwrap_or_default();
    match changes {
        Some(place) => {
            let (files, place) = (count(*files, "file"), place.display());
            Some(format!("source: {files} changed, +{added} -{removed}{over}: {place}"))
        }
        None if base.is_some() => Some(format!("source: {} changed{over}", count(*files, "file"))),
        None => None,
    }
}

/// What the host did to the guests of a side.
fn noise(noise: &SideNoise) -> String {
    let (steal, most) = (number::percent(noise.steal), number::percent(noise.most_steal));
    let spoilt = match noise.contaminated {
        0 => String::new(),
        boots => format!("; contaminated: {}", count(boots, "boot")),
    };
    format!("the host took away {steal} of a vCPU's time, at most {most}{spoilt}")
}

pub(super) fn knob(reading: &KnobReading) -> String {
    let KnobReading { kind, name, wanted, found, took } = reading;
    let key = kind.key();
    let value = if wanted.is_empty() { String::new() } else { format!(" = {wanted}") };
    match (took, found == wanted) {
        (true, true) => format!("{key} {name}{value} (read back)"),
        (true, false) => format!("{key} {name}{value} (reads back as {found})"),
        (false, _) => format!("{key} {name}{value} DID NOT TAKE, reads back as {found}"),
    }
}

/// Lines of a console that are shown; the whole of it is in the run's folder.
const TAIL: usize = 12;

/// What went wrong, by side and kind, with the console of the first of each.
pub(super) fn failures(page: &mut Page, sides: &[&SideSummary]) {
    let width = name_width(sides);
    for side in sides {
        for group in &side.failures {
            let lead = format!("  {:<width$}  ", side.name);
            page.paragraph(&lead, [headline(side, group).into()]);
            let indent = " ".repeat(lead.chars().count());
            let first = &group.first;
            for line in &first.details {
                // Columns stay below one another.
                if line.contains("  ") {
                    page.hanging(&indent, line);
                } else {
                    page.paragraph(&indent, [line.as_str().into()]);
                }
            }
            if let Some(hint) = &first.hint {
                page.paragraph(&indent, [format!("hint: {hint}").into()]);
            }
            console(page, &indent, group);
        }
    }
}

/// What, how often, whose fault.
pub(super) fn headline(side: &SideSummary, group: &FailureGroup) -> String {
    let workload = group.workload.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let boots: BTreeSet<_> = group.boots.iter().collect();
    let of = count(side.boots, "boot");
    format!(
        "{workload}{} in {} of {of} (fault: {}): {}",
        group.first.class.words(),
        boots.len(),
        group.fault,
        group.first.title
    )
}

/// The boot whose console tells most, and its last lines; a workload's failure says all itself.
pub(super) fn tail(group: &FailureGroup) -> Option<(&BootId, &[String])> {
    let boot = group.boots.first().filter(|_| group.workload.is_none())?;
    let tail = &group.first.console_tail;
    Some((boot, &tail[tail.len().saturating_sub(TAIL)..]))
}

fn console(page: &mut Page, indent: &str, group: &FailureGroup) {
    let Some((boot, shown)) = tail(group) else { return };
    if shown.is_empty() {
        return page.line(&format!("{indent}the console of {boot} is empty"));
    }
    page.line(&format!("{indent}console/{boot}.log ends with"));
    for line in shown {
        page.cut(&format!("{indent}| {line}"));
    }
}
