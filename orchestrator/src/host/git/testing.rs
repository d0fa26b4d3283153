//! Small repositories for tests.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::git;

/// Runs git in `folder`, with an identity and no settings of the user's.
pub(crate) fn run(folder: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    let tool = git().args(who).args(args).within(folder);
    let tool = tool.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = tool.run(Duration::from_secs(60)).unwrap();
    assert!(output.status.success(), "git {args:?}: {}", output.stderr);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a file and its folders.
pub(crate) fn put(folder: &Path, path: &str, content: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Files that look like a kernel tree, not under git.
pub(crate) fn kernel_tree(folder: &Path) {
    put(folder, "Makefile", "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\nEXTRAVERSION =\n");
    put(folder, "Kconfig", "mainmenu \"Linux\"\n");
    put(folder, "arch/x86/Makefile", "# x86\n");
    put(folder, "kernel/fork.c", "int a;\nint b;\nint c;\nint d;\nint e;\nint f;\nint g;\n");
    put(folder, ".gitignore", ".*\n*.o\n!.gitignore\n/vmlinux\n/arch/x86/boot/bzImage\n");
}

/// [`kernel_tree`] in a repository on the branch `main` with one commit, tagged v6.1.9.
pub(crate) fn repository(folder: &Path) {
    kernel_tree(folder);
    run(folder, &["init", "--quiet", "--initial-branch=main"]);
    commit(folder, "all");
    run(folder, &["tag", "v6.1.9"]);
}

/// Commits all changes; the commit's id.
pub(crate) fn commit(folder: &Path, subject: &str) -> String {
    run(folder, &["add", "--all"]);
    run(folder, &["commit", "--quiet", "-m", subject]);
    run(folder, &["rev-parse", "HEAD"])
}
