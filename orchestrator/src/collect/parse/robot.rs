//! The kernel test robot's table: axes, commits, then base, change and value of every metric with
//! their relative standard deviations.

use kduel_protocol::Better;

use super::block::{Block, Cell, Claimed, Format, Role, Row, Sense, Value};
use super::number::number;
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static COMMIT: Pattern =
    Pattern::new(r#"^\s+(?P<id>[0-9a-f]{7,40}|v\d[\w.-]*) ?\(?"?(?P<subject>.*?)"?\)?\s*$"#);
static IDS: Pattern =
    Pattern::new(r"^\s*(?:[0-9a-f]{7,40}|v\d[\w.-]*)(?:\s+(?:[0-9a-f]{7,40}|v\d[\w.-]*))+\s*$");
static RULER: Pattern = Pattern::new(r"^\s*-{7,}(?:\s+-{7,})+\s*$");
static LEGEND: Pattern = Pattern::new(r"^\s*(?:%stddev\b.*|[\s|\\/]+)$");
static ROW: Pattern = Pattern::new(
    r"^\s*(?P<base>-?\d[\d.]*(?:e[-+]?\d+)?)(?:\s*(?:±|\+-|\+/-|\?|[^\x00-\x7f]{1,3})\s*(?P<spread>\d+)\s?%)?(?P<rest>(?:\s+[-+]\d[\d.]*%?\s+-?\d[\d.]*(?:e[-+]?\d+)?(?:\s*(?:±|\+-|\+/-|\?|[^\x00-\x7f]{1,3})\s*\d+\s?%)?)+)\s+(?P<metric>[A-Za-z]\S*)\s*$",
);
static PAIR: Pattern = Pattern::new(
    r"(?P<change>[-+]\d[\d.]*)(?P<sign>%?)\s+(?P<value>-?\d[\d.]*(?:e[-+]?\d+)?)(?:\s*(?:±|\+-|\+/-|\?|[^\x00-\x7f]{1,3})\s*(?P<spread>\d+)\s?%)?",
);

/// Metrics of these are watched beside the benchmark.
const MONITORS: &[&str] = &[
    "boot-time",
    "cpuidle",
    "interrupts",
    "iostat",
    "meminfo",
    "mpstat",
    "numa-meminfo",
    "numa-numastat",
    "numa-vmstat",
    "perf-profile",
    "perf-sched",
    "perf-stat",
    "proc-vmstat",
    "sched_debug",
    "slabinfo",
    "softirqs",
    "time",
    "turbostat",
    "uptime",
    "vmstat",
];

/// Words in the names of metrics of which less is better.
const LOWER: &[&str] = &["time", "latency", "_us", "usec", "elapsed", "seconds", "delay"];

/// Whether axes, commits or the table itself begin in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim_end();
    is_axes(lines)
        || text.trim_start() == "commit:"
        || text.contains("-------") && RULER.is_in(text)
}

/// A line of names, one of values, and the commits.
fn is_axes(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim();
    text.ends_with(':')
        && text.contains('/')
        && !text.contains(' ')
        && lines.iter().skip(2).take(3).any(|line| line.text.trim() == "commit:")
}

/// Reads one table.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Robot);
    let mut at = 0;
    if is_axes(lines) {
        axes(&mut block, lines);
        at = 2;
        while lines.get(at).is_some_and(|line| line.text.trim() != "commit:") {
            at += 1;
        }
    }
    let mut commits = Vec::new();
    if lines.get(at).is_some_and(|line| line.text.trim() == "commit:") {
        at += 1;
        while let Some(found) = lines.get(at).and_then(|line| COMMIT.captures(&line.text)) {
            commits.push(
                format!("{} {}", group(&found, "id"), group(&found, "subject")).trim().to_owned(),
            );
            at += 1;
        }
    }
    let ruler = (at..lines.len().min(at + 4)).find(|at| RULER.is_in(&lines[*at].text));
    let Some(ruler) = ruler else {
        block.note(&lines[0], "incomplete: commits without a table");
        return (!commits.is_empty()).then(|| block.finish(at)).flatten();
    };
    let ids = lines[at..ruler].iter().find(|line| IDS.is_in(&line.text));
    let columns = lines[ruler].text.split_whitespace().count();
    at = rows(&mut block, lines, ruler + 1, columns);
    if block.rows.is_empty() {
        block.note(&lines[0], "incomplete: a head without rows");
    }
    let named = ids.map(|line| line.text.split_whitespace().map(str::to_owned).collect());
    block.sides = match (commits.len() == columns, named) {
        (true, _) => commits,
        (false, Some(named)) => named,
        (false, None) => (1..=columns).map(|number| format!("commit {number}")).collect(),
    };
    block.sides.resize(columns, "commit".to_owned());
    block.parameter("rows", block.rows.len().to_string());
    block.finish(at)
}

