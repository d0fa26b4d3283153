//! Exact runs in real guests: the same bits whatever the host does, and each way known to break that.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests load the host on purpose, show figures of long series, and fail by panicking"
)]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kduel::boot::{SealedSpec, Step, run_sealed};
use kduel::clock::{Deadline, Stopwatch};
use kduel::config::Environment;
use kduel::fault::FailureClass;
use kduel::host::Qemu;
use kduel_tests::{Sandbox, Sealed, silent};
use tempfile::TempDir;

/// Loops that take the host's processors until they are dropped.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start() -> Self {
        let one = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..3).map(|_| one()).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("end a busy loop");
            child.wait().expect("reap a busy loop");
        }
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("stdout:\n{}\nstderr:\n{}", text(&output.stdout), text(&output.stderr))
}

fn kduel(sandbox: &Sandbox, words: &str) -> Output {
    sandbox.kduel().args(words.split(' ')).output().expect("start kduel")
}

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
        let cached = report["sides"][0]["guest"]["cached"].is_string();
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

/// A QEMU that does the same and is another file.
struct OtherQemu(TempDir);

impl OtherQemu {
    fn make() -> Self {
        let environment = Environment::read().unwrap();
        let program = Qemu::find(None, &environment.path).unwrap().program.canonicalize().unwrap();
        let folder = tempfile::tempdir().unwrap();
        // QEMU has a user of its own.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let other = Self(folder);
        std::fs::create_dir(other.0.path().join("bin")).unwrap();
        std::fs::copy(&program, other.program()).unwrap();
        let mut file = std::fs::File::options().append(true).open(other.program()).unwrap();
        file.write_all(b"x").unwrap();
        let share = program.parent().unwrap().with_file_name("share");
        std::os::unix::fs::symlink(share, other.0.path().join("share")).unwrap();
        other
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("bin/qemu-system-x86_64")
    }
}

#[test]
fn all_another_qemu_is_compared_only_with_itself() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt \
               -w syscall:call=getppid --measure instructions --iterations 2 --json";
    let first = kduel(&sandbox, run);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let other = OtherQemu::make();
    let qemu = format!("--qemu {} --allow-different-qemu", other.program().display());
    let verified = kduel(&sandbox, &format!("verify {qemu}"));
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    assert!(said(&verified).contains("bit-identical: 2 boots"), "{}", said(&verified));
    let within = "done twice in QEMU 10";
    assert!(said(&verified).contains(within), "{}", said(&verified));
    let added = kduel(&sandbox, &format!("add @0 newer=debian:bookworm --json {qemu}"));
    assert_eq!(added.status.code(), Some(0), "{}", said(&added));
    let report: serde_json::Value = serde_json::from_slice(&added.stdout).unwrap();
    let names: Vec<&str> =
        report["sides"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["base", "patched", "newer"], "{report}");
    assert!(report["sides"][0]["guest"]["cached"].is_null(), "{report}");
    let runs = sandbox.runs();
    assert_eq!(runs.len(), 2);
    let boots = |run: &Path| journal(run).lines().count();
    assert_eq!((boots(&runs[0]), boots(&runs[1])), (3, 4));
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

/// Asks a QEMU for the whole plan instead of the kernel's symbols.
#[test]
fn all_a_kernel_without_symbols_is_counted_and_what_is_lost_is_told() {
    let sandbox = Sandbox::new();
    let environment = Environment::read().unwrap();
    let qemu = Qemu::find(None, &environment.path).unwrap().program;
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do shift; set -- \"$@\" \"${{word%kduel.kallsyms}}\"; done\n\
         exec {} \"$@\"\n",
        qemu.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("qemu");
    std::fs::write(&program, script).unwrap();
    for path in [folder.path(), &program] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    // Everything of the cache but the symbols.
    let cache = sandbox.work().join("cache");
    std::fs::create_dir(&cache).unwrap();
    for entry in std::fs::read_dir(&environment.cache_dir).unwrap().filter_map(Result::ok) {
        if entry.file_name() != "symbols" {
            std::os::unix::fs::symlink(entry.path(), cache.join(entry.file_name())).unwrap();
        }
    }
    let mut command = sandbox.kduel();
    command.args("run -a debian:bookworm -b debian:bookworm --append-b nosmt".split(' '));
    command.args("-w syscall:call=getppid --measure instructions --iterations 2".split(' '));
    command.env("KDUEL_CACHE_DIR", &cache).arg("--qemu").arg(&program);
    let output = command.output().expect("start kduel");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for words in ["no symbols, so functions stay unnamed", "the end of the symbols"] {
        assert!(said(&output).contains(words), "no `{words}` in {}", said(&output));
    }
    sandbox.assert_nothing_left();
}

/// Standard output and error are full before the first word, and kduel itself is stopped for a while.
#[test]
fn all_stopped_readers_and_a_stopped_kduel_change_nothing() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt --no-cache -v \
               -w fork-exit --measure instructions --iterations 3 --cpus 2 --json";
    let undisturbed = kduel(&sandbox, run);
    assert_eq!(undisturbed.status.code(), Some(0), "{}", said(&undisturbed));
    let pipes = [(); 2].map(|()| std::io::pipe().unwrap());
    let mut command = sandbox.kduel();
    command.args(run.split(' '));
    for (_, writer) in &pipes {
        rustix::io::ioctl_fionbio(writer, true).unwrap();
        while (&mut &*writer).write(&[b' '; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(writer, false).unwrap();
    }
    let [(stdout, out), (stderr, err)] = pipes;
    let mut child = command.stdout(out).stderr(err).spawn().unwrap();
    drop(command);
    // Nobody reads, so that no guest is even begun, or goes on alone.
    std::thread::sleep(Duration::from_secs(15));
    let read = |mut pipe: std::io::PipeReader| {
        std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut pipe, &mut text).unwrap();
            text
        })
    };
    let talk = read(stderr);
    let deadline = Deadline::after(Duration::from_secs(100));
    while sandbox.guests().is_empty() && !deadline.passed() {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(2));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(10));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    // The report waits for its reader, and no guest waits with it.
    while !sandbox.guests().is_empty() && !deadline.passed() {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(5));
    let report = read(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", talk.join().unwrap());
    let comparisons = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report.trim_start()).unwrap();
        report["comparisons"].clone()
    };
    let then = comparisons(&String::from_utf8(undisturbed.stdout).unwrap());
    assert_eq!(comparisons(&report.join().unwrap()), then);
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
    assert_eq!(told(&sealed, &small), usual);
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

