//! A report of others as a document that tries it here.

use kduel_protocol::Better;

use crate::analyse::{Cpus, Mapped, changes, map, prognosis, stand_ins};
use crate::collect::parse::{Cell, Imported, Role, Row, Table};
use crate::plan::Prognosis;
use crate::text::{count, escape};

/// Kernels that stand for those of the report until its own are written in.
const STAND_INS: [&str; 4] =
    ["debian:bookworm", "debian:bookworm-backports", "debian:trixie", "debian:bullseye"];

/// Claims that are written; a table of a robot has hundreds.
const MOST_CLAIMS: usize = 50;

/// Columns of vmstat that reports are about.
const WATCHED: &[&str] = &["r", "cs", "us", "sy", "id"];

/// A figure of the report that can be claimed.
struct Figure<'t> {
    table: &'t Table,
    row: &'t Row,
    /// Index among the table's sides.
    side: usize,
    change: f64,
    mapped: Option<Mapped>,
    prognosis: Prognosis,
}

/// Writes the document; `host_cpus` are those of this host. `source` is what the report is called.
///
/// # Errors
///
/// Why there is nothing to try.
pub fn skeleton(imported: &Imported, source: &str, host_cpus: u32) -> Result<String, String> {
    let report = imported.context.machine.as_ref().map(|machine| machine.cpus);
    let cpus = Cpus { report, host: host_cpus };
    let mut figures = figures(imported, cpus);
    if figures.is_empty() {
        return Err("no table compares two sides, so there is nothing to try".to_owned());
    }
    // What can be tried comes first.
    figures.sort_by_key(|figure| figure.mapped.is_none());
    let sides = &figures[0].table.sides;
    let shown = sides.len().min(STAND_INS.len());
    figures.retain(|figure| figure.table.sides.len() == sides.len() && figure.side < shown);
    let workloads = workloads(&figures)?;
    let left = figures.len().saturating_sub(MOST_CLAIMS);
    figures.truncate(MOST_CLAIMS);
    let names = names(&sides[..shown].iter().map(|side| side.name.as_str()).collect::<Vec<_>>());
    let certain = figures.iter().all(|f| f.mapped.is_none() || f.prognosis == Prognosis::Exactly);
    let parallel = workloads.iter().any(|(mapped, _)| mapped.is_parallel());
    let exact = certain && !parallel;

    let mut out =
        format!("# {} tried here; written by kduel import\nversion: 1\n", comment(source));
    out += "experiments:\n  reported:\n";
    out += "    # Stand-ins: put the kernels of the report here, or others that differ as they did.\n    sides:\n";
    for ((name, side), kernel) in names.iter().zip(sides).zip(STAND_INS) {
        out += &format!("      {name}: {kernel} # {}\n", comment(&side.name));
    }
    if shown < sides.len() {
        out += &format!(
            "    # {} of the report are left out.\n",
            count(sides.len() - shown, "further side")
        );
    }
    out += &topology(cpus, parallel, imported);
    out +=
        &format!("    measure: {}\n    workloads:\n", if exact { "instructions" } else { "time" });
    for (mapped, why) in &workloads {
        for line in [why, &mapped.scaled].into_iter().filter(|line| !line.is_empty()) {
            out += &format!("      # {line}\n");
        }
        out += &format!("      - {}\n", written(mapped));
    }
    out += "    claims:\n";
    for figure in &figures {
        out += &claim(figure, &names[figure.side]);
    }
    if left > 0 {
        out += &format!("      # {} more of the report are left out.\n", count(left, "figure"));
    }
    Ok(out)
}

fn figures<'t>(imported: &'t Imported, cpus: Cpus) -> Vec<Figure<'t>> {
    let mut figures = Vec::new();
    let rows =
        imported.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    for (table, row) in rows {
        let watched = row.role == Role::Monitor && WATCHED.contains(&row.metric.as_str());
        if !(watched || row.role == Role::Result && row.better.is_some()) {
            continue;
        }
        for (index, change) in changes(row).into_iter().enumerate() {
            let Some(change) = change.and_then(|change| change.change) else { continue };
            // Logarithms are taken of it.
            if change <= -1.0 {
                continue;
            }
            let mapped = map(table, row, cpus);
            let prognosis = prognosis(mapped.as_ref(), &row.metric, cpus);
            figures.push(Figure { table, row, side: index + 1, change, mapped, prognosis });
        }
    }
    figures
}

