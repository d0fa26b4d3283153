//! JUnit's XML: a suite for each experiment, a class for each side.

use super::Report;
use super::outcome::{Case, Outcome, Suite, suites};
use crate::text::escape;

/// The report as XML. Ends with a newline.
pub fn junit(report: &Report<'_>) -> String {
    let suites = suites(report);
    let all: Vec<&Case> = suites.iter().flat_map(|suite| &suite.cases).collect();
    let mut lines = vec![
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_owned(),
        format!("<testsuites name=\"kduel {}\" {}>", xml(&report.info.id.0), counts(&all)),
    ];
    for suite in &suites {
        lines.extend(one_suite(report, suite));
    }
    lines.push("</testsuites>".to_owned());
    lines.join("\n") + "\n"
}

fn one_suite(report: &Report<'_>, suite: &Suite) -> Vec<String> {
    let cases: Vec<&Case> = suite.cases.iter().collect();
    let started = report.info.started.strftime("%Y-%m-%dT%H:%M:%S");
    let name = xml(&suite.name);
    let mut lines =
        vec![format!("  <testsuite name=\"{name}\" timestamp=\"{started}\" {}>", counts(&cases))];
    for case in cases {
        lines.push(format!(
            "    <testcase classname=\"{name}.{}\" name=\"{}\">",
            xml(&case.side),
            xml(&case.name)
        ));
        lines.extend(verdict(case));
        lines.push("    </testcase>".to_owned());
    }
    lines.push("  </testsuite>".to_owned());
    lines
}

fn counts(cases: &[&Case]) -> String {
    let number = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        number(|outcome| matches!(outcome, Outcome::Failed)),
        number(|outcome| matches!(outcome, Outcome::Error(_))),
        number(|outcome| matches!(outcome, Outcome::Skipped(_))),
    )
}

fn verdict(case: &Case) -> Vec<String> {
    let text: Vec<String> =
        std::iter::once(&case.message).chain(&case.details).map(|line| xml(line)).collect();
    let text = text.join("\n");
    match &case.outcome {
        Outcome::Failed => vec![format!(
            "      <failure type=\"regression\" message=\"{}\">{text}</failure>",
            xml(&case.message)
        )],
        Outcome::Error(why) => {
            vec![format!("      <error type=\"error\" message=\"{}\">{text}</error>", xml(why))]
        }
        Outcome::Skipped(why) => vec![
            format!("      <skipped message=\"{}\"/>", xml(why)),
            format!("      <system-out>{text}</system-out>"),
        ],
        Outcome::Passed => vec![format!("      <system-out>{text}</system-out>")],
    }
}

/// Text and attributes: escaped as everywhere, then as XML wants it, without what XML cannot hold.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in escape(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => safe.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_xml_cannot_hold_is_escaped() {
        let evil = "<a b=\"c\">&'\u{1b}\u{ffff}\n]]>";
        let safe = "&lt;a b=&quot;c&quot;&gt;&amp;&apos;\\x1b\\u{ffff}\\x0a]]&gt;";
        assert_eq!(super::xml(evil), safe);
    }
}
