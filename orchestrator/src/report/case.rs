//! What must come out of a case, and what did.

use serde_json::{Value, json};

use crate::analyse::{Found, Judged};
use crate::plan::{Expectation, Subject, Wanted};
use crate::text::escape;

use super::number::{quantity, signed_percent};
use super::page::{Look, Page};

/// Each expectation with what was found, those that did not come out marked. `lead` stands before all
/// lines.
pub fn expectations(judged: &[Judged<'_>], lead: &str, look: Look) -> String {
    let mut page = Page::new(look);
    for one in judged {
        let mark = if one.held { "yes" } else { "NO " };
        page.paragraph(&format!("{lead}{mark}  wanted  "), [wanted(one.expectation).into()]);
        page.paragraph(&format!("{lead}     found   "), [found(&one.found).into()]);
    }
    page.finish()
}

fn wanted(expectation: &Expectation) -> String {
    let what = subject(expectation);
    match &expectation.wanted {
        Wanted::Order(sides) => format!("{what}: {}", sides.join(" < ")),
        Wanted::Side { side, outcomes, change, calls } => {
            let mut parts = Vec::new();
            if !outcomes.is_empty() {
                parts.push(outcomes.join(" or "));
            }
            parts.extend(change.as_ref().map(ToString::to_string));
            parts.extend(calls.as_ref().map(|calls| format!("{calls} calls")));
            format!("{what} of {side}: {}", parts.join(", "))
        }
    }
}

/// `fork: fork-exit locked`.
fn subject(expectation: &Expectation) -> String {
    let Expectation { experiment, workload, .. } = expectation;
    let what = match &expectation.subject {
        Subject::Metric(None) => String::new(),
        Subject::Metric(Some(name)) | Subject::Count(name) => format!(" {name}"),
        Subject::Function(name) => format!(" {name}()"),
        Subject::Column(monitor, column) => format!(" {} {column}", monitor.name()),
    };
    format!("{experiment}: {workload}{what}")
}

fn found(found: &Found) -> String {
    let shown =
        |value: f64, unit: &Option<String>| quantity(value, unit.as_deref().unwrap_or("count"));
    match found {
        Found::Nothing(why) => format!("nothing: {why}"),
        Found::Order(values, unit) => {
            let parts =
                values.iter().map(|(side, value)| format!("{side} {}", shown(*value, unit)));
            parts.collect::<Vec<_>>().join(", ")
        }
        Found::Side { outcomes, base, value, change, unit, calls } => {
            let mut parts: Vec<String> = outcomes.first().cloned().into_iter().collect();
            if base.is_finite() && value.is_finite() {
                let change = match unit {
                    Some(_) => signed_percent(*change),
                    // Counts are told apart by how many there are more.
                    None => format!("{:+.4}", value - base)
                        .trim_end_matches(['0'])
                        .trim_end_matches('.')
                        .to_owned(),
                };
                parts.push(format!("{change} ({} -> {})", shown(*base, unit), shown(*value, unit)));
            }
            if let Some([base, value]) = calls {
                parts.push(format!(
                    "calls {} -> {}",
                    quantity(*base, "count"),
                    shown(*value, &None)
                ));
            }
            parts.join(", ")
        }
    }
}

/// The same for programs.
pub fn expectation_json(judged: &Judged<'_>) -> Value {
    let expectation = judged.expectation;
    let mut value = json!({
        "experiment": escape(&expectation.experiment),
        "workload": escape(&expectation.workload),
        "wanted": escape(&wanted(expectation)),
        "found": escape(&found(&judged.found)),
        "held": judged.held,
    });
    if let Found::Side { base, value: of_side, change, .. } = &judged.found {
        let finite = |number: f64| number.is_finite().then_some(number);
        value["base"] = json!(finite(*base));
        value["value"] = json!(finite(*of_side));
        value["change"] = json!(finite(*change));
    }
    value
}
