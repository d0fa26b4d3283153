//! UnixBench: result lines, and the table of baselines, results and indices.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static RESULT: Pattern = Pattern::new(
    r"^\s*(?P<name>[A-Z][\w&. ()-]*?)\s{2,}(?P<value>\d[\d.]*) (?P<unit>lps|KBps|lpm|MWIPS)\s+\((?P<seconds>[\d.]+) s, (?P<samples>\d+)(?:\s+samples\))?",
);
static HEAD: Pattern = Pattern::new(
    r"^\s*System Benchmarks (?:Partial )?Index(?: Values)?\s+BASELINE\s+RESULT\s+INDEX",
);
static INDEX: Pattern = Pattern::new(
    r"^\s*(?P<name>[A-Z][\w&. ()-]*?)\s{2,}(?P<base>\d[\d.]*)\s+(?P<value>\d[\d.]*)\s+(?P<index>\d[\d.]*)\s*$",
);
static SCORE: Pattern = Pattern::new(
    r"^\s*System Benchmarks Index Score(?: \(Partial Only\))?\s+(?P<value>\d[\d.]*)\s*$",
);

/// Whether results or the table begin in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = &*lines[0].text;
    text.contains(" s, ") && RESULT.is_in(text) || text.contains("BASELINE") && HEAD.is_in(text)
}

/// Reads consecutive result lines, or the table.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    if HEAD.is_in(&lines[0].text) { table(lines) } else { results(lines) }
}

fn results(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Unixbench);
    let mut used = 0;
    while let Some(line) = lines.get(used) {
        let Some(found) = RESULT.captures(&line.text) else { break };
        let number = value(line, found.name("value"))?;
        block.rows.push(Row::result(
            group(&found, "name"),
            group(&found, "unit"),
            Better::Higher,
            number,
        ));
        let wrapped = lines.get(used + 1).is_some_and(|next| next.text.trim() == "samples)");
        used += if wrapped { 2 } else { 1 };
    }
    block.parameter("tests", block.rows.len().to_string());
    block.finish(used)
}

fn table(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Unixbench);
    let mut indices = Vec::new();
    let mut used = 1;
    while let Some(line) = lines.get(used) {
        if let Some(found) = INDEX.captures(&line.text) {
            let [base, result, index] =
                ["base", "value", "index"].map(|name| value(line, found.name(name)));
            let (base, result, index) = (base?, result?, index?);
            let name = group(&found, "name");
            let computed = 10.0 * result.number / base.number;
            if (computed - index.number).abs() > index.step.mul_add(0.5, computed * 1e-3) {
                block.note(
                    line,
                    format!(
                        "{name}: its index is {}, 10 x result / baseline {computed:.1}",
                        index.number
                    ),
                );
            }
            let row = |what: &str, role, number| {
                Row::result(&format!("{name} {what}"), "", Better::Higher, number).with(role)
            };
            block
                .rows
                .extend([row("result", Role::Monitor, result), row("index", Role::Result, index)]);
            indices.push(computed);
        } else if let Some(found) = SCORE.captures(&line.text) {
            let score = value(line, found.name("value"))?;
            check_score(&mut block, line, score.number, &indices);
            let row = Row::result("index score", "", Better::Higher, score);
            block.rows.push(row.with(Role::Total));
            return block.finish(used + 1);
        } else if !line.text.trim_start().starts_with("===") && !line.is_blank() {
            break;
        }
        used += 1;
    }
    block.note(&lines[0], "incomplete: no index score ends it");
    block.finish(used)
}

/// The score is the geometric mean of the indices.
fn check_score(block: &mut Block, line: &Line<'_>, score: f64, indices: &[f64]) {
    let logarithms: Vec<f64> = indices.iter().map(|index| index.ln()).collect();
    let Ok(mean) = kduel_stats::mean(&logarithms) else { return };
    let computed = mean.exp();
    if (computed - score).abs() > 0.002 * computed {
        let text = format!("its score is {score}, the geometric mean of its indices {computed:.1}");
        block.note(line, text);
    }
}
