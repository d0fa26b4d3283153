//! Exact runs in real guests: the same bits whatever the host does, and each way known to break that.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Output;
use std::thread::JoinHandle;
use std::time::Duration;

use kduel::boot::{SealedSpec, Step, run_sealed};
use kduel::clock::Deadline;
use kduel::fault::FailureClass;
use kduel_tests::{BusyLoops, OtherQemu, Sandbox, Sealed, kduel, said, silent};

#[test]
fn a_run_is_verified_beside_busy_loops_and_not_booted_twice() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt \
               -w syscall:call=getppid --measure instructions --iterations 2 --json";
    let first = kduel(&sandbox, run);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let busy = BusyLoops::start();
    let verified = kduel(&sandbox, "verify");
    drop(busy);
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    assert!(said(&verified).contains("bit-identical: 2 boots"), "{}", said(&verified));
    let again = kduel(&sandbox, run);
    let comparisons = |output: &Output| {
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let cached = report["sides"][0]["guests"][0]["cached"].is_string();
        let own = &report["comparisons"][0]["work"]["contexts"];
        let value = |pair: &serde_json::Value| pair["base"].as_f64().unwrap();
        let (total, parts) = own.as_array().unwrap().split_last().unwrap();
        let sum: f64 = parts.iter().map(value).sum();
        assert!((sum - value(total)).abs() < 1e-6 * sum, "{sum} of {total}");
        (report["comparisons"].clone(), cached)
    };
    let ((then, booted), (now, known)) = (comparisons(&first), comparisons(&again));
    assert_eq!((then, booted, known), (now, false, true));
    let other = OtherQemu::make();
    let refused = kduel(&sandbox, &format!("verify --qemu {}", other.program().display()));
    assert_eq!(refused.status.code(), Some(69), "{}", said(&refused));
    let why = "cannot: this is not the QEMU that it was made with: qemu not what it was";
    assert!(said(&refused).contains(why), "{}", said(&refused));
    let add = format!("add @0 newer=debian:bookworm --qemu {}", other.program().display());
    let refused = kduel(&sandbox, &add);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("--allow-different-qemu"), "{}", said(&refused));
    sandbox.assert_nothing_left();
}

fn journal(run: &Path) -> String {
    std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default()
}

#[test]
fn a_run_that_was_killed_goes_on_to_the_same_bits() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt \
               -w syscall:call=getppid --measure instructions --iterations 2";
    let mut child = sandbox.kduel().args(run.split(' ')).spawn().expect("start kduel");
    // What is done twice comes last, and is still to do.
    let deadline = Deadline::after(Duration::from_secs(200));
    let done = || sandbox.runs().pop().map_or(0, |run| journal(&run).lines().count());
    while done() < 2 {
        assert!(!deadline.passed() && child.try_wait().unwrap().is_none(), "{} boots", done());
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.assert_nothing_left();
    let before = journal(&sandbox.runs()[0]);
    assert_eq!(before.lines().count(), 2, "{before}");
    let resumed = kduel(&sandbox, "run --resume @0 --json");
    assert_eq!(resumed.status.code(), Some(0), "{}", said(&resumed));
    let after = journal(&sandbox.runs()[0]);
    assert!(after.starts_with(&before) && after.lines().count() == 3, "{after}");
    let report: serde_json::Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_ne!(report["comparisons"][0]["exact"], "not-exact", "{report}");
    let verified = kduel(&sandbox, "verify");
    assert!(said(&verified).contains("bit-identical: 2 boots"), "{}", said(&verified));
    sandbox.assert_nothing_left();
}

#[test]
fn a_kernel_that_panics_with_and_without_the_plugin_is_to_blame() {
    let sandbox = Sandbox::new();
    let document = "version: 1
experiments:
  fault:
    measure: instructions
    iterations: 1
    warmup: 0
    sides:
      base: debian:bookworm
      broken: { kernel: debian:bookworm, setup: [echo c > /proc/sysrq-trigger] }
    workloads: [{ syscall: { call: getppid } }]
";
    std::fs::write(sandbox.work().join("kernels.yaml"), document).unwrap();
    let output = kduel(&sandbox, "run");
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    for words in ["kernel panicked", "sysrq triggered crash"] {
        assert!(said(&output).contains(words), "no `{words}` in {}", said(&output));
    }
    sandbox.assert_nothing_left();
}

