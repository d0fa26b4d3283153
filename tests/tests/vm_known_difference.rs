//! A difference that is known from its source is what the profile names, to the instruction.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests start programs, and fail by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use kduel::config::Environment;
use kduel_tests::{Sandbox, said};

/// The share of an operation that ticks may move from one side to the other; the whole difference is
/// four times that.
const UNEXPLAINED: f64 = 0.000_1;

/// What a function costs per operation, on both sides.
#[derive(Debug)]
struct Row {
    function: String,
    change: f64,
    base: f64,
    calls: [f64; 2],
}

/// Both images; the first time it takes the builder a quarter of an hour and more.
fn images() -> [PathBuf; 2] {
    let folder = Environment::read().unwrap().cache_dir.join("task-classes");
    let builder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/build-task-classes");
    let built = Command::new(builder).arg(&folder).output().expect("start the builder");
    assert!(built.status.success(), "{}", said(&built));
    ["plain", "patched"].map(|side| folder.join(side).join("bzImage"))
}

/// The rows of own tasks, the total among them.
fn own_rows(diffprofile: &str) -> Vec<Row> {
    let own = diffprofile.lines().skip_while(|line| !line.ends_with("function")).skip(1);
    own.take_while(|line| !line.contains("add up to")).filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at).map(|word| word.parse().unwrap_or(0.0));
    Some(Row {
        function: (*words.get(10)?).to_owned(),
        change: number(0)?,
        base: number(2)?,
        calls: [number(4)?, number(5)?],
    })
}

/// Two functions, each of which takes and leaves a mutex, and the memory that they keep a task's class in.
#[test]
fn all_a_mutex_and_a_counter_in_fork_and_exit_are_seen_to_the_instruction() {
    let [plain, patched] = images();
    let sandbox = Sandbox::new();
    let mut run = sandbox.kduel();
    run.arg("run").arg("-a").arg(plain).arg("-b").arg(patched);
    let output = run.args(["-w", "fork-exit", "--measure", "instructions"]).output();
    let output = output.expect("start kduel");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = sandbox.kduel().args(["report", "--format", "diffprofile"]).output();
    let report = said(&output.expect("start kduel"));
    let rows = own_rows(&report);
    let row = |name: &str| {
        let found = rows.iter().find(|row| row.function == name);
        found.unwrap_or_else(|| panic!("no {name} in {report}"))
    };
    for (new, calls) in
        [("task_class_join", 1.0), ("task_class_leave", 1.0), ("task_class_count", 2.0)]
    {
        assert_eq!(row(new).calls, [0.0, calls], "{new} in {report}");
    }
    for lock in ["mutex_lock", "mutex_unlock"] {
        let [before, now] = row(lock).calls;
        assert!((now - before - 2.0).abs() < 0.01, "{lock} in {report}");
    }
    let known = ["task_class_join", "task_class_leave", "task_class_count"];
    let known = known.into_iter().chain(["mutex_lock", "mutex_unlock", "kmalloc_trace"]);
    let known = known.chain(["__kmem_cache_alloc_node", "__kmem_cache_free", "kfree"]);
    let callers = ["copy_process", "do_exit"];
    let sum: f64 = known.chain(callers).map(|name| row(name).change).sum();
    let total = row("(total)");
    assert!((total.change - sum).abs() < UNEXPLAINED * total.base, "{sum} in {report}");
    sandbox.assert_nothing_left();
}
