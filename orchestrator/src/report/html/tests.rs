//! What holds for any page; a real run's is kept beside the fixtures.

use super::*;
use crate::analyse::profile::RunProfiles;
use crate::analyse::{Fate, analyse, points};
use crate::boot::Accel;
use crate::collect::testing::{completed, failed, pairs, plan, trial};
use crate::collect::{BootOutcome, BootRecord, BootResult, Distribution, RunInfo};
use crate::fault::FailureClass;
use crate::plan::Plan;
use kduel_protocol::Sample;

fn page(beside: &Beside) -> String {
    let plan = plan(&["base", "patched"], 3);
    let mut records = pairs("patched", &[1.0; 3]);
    for record in records.iter_mut().filter(|record| record.side == "patched") {
        let title = "panic: </script><img src=//x onerror=1>\u{1b}]0;owned\u{7}";
        *record = failed("fork", "patched", record.block, FailureClass::Panic, title);
    }
    let analysis = analyse(&plan, &records);
    let info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
    let report =
        Report { info: &info, plan: &plan, analysis: &analysis, profiles: &RunProfiles::default() };
    html(&report, beside)
}

#[test]
fn what_a_kernel_says_as_it_dies_stays_text() {
    let page = page(&Beside::default());
    assert!(
        page.contains("panic: &lt;/script&gt;&lt;img src=//x onerror=1&gt;\\x1b]0;owned"),
        "{page}"
    );
    assert!(!page.contains("<img") && page.chars().all(|c| c == '\n' || !c.is_control()));
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn a_graph_is_a_document_of_its_own() {
    let graph = FlameGraph {
        title: "patched against <base>".into(),
        key: "key".into(),
        svg: "<?xml?><svg width=\"1\" height=\"398\"><text>\"a&amp;b\u{202e}</text></svg>".into(),
    };
    let page = page(&Beside { graphs: vec![graph], ..Beside::default() });
    assert!(page.contains("height=\"398\" srcdoc=\"&lt;!DOCTYPE html&gt;"), "{page}");
    assert!(page.contains("&lt;svg width=&quot;1&quot;") && page.contains("a&amp;amp;b\\u{202e}"));
    assert!(!page.contains("&lt;?xml") && page.contains("patched against &lt;base&gt;"));
}

/// As the command makes it, without what lies in other files.
fn page_of(plan: &Plan, records: &[BootRecord]) -> String {
    let analysis = analyse(plan, records);
    let mut beside = Beside::default();
    for place in charted(&analysis) {
        beside.points.insert(place, points(plan, records, &analysis.comparisons[place]));
    }
    let mut info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
    info.kduel = "0.0.0".into();
    let profiles = RunProfiles::default();
    html(&Report { info: &info, plan, analysis: &analysis, profiles: &profiles }, &beside)
}

fn result_mut(record: &mut BootRecord) -> &mut BootResult {
    match &mut record.outcome {
        BootOutcome::Completed(result) => result,
        BootOutcome::Failed(failure) => panic!("{failure}"),
    }
}

/// Eight pairs, a minute each; of one the candidate hung. Single operations of every boot.
fn run() -> (Plan, Vec<BootRecord>) {
    let factors = [1.15, 1.14, 1.16, 1.17, 1.13, 1.15, 1.155, 1.145];
    let (plan, mut records) = (plan(&["base", "patched"], 8), pairs("patched", &factors));
    for record in &mut records {
        let scale = if record.side == "base" { 1.0 } else { 1.15 };
        result_mut(record).distributions.push(Distribution {
            trial: 0,
            iteration: 0,
            metric: "time".into(),
            unit: "ns".into(),
            values: (1..=5).map(|i| 100_000.0 * scale * f64::from(i)).collect(),
        });
    }
    records[5] = failed("fork", "patched", 2, FailureClass::SilentHang, "nothing for 60 s");
    for (place, record) in (0_i64..).zip(&mut records) {
        record.started = jiff::Timestamp::from_second(1_796_000_000 + 30 * place).unwrap();
    }
    (plan, records)
}

#[test]
fn the_page_of_a_timed_run_is_the_same_again() {
    let (plan, records) = run();
    let page = page_of(&plan, &records);
    assert_eq!(page, page_of(&plan, &records));
    let body = page.split("</style>").nth(1).unwrap().split("<script>").next().unwrap();
    insta::assert_snapshot!(body);
}

#[test]
fn every_chart_is_named_and_every_name_is_its_own() {
    let (plan, records) = run();
    let page = page_of(&plan, &records);
    let after = |what: &'static str| page.split(what).skip(1).map(|part| part.split('"').next());
    let ids: Vec<&str> = after(" id=\"").flatten().collect();
    let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), distinct.len(), "{ids:?}");
    let named: Vec<&str> = after("aria-labelledby=\"").flatten().collect();
    // The axis and a strip, and four charts.
    assert_eq!((page.matches("<svg").count(), named.len()), (6, 6));
    assert!(named.iter().flat_map(|names| names.split(' ')).all(|name| ids.contains(&name)));
}