/// A guest of Debian's 6.1 that measures one system call, with so many CPUs.
fn spec(cpus: u32) -> (Sealed, SealedSpec) {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|folder| folder.parent()).unwrap();
    let sealed = Sealed::new(built).unwrap();
    let spec = sealed.guest("syscall:call=getppid", 2, cpus).unwrap();
    (sealed, spec)
}

fn told(sealed: &Sealed, spec: &SealedSpec) -> (Vec<String>, Vec<u8>) {
    sealed.told(spec, &mut || {}).unwrap()
}

#[test]
fn neither_a_slow_reader_nor_the_plugin_is_heard() {
    let (sealed, counted) = spec(1);
    let plain = SealedSpec { plugin: None, ..counted.clone() };
    let mut slowly = || std::thread::sleep(Duration::from_millis(300));
    let (slow, _) = sealed.told(&counted, &mut slowly).unwrap();
    assert_eq!(slow, told(&sealed, &plain).0);
}

/// Stops every guest of this test for a moment, once it has booted for so long.
fn stop_guests_after(boot: Duration) -> JoinHandle<usize> {
    std::thread::spawn(move || {
        std::thread::sleep(boot);
        let guests = xtask::leftovers::own_guests();
        for signal in [rustix::process::Signal::STOP, rustix::process::Signal::CONT] {
            for guest in &guests {
                let pid = i32::try_from(guest.pid).ok().and_then(rustix::process::Pid::from_raw);
                rustix::process::kill_process(pid.unwrap(), signal).unwrap();
            }
            std::thread::sleep(Duration::from_secs(2));
        }
        guests.len()
    })
}

#[test]
fn a_guest_that_was_stopped_is_thrown_away_if_its_processors_take_turns() {
    let (sealed, spec) = spec(2);
    let stopped = stop_guests_after(Duration::from_secs(3));
    let end = run_sealed(&spec, &sealed.qemu, &silent(), &mut |_| Ok(Step::On));
    assert_eq!(stopped.join().unwrap(), 1);
    assert_eq!(end.outcome.unwrap_err().class, FailureClass::QemuStopped);
}

#[test]
fn all_a_guest_with_one_processor_hears_neither_a_stop_nor_the_size_of_the_translators_cache() {
    let (sealed, spec) = spec(1);
    let usual = told(&sealed, &spec);
    let stopped = stop_guests_after(Duration::from_secs(3));
    assert_eq!(told(&sealed, &spec), usual);
    assert_eq!(stopped.join().unwrap(), 1);
    let small = SealedSpec { translation_mib: 32, ..spec };
    // A full cache begins anew, with blocks cut at other places: the file of counts differs, no sample.
    assert_eq!(told(&sealed, &small).0, usual.0);
}

#[test]
fn four_processors_repeat_to_the_bit_with_the_plugin() {
    let (sealed, spec) = spec(4);
    let first = told(&sealed, &spec);
    let busy = BusyLoops::start();
    let second = told(&sealed, &spec);
    drop(busy);
    assert_eq!(first, second);
}

/// Two tasks switch in every operation: the parent waits for its child.
#[test]
fn call_chains_change_no_sample_and_add_up() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt \
               -w fork-exit --measure instructions --iterations 2 --json";
    let plain = kduel(&sandbox, run);
    let followed = kduel(&sandbox, &format!("{run} --chains"));
    let report = |output: &Output| -> serde_json::Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)))
    };
    let (plain, followed) = (report(&plain), report(&followed));
    assert!(followed["sides"][0]["guests"][0]["cached"].is_null(), "{followed}");
    assert_eq!(plain["comparisons"], followed["comparisons"]);
    let folded = kduel(&sandbox, "report --format folded");
    let chains = String::from_utf8_lossy(&folded.stdout).into_owned();
    assert!(said(&folded).contains("0 returns matched no call"), "{}", said(&folded));
    let own = chains.lines().filter(|line| line.starts_with("a;own;"));
    let sum: f64 = own.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    let value = followed["comparisons"][0]["base"].as_f64().unwrap();
    // Each line is rounded to a thousandth.
    assert!((sum - value).abs() < 0.001 * chains.lines().count() as f64, "{sum} of {value}");
    for chain in ["schedule;__schedule;__switch_to_asm ", "ret_from_fork"] {
        assert!(chains.contains(chain), "{chain} in\n{chains}");
    }
    let trace = kduel(&sandbox, "trace --op 2 --depth 3");
    assert_eq!(trace.status.code(), Some(0), "{}", said(&trace));
    sandbox.assert_nothing_left();
}
