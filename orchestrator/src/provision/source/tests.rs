use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{Cache, Provisioner};
use super::SourceTree;
use crate::config::{Origin, SourceSpec, Toolchain};
use crate::fault::Failure;
use crate::host::git::Repository;
use crate::host::git::testing::{commit, kernel_tree, put, repository, run};

struct Bench {
    dir: tempfile::TempDir,
    provisioner: Provisioner,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provisioner = Provisioner {
            cache: Cache::new(dir.path().join("cache")),
            agent: PathBuf::from("agent"),
            tell: Arc::new(|_| {}),
            host_root: dir.path().join("no-host"),
            modules: &[],
        };
        Self { dir, provisioner }
    }

    fn folder(&self, name: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(&self, name: &str, text: &str) -> String {
        put(self.dir.path(), name, text);
        self.dir.path().join(name).display().to_string()
    }

    fn tree(&self, spec: &SourceSpec) -> Result<SourceTree, Failure> {
        self.provisioner.source_tree(spec)
    }
}

fn spec(origin: Origin, patches: &[&str]) -> SourceSpec {
    SourceSpec {
        origin,
        patches: patches.iter().map(|&patch| patch.to_owned()).collect(),
        config: Vec::new(),
        toolchain: Toolchain::default(),
        cflags: Vec::new(),
        over: None,
    }
}

fn folder(path: &Path) -> Origin {
    Origin::Folder { path: path.display().to_string() }
}

fn at(path: &Path, revision: &str, commit: &str) -> Origin {
    let (revision, commit) = (revision.to_owned(), commit.to_owned());
    Origin::Git { repository: path.display().to_string(), revision, commit }
}

/// Names of the files below a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let list = super::folder::List::read(folder, &|_| false).unwrap();
    list.paths().map(|path| path.display().to_string()).collect()
}

fn names_in(folder: &Option<PathBuf>) -> Vec<String> {
    names(folder.as_ref().unwrap())
}

const FIX: &str = "\
A fix.

--- a/kernel/fork.c
+++ b/kernel/fork.c
@@ -2,3 +2,3 @@ int a;
 int b;
-int c;
+long c;
 int d;
--- /dev/null
+++ b/kernel/new.c
@@ -0,0 +1 @@
+int n;
--- a/arch/x86/Makefile
+++ /dev/null
@@ -1 +0,0 @@
-# x86
";

#[test]
fn a_folder_is_copied_without_what_a_build_left_and_patched_beside_it() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    kernel_tree(&source);
    for made in ["kernel/fork.o", ".config", "include/generated/x.h", ".git/HEAD", "vmlinux"] {
        put(&source, made, "made");
    }
    let plain = bench.tree(&spec(folder(&source), &[])).unwrap();
    assert_eq!((plain.changed, plain.sha256), (None, plain.pristine_sha256.clone()));
    let expected = [".gitignore", "Kconfig", "Makefile", "arch/x86/Makefile", "kernel/fork.c"];
    assert_eq!(names(&plain.pristine), expected);

    let fix = bench.write("fix.patch", FIX);
    let patched = bench.tree(&spec(folder(&source), &[&fix])).unwrap();
    assert_eq!(patched.pristine, plain.pristine);
    assert_eq!(names_in(&patched.changed), ["kernel/fork.c", "kernel/new.c"]);
    assert_eq!(patched.removed, [PathBuf::from("arch/x86/Makefile")]);
    assert_eq!(patched.origin, format!("{} with fix.patch", source.display()));
    assert_ne!(patched.sha256, patched.pristine_sha256);
    let text = |tree: &Path| fs::read_to_string(tree.join("kernel/fork.c")).unwrap();
    assert!(text(patched.changed.as_ref().unwrap()).contains("long c;"));
    assert!(text(&plain.pristine).contains("int c;"));
    assert_eq!(bench.tree(&spec(folder(&source), &[&fix])).unwrap(), patched);
}

#[test]
fn a_patch_that_is_taken_back_leaves_nothing_changed() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    kernel_tree(&source);
    let there = bench.write(
        "1.patch",
        "--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1 @@\n-mainmenu \"Linux\"\n+mainmenu \"L\"\n",
    );
    let back = bench.write(
        "2.patch",
        "--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1 @@\n-mainmenu \"L\"\n+mainmenu \"Linux\"\n",
    );
    let tree = bench.tree(&spec(folder(&source), &[&there, &back])).unwrap();
    assert_eq!((tree.changed, tree.sha256), (None, tree.pristine_sha256));
}

