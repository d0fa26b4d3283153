//! Guests whose threads are where they were placed, from before their first instruction to their end,
//! and runs that do not measure on the CPUs of one another.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kduel::boot::vigil::Vigil;
use kduel::boot::{Accel, GuestSpec, Watch};
use kduel::cli::args::RunArgs;
use kduel::clock::Deadline;
use kduel::config::{Environment, load};
use kduel::host::Qemu;
use kduel::host::topology::{CpuList, HostTopology};
use kduel::plan::{self, Placement};
use kduel::provision::Provisioner;
use kduel::run::GuestRecipe;
use kduel_tests::{Sandbox, said};
use serde_json::Value;

fn agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("kduel-agent.x86_64")
}

/// A guest with one vCPU, placed nowhere yet.
fn guest() -> (GuestSpec, Qemu) {
    let environment = Environment::read().unwrap();
    let side = Some("debian:bookworm".to_owned());
    let args = RunArgs {
        base: side.clone(),
        candidates: side.into_iter().collect(),
        workloads: vec!["syscall:call=getppid".to_owned()],
        aa: true,
        ..RunArgs::default()
    };
    let plan = plan::build(&load(&args, &environment).unwrap(), 1);
    let experiment = Arc::new(plan.experiments[0].clone());
    let planned = &experiment.sides[0];
    let provisioner = Provisioner::new(environment.cache_dir.clone(), agent(), Arc::new(|_| {}));
    let kernel = provisioner.kernel(&planned.kernel_name, &planned.kernel, None).unwrap();
    let qemu = Qemu::find(None, &environment.path).unwrap();
    let architecture = qemu.architecture;
    let block = experiment.blocks[0].clone();
    let recipe = GuestRecipe { experiment, side: 0, kernel, accel: Accel::Tcg, architecture };
    (recipe.boot(&block, 0).unwrap().1, qemu)
}

/// Where each thread of a process may run, by the kernel's own words.
fn threads(pid: u32) -> Vec<(u64, CpuList)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let one = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((task.file_name().to_str()?.parse().ok()?, CpuList::parse(line)?))
    };
    tasks.flatten().filter_map(one).collect()
}

fn assert_placed(vigil: &Vigil, placement: &Placement) {
    let threads = threads(vigil.pid());
    assert!(threads.len() > vigil.vcpu_threads().len(), "{threads:?}");
    for (thread, found) in threads {
        let vcpu = vigil.vcpu_threads().iter().position(|vcpu| *vcpu == thread);
        let wanted = vcpu.map_or(&placement.emulator, |vcpu| &placement.vcpus[vcpu]);
        assert_eq!(found, *wanted, "thread {thread}, vCPU {vcpu:?}");
    }
}

/// Starts so many guests one after the other, on changing CPUs, and looks where their threads are when
/// they have started and when they say their first word.
fn assert_guests_are_pinned(guests: usize) {
    let sandbox = Sandbox::new();
    let (mut spec, qemu) = guest();
    let cpus: Vec<u32> = HostTopology::read("/".as_ref(), None).usable().iter().collect();
    let list = |nth: usize| -> CpuList { [cpus[nth % cpus.len()]].into_iter().collect() };
    for guest in 0..guests {
        let placement = Placement {
            vcpus: vec![list(guest)],
            emulator: list(guest + 1),
            ..Placement::default()
        };
        spec.placement = Some(placement.clone());
        let watch = Watch { listener: Arc::new(|_| {}), stop: Arc::default() };
        let mut vigil = Vigil::start(&spec, &qemu, &watch).unwrap_or_else(|e| panic!("{e}"));
        assert_placed(&vigil, &placement);
        let deadline = Deadline::after(Duration::from_secs(60));
        while vigil.console().text().is_empty() {
            assert!(!deadline.passed(), "guest {guest} says nothing");
            vigil.check().unwrap_or_else(|failure| panic!("{failure}"));
            thread::sleep(Duration::from_millis(5));
        }
        assert_placed(&vigil, &placement);
        vigil.end().unwrap_or_else(|failure| panic!("{failure}"));
    }
    sandbox.assert_nothing_left();
}

#[test]
fn threads_are_where_they_were_placed() {
    assert_guests_are_pinned(4);
}

#[test]
fn all_of_a_hundred_guests_are_pinned() {
    assert_guests_are_pinned(100);
}

const RUN: &str = "run -a debian:bookworm -b debian:bookworm --aa --accel tcg --pairs 1 \
                   --iterations 1 -w syscall:call=getppid";

#[test]
fn a_second_run_on_the_same_cpus_waits_or_is_refused() {
    let sandbox = Sandbox::new();
    let start = |more: &[&str]| {
        let mut kduel = sandbox.kduel();
        kduel.args(RUN.split(' ')).args(more);
        kduel.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        kduel.spawn().unwrap()
    };
    let mut first = start(&[]);
    let deadline = Deadline::after(Duration::from_secs(60));
    while sandbox.guests().is_empty() {
        assert!(!deadline.passed(), "no guest was started");
        thread::sleep(Duration::from_millis(20));
    }
    let run = sandbox.runs().pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let refused = start(&["--no-wait"]).wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(69), "{}", said(&refused));
    assert!(said(&refused).contains(&format!("run {name}, pid {}", first.id())));
    assert_eq!(sandbox.runs().len(), 1, "a refused run leaves no folder");
    let second = start(&[]);
    // Killed as hard as can be: nothing of the lock is left, and the one that waits goes on.
    first.kill().unwrap();
    first.wait().unwrap();
    let second = second.wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(0), "{}", said(&second));
    // Both may have begun in the same second, and then nothing orders them.
    let other = sandbox.runs().into_iter().find(|other| *other != run).unwrap();
    let journal = fs::read_to_string(other.join("journal.jsonl")).unwrap();
    let line: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let vcpus = &line["record"]["placement"]["vcpus"];
    assert_eq!(vcpus.as_array().map(Vec::len), Some(1), "{line:#}");
    sandbox.assert_nothing_left();
}
