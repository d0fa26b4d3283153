//! Exact runs in real guests: the same bits whatever the host does, and each way known to break that.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests load the host on purpose, and fail by panicking"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::time::Duration;

use kduel::boot::{PluginFiles, SealedSpec, Step, Watch, run_sealed};
use kduel::cli::args::{MeasureArg, RunArgs};
use kduel::config::{self, Environment};
use kduel::host::Qemu;
use kduel::plan;
use kduel::provision::Provisioner;
use kduel::run::exact::SealedRecipe;
use kduel_tests::Sandbox;

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
    assert!(followed["sides"][0]["guest"]["cached"].is_null(), "{followed}");
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
        plugin: Some(PluginFiles { library, symbols: None, chains: false }),
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

/// One run after the other, each on a host that differs from the one before in what hosts differ in:
/// where the run lies, how many processors there are, what else runs, where memory lies.
fn assert_runs_are_identical(times: usize, cpus: &str) {
    let sandbox = Sandbox::new();
    let mut first = None;
    for time in 0..times {
        let out = sandbox.work().join("x".repeat(1 + 7 * time));
        let mut words = Vec::new();
        if time % 2 == 1 {
            words.extend(["taskset", "-c", "0"].map(str::to_owned));
        }
        if time % 3 == 1 {
            words.extend(["setarch", "-R"].map(str::to_owned));
        }
        let busy = (time % 4 > 1).then(BusyLoops::start);
        let kduel = sandbox.kduel();
        words.push(kduel.get_program().to_string_lossy().into_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(sandbox.work());
        command.envs(kduel.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args("run -a debian:bookworm -b debian:bookworm --aa --no-cache".split(' '));
        command.args("-w fork-exit --measure instructions --iterations 3 --json".split(' '));
        command.args(["--cpus", cpus, "--out"]).arg(&out);
        let output = command.output().expect("start kduel");
        drop(busy);
        assert_eq!(output.status.code(), Some(0), "run {time}: {}", said(&output));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["comparisons"][0]["exact"], "identical", "run {time}: {report}");
        let comparisons = report["comparisons"].clone();
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