#[test]
fn a_patch_that_does_not_apply_shows_its_hunk_and_leaves_nothing() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    kernel_tree(&source);
    let fix = bench.write("fix.patch", FIX);
    let wrong = bench.write("wrong.patch", &FIX.replace("int b;", "char b;"));
    let failure = bench.tree(&spec(folder(&source), &[&wrong])).unwrap_err();
    assert_eq!(failure.title, format!("wrong.patch does not apply to {}", source.display()));
    assert_eq!(failure.details[0], "kernel/fork.c:2, hunk 1 of 1:");
    assert!(failure.details.contains(&"  -int c;".to_owned()), "{failure}");
    let failure = bench.tree(&spec(folder(&source), &[&fix, &fix])).unwrap_err();
    assert!(failure.details.iter().any(|line| line.contains("kernel/new.c")), "{failure}");
    let none = bench.write("none.patch", "only words\n");
    let failure = bench.tree(&spec(folder(&source), &[&none])).unwrap_err();
    assert!(failure.title.contains("there is no patch in"), "{failure}");
    assert_eq!(names(&bench.folder("cache/changes")), [""; 0]);
}

#[test]
fn a_patch_leads_nowhere_but_into_the_tree() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    kernel_tree(&source);
    std::os::unix::fs::symlink("..", source.join("up")).unwrap();
    let outside = bench.write("outside", "x\n");
    for name in ["../outside", "../../../../outside", "up/../outside", "up/outside"] {
        let text = format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x\n+y\n");
        let patch = bench.write("escape.patch", &text);
        bench.tree(&spec(folder(&source), &[&patch])).unwrap_err();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "x\n", "{name}");
    }
}

#[test]
fn every_mail_of_a_mailbox_is_a_patch_and_decoded() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    kernel_tree(&source);
    let mail = |number: usize, subject: &str, encoding: &str, body: &str| {
        format!(
            "From git@z Thu Jan  1 00:00:00 1970\nFrom: A <a@localhost>\nSubject: [PATCH {number}/2] {subject}\n\
             Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n\n{body}\n"
        )
    };
    let one = "Words.\n---\n kernel/fork.c | 2 +-\n\n--- a/kernel/fork.c\n+++ b/kernel/fork.c\n\
        @@ -1,2 +1,2 @@\n-int a;\n+int a =3D 1;\n int b;\n-- \n2.39\n";
    let two = "--- a/kernel/fork.c\n+++ b/kernel/fork.c\n@@ -1,2 +1,2 @@\n-int a = 1;\n+int a = 2;\n int b;\n";
    let cover = mail(0, "cover", "8bit", "Nothing but words.\n");
    let series =
        cover + &mail(1, "first", "quoted-printable", one) + &mail(2, "second", "8bit", two);
    let mbox = bench.write("series.mbx", &series);
    let tree = bench.tree(&spec(folder(&source), &[&mbox])).unwrap();
    let changed = tree.changed.unwrap().join("kernel/fork.c");
    assert!(fs::read_to_string(changed).unwrap().starts_with("int a = 2;\nint b;"));

    let broken = bench.write("broken.mbx", &series.replace("-int a = 1;", "-int a = 7;"));
    let failure = bench.tree(&spec(folder(&source), &[&broken])).unwrap_err();
    assert!(failure.title.starts_with("broken.mbx: second does not apply"), "{failure}");
}

#[test]
fn a_tarball_is_unpacked_once_and_one_that_is_no_kernel_not_at_all() {
    let bench = Bench::new();
    let source = bench.folder("linux-6.1");
    kernel_tree(&source);
    let tarball = |name: &str, from: &Path| {
        let path = bench.dir.path().join(name);
        let file = fs::File::create(&path).unwrap();
        let mut builder =
            tar::Builder::new(flate2::write::GzEncoder::new(file, Default::default()));
        builder.append_dir_all("linux-6.1", from).unwrap();
        builder.into_inner().unwrap().finish().unwrap();
        Origin::Tarball { path: path.display().to_string() }
    };
    let tree = bench.tree(&spec(tarball("a.tar.gz", &source), &[])).unwrap();
    assert_eq!(names(&tree.pristine).len(), 5);
    assert_eq!(bench.tree(&spec(tarball("a.tar.gz", &source), &[])).unwrap(), tree);
    let failure = bench.tree(&spec(tarball("b.tar.gz", &source.join("arch")), &[])).unwrap_err();
    assert!(failure.title.contains("is no source tree of a kernel"), "{failure}");
    assert_eq!(fs::read_dir(bench.folder("cache/trees")).unwrap().count(), 1);
}