fn axes(block: &mut Block, lines: &[Line<'_>]) {
    let split = |line: &Line<'_>| -> Vec<String> {
        line.text.trim().trim_end_matches(':').split('/').map(str::to_owned).collect()
    };
    let (names, values) = (split(&lines[0]), split(&lines[1]));
    if names.len() != values.len() {
        block.note(&lines[1], format!("{} axes and {} values", names.len(), values.len()));
    }
    block.parameters.extend(names.into_iter().zip(values));
}

/// Reads rows from line `at` on, and says where they end.
fn rows(block: &mut Block, lines: &[Line<'_>], mut at: usize, columns: usize) -> usize {
    let mut end = at;
    while at < lines.len() {
        let line = &lines[at];
        let wrapped = || Line::joined(&lines[at..lines.len().min(at + 2)]);
        if let Some(row) = row(line, columns) {
            block.rows.push(row);
            at += 1;
            end = at;
        } else if LEGEND.is_in(&line.text) {
            at += 1;
            if !line.is_blank() {
                end = at;
            }
        } else if let Some(row) = row(&wrapped(), columns) {
            block.rows.push(row);
            at += 2;
            end = at;
        } else {
            break;
        }
    }
    end
}

fn row(line: &Line<'_>, columns: usize) -> Option<Row> {
    let found = ROW.captures(&line.text)?;
    let spread = |text: &str| number(text).map(|spread| spread.value);
    let base = Cell {
        spread: spread(group(&found, "spread")),
        ..Cell::of(value(line, found.name("base"))?)
    };
    let rest = found.name("rest")?;
    let mut cells = vec![base];
    let mut points = false;
    for pair in PAIR.all(rest.as_str()) {
        let read = |name: &str| {
            let found = pair.name(name)?;
            let number = number(found.as_str())?;
            let line = line.number_at(rest.start() + found.start());
            Some(Value { number: number.value, step: number.step, line })
        };
        points = group(&pair, "sign").is_empty();
        let sense = if points { Sense::Points } else { Sense::Raw };
        let claimed = Some(Claimed { value: read("change")?, sense });
        let spread = spread(group(&pair, "spread"));
        cells.push(Cell { claimed, spread, ..Cell::of(read("value")?) });
    }
    let metric = group(&found, "metric").to_owned();
    let program = metric.split('.').next().unwrap_or_default();
    let role = if MONITORS.contains(&program) { Role::Monitor } else { Role::Result };
    let lower = LOWER.iter().any(|word| metric.contains(word));
    let better = if lower { Better::Lower } else { Better::Higher };
    let unit = if points { "%" } else { "" }.to_owned();
    let better = (role == Role::Result).then_some(better);
    (cells.len() == columns).then_some(Row { metric, unit, better, role, cells })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_read_however_a_mailer_mangled_their_sign() {
        for sign in ["±", "+-", "+/-", "?", "Â±", "\u{fffd}"] {
            let text =
                format!("     45000 {sign}  8%     +44.6%      65070 {sign} 9%  a.throughput");
            let row = row(&Line::new(1, text), 2).unwrap();
            assert_eq!(
                [row.cells[0].spread, row.cells[1].spread],
                [Some(8.0), Some(9.0)],
                "{sign}"
            );
        }
    }

    #[test]
    fn a_metric_on_the_next_line_belongs_to_the_row() {
        let lines =
            ["aaaaaaa bbbbbbb", "------- --------", " 1.0 +5.0% 1.05", "   a.ops", " 2 +1.0 3 b.c"];
        let lines: Vec<Line<'_>> =
            lines.into_iter().enumerate().map(|(index, text)| Line::new(index + 1, text)).collect();
        let block = read(&lines[1..]).unwrap();
        let metrics: Vec<&str> = block.rows.iter().map(|row| row.metric.as_str()).collect();
        assert_eq!(metrics, ["a.ops", "b.c"]);
        assert_eq!(block.used, 4);
    }
}
