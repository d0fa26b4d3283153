//! Guests of a pair that are there at once, with scripted machines.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use kduel_tests::{AD_HOC, Said, Sandbox};
use serde_json::Value;

const DUET: [&str; 2] = ["--pairing", "duet"];

/// Of each boot in the order they are recorded: name, place, attempt.
fn boots(sandbox: &Sandbox) -> Vec<(String, u64, u64)> {
    let journal = std::fs::read_to_string(sandbox.runs()[0].join("journal.jsonl")).unwrap();
    let boot = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let record = &line["record"];
        let number = |name: &str| record[name].as_u64();
        Some((record["boot"].as_str()?.to_owned(), number("slot")?, number("attempt")?))
    };
    journal.lines().filter_map(boot).collect()
}

#[test]
fn sides_swap_places_and_a_sentinel_has_a_twin() {
    let sandbox = Sandbox::new();
    sandbox.ad_hoc("sides: {b: {factor: {all: 1.5}}}", &DUET).ends_with(1);
    let boots = boots(&sandbox);
    let named = |part: &str| boots.iter().filter(|boot| boot.0.contains(part)).collect::<Vec<_>>();
    for pair in ["b00", "b01", "b02", "b03"] {
        let places: Vec<u64> = named(pair).iter().map(|boot| boot.1).collect();
        assert_eq!(places, [0, 1], "{boots:?}");
    }
    let first = |pair: &str| named(pair)[0].0.clone();
    assert_ne!(first("b00").ends_with("-a"), first("b01").ends_with("-a"));
    let last: Vec<&str> = named("b05").iter().map(|boot| boot.0.as_str()).collect();
    assert_eq!(last.len(), 4);
    assert!(last[2].ends_with("+sentinel") && last[3].ends_with("+twin"), "{last:?}");
    let [first, second] = [last[2], last[3]].map(|name| name.split('+').next().unwrap());
    assert_eq!(first, second, "the same side twice");
}

#[test]
fn a_guest_that_is_lost_keeps_nobody_waiting_and_its_pair_is_booted_again() {
    let sandbox = Sandbox::new();
    let script = "
boots:
  - { side: b, block: 1, attempt: 0, boot-failure: { class: qemu-killed, title: gone } }
  - { side: a, block: 2, attempt: 0, cut-off: { after-lines: 6, failure: { class: ssh-cut, title: cut } } }
  - { side: b, block: 3, boot-failure: { class: panic, title: oops } }
";
    sandbox.ad_hoc(script, &[&DUET[..], &["--anyway"]].concat());
    let boots = boots(&sandbox);
    let attempts = |pair: &str| {
        let own = boots.iter().filter(|boot| boot.0.contains(pair) && !boot.0.contains('+'));
        own.map(|boot| boot.2).collect::<Vec<_>>()
    };
    assert_eq!(attempts("b00"), [0, 0], "{boots:?}");
    assert_eq!(attempts("b01"), [0, 0, 1, 1], "both again");
    assert_eq!(attempts("b02"), [0, 0, 1, 1]);
    assert_eq!(attempts("b03"), [0, 0], "a panic is a result");
}

#[test]
fn a_trial_that_fails_on_one_side_is_not_waited_for_on_the_other() {
    let sandbox = Sandbox::new();
    let script = "boots: [{ side: b, problems: [{ workload: fork-exit, \
                  problem: { kind: unsupported, message: no fork } }] }]";
    let mut run = sandbox.fake(script, &AD_HOC[..5]);
    let said = Said::by(run.args(["fork-exit,sleep", "--quick", "--anyway"]).args(DUET));
    assert!(said.stdout.contains("no fork") && said.stdout.contains("sleep time"), "{said}");
}

#[test]
fn half_a_pair_is_booted_again_as_a_whole() {
    let sandbox = Sandbox::new();
    sandbox.ad_hoc("{}", &[&DUET[..], &["--anyway"]].concat());
    let path = sandbox.runs()[0].join("journal.jsonl");
    let journal = std::fs::read_to_string(&path).unwrap();
    let cut: String = journal.split_inclusive('\n').take(3).collect();
    std::fs::write(&path, cut).unwrap();
    Said::by(&mut sandbox.fake("{}", &["--resume", "@0"]));
    let boots = boots(&sandbox);
    let attempts: Vec<u64> = boots.iter().map(|boot| boot.2).collect();
    assert_eq!(attempts[..7], [0, 0, 0, 1, 1, 0, 0], "{boots:?}");
    assert_eq!(boots.len(), 15);
}

#[test]
fn a_duet_says_so_wherever_it_is_told() {
    let sandbox = Sandbox::new();
    let said = sandbox.ad_hoc("{}", &[&DUET[..], &["--aa"]].concat());
    said.reports(&["duet: the guests of a pair at once", "pairs spread", "shuffled ones"]);
    let json = sandbox.says(&["report", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["experiments"][0]["pairing"], "duet");
    assert!(json["comparisons"][0]["timed"]["pair-sd"].is_number(), "{json}");
}

#[test]
fn what_guests_share_and_exact_runs_know_no_duet() {
    let sandbox = Sandbox::new();
    let words = ["plan", "-a", "debian:bookworm", "-b", "debian:trixie", "--pairing", "duet"];
    let said = sandbox.says(&[&words[..], &["-w", "page-fault"]].concat());
    said.reports(&["refused: a duet would let the guests slow each other: page-fault"]);
    let exact = ["-w", "fork-exit", "--measure", "instructions"];
    let said = sandbox.says(&[&words[..], &exact].concat()).ends_with(2);
    said.tells(&["`pairing` belongs to timed runs"]);
    let odd = ["-w", "fork-exit", "--pairing", "duett"];
    sandbox.says(&[&words[..5], &odd].concat()).ends_with(2).tells(&["duet"]);
}
