//! kduel in a kernel's git tree: what it takes, what it keeps, what it leaves alone.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside test functions")]

use std::fs;
use std::path::Path;

use kduel_tests::{Said, Sandbox};

fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A tree with one commit, tagged, in the folder that kduel is run in.
fn tree(sandbox: &Sandbox) {
    for (path, text) in [
        ("Makefile", "VERSION = 6\n"),
        ("Kconfig", "mainmenu \"Linux\"\n"),
        ("arch/x86/Makefile", "# x86\n"),
        (".gitignore", ".*\n*.o\n/script.yaml\n"),
        ("kernel/fork.c", "int a;\n"),
    ] {
        put(&sandbox.work(), path, text);
    }
    git(sandbox, &["init", "--quiet"]);
    git(sandbox, &["add", "--all"]);
    git(sandbox, &["commit", "--quiet", "-m", "all"]);
    git(sandbox, &["tag", "v6.1.9"]);
}

fn git(sandbox: &Sandbox, args: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    let said = Said::by(sandbox.program("git").args(who).args(args)).ends_with(0);
    said.stdout.trim().to_owned()
}

#[test]
fn one_command_compares_the_working_tree_and_keeps_what_it_was() {
    let sandbox = Sandbox::new();
    tree(&sandbox);
    put(&sandbox.work(), "kernel/fork.c", "int a;\nint b;\n");
    put(&sandbox.work(), "kernel/new.c", "int n;\n");
    put(&sandbox.work(), "kernel/fork.o", "an object of an in-tree build");
    let status = git(&sandbox, &["status", "--porcelain", "--ignored"]);

    let said = Said::by(&mut sandbox.fake("boots: []", &["-w", "fork-exit", "--quick"]));
    let said = said.ends_with(0).tells(&["base: v6.1.9 (", "and changes"]);
    let wanted = ["source: 2 files changed, +2 -0 over", "source/adhoc-patched.patch"];
    said.reports(&wanted);
    let kept = fs::read_to_string(sandbox.latest().join("source/adhoc-patched.patch")).unwrap();
    assert!(kept.contains("+int b;") && kept.contains("+int n;") && !kept.contains("object"));
    let run = fs::read_to_string(sandbox.latest().join("run.json")).unwrap();
    assert!(run.contains(&git(&sandbox, &["rev-parse", "HEAD"])), "{run}");

    let after = git(&sandbox, &["status", "--porcelain", "--ignored"]);
    assert_eq!(after.replace("!! script.yaml", "").trim_end(), status, "the tree is as it was");
    sandbox.says(&["report"]).ends_with(0).reports(&wanted);
}

#[test]
fn what_is_wrong_in_a_tree_is_said_before_anything_is_built() {
    let sandbox = Sandbox::new();
    tree(&sandbox);
    let plan = |arguments: &[&str]| sandbox.says(&[&["plan"], arguments].concat());
    plan(&["-w", "fork-exit"]).ends_with(2).tells(&["there is nothing to compare"]);
    let unknown = plan(&["-a", "v6.1.8", "-b", ".", "-w", "fork-exit"]);
    unknown.ends_with(2).tells(&["no revision in", "did you mean `v6.1.9`?"]);
    let patch = plan(&["-b", "v6.1.9+no.mbx", "-w", "fork-exit"]);
    patch.ends_with(2).tells(&["no.mbx does not exist"]);
}
