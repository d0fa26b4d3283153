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

use kduel::boot::{PluginFiles, SealedSpec, Step, Watch, run_sealed};
use kduel::cli::args::{MeasureArg, RunArgs};
use kduel::clock::Stopwatch;
use kduel::config::{self, Environment};
use kduel::host::Qemu;
use kduel::plan;
use kduel::provision::Provisioner;
use kduel::run::exact::SealedRecipe;
use kduel_tests::Sandbox;
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
    sandbox.assert_nothing_left();
}

/// A guest of Debian's 6.1 that measures one system call, with so many CPUs.
fn spec(cpus: &str) -> (SealedSpec, Qemu) {
    let environment = Environment::read().unwrap();
    let args = RunArgs {
        base: Some("debian:bookworm".to_owned()),
        candidates: vec!["debian:bookworm".to_owned()],
        workloads: vec!["syscall:call=getppid".to_owned()],
        cpus: Some(cpus.to_owned()),
        iterations: Some(2),
        measure: Some(MeasureArg::Instructions),
        aa: true,
        ..RunArgs::default()
    };
    let loaded = config::load(&args, &environment).map_err(|error| error.to_string()).unwrap();
    let plan = plan::build(&loaded, plan::FIRST_SEED);
    let experiment = &plan.experiments[0];
    let side = &experiment.sides[0];
    let agent = beside_kduel("kduel-agent.x86_64");
    let provisioner = Provisioner::new(environment.cache_dir.clone(), agent, Arc::new(|_| {}));
    let kernel = provisioner.kernel(&side.kernel_name, &side.kernel, None).unwrap();
    let qemu = Qemu::find(None, &environment.path).unwrap();
    let library = beside_kduel("libkduel_qemu_plugin.so");
    let recipe = SealedRecipe {
        experiment,
        side,
        block: &experiment.blocks[0],
        kernel: &kernel,
        architecture: qemu.architecture,
        plugin: Some(PluginFiles { library, symbols: None }),
    };
    (recipe.boot().unwrap().1, qemu)
}

fn beside_kduel(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(|folder| folder.parent()).unwrap().join(name)
}

/// Everything that a guest tells, read with `pause` before each line.
fn told(spec: &SealedSpec, qemu: &Qemu, pause: Duration) -> Vec<String> {
    let watch = Watch { listener: Arc::new(|_| {}), stop: Arc::default() };
    let mut lines = Vec::new();
    let end = run_sealed(spec, qemu, &watch, &mut |line| {
        std::thread::sleep(pause);
        lines.push(line.to_owned());
        Ok(Step::On)
    });
    end.outcome.unwrap();
    assert!(lines.last().is_some_and(|line| line.contains("\"end\"")), "{lines:?}");
    assert_eq!(end.counts.is_empty(), spec.plugin.is_none());
    lines
}

#[test]
fn neither_a_slow_reader_nor_the_plugin_is_heard() {
    let (counted, qemu) = spec("1");
    let plain = SealedSpec { plugin: None, ..counted.clone() };
    let slowly = told(&counted, &qemu, Duration::from_millis(300));
    assert_eq!(slowly, told(&plain, &qemu, Duration::ZERO));
}

#[test]
fn four_processors_repeat_to_the_bit_with_the_plugin() {
    let (spec, qemu) = spec("4");
    let first = told(&spec, &qemu, Duration::ZERO);
    let busy = BusyLoops::start();
    let second = told(&spec, &qemu, Duration::ZERO);
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