/// What runs, each with a remark.
fn workloads(figures: &[Figure<'_>]) -> Result<Vec<(Mapped, String)>, String> {
    let mut all: Vec<(Mapped, String)> = Vec::new();
    for figure in figures {
        if let Some(mapped) = &figure.mapped
            && !all.iter().any(|(other, _)| other == mapped)
        {
            let what = format!("in the report: {}", comment(&figure.row.metric));
            all.push((mapped.clone(), what));
        }
    }
    if !all.is_empty() {
        return Ok(all);
    }
    let format = figures[0].table.format;
    for name in stand_ins(format) {
        let why = format!("nearest to {}; its figures cannot be compared with it", format.words());
        all.push((Mapped { name, params: Vec::new(), scaled: String::new() }, why));
    }
    if all.is_empty() {
        return Err(format!(
            "no workload here does what {} did; give its program as `command` in a document",
            format.words()
        ));
    }
    Ok(all)
}

fn topology(cpus: Cpus, parallel: bool, imported: &Imported) -> String {
    let Cpus { report, host } = cpus;
    let wanted = if parallel { report.unwrap_or(host).clamp(1, host.max(1)) } else { 1 };
    let mut out = String::new();
    if let (Some(report), Some(machine)) = (report, &imported.context.machine) {
        let why = match parallel {
            true if report > wanted => "scaled to what it has",
            true => "as many here",
            false => "one is enough, since one task runs at a time",
        };
        out += &format!(
            "    # The report's machine has {} (line {}), this host {host}: {why}.\n",
            count(report as usize, "CPU"),
            machine.line
        );
    }
    out + &format!("    topology: 1s{wanted}c\n")
}

fn written(mapped: &Mapped) -> String {
    if mapped.params.is_empty() {
        return mapped.name.to_owned();
    }
    let params: Vec<String> =
        mapped.params.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}: {{ {} }}", mapped.name, params.join(", "))
}

fn claim(figure: &Figure<'_>, side: &str) -> String {
    let row = figure.row;
    let mut keys = vec![format!("side: {side}"), format!("metric: {}", quoted(&row.metric))];
    if let Some(mapped) = &figure.mapped {
        keys.push(format!("workload: {}", quoted(&mapped.label())));
    }
    let figures = [&row.cells[0], &row.cells[figure.side]].map(Cell::mean);
    match figures {
        [Some(base), Some(value)] if base > 0.0 && value > 0.0 => {
            keys.push(format!("base: {base}, value: {value}"));
            if !row.unit.is_empty() {
                keys.push(format!("unit: {}", quoted(&row.unit)));
            }
        }
        _ => keys.push(format!("change: {:+}%", 100.0 * figure.change)),
    }
    match row.better {
        Some(Better::Lower) => keys.push("better: lower".to_owned()),
        Some(Better::Higher) => keys.push("better: higher".to_owned()),
        None => {}
    }
    keys.push(format!("prognosis: {}", figure.prognosis.word()));
    let lines: Vec<String> =
        row.cells[figure.side].values.iter().take(4).map(|value| value.line.to_string()).collect();
    let words = match figure.prognosis {
        Prognosis::Exactly => "testable exactly",
        Prognosis::ByTime if figure.mapped.is_some() => "testable by time",
        Prognosis::ByTime => "testable by time, with the program as `command`",
        Prognosis::NeedsCpus => "needs as many CPUs as the report's machine has",
        Prognosis::Contention => "about contention, not testable here",
    };
    format!(
        "      # {:+.1} %, line {}: {words}\n      - {{ {} }}\n",
        100.0 * figure.change,
        lines.join(", "),
        keys.join(", ")
    )
}

/// Names of sides for a document, each once.
fn names(sides: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (index, side) in sides.iter().enumerate() {
        let safe = |c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        };
        let words: String = side.chars().map(safe).collect();
        let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        let mut name: String =
            words.join("-").trim_start_matches(['.', '_']).chars().take(30).collect();
        // A name that is a number would not be read as a word everywhere.
        if name.is_empty() || !name.contains(|c: char| c.is_ascii_alphabetic()) {
            name = format!("{}-{name}", if index == 0 { "base" } else { "side" });
        }
        let name = name.trim_end_matches('-').to_owned();
        let numbered = (2..).map(|n| format!("{name}-{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.push(free.unwrap_or(name));
    }
    names
}

/// A text between quotes; what JSON escapes YAML does, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text that ends with its line.
fn comment(text: &str) -> String {
    if text.is_empty() { "not named".to_owned() } else { escape(text) }
}
