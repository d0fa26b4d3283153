use serde::Serialize;

use crate::analyse::{Answer, ClaimAnswer, answer_claims};
use crate::plan::Prognosis;
use crate::text::escape;

use super::Report;
use super::number::{percent, signed_percent};
use super::page::Page;

/// What became of each claim of the report that is tried; nothing if there is none.
pub(super) fn claims(page: &mut Page, report: &Report<'_>) {
    let lines = claim_lines(report);
    if lines.is_empty() {
        return;
    }
    page.blank();
    page.line("claims of the report");
    for (answer, sentence) in lines {
        page.paragraph(&format!("  {answer:<15} "), [sentence.into()]);
    }
}

/// The same for a page: each claim's answer and its sentence, not yet made safe.
pub(super) fn claim_lines(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let answers = answer_claims(report.plan, &report.analysis.comparisons);
    answers.iter().map(|answer| (answer.answer.words(), sentence(answer))).collect()
}

fn sentence(answer: &ClaimAnswer<'_>) -> String {
    let claim = answer.claim;
    let mut text =
        format!("{} of {}: claimed {}", claim.metric, claim.side, signed_percent(claim.change));
    if let Some(found) = answer.found
        && let Some(change) = found.change
        && answer.answer != Answer::NotComparable
    {
        let series = &found.series;
        text += &format!(", {} {} {}", series.workload, series.metric, signed_percent(change));
    }
    if answer.answer == Answer::NotSeen {
        text += &match answer.could_see {
            Some(size) => format!("; could have seen {}", percent(size)),
            None => "; too little was measured to see any change".to_owned(),
        };
    }
    if !answer.reason.is_empty() {
        text += &format!(" ({})", answer.reason);
    }
    if answer.answer == Answer::NotComparable
        && let Some(prognosis) = claim.prognosis
    {
        text += &format!("; prognosis was {}", prognosis.word());
    }
    text
}

/// A claim and its answer, for programs.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ClaimJson {
    experiment: String,
    side: String,
    metric: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<String>,
    claimed: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prognosis: Option<Prognosis>,
    answer: Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    could_see: Option<f64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

/// Every claim with its answer.
pub(super) fn claims_json(report: &Report<'_>) -> Vec<ClaimJson> {
    let answers = answer_claims(report.plan, &report.analysis.comparisons);
    let json = |answer: &ClaimAnswer<'_>| ClaimJson {
        experiment: escape(answer.experiment),
        side: escape(&answer.claim.side),
        metric: escape(&answer.claim.metric),
        workload: answer.claim.workload.as_deref().map(escape),
        claimed: answer.claim.change,
        prognosis: answer.claim.prognosis,
        answer: answer.answer,
        found: answer.found.and_then(|found| found.change),
        could_see: answer.could_see,
        reason: escape(&answer.reason),
    };
    answers.iter().map(json).collect()
}