/// A QEMU with a monitor that is asked about the guest all the time, until it is dropped.
struct Asked {
    folder: TempDir,
    done: Arc<AtomicBool>,
    answers: Option<JoinHandle<usize>>,
}

impl Asked {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // QEMU has a user of its own.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let environment = Environment::read().unwrap();
        let qemu = Qemu::find(None, &environment.path).unwrap().program;
        let socket = folder.path().join("$$.qmp");
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *-kernel*) set -- \"$@\" -qmp unix:{},server=on,wait=off;; esac\n\
             exec {} \"$@\"\n",
            socket.display(),
            qemu.display()
        );
        let program = folder.path().join("qemu");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let (until, sockets) = (done.clone(), folder.path().to_owned());
        let answers = Some(std::thread::spawn(move || ask(&sockets, &until)));
        Self { folder, done, answers }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("qemu")
    }

    /// How many questions were answered.
    fn end(mut self) -> usize {
        self.done.store(true, Ordering::Relaxed);
        self.answers.take().unwrap().join().unwrap()
    }
}

/// Asks every guest with a socket in `folder`, at odd moments; gives the number of answers.
fn ask(folder: &Path, until: &AtomicBool) -> usize {
    let mut monitors: BTreeMap<PathBuf, BufReader<UnixStream>> = BTreeMap::new();
    let (mut answers, mut random) = (0, 1_u64);
    while !until.load(Ordering::Relaxed) {
        for entry in std::fs::read_dir(folder).unwrap().filter_map(Result::ok) {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "qmp")
                && !monitors.contains_key(&path)
                && let Ok(socket) = UnixStream::connect(&path)
            {
                socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                let mut monitor = BufReader::new(socket);
                if monitor.read_line(&mut String::new()).is_ok() {
                    _ = told_by(&mut monitor, "qmp_capabilities");
                    monitors.insert(path, monitor);
                }
            }
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let questions = ["query-status", "query-cpus-fast", "query-chardev", "query-commands"];
        let question = questions[(random >> 33) as usize % questions.len()];
        for monitor in monitors.values_mut() {
            answers += usize::from(told_by(monitor, question));
        }
        std::thread::sleep(Duration::from_millis(random >> 57));
    }
    answers
}

fn told_by(monitor: &mut BufReader<UnixStream>, question: &str) -> bool {
    let asked = format!("{{\"execute\":\"{question}\"}}\n");
    let mut answer = String::new();
    monitor.get_mut().write_all(asked.as_bytes()).is_ok()
        && monitor.read_line(&mut answer).is_ok()
        && answer.starts_with("{\"return\"")
}

/// One run after the other, each on a host that differs from the one before in what hosts differ in:
/// where the run lies, how many processors there are, what else runs, where memory lies, who asks.
fn assert_runs_are_identical(times: usize, cpus: &str) {
    let sandbox = Sandbox::new();
    let mut first = None;
    for time in 0..times {
        let started = Stopwatch::start();
        let out = sandbox.work().join("x".repeat(1 + 7 * time));
        let mut words = Vec::new();
        if time % 2 == 1 {
            words.extend(["taskset", "-c", "0"].map(str::to_owned));
        }
        if time % 3 == 1 {
            words.extend(["setarch", "-R"].map(str::to_owned));
        }
        let busy = (time % 4 > 1).then(BusyLoops::start);
        let asked = (time % 5 > 2).then(Asked::start);
        let kduel = sandbox.kduel();
        words.push(kduel.get_program().to_string_lossy().into_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(sandbox.work());
        command.envs(kduel.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args("run -a debian:bookworm -b debian:bookworm --aa --no-cache".split(' '));
        command.args("-w fork-exit --measure instructions --iterations 3 --json".split(' '));
        command.args(["--cpus", cpus, "--out"]).arg(&out);
        if let Some(asked) = &asked {
            command.arg("--qemu").arg(asked.program());
        }
        let output = command.output().expect("start kduel");
        let hindrances = format!("{words:?}, {} busy loops", busy.map_or(0, |busy| busy.0.len()));
        let answers = asked.map(Asked::end);
        assert_eq!(output.status.code(), Some(0), "run {time}: {}", said(&output));
        assert!(answers.is_none_or(|answers| answers > 100), "only {answers:?} answers");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["comparisons"][0]["exact"], "identical", "run {time}: {report}");
        let comparisons = report["comparisons"].clone();
        println!(
            "run {time}, {:.1} s: {} ({hindrances}, {answers:?} answers)",
            started.elapsed().as_secs_f64(),
            comparisons[0]["base"]
        );
        assert_eq!(*first.get_or_insert_with(|| comparisons.clone()), comparisons, "run {time}");
    }
    sandbox.assert_nothing_left();
}

#[test]
fn all_twenty_runs_with_one_processor_are_identical() {
    assert_runs_are_identical(20, "1");
}

#[test]
fn all_twenty_runs_with_four_processors_are_identical() {
    assert_runs_are_identical(20, "4");
}
