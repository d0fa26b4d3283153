//! What whole commands print, word for word. What differs from run to run is replaced by as many
//! marks, so that lines stay as wide as they were.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use kduel_tests::{AD_HOC, Said, Sandbox};
use regex::Regex;

/// Everything the command said, without what no two runs share.
fn shown(sandbox: &Sandbox, said: &Said) -> String {
    let Said { code, stdout, stderr } = said;
    let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    let mut text = format!("exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}");
    // Lines that are broken by the length of what only this host has.
    for pattern in [r"(?m)^(run:   ).*\n(?: {7}.*\n)*", r"(?m)^(again: ).*\n"] {
        let pattern = Regex::new(pattern).expect("a pattern");
        text = pattern.replace_all(&text, "${1}…\n").into_owned();
    }
    for pattern in [
        r"\d{8}-\d{6}-[0-9a-f]{4}",
        r"(?:ready|done|failed) after \d+\.\d s",
        r"\d:\d\d (?:elapsed|left)",
    ] {
        let mark = |c: char| if c.is_ascii_digit() { '#' } else { c };
        let marks = |found: &regex::Captures<'_>| found[0].chars().map(mark).collect::<String>();
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, marks).into_owned();
    }
    let id = Regex::new(r"########-######-[0-9a-f#]{4}").expect("a pattern");
    let text = id.replace_all(&text, "########-######-####");
    text.replace(&sandbox.work().display().to_string(), "WORK")
        .replace(&sandbox.state().display().to_string(), "STATE")
}

macro_rules! golden {
    ($sandbox:expr, $said:expr) => {
        insta::assert_snapshot!(shown(&$sandbox, &$said.is_plain_text()))
    };
}

#[test]
fn a_regression() {
    let sandbox = Sandbox::new();
    let script = "{noise: 0.02, sides: {b: {factor: {all: 1.25}}}}";
    golden!(sandbox, sandbox.ad_hoc(script, &[]));
}

#[test]
fn an_inconclusive_sweep_with_knobs() {
    let document = "
version: 1
experiments:
  pipe:
    sides:
      base: debian:bookworm
      tuned: { kernel: debian:bookworm, sysctl: { kernel.a: 1 }, cmdline: [quiet] }
    topology: 2s4c
    workloads: [{ pipe-roundtrip: { bytes: [1, 4096] } }]
";
    let sandbox = Sandbox::new();
    golden!(sandbox, sandbox.run_document(document, "noise: 0.5", &["--quick", "--strict"]));
}

#[test]
fn a_kernel_that_panics() {
    let script = "
boots:
- {side: b, console: [booting, \"[ 1.0] \\e[31mBUG\", \"[ 1.1] Kernel panic - not syncing: x\"], boot-failure: {class: panic, title: 'Kernel panic - not syncing: x'}}";
    let sandbox = Sandbox::new();
    golden!(sandbox, sandbox.ad_hoc(script, &[]));
}

#[test]
fn a_rig_that_fails() {
    let script = "
boots:
- {side: b, block: 1, boot-failure: {class: qemu-killed, title: QEMU was ended by signal 9, details: [after 3.2 s], hint: look into the kernel log of this host}}";
    let sandbox = Sandbox::new();
    golden!(sandbox, sandbox.ad_hoc(script, &[]));
}

#[test]
fn a_knob_that_did_not_take() {
    let sandbox = Sandbox::new();
    let script = "boots: [{side: b, knobs-not-taken: [kernel.a]}]";
    golden!(sandbox, sandbox.ad_hoc(script, &["--sysctl-b", "kernel.a=1"]));
}

#[test]
fn sides_that_are_the_same() {
    let script =
        "sides: {a: {facts: {release: r, build-id: i}}, b: {facts: {release: r, build-id: i}}}";
    let sandbox = Sandbox::new();
    golden!(sandbox, sandbox.ad_hoc(script, &[]));
}

#[test]
fn another_topology() {
    let sandbox = Sandbox::new();
    let mut run = sandbox.fake("sides: {b: {facts: {cpus: 1}}}", &AD_HOC);
    run.args(["--quick", "--seed", "7", "--topology", "2s4c"]);
    golden!(sandbox, Said::by(&mut run));
}

#[test]
fn a_broken_document() {
    let document = "version: 1
experiments:
  fork:
    sides: { base: debian:bokworm, patched: { kernel: debian:trixie, sysctls: { a: 1 } } }
    workloads: [fork-exi, { pipe-roundtrip: { byte: 1 } }]
    pears: 3
";
    let sandbox = Sandbox::new();
    golden!(sandbox, sandbox.run_document(document, "{}", &[]));
}

#[test]
fn arguments_that_name_nothing() {
    let sandbox = Sandbox::new();
    let wrong =
        ["-a", "debian:bookwrom", "-b", "./nothing", "-w", "hackbnech:gruops=1", "--memory", "1kB"];
    golden!(sandbox, Said::by(&mut sandbox.fake("{}", &wrong)));
}

#[test]
fn no_document_no_runs() {
    let sandbox = Sandbox::new();
    golden!(sandbox, sandbox.says(&["run"]));
    golden!(sandbox, sandbox.says(&["report"]));
}
