//! The Kernel Test Anything Protocol, version 1: one test for each experiment, with subtests.

use super::Report;
use super::outcome::{BOOTS, Case, Outcome, Suite, suites};

/// The report as KTAP. Ends with a newline.
pub fn ktap(report: &Report<'_>) -> String {
    let suites = suites(report);
    let mut lines = vec!["KTAP version 1".to_owned(), format!("1..{}", suites.len())];
    for (place, suite) in suites.iter().enumerate() {
        lines.push("  KTAP version 1".to_owned());
        lines.push(format!("  1..{}", suite.cases.len()));
        for (place, case) in suite.cases.iter().enumerate() {
            let lines_of = one(place + 1, case);
            lines.extend(lines_of.into_iter().map(|line| format!("  {line}")));
        }
        let (result, directive) = whole(suite);
        let name = description(&suite.name);
        lines.push(format!("{result} {} {name}{directive}", place + 1));
    }
    lines.join("\n") + "\n"
}

fn one(number: usize, case: &Case) -> Vec<String> {
    let mut lines: Vec<String> = std::iter::once(&case.message)
        .chain(&case.details)
        .map(|line| format!("# {line}"))
        .collect();
    let name = description(&format!("{}: {}", case.side, case.name));
    lines.push(match &case.outcome {
        Outcome::Passed => format!("ok {number} {name}"),
        Outcome::Failed => format!("not ok {number} {name}"),
        Outcome::Error(why) => format!("not ok {number} {name} # ERROR {why}"),
        Outcome::Skipped(why) => format!("ok {number} {name} # SKIP {why}"),
    });
    lines
}

/// A test fails if one of its subtests does, and is skipped if no comparison decided anything.
fn whole(suite: &Suite) -> (&'static str, &'static str) {
    let bad = |case: &Case| matches!(case.outcome, Outcome::Failed | Outcome::Error(_));
    let decided = |case: &Case| case.name != BOOTS && case.outcome == Outcome::Passed;
    match (suite.cases.iter().any(bad), suite.cases.iter().any(decided)) {
        (true, _) => ("not ok", ""),
        (false, true) => ("ok", ""),
        (false, false) => ("ok", " # SKIP nothing was decided"),
    }
}

/// A hash sign would begin a directive.
fn description(name: &str) -> String {
    name.replace('#', "\\x23")
}
