//! Functions of timed runs, from samples: candidate minus base, the surest differences first.

use std::collections::BTreeMap;

use crate::analyse::{ChainSums, SampledWorkload};

use super::page::{Look, Page};
use super::profile::{short, signed};

/// A difference of so many standard errors is marked: with some hundred functions one in a thousand
/// differs so far by chance.
const SURE: f64 = 3.3;

/// All functions of all workloads. Ends with a newline.
pub fn sampled_profile(workloads: &[SampledWorkload]) -> String {
    let mut page = Page::new(Look::default());
    if workloads.is_empty() {
        page.line("no profile: nothing was sampled in this timed run; --monitor profile samples,");
        page.line("and an exact run (--measure instructions) counts every instruction");
    }
    for one in workloads {
        let Some(((base, first), others)) = one.sides.split_first() else { continue };
        for (side, second) in others {
            page.line(&format!(
                "{}: {}, {side} minus {base}, sampled ({}): ns of CPU time per operation",
                one.experiment, one.workload, one.clock
            ));
            table(&mut page, first, second, one.period_ns);
            if one.lost > 0 {
                page.line(&format!("{} samples were lost", one.lost));
            }
            page.blank();
        }
    }
    page.finish()
}

/// Time in the function itself, by whose it is and its name.
fn functions(sums: &ChainSums) -> BTreeMap<(&str, &str), u64> {
    let mut functions = BTreeMap::new();
    for (chain, ns) in &sums.chains {
        let whose = chain.first().map_or("", String::as_str);
        let name = chain.last().map_or("", String::as_str);
        *functions.entry((whose, name)).or_default() += ns;
    }
    functions
}

struct Row<'a> {
    whose: &'a str,
    name: &'a str,
    /// Samples of both sides.
    samples: [f64; 2],
    /// Nanoseconds per operation.
    each: [f64; 2],
    /// Standard error of the difference.
    error: f64,
}

impl Row<'_> {
    fn difference(&self) -> f64 {
        self.each[1] - self.each[0]
    }

    fn errors(&self) -> f64 {
        if self.error > 0.0 { self.difference() / self.error } else { 0.0 }
    }
}

fn rows<'a>(base: &'a ChainSums, value: &'a ChainSums, period_ns: f64) -> Vec<Row<'a>> {
    let (first, second) = (functions(base), functions(value));
    let names: std::collections::BTreeSet<_> = first.keys().chain(second.keys()).copied().collect();
    let ops = [base.ops.max(1) as f64, value.ops.max(1) as f64];
    let row = |(whose, name): (&'a str, &'a str)| {
        let ns = [&first, &second].map(|all| all.get(&(whose, name)).map_or(0.0, |ns| *ns as f64));
        let samples = ns.map(|ns| (ns / period_ns).round());
        let each = [ns[0] / ops[0], ns[1] / ops[1]];
        // Samples are counted as rare events are: the variance is their number.
        let variance = |side: usize| samples[side].max(1.0) * (period_ns / ops[side]).powi(2);
        Row { whose, name, samples, each, error: (variance(0) + variance(1)).sqrt() }
    };
    let mut rows: Vec<Row<'a>> = names.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.errors().abs().total_cmp(&a.errors().abs()).then(a.name.cmp(b.name)));
    rows
}

fn table(page: &mut Page, base: &ChainSums, value: &ChainSums, period_ns: f64) {
    page.line("+- is one standard error of counting; ! where the change is beyond 3.3 of them");
    page.line(&format!(
        "  {:>10} {:>9} {:>10} {:>10} {:>8} {:>8}  function",
        "change", "+-", "base", "value", "samples", "samples"
    ));
    for row in rows(base, value, period_ns) {
        let mark = if row.errors().abs() > SURE { "!" } else { " " };
        let whose = if row.whose == "own" { "" } else { " (other tasks)" };
        page.line(&format!(
            "{mark} {:>10} {:>9} {:>10} {:>10} {:>8} {:>8}  {}{whose}",
            signed(row.difference()),
            short(row.error),
            short(row.each[0]),
            short(row.each[1]),
            row.samples[0],
            row.samples[1],
            row.name
        ));
    }
    page.line("code with interrupts switched off is seen where they are switched on again");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(ops: u64, chains: &[(&str, u64)]) -> ChainSums {
        let chain =
            |(names, ns): &(&str, u64)| (names.split(';').map(str::to_owned).collect(), *ns);
        ChainSums { ops, chains: chains.iter().map(chain).collect(), ..ChainSums::default() }
    }

    #[test]
    fn what_is_sure_comes_first_and_is_marked() {
        let base = sums(100, &[("own;a;f", 100_000), ("own;g", 50_000), ("other tasks;f", 1000)]);
        let value = sums(100, &[("own;a;f", 400_000), ("own;b;g", 51_000)]);
        let one = SampledWorkload {
            experiment: "e".into(),
            workload: "fork-exit".into(),
            clock: "cpu-clock".into(),
            period_ns: 1000.0,
            lost: 2,
            sides: vec![("base".into(), base), ("patched".into(), value)],
        };
        let text = sampled_profile(&[one]);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert!(lines[0].starts_with('!') && lines[0].ends_with("  f"), "{text}");
        assert!(lines[1..].iter().all(|line| !line.starts_with('!')), "{text}");
        assert!(text.contains("f (other tasks)") && text.contains("2 samples were lost"), "{text}");
        assert!(sampled_profile(&[]).contains("--monitor profile"));
    }
}
