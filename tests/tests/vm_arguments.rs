//! QEMU's own parser takes what a guest under KVM would be started with, as far as it can be asked on a
//! host without KVM: with the emulator in KVM's place, and without the huge pages that few hosts keep.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside test functions")]

use std::io::Write as _;
use std::process::{Output, Stdio};

use kduel_tests::{Sandbox, said};

/// Options of which nothing depends on what kduel hands over.
const ASKED: [&str; 8] =
    ["-machine", "-cpu", "-smp", "-m", "-numa", "-object", "-overcommit", "-sandbox"];

/// QEMU's program and the options of side a that it can be asked about.
fn planned(sandbox: &Sandbox, topology: &str) -> Vec<String> {
    let words = ["plan", "-a", "debian:bookworm", "-b", "debian:bookworm", "--aa"];
    let more = ["--accel", "kvm", "--cpu-pm", "--huge-pages", "2M", "-w", "fork-exit"];
    let plan = sandbox.says(&[&words[..], &more, &["--topology", topology]].concat()).ends_with(0);
    let line = plan.stdout.lines().find(|line| line.contains(" -cpu ")).unwrap().to_owned();
    let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word != "a:").collect();
    assert!(line.contains("-cpu host,migratable=off"), "{line}");
    let mut asked = vec![words[1].to_owned()];
    for pair in words.windows(2).filter(|pair| ASKED.contains(&pair[0])) {
        let value = pair[1].replace("hugetlb=on,hugetlbsize=2M,", "").replace("host,", "max,");
        asked.extend([pair[0].to_owned(), value]);
    }
    asked
}

/// Starts QEMU with `words`, paused, and tells it to quit.
fn quits(sandbox: &Sandbox, words: &[String]) -> Output {
    let mut qemu = sandbox.program(&words[0]);
    qemu.args(&words[1..]).args(["-nodefaults", "-display", "none", "-S", "-accel", "tcg"]);
    qemu.args(["-qmp", "stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = qemu.stderr(Stdio::piped()).spawn().unwrap();
    let commands = b"{\"execute\":\"qmp_capabilities\"}\n{\"execute\":\"quit\"}\n";
    // One that does not like its arguments may be gone already.
    let _ = child.stdin.take().unwrap().write_all(commands);
    child.wait_with_output().unwrap()
}

#[test]
fn qemu_takes_what_kvm_guests_are_started_with() {
    let sandbox = Sandbox::new();
    for topology in ["1s1c", "2s4c"] {
        let words = planned(&sandbox, topology);
        for option in ["cpu-pm=on", "memory-backend-memfd,prealloc=on,share=off"] {
            assert!(words.iter().any(|word| word.contains(option)), "no {option} in {words:?}");
        }
        let output = quits(&sandbox, &words);
        assert!(output.status.success(), "{words:?}\n{}", said(&output));
    }
}

#[test]
fn qemu_refuses_a_word_that_it_does_not_know() {
    let sandbox = Sandbox::new();
    let words = planned(&sandbox, "1s1c");
    let wrong: Vec<String> =
        words.iter().map(|word| word.replace("cpu-pm=on", "cpu-pn=on")).collect();
    let output = quits(&sandbox, &wrong);
    assert!(said(&output).contains("cpu-pn"), "{}", said(&output));
    assert!(!output.status.success());
}
