//! Topologies: what kduel takes QEMU takes, what kduel refuses QEMU or the kernel would refuse, and
//! guests see what was asked for.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests start programs as a user does, and fail by panicking"
)]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use kduel_tests::{Sandbox, kduel, said};
use serde_json::Value;

/// Dies, shared caches, a CPU that is not there, a node without memory, one without CPUs, memory
/// attributes.
const TIERS: &str = "{ sockets: 2, dies: 2, cores: 2, threads: 2, cpus: 14, \
    caches: { l2: die, l3: die }, \
    nodes: [{ cpus: 0-7, memory: 512M }, { cpus: 8-15 }, { memory: 256M }], \
    distances: [[10, 21, 31], [21, 10, 41], [31, 41, 10]], \
    latencies: [[100, 400], [250, 300]], bandwidths: [[20G, 5G], [10G, 6G]] }";

/// What kduel takes, up to the limits of its rules.
const TAKEN: [&str; 12] = [
    TIERS,
    "{ cores: 255 }",
    "{ sockets: 2, cores: 127, cpus: 254 }",
    "{ sockets: 3, cores: 65, cpus: 129 }",
    "{ cores: 4, cpus: 1, maxcpus: 4 }",
    "{ cores: 2, caches: { l1d: core, l1i: core, l2: socket, l3: socket } }",
    "{ dies: 2, cores: 2, caches: { l1d: die, l1i: die, l2: die, l3: die } }",
    "{ cores: 2, nodes: [{ cpus: 0, memory: 4M }, { cpus: 1, memory: 508M }], distances: 254 }",
    "{ cores: 2, nodes: [{ cpus: 0 }, { cpus: 1 }, { memory: 512M }], distances: [[10, 11, 254], [30, 10, 12], [20, 40, 10]] }",
    "{ cores: 2, nodes: [{ cpus: 0, memory: 256M }, { cpus: 1, memory: 256M }], latencies: [[1, 65534], [65534, 1]], bandwidths: [[1M, 65534M], [65534M, 1M]] }",
    "{ cores: 2, nodes: [{ cpus: 0-1, memory: 256M }, { memory: 256M }], bandwidths: [[16T, 1G]] }",
    "{ sockets: 5, nodes: [{ cpus: 0, memory: 64M }, { cpus: 1, memory: 64M }, { cpus: 2, memory: 64M }, { cpus: 3, memory: 64M }, { cpus: 4, memory: 64M }], distances: ring }",
];

/// What kduel refuses, part of its complaint, and the same said to QEMU.
const REFUSED: [(&str, &str, &str); 12] = [
    ("{ clusters: 2, cores: 2 }", "no `clusters`", "-smp 4,clusters=2,cores=2"),
    (
        "{ cores: 4, caches: { l2: socket } }",
        "l3 only by a die",
        "-machine q35,smp-cache.0.cache=l2,smp-cache.0.topology=socket -smp 4,cores=4",
    ),
    (
        "{ cores: 4, caches: { l1d: die } }",
        "l2 only by a core",
        "-machine q35,smp-cache.0.cache=l1d,smp-cache.0.topology=die -smp 4,cores=4",
    ),
    (
        "{ cores: 4, caches: { l2: thread } }",
        "no cache for each thread",
        "-machine q35,smp-cache.0.cache=l2,smp-cache.0.topology=thread -smp 4,cores=4",
    ),
    (
        "{ sockets: 2, cores: 2, maxcpus: 8 }",
        "`maxcpus`",
        "-smp 4,maxcpus=8,sockets=2,cores=2,threads=1",
    ),
    ("{ sockets: 2, cores: 2, cpus: 5 }", "`cpus`", "-smp 5,maxcpus=4,sockets=2,cores=2"),
    ("{ sockets: 3, cores: 65 }", "APIC ID", "-cpu Opteron_G3-v1 -smp 195,sockets=3,cores=65"),
    (
        "{ memory: 1000G }",
        "`memory`",
        "-machine q35,memory-backend=r -cpu max -m 1000G \
         -object memory-backend-ram,id=r,size=1000G,reserve=off",
    ),
    (
        "{ memory: 1G, nodes: [{ cpus: 0, memory: 512M }] }",
        "512 MiB together",
        "-m 1G -object memory-backend-ram,id=r,size=512M -numa node,memdev=r",
    ),
    (
        "{ nodes: [{ cpus: 0-1, memory: 512M }] }",
        "there is no CPU 1",
        "-smp 1 -m 512M -object memory-backend-ram,id=r,size=512M -numa node,memdev=r \
         -numa cpu,node-id=0,socket-id=1,core-id=0,thread-id=0",
    ),
    (
        "{ nodes: [{ cpus: 0, memory: 256M }, { memory: 256M }], distances: 256 }",
        "the distance",
        "-m 512M -object memory-backend-ram,id=r,size=256M -object memory-backend-ram,id=s,size=256M \
         -numa node,memdev=r -numa node,memdev=s -numa dist,src=0,dst=1,val=256",
    ),
    (
        "{ nodes: [{ cpus: 0, memory: 256M }, { memory: 256M }], bandwidths: [[1M, 64G]] }",
        "too different",
        "-machine q35,hmat=on -m 512M -object memory-backend-ram,id=r,size=256M \
         -object memory-backend-ram,id=s,size=256M -numa node,memdev=r -numa node,memdev=s \
         -numa cpu,node-id=0,socket-id=0 \
         -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=1M \
         -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=64G",
    ),
];

