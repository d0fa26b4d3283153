use super::{Finding, State};

/// Columns before what was found.
const LEAD: usize = 25;

/// Findings for people, what asks for something with why and how to change it, and what the host does
/// not tell in one line.
pub fn render(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings.iter().filter(|finding| finding.state != State::Absent) {
        let found = finding.found.as_deref().unwrap_or_default();
        text.push_str(&format!("{:<8} {:<15} {found}\n", finding.state.word(), finding.what));
        if !finding.state.asks() {
            continue;
        }
        for line in finding.effect.into_iter().chain(finding.fix.as_deref()) {
            text.push_str(&format!("{:LEAD$}{line}\n", ""));
        }
    }
    if findings.iter().any(|finding| finding.state == State::Moot) {
        text.push_str("moot: would matter with kvm only\n");
    }
    let absent = names(findings, |finding| finding.state == State::Absent);
    if !absent.is_empty() {
        text.push_str(&format!("this host does not tell: {absent}\n"));
    }
    text.push_str(&tunable(findings));
    text
}

fn tunable(findings: &[Finding]) -> String {
    let names = names(findings, |finding| finding.tunable);
    match names.is_empty() {
        true => String::new(),
        false => {
            format!("`sudo kduel tune apply NAME…` changes, until `kduel tune undo`: {names}\n")
        }
    }
}

fn names(findings: &[Finding], wanted: impl Fn(&Finding) -> bool) -> String {
    let chosen = findings.iter().filter(|finding| wanted(finding));
    chosen.map(|finding| finding.what).collect::<Vec<_>>().join(", ")
}
