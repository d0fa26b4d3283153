//! Sealed guests whose QEMU is a shell script.

use super::testing::{BANNER, player, spec};
use super::*;

/// Of each output.
const LIMIT: u64 = 1 << 20;

fn played(script: &str, enough: &str, boot_s: u64) -> (SealedEnd, Vec<String>) {
    played_by(1, script, enough, boot_s)
}

fn played_by(cpus: u32, script: &str, enough: &str, boot_s: u64) -> (SealedEnd, Vec<String>) {
    let (_folder, qemu) = player(script);
    let watch = Watch { listener: Arc::new(|_| {}), stop: Arc::default() };
    let mut spec = spec();
    (spec.topology.cores, spec.output_bytes) = (cpus, LIMIT);
    spec.deadlines.boot = Duration::from_secs(boot_s);
    spec.deadlines.progress = Duration::from_secs(1);
    spec.deadlines.shutdown = Duration::from_millis(300);
    let mut told = Vec::new();
    let end = run_sealed(&spec, &qemu, &watch, &mut |line| {
        told.push(line.to_owned());
        Ok(if line == enough { Step::Enough } else { Step::On })
    });
    (end, told)
}

fn class(end: &SealedEnd) -> FailureClass {
    end.outcome.as_ref().unwrap_err().class
}

#[test]
fn what_is_told_arrives_whole_and_in_order() {
    let script = format!(
        "{BANNER}; echo one >> $results; sleep 0.1; echo two >> $results; echo 3 > $counts"
    );
    let (end, told) = played(&script, "", 20);
    end.outcome.unwrap();
    assert_eq!(told, ["one", "two"]);
    assert_eq!((end.console.as_str(), end.counts.as_slice()), ("Linux version 6.1\n", &b"3\n"[..]));
}

#[test]
fn features_that_the_translator_lacks_are_named_once() {
    let warning = |feature| {
        format!("qemu: warning: TCG doesn't support requested feature: CPUID[eax=01h].{feature}\n")
    };
    let lines = [warning("ECX.x2apic [bit 21]"), warning("ECX.pcid [bit 17]")];
    let stderr = format!("{}{}other\n{}", lines[0], lines[1], lines[1]);
    assert_eq!(dropped(&stderr), ["pcid", "x2apic"]);
}

#[test]
fn enough_ends_a_guest_that_would_go_on() {
    let script = format!("{BANNER}; echo one > $results; exec sleep 60");
    let (end, told) = played(&script, "one", 20);
    end.outcome.unwrap();
    assert_eq!(told, ["one"]);
}

#[test]
fn a_guest_that_was_stopped_counts_only_with_one_processor() {
    let itself = "(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait";
    let script = format!("{BANNER}; echo one >> $results; {itself}; echo two >> $results");
    played(&script, "", 20).0.outcome.unwrap();
    let several = played_by(4, &script, "", 20).0;
    assert_eq!(class(&several), FailureClass::QemuStopped);
}

#[test]
fn crashes_hangs_and_refusals_are_told_apart() {
    let panic = format!("{BANNER}; echo 'Kernel panic - not syncing: x' >> $console; sleep 60");
    assert_eq!(class(&played(&panic, "", 20).0), FailureClass::Panic);
    let late =
        format!("{BANNER}; echo a > $results; echo 'Kernel panic - not syncing: x' >> $console");
    assert_eq!(class(&played(&late, "", 20).0), FailureClass::Panic);
    assert_eq!(class(&played("exec sleep 60", "", 1).0), FailureClass::BootFailed);
    let silent = format!("{BANNER}; echo one > $results; exec sleep 60");
    assert_eq!(class(&played(&silent, "", 20).0), FailureClass::SilentHang);
    let chatty = format!(
        "{BANNER}; echo one > $results; while :; do echo tick >> $console; sleep 0.05; done"
    );
    assert_eq!(class(&played(&chatty, "", 20).0), FailureClass::ChattyHang);
    assert_eq!(class(&played("exit 0", "", 20).0), FailureClass::BootFailed);
    let refused = played("echo 'qemu: no such CPU' >&2; exit 1", "", 20).0;
    assert_eq!(class(&refused), FailureClass::QemuFailed);
    assert!(refused.outcome.unwrap_err().title.ends_with("qemu: no such CPU"));
}

#[test]
fn an_output_at_its_limit_is_cut_off_and_never_half_a_result() {
    let flood = |output: &str| {
        let bytes = LIMIT + 4096;
        format!(
            "{BANNER}; echo one >> $results; yes 0123456789 | head -c {bytes} >> ${output}; exit 0"
        )
    };
    assert_eq!(class(&played(&flood("results"), "", 20).0), FailureClass::OutputOversized);
    for output in ["console", "counts"] {
        let (end, told) = played(&flood(output), "", 20);
        assert_eq!(class(&end), FailureClass::OutputOversized, "{output}");
        assert!(end.counts.is_empty() && told == ["one"], "{output}");
    }
}
