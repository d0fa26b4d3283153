//! Documents and flags from text to plan: golden complaints, round trips, and arbitrary bytes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, outside test functions")]

use std::path::{Path, PathBuf};

use clap::Parser;
use kduel::cli::args::{RunArgs, RunOptions};
use kduel::config::{Diagnostics, Environment, Loaded, load, load_kernels};
use kduel::plan::{Measure, Plan, build, series_label};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    _options: RunOptions,
}

fn args(words: &[&str]) -> RunArgs {
    Cli::try_parse_from(std::iter::once(&"kduel").chain(words)).unwrap().run
}

fn load_in(folder: &Path, words: &[&str]) -> Result<Loaded, Diagnostics> {
    load(&args(words), &Environment::below(folder))
}

fn plan_in(folder: &Path, words: &[&str]) -> Plan {
    build(&load_in(folder, words).unwrap_or_else(|error| panic!("{error}")), 7)
}

#[test]
fn an_adhoc_comparison_becomes_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_in(
        folder.path(),
        &[
            "-a",
            "debian:bookworm",
            "-b",
            "debian:bookworm-backports/amd64=6.12",
            "-w",
            "fork-exit,syscall",
        ],
    );
    let experiment = &plan.experiments[0];
    assert_eq!(experiment.name, "adhoc");
    let sides: Vec<&str> = experiment.sides.iter().map(|side| side.name.as_str()).collect();
    assert_eq!(sides, ["a", "b"]);
    assert_eq!(experiment.blocks.len(), 30);
    let labels: Vec<String> = experiment.trials.iter().map(series_label).collect();
    assert_eq!(labels[..3], ["fork-exit", "syscall call=getppid", "syscall call=read-1"]);
    assert_eq!(labels.len(), 8);
}

/// Complaints about each broken document stand in the `.txt` beside it.
#[test]
fn every_broken_document_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/documents");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        seen += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = match load_in(&folder, &["-f", name]) {
            Ok(_) => "nothing is wrong\n".to_owned(),
            Err(found) => found.to_string().replace(folder.to_str().unwrap(), "FOLDER"),
        };
        let expected = std::fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        if found != expected {
            let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("txt");
            std::fs::write(&actual, &found).unwrap();
            wrong.push(format!("{name}: found what is in {}:\n{found}", actual.display()));
        }
    }
    assert!(seen >= 15, "only {seen} fixtures");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Complaints about each command line stand below its line in `command-lines.txt`.
#[test]
fn every_wrong_command_line_is_explained() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/command-lines.txt");
    let expected = std::fs::read_to_string(&golden).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let good = "version: 1\nexperiments:\n  demo:\n    sides: { base: debian:bookworm, patched: debian:trixie }\n    workloads: [fork-exit]\n";
    std::fs::write(folder.path().join("good.yaml"), good).unwrap();
    let mut found = String::new();
    for line in expected.lines().filter(|line| line.starts_with("$ ")) {
        let words: Vec<&str> = line[2..].split(' ').collect();
        let complaints = load_in(folder.path(), &words).unwrap_err().to_string();
        let complaints = complaints.replace(folder.path().to_str().unwrap(), "FOLDER");
        found += &format!("{line}\n{complaints}\n");
    }
    if found != expected {
        let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command-lines.txt");
        std::fs::write(&actual, &found).unwrap();
        panic!("found what is in {}:\n{found}", actual.display());
    }
}

/// What `--save` writes gives the same plan as the flags it was written from.
#[test]
fn saved_documents_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    for file in ["bench", "data.txt", "bzImage", "linux.deb"] {
        std::fs::write(folder.path().join(file), "x").unwrap();
    }
    let lines = [
        "-a debian:bookworm -b debian:trixie -w fork-exit,pipe-roundtrip:bytes=1+4K,hackbench:groups=1:mode=thread",
        "-a debian:bookworm=6.1 -b debian:bookworm=6.1 --append quiet --append-b a=b --append-b c --sysctl-b kernel.x=1 -w syscall",
        "-a host -b deb:linux.deb -b ./bzImage -w micro --cpus 2 --memory 1G --pairs 3 --iterations 9 --quick",
        "-a host -b host --aa --topology 2s4c --memory 3G -w fork-exit",
        "-a debian:sid -b debian:experimental --with-file data.txt --metric rate:MB/s:higher:([0-9.]+) -- ./bench data.txt -n 1",
        "-a debian:sid -b debian:experimental -- sh -c true",
    ];
    for (index, line) in lines.iter().enumerate() {
        for name in [format!("{index}.yaml"), format!("docs/{index}.yaml")] {
            let mut words: Vec<&str> = vec!["--save", &name];
            words.extend(line.split(' '));
            let loaded = load_in(folder.path(), &words).unwrap_or_else(|e| panic!("{line}\n{e}"));
            loaded.save().unwrap();
            let again = plan_in(folder.path(), &["-f", &name]);
            let written = std::fs::read_to_string(folder.path().join(&name)).unwrap();
            assert_eq!(build(&loaded, 7), again, "{line}\n{written}");
            assert!(
                load_in(folder.path(), &words).unwrap_err().to_string().contains("exists already")
            );
        }
    }
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels.yaml")
}