#[test]
fn names_stay_text_wherever_they_stand() {
    let evil = "</title></svg><script>\"'&\u{1b}[2J\u{202e}";
    let sides = ["base", evil];
    let mut plan = plan(&sides, 8);
    plan.experiments[0].name = evil.into();
    plan.experiments[0].topology_name = evil.into();
    plan.experiments[0].trials[0].workload = evil.into();
    plan.experiments[0].sides[0].kernel_name = evil.into();
    let boot = |block: usize, side: &str, value: f64| {
        let mut record = completed(evil, side, block, &[(evil, value); 3]);
        let result = result_mut(&mut record);
        result.samples.iter_mut().for_each(|sample| sample.unit = evil.into());
        result.facts.release = evil.into();
        result.distributions.push(Distribution {
            trial: 0,
            iteration: 0,
            metric: evil.into(),
            unit: evil.into(),
            values: vec![1.0, 2.0],
        });
        record
    };
    let mut records: Vec<BootRecord> =
        (0..7).flat_map(|block| sides.map(|side| boot(block, side, 1.0 + block as f64))).collect();
    records.push(boot(7, "base", 1.0));
    records.push(failed(evil, evil, 7, FailureClass::Panic, evil));
    let page = page_of(&plan, &records);
    assert!(page.matches("<svg").count() >= 6, "{page}");
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.chars().all(|c| c == '\n' || !c.is_control()) && !page.contains('\u{202e}'));
    // Nothing that came from outside ends an attribute or begins an element.
    let body = page.split("</style>").nth(1).unwrap();
    assert!(!body.contains("&\u{1b}") && !body.contains("\"'&"), "{body}");
}

#[test]
fn much_of_everything_is_thinned_and_said_to_be() {
    let mut plan = plan(&["base", "patched"], 150);
    plan.experiments[0].trials = (0..200).map(|id| trial(id, &format!("w{id}"))).collect();
    let mut records = Vec::new();
    for (block, side) in (0..150).flat_map(|block| ["base", "patched"].map(|side| (block, side))) {
        let mut record = completed("fork", side, block, &[("time", 100.0); 3]);
        let result = result_mut(&mut record);
        let first = result.samples[0].clone();
        let of = |trial: u32, iteration: u32| Sample {
            trial,
            iteration,
            value: 100.0 + f64::from(trial) + (block % 7) as f64,
            ..first.clone()
        };
        result.samples =
            (0..200).flat_map(|t| (0..3).map(move |i| (t, i))).map(|(t, i)| of(t, i)).collect();
        let values = (0..3000).map(|value| f64::from(value) + block as f64).collect();
        let (metric, unit) = ("time".to_owned(), "ns".to_owned());
        result.distributions = vec![Distribution { trial: 0, iteration: 0, metric, unit, values }];
        records.push(record);
    }
    let page = page_of(&plan, &records);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    for said in [
        "188 more without a card: ",
        "50 more comparisons not shown",
        "184 of 200 comparisons, none worse than these, are not drawn",
        "30 more not drawn",
        "30 more are in the run&#39;s folder",
    ] {
        let said = said.replace("&#39;", "'");
        assert!(page.contains(&said), "no `{said}`");
    }
}

#[test]
fn pairs_that_do_not_count_are_marked_and_say_why() {
    let (plan, records) = run();
    let analysis = analyse(&plan, &records);
    let mut found = points(&plan, &records, &analysis.comparisons[0]);
    found.pairs[0].fate = Fate::Contaminated("host <busy>".into());
    found.pairs[5].fate = Fate::Sentinel;
    let beside = Beside { points: BTreeMap::from([(0, found)]), ..Beside::default() };
    let info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
    let profiles = RunProfiles::default();
    let page = html(
        &Report { info: &info, plan: &plan, analysis: &analysis, profiles: &profiles },
        &beside,
    );
    let order = page.split("id=\"c0-order\"").nth(1).unwrap().split("</svg>").next().unwrap();
    assert_eq!(order.matches("contaminated: host &lt;busy&gt;").count(), 2, "{order}");
    assert_eq!(order.matches("dropped: patched: guest hangs silently").count(), 2);
    assert_eq!(order.matches("the same side twice").count(), 2);
    assert!(order.contains("8 pairs of base and patched, 3 of them marked as not counted"));
    for key in
        ["k-ring\"></i> contaminated", "\u{d7}</i> dropped", "\u{25c7}</i> the same side twice"]
    {
        assert!(page.contains(key), "{key}");
    }
    // Only what counts is among the changes; a sentinel joins no two sides.
    let part = |id: &str| {
        let chart = page.split(&format!("id=\"c0-{id}\"")).nth(1).unwrap();
        chart.split("</svg>").next().unwrap().to_owned()
    };
    assert_eq!(part("changes").matches("class=\"each\"").count(), 5);
    assert_eq!(part("pairs").matches("class=\"pair ").count(), 6);
    assert_eq!(part("pairs").matches("class=\"pair lost\"").count(), 1);
}
