//! The case whose kernels differ by a patch that is known line by line, where they are built; without
//! them nothing is tested, and `cargo xtask test` says so.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests say what they leave out, and fail by panicking"
)]

use std::fs;
use std::path::Path;
use std::process::Output;

use kduel_tests::{Sandbox, kduel, said};

/// The share of an operation that ticks may move from one side to the other; the whole difference is
/// thirty times that.
const UNEXPLAINED: f64 = 0.000_1;

/// All that the patch changes: its own functions, the mutex that they take and leave, the memory that they
/// keep a class in, and what both of these call.
const KNOWN: [&str; 15] = [
    "task_class_join",
    "task_class_leave",
    "task_class_count",
    "mutex_lock",
    "mutex_unlock",
    "__cond_resched",
    "rcu_all_qs",
    "kmalloc_trace",
    "kmem_cache_alloc_node",
    "___slab_alloc",
    "should_failslab",
    "kfree",
    "__kmem_cache_free",
    "copy_process",
    "do_exit",
];

/// Another experiment of the case's document.
const TWO_SIDES: &str = "
  two-sides:
    sides: { base: vanilla, with-counter: with-counter }
    topology: 1s1c
    measure: instructions
    workloads: [fork-exit]
";

/// What a function costs per operation, on both sides.
#[derive(Debug)]
struct Row {
    function: String,
    change: f64,
    base: f64,
    calls: [f64; 2],
}

/// A place to run the case in, if its kernels are built.
fn built() -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases/task-classes");
    let copied = copy_folder(&case, &sandbox.work().join("task-classes"));
    copied.expect("copy the case");
    let words =
        "kernels -f task-classes/kernels.yaml build --check vanilla without-counter with-counter";
    let checked = kduel(&sandbox, words);
    match checked.status.code() {
        Some(0) => return Some(sandbox),
        Some(1) => eprintln!("SKIPPED: kernels of cases/task-classes are not built"),
        _ => panic!("{}", said(&checked)),
    }
    None
}

/// Copies a folder of files and folders.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &place)?;
        } else if entry.file_name() != "kernels.lock" {
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

fn succeeded(output: &Output) -> String {
    let text = said(output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    text
}

#[test]
fn what_task_classes_expects_comes_out_exactly() {
    let Some(sandbox) = built() else { return };
    let text = succeeded(&kduel(&sandbox, "run ./task-classes"));
    assert!(text.contains("9 of 9 expectations came out"), "{text}");
    sandbox.assert_nothing_left();
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

/// Two functions, each of which takes and leaves a mutex, and a count of each class's tasks.
#[test]
fn a_mutex_and_a_counter_in_fork_and_exit_are_seen_to_the_instruction() {
    let Some(sandbox) = built() else { return };
    let document = sandbox.work().join("task-classes/kernels.yaml");
    let text = fs::read_to_string(&document).expect("read the document");
    fs::write(&document, text + TWO_SIDES).expect("write the document");
    succeeded(&kduel(&sandbox, "run -f task-classes/kernels.yaml two-sides"));
    let report = succeeded(&kduel(&sandbox, "report --format diffprofile"));
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
    let known: f64 = KNOWN.iter().map(|name| row(name).change).sum();
    let total = row("(total)");
    assert!((total.change - known).abs() < UNEXPLAINED * total.base, "{known} in {report}");
    sandbox.assert_nothing_left();
}