#[test]
fn the_example_holds_what_the_demo_needs() {
    let plan = plan_in(Path::new("/"), &["-f", example().to_str().unwrap(), "demo"]);
    let demo = &plan.experiments[0];
    let sides: Vec<_> = demo.sides.iter().map(|side| side.name.as_str()).collect();
    assert_eq!(sides, ["base", "patched", "dynmods"]);
    assert_eq!(demo.sides[2].knobs.mount["cgroup2"], "favordynmods");
    assert_eq!(plan.measure, Measure::Instructions);
    assert_eq!(demo.blocks.len(), 1);
}

/// The other parser of the workspace reads the same words from the example.
#[test]
fn the_example_is_what_serde_yaml_reads() {
    let text = std::fs::read_to_string(example()).unwrap();
    let read: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let plan = plan_in(Path::new("/"), &["-f", example().to_str().unwrap(), "--measure", "time"]);
    let experiments = read["experiments"].as_mapping().unwrap();
    for (planned, (name, body)) in plan.experiments.iter().zip(experiments) {
        assert_eq!(Some(planned.name.as_str()), name.as_str());
        let sides: Vec<_> =
            body["sides"].as_mapping().unwrap().keys().filter_map(|k| k.as_str()).collect();
        assert_eq!(planned.sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>(), sides);
    }
    let names: Vec<_> = plan.experiments.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names[experiments.len()..], ["matrix-1s1c", "matrix-2s2c"]);
}

#[test]
fn kernels_are_read_from_a_document_whose_experiments_are_no_one_run() {
    let environment = Environment::below(Path::new("/"));
    assert!(load(&RunArgs { file: Some(example()), ..RunArgs::default() }, &environment).is_err());
    let kernels = load_kernels(Some(&example()), &environment).unwrap();
    assert_eq!(kernels.keys().collect::<Vec<_>>(), ["debian-6.1", "debian-6.12"]);
}

#[test]
fn the_plan_of_the_example_is_shown() {
    let plan = plan_in(
        Path::new("/"),
        &["-f", example().to_str().unwrap(), "demo", "cgroup-move", "numa", "--measure", "time"],
    );
    let host = kduel::host::topology::HostTopology::default();
    let shown = kduel::cli::plan::render(
        &plan,
        kduel::boot::Accel::Tcg,
        None,
        &host,
        &|experiment, side| {
            vec![
                "qemu".to_owned(),
                "-name".to_owned(),
                format!("{} {}", experiment.name, side.name),
            ]
        },
    );
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plan.txt");
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    if shown != expected {
        let actual = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan.txt");
        std::fs::write(&actual, &shown).unwrap();
        panic!("found what is in {}:\n{shown}", actual.display());
    }
}

fn load_text(text: &[u8]) -> Result<Loaded, Diagnostics> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernels.yaml"), text).unwrap();
    load_in(folder.path(), &[])
}

