//! The table of the method, simulated, beside what it must come to: `cargo xtask bench method`.

use std::io::{self, Write};
use std::process::ExitCode;

use kduel_stats::simulate::{Row, TABLE_PAIRS, TABLE_RATE, Tally, table};

fn main() -> io::Result<ExitCode> {
    let campaigns = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let mut out = io::stdout().lock();
    writeln!(out, "{campaigns} campaigns a row, margin 0.02; each cell: simulated (to be met)\n")?;
    writeln!(
        out,
        "effect  pair noise                      {:<15} {:<15} {:<15} {:<15} wrong  covered",
        "flagged", "no change", "inconclusive", "mean pairs"
    )?;
    let mut missed = 0;
    for (index, row) in table().iter().enumerate() {
        let found = row.simulate(campaigns, index as u64 + 1);
        missed += usize::from(!row.is_met(&found));
        write_row(&mut out, row, &found)?;
    }
    writeln!(
        out,
        "\nwithin {TABLE_RATE} on rates and {TABLE_PAIRS} on pairs: {} of 7",
        7 - missed
    )?;
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_row(out: &mut impl Write, row: &Row, found: &Tally) -> io::Result<()> {
    let [flagged, no_change, inconclusive, pairs] = row.expected;
    let rate = |found: f64, expected: f64| format!("{found:.4} ({expected:.3})");
    let cells = [
        rate(found.flagged, flagged),
        rate(found.no_change, no_change),
        rate(found.inconclusive, inconclusive),
        format!("{:.2} ({pairs})", found.pairs),
    ];
    let [a, b, c, d] = cells;
    let (change, words) = (row.change * 100.0, row.words);
    let (wrong, covered) = (found.wrong, found.covered);
    let missed = if row.is_met(found) { "" } else { "  missed" };
    writeln!(
        out,
        "{change:+.0} %    {words:<31} {a:<15} {b:<15} {c:<15} {d:<15} {wrong:.4}  {covered:.3}{missed}"
    )
}