/// Whether a QEMU with these arguments gets as far as to wait for its first instruction.
fn qemu_takes(arguments: &[String]) -> Result<(), String> {
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-S", "-nodefaults", "-display", "none", "-accel", "tcg", "-qmp", "stdio"]);
    if !arguments.iter().any(|word| word == "-machine") {
        command.args(["-machine", "q35"]);
    }
    let streams = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut qemu = streams.stderr(Stdio::piped()).spawn().expect("start QEMU");
    // One that has refused reads no more.
    let mut control = qemu.stdin.take().expect("its standard input");
    let _ = control.write_all(b"{\"execute\":\"qmp_capabilities\"}{\"execute\":\"quit\"}");
    let output = qemu.wait_with_output().expect("QEMU's end");
    drop(control);
    if output.status.success() { Ok(()) } else { Err(said(&output)) }
}

fn document(name: &str, topology: &str) -> String {
    format!(
        "  {name}: {{ sides: {{ a: debian:bookworm, b: debian:trixie }}, topology: {topology}, \
         workloads: [fork-exit] }}\n"
    )
}

/// Of the first command line in what `kduel plan` says, the options about machine and topology.
fn planned(sandbox: &Sandbox, topology: &str) -> Vec<String> {
    let experiment = document("e", "t");
    let text = format!("version: 1\ntopologies:\n  t: {topology}\nexperiments:\n{experiment}");
    sandbox.write("kernels.yaml", &text);
    let output = kduel(sandbox, "plan --accel tcg");
    assert_eq!(output.status.code(), Some(0), "{topology}: {}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("qemu-system")).expect("a command line");
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words
        .windows(2)
        .filter(|pair| ["-machine", "-cpu", "-smp", "-m", "-object", "-numa"].contains(&pair[0]));
    pairs.flatten().map(|word| (*word).trim_matches('\'').to_owned()).collect()
}

#[test]
fn what_is_taken_qemu_takes() {
    let sandbox = Sandbox::new();
    for topology in TAKEN {
        let arguments = planned(&sandbox, topology);
        assert!(arguments.contains(&"-smp".to_owned()), "{arguments:?}");
        let taken = qemu_takes(&arguments);
        assert_eq!(taken, Ok(()), "{topology}: {arguments:?}");
    }
}

#[test]
fn what_is_refused_qemu_refuses() {
    let sandbox = Sandbox::new();
    for (topology, complaint, arguments) in REFUSED {
        let experiment = document("e", "t");
        let text = format!("version: 1\ntopologies:\n  t: {topology}\nexperiments:\n{experiment}");
        sandbox.write("kernels.yaml", &text);
        let output = kduel(&sandbox, "plan");
        assert_eq!(output.status.code(), Some(2), "{topology}: {}", said(&output));
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(talk.contains(complaint) && talk.contains("kernels.yaml:3:"), "{topology}: {talk}");
        let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        assert!(qemu_takes(&words).is_err(), "QEMU takes {arguments}");
    }
}

/// Facts of every boot of the presets and of [`TIERS`], each on 6.1 and 6.12.
fn boot_all(terms: &str) -> Vec<Value> {
    let sandbox = Sandbox::new();
    let names = ["1s1c", "2s4c", "1s4c2t", "8n", "numa-q-16", "tiers"];
    let experiments: String =
        names.iter().map(|name| document(&format!("on-{name}"), name)).collect();
    let experiments = experiments.replace(
        "workloads: [fork-exit]",
        &format!("workloads: [{{ syscall: {{ call: getppid }} }}], {terms}"),
    );
    sandbox.write(
        "kernels.yaml",
        &format!("version: 1\ntopologies:\n  tiers: {TIERS}\nexperiments:\n{experiments}"),
    );
    let mut facts = Vec::new();
    for name in names {
        // What a guest does not see fails its boot, with a table.
        let output =
            kduel(&sandbox, &format!("run on-{name} --anyway --overcommit --json --fail-on never"));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        let run = sandbox.runs().pop().expect("a run's folder");
        let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
        let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told: Vec<Value> = records
            .map(|line| line["record"]["outcome"]["completed"]["facts"].clone())
            .filter(|facts| !facts.is_null())
            .collect();
        assert!(told.len() >= 2, "{name}: {} boots in {journal}", told.len());
        for facts in &told {
            let levels = facts["domains"].as_array().map_or(0, Vec::len);
            assert_eq!(levels == 0, name == "1s1c", "{name}: {:#}", facts["domains"]);
        }
        facts.extend(told.into_iter().filter(|_| name == "tiers"));
    }
    sandbox.assert_nothing_left();
    facts
}

/// Nothing of it is untold: a kernel that kept it to itself would pass, too.
fn assert_tiers_are_told(boots: &[Value]) {
    let of = |facts: &Value| facts["release"].as_str().unwrap_or_default()[..4].to_owned();
    let releases: Vec<String> = boots.iter().map(of).collect();
    assert!(releases.contains(&"6.1.".into()) && releases.contains(&"6.12".into()), "{releases:?}");
    for facts in boots {
        assert_eq!(facts["present-cpus"], "0-13", "{facts:#}");
        assert_eq!(facts["nodes"][1]["memory-kib"], 0, "{facts:#}");
        assert_eq!(facts["nodes"][2]["access"]["initiators"], serde_json::json!([1]), "{facts:#}");
        assert_eq!(facts["nodes"][2]["access"]["read-bandwidth"], 6144, "{facts:#}");
        let l2 = facts["caches"].as_array().unwrap().iter().find(|cache| cache["level"] == 2);
        assert_eq!(l2.unwrap()["shared"][0], "0-3", "{facts:#}");
        assert!(facts["cpus"][4]["die"].is_u64(), "{facts:#}");
    }
}

#[test]
fn all_topologies_are_seen_by_timed_guests() {
    assert_tiers_are_told(&boot_all("pairs: 1, iterations: 1"));
}

#[test]
fn all_topologies_are_seen_by_exact_guests() {
    assert_tiers_are_told(&boot_all("measure: instructions, iterations: 1"));
}