#[test]
fn matrices_split_where_exclusions_take_kernels_away() {
    let loaded = load_text(
        b"version: 1
matrix:
  kernels: [debian:bookworm, debian:trixie, debian:sid]
  topologies: [1s1c, 1s2c]
  workloads: [fork-exit, { syscall: { call: [stat, getppid] } }, fork-exec]
  exclude:
    - { kernel: debian:sid, workload: syscall }
    - { topology: 1s2c, workload: fork-exec }
    - { topology: 1s2c, kernel: debian:trixie }
",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let made: Vec<String> = build(&loaded, 1)
        .experiments
        .iter()
        .map(|e| {
            let sides: Vec<_> = e.sides.iter().map(|side| side.name.as_str()).collect();
            let trials: Vec<_> = e.trials.iter().map(series_label).collect();
            format!("{}: {} | {}", e.name, sides.join(" "), trials.join(", "))
        })
        .collect();
    assert_eq!(
        made,
        [
            "matrix-1s1c: debian-bookworm debian-trixie debian-sid | fork-exit, fork-exec",
            "matrix-1s1c-2: debian-bookworm debian-trixie | syscall call=stat, syscall call=getppid",
            "matrix-1s2c: debian-bookworm debian-sid | fork-exit",
        ]
    );
}

#[test]
fn what_is_not_selected_may_need_what_is_not_there() {
    let text = b"version: 1
kernels:
  mine: { source: { git: ~/src/linux, rev: v6.12 } }
  file: ./no-such-bzImage
experiments:
  fork:
    sides: { base: mine, patched: file }
    workloads: [fork-exit]
  demo:
    sides: { base: debian:bookworm, patched: debian:trixie }
    workloads: [fork-exit]
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernels.yaml"), text).unwrap();
    assert_eq!(load_in(folder.path(), &["demo"]).unwrap().experiments.len(), 1);
    let error = load_in(folder.path(), &["fork"]).unwrap_err();
    assert_eq!(error.0.len(), 2, "{error}");
}

#[test]
fn sections_may_be_empty() {
    let loaded = load_text(b"version: 1\nkernels:\ntopologies: # none yet\nexperiments:\n");
    assert!(loaded.unwrap_or_else(|error| panic!("{error}")).experiments.is_empty());
}

#[test]
fn aliases_stand_for_what_they_name() {
    let loaded = load_text(
        b"version: 1
experiments:
  one: &one
    sides: { base: debian:bookworm, patched: debian:trixie }
    workloads: [fork-exit]
  two: *one
",
    );
    let plan = build(&loaded.unwrap_or_else(|error| panic!("{error}")), 1);
    assert_eq!(plan.experiments[0].sides, plan.experiments[1].sides);
    assert_ne!(plan.experiments[0].blocks, plan.experiments[1].blocks);
}

#[test]
fn knob_values_keep_their_written_text() {
    let loaded = load_text(
        b"version: 1
experiments:
  demo:
    sides:
      base: debian:bookworm
      patched:
        kernel: debian:bookworm
        sysctl: { a.b: 0x10, a.c: true, a.d: 6.10, a.e: no, a.f: '' }
    workloads: [fork-exit]
",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let values: Vec<_> = loaded.experiments[0].sides[1].knobs.sysctl.values().cloned().collect();
    assert_eq!(values, ["0x10", "true", "6.10", "no", ""]);
}

#[test]
fn a_document_that_is_too_long_is_not_parsed() {
    let error = load_text(&vec![b'#'; (1 << 20) + 1]).unwrap_err().to_string();
    assert!(error.contains("longer than the 1 MiB allowed"), "{error}");
}

/// A key that is only announced lies behind the end of the text.
#[test]
fn what_is_missing_behind_the_end_is_placed_at_the_end() {
    placed(b"? ").unwrap();
    let found = load_text(b"version: 1\n? ").unwrap_err().0;
    assert!(
        found.iter().any(|complaint| (complaint.line, complaint.column) == (2, 3)),
        "{found:?}"
    );
}

proptest! {
    #[test]
    fn any_bytes_give_a_result_or_placed_complaints(bytes: Vec<u8>) {
        placed(&bytes)?;
    }

    #[test]
    fn any_text_of_yaml_characters_does(text in "[\\[\\]{}:,&*!|>'\"%@`#?\\- \n\ta-c0-9~<=.]{0,200}") {
        placed(text.as_bytes())?;
        placed(format!("version: 1\nexperiments:\n  a: {text}\n").as_bytes())?;
    }

    #[test]
    fn any_change_to_the_example_does(at: prop::sample::Index, with in "[\\[\\]{}:,&*'\"# \n\t0-9a-z~\0-]{0,3}", drop in 0..12_usize) {
        let text = std::fs::read_to_string(example()).unwrap();
        let chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let end = (at + drop).min(chars.len());
        let changed: String = chars[..at].iter().copied().chain(with.chars()).chain(chars[end..].iter().copied()).collect();
        placed(changed.as_bytes())?;
    }
}

/// Loading gives a plan, or complaints whose lines exist.
fn placed(bytes: &[u8]) -> Result<(), TestCaseError> {
    match load_text(bytes) {
        Ok(loaded) => {
            build(&loaded, 1);
        }
        Err(found) => {
            prop_assert!(!found.0.is_empty());
            let lines = String::from_utf8_lossy(bytes).split(['\n', '\r']).count();
            for complaint in &found.0 {
                prop_assert!(complaint.line <= lines, "{complaint:?}");
                prop_assert!(
                    complaint.column <= complaint.excerpt.chars().count() + 2,
                    "{complaint:?}"
                );
            }
            prop_assert!(found.to_string().chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
    Ok(())
}

/// Twenty thousand complaints about one line of a mebibyte: bounded memory, bounded time.
#[test]
fn a_hostile_document_is_refused_within_bounds() {
    let words = "!x a,".repeat(19_000);
    let line = format!("version: 1\nexperiments: {{ a: [{words}{}] }}\n", "b".repeat(900_000));
    let error = load_text(line.as_bytes()).unwrap_err();
    assert_eq!(error.0.len(), 1000);
    assert!(error.to_string().len() < 64 * 1024);
    let long_key = format!("version: 1\n{}: 1\n", "k".repeat(1000));
    assert!(load_text(long_key.as_bytes()).unwrap_err().to_string().len() < 2048);
}

#[test]
fn the_arguments_are_consistent() {
    <Cli as clap::CommandFactory>::command().debug_assert();
    assert!(Cli::try_parse_from(["kduel", "--resume", "x", "demo"]).is_err());
    assert!(Cli::try_parse_from(["kduel", "--pairs", "0"]).is_err());
}