#[test]
fn what_a_killed_maker_left_is_swept_and_never_taken() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    kernel_tree(&source);
    put(&bench.folder("cache/trees"), ".tmpabc/tree/Makefile", "half\n");
    let fix = bench.write("fix.patch", FIX);
    put(&bench.folder("cache/changes"), ".tmpabc/changes/files/x", "half\n");
    let tree = bench.tree(&spec(folder(&source), &[&fix])).unwrap();
    assert!(!tree.pristine.join("../.tmpabc").exists());
    let changed = tree.changed.clone().unwrap();
    assert!(!changed.join("../../.tmpabc").exists());
    // A change that somebody changed is made again.
    fs::write(changed.join("kernel/new.c"), "spoilt").unwrap();
    assert_eq!(bench.tree(&spec(folder(&source), &[&fix])).unwrap(), tree);
    assert_eq!(fs::read_to_string(changed.join("kernel/new.c")).unwrap(), "int n;\n");
}

#[test]
fn a_commit_lies_over_the_one_that_it_is_compared_with() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    repository(&source);
    let first = run(&source, &["rev-parse", "HEAD"]);
    put(&source, "kernel/fork.c", "int a;\n");
    fs::remove_file(source.join("arch/x86/Makefile")).unwrap();
    put(&source, "arch/x86/Makefile/in-its-place", "x\n");
    fs::remove_file(source.join("Kconfig")).unwrap();
    put(&source, "Kconfig", "mainmenu \"Linux\"\n");
    let second = commit(&source, "second");
    put(&source, "kernel/new.c", "int n;\n");

    let base = spec(at(&source, "v6.1.9", &first), &[]);
    let tree = bench.tree(&base).unwrap();
    assert_eq!(tree.origin, format!("{} at v6.1.9 ({})", source.display(), &first[..12]));
    assert_eq!(names(&tree.pristine).len(), 5);

    let mut next = spec(at(&source, &second, &second), &[]);
    next.over = Some(Box::new(base.clone()));
    let over = bench.tree(&next).unwrap();
    assert_eq!(over.pristine, tree.pristine);
    assert_eq!(names_in(&over.changed), ["arch/x86/Makefile/in-its-place", "kernel/fork.c"]);
    assert!(over.removed.is_empty(), "a folder is in the file's place");
    next.over = None;
    assert_eq!(bench.tree(&next).unwrap().changed, None, "by itself it is its own tree");

    let store = bench.provisioner.cache.folder("git").unwrap();
    let found = Repository::find(&source, &store).unwrap().unwrap();
    let snapshot = found.snapshot().unwrap().commit;
    let mut working = spec(at(&source, ".", &snapshot), &[]);
    working.over = Some(Box::new(base));
    let over = bench.tree(&working).unwrap();
    assert_eq!(names_in(&over.changed)[1..], ["kernel/fork.c", "kernel/new.c"]);
    assert!(
        over.origin.ends_with(&format!(" at {} and changes", &second[..12])),
        "{}",
        over.origin
    );
}

#[test]
fn a_repository_elsewhere_is_fetched_without_its_history() {
    let bench = Bench::new();
    let source = bench.folder("linux");
    repository(&source);
    put(&source, "kernel/new.c", "int n;\n");
    let second = commit(&source, "second");
    let address = format!("file://{}", source.display());
    let asked = crate::host::git::remote::commit(&address, "v6.1.9").unwrap();
    let failure = crate::host::git::remote::commit(&address, "v6.1.8").unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("did you mean `v6.1.9`?"));
    let origin = |revision: &str, commit: &str| Origin::Git {
        repository: address.clone(),
        revision: revision.to_owned(),
        commit: commit.to_owned(),
    };
    let base = spec(origin("v6.1.9", &asked), &[]);
    assert_eq!(names(&bench.tree(&base).unwrap().pristine).len(), 5);
    let mut next = spec(origin("main", &second), &[]);
    next.over = Some(Box::new(base));
    fs::rename(&source, bench.dir.path().join("away")).unwrap();
    bench.tree(&next).unwrap_err();
    fs::rename(bench.dir.path().join("away"), &source).unwrap();
    assert_eq!(names_in(&bench.tree(&next).unwrap().changed), ["kernel/new.c"]);
}
