//! Kernels that are built here, as the user names them in a git tree.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, outside test functions")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use kduel::cli::args::RunArgs;
use kduel::config::{
    ConfigPart, Diagnostics, Environment, KernelSpec, Loaded, Origin, SourceSpec, load,
};
use kduel::host::git::git;
use kduel::provision::source::Record;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
}

/// A folder with a kernel's git tree `linux` in it: v6.1.9 on main, one more commit on `topic`.
struct Tree {
    dir: tempfile::TempDir,
    linux: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let linux = dir.path().canonicalize().unwrap().join("linux");
        let tree = Self { dir, linux };
        tree.put("Makefile", "VERSION = 6\n");
        tree.put("Kconfig", "mainmenu \"Linux\"\n");
        tree.put("arch/x86/Makefile", "# x86\n");
        tree.put(".gitignore", ".*\n*.o\n!.gitignore\n");
        tree.git(&["init", "--quiet", "--initial-branch=main"]);
        tree.commit("all");
        tree.git(&["tag", "v6.1.9"]);
        tree.git(&["checkout", "--quiet", "-b", "topic"]);
        tree.put("kernel/fork.c", "int a;\n");
        tree.commit("fork");
        tree
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.linux.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
        let tool = git().args(who).args(args).within(&self.linux);
        let output =
            tool.env("GIT_CONFIG_GLOBAL", "/dev/null").run(Duration::from_secs(60)).unwrap();
        assert!(output.status.success(), "git {args:?}: {}", output.stderr);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self, subject: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", subject]);
    }

    fn id(&self, revision: &str) -> String {
        self.git(&["rev-parse", &format!("{revision}^{{commit}}")])
    }

    fn environment(&self, current: &Path) -> Environment {
        Environment { current_dir: current.to_owned(), ..Environment::below(self.dir.path()) }
    }

    fn load_in(&self, current: &Path, line: &str) -> Result<Loaded, Diagnostics> {
        let words = std::iter::once("kduel").chain(line.split(' '));
        load(&Cli::try_parse_from(words).unwrap().run, &self.environment(current))
    }

    fn load(&self, line: &str) -> Loaded {
        self.load_in(&self.linux, line).unwrap_or_else(|error| panic!("{line}\n{error}"))
    }

    fn refused(&self, line: &str) -> String {
        self.load_in(&self.linux, line).unwrap_err().to_string()
    }
}

fn sides(loaded: &Loaded) -> Vec<(&str, &str, &SourceSpec)> {
    let sides = loaded.experiments[0].sides.iter();
    sides
        .map(|side| match &side.kernel {
            KernelSpec::Source(spec) => (side.name.as_str(), side.kernel_name.as_str(), &**spec),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn commit_of(spec: &SourceSpec) -> &str {
    match &spec.origin {
        Origin::Git { commit, .. } => commit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn in_a_kernel_tree_the_working_tree_is_compared_with_where_its_branch_began() {
    let tree = Tree::new();
    tree.put("kernel/new.c", "int n;\n");
    for current in [tree.linux.clone(), tree.linux.join("arch/x86")] {
        let loaded = tree.load_in(&current, "-w fork-exit").unwrap();
        let [(base, name, first), (patched, here, second)] = sides(&loaded)[..] else {
            panic!("two sides")
        };
        assert_eq!((base, name, patched, here), ("base", "v6.1.9", "patched", "."));
        assert_eq!(commit_of(first), tree.id("v6.1.9"));
        assert_ne!(commit_of(second), tree.id("HEAD"));
        assert_eq!(second.over.as_deref(), Some(first));
        assert_eq!(first.config, [ConfigPart::Minimal]);
        let notes = loaded.notes.join("\n");
        assert!(notes.contains("base: v6.1.9 (") && notes.contains("has with main"), "{notes}");
        assert!(notes.contains(" and changes"), "{notes}");

        let record = Record::of(second, &tree.environment(&current).git_store).unwrap();
        assert_eq!(record.identity.base.as_deref(), Some(commit_of(first)));
        assert_eq!((record.identity.files, record.identity.added), (2, 2));
        assert!(String::from_utf8(record.patches).unwrap().contains("+int n;"));
    }
}

#[test]
fn what_is_left_out_is_filled_in_where_it_can_be_known() {
    let tree = Tree::new();
    let commits = |line: &str| {
        let loaded = tree.load(line);
        sides(&loaded).iter().map(|side| commit_of(side.2).to_owned()).collect::<Vec<_>>()
    };
    let (tag, head) = (tree.id("v6.1.9"), tree.id("topic"));
    assert_eq!(commits("-w fork-exit"), [tag.clone(), head.clone()], "a clean tree is its HEAD");
    assert_eq!(commits("-a v6.1.9 -w fork-exit"), [tag.clone(), head.clone()]);
    assert_eq!(commits("-b topic -w fork-exit"), [tag.clone(), head.clone()]);
    assert_eq!(commits("-b . -w fork-exit"), [tag.clone(), head.clone()]);
    assert_eq!(commits("-a HEAD~1 -b HEAD -w fork-exit"), [tag, head]);

    tree.git(&["checkout", "--quiet", "main"]);
    let said = tree.refused("-w fork-exit");
    assert!(said.contains("there is nothing to compare"), "{said}");
    let said = tree.refused("-a v6.1.9 -b . -w fork-exit");
    assert!(said.contains("side `b` is the same as `a`"), "{said}");
    tree.put("Kconfig", "changed\n");
    let loaded = tree.load("-w fork-exit");
    assert_eq!(commit_of(sides(&loaded)[0].2), tree.id("HEAD"), "uncommitted work over its HEAD");
}

#[test]
fn patches_lie_over_a_kernel_and_its_other_side_has_none() {
    let tree = Tree::new();
    tree.put("../fix.mbx", "--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1 @@\n-x\n+y\n");
    tree.put("../series", "fix.mbx\n");
    let loaded = tree.load("-b v6.1.9+../fix.mbx+../series -w fork-exit");
    let found = sides(&loaded);
    let short = |path: &String| path.rsplit('/').next().unwrap().to_owned();
    assert_eq!(found[0].2.patches, [""; 0]);
    assert_eq!(found[1].2.patches.iter().map(short).collect::<Vec<_>>(), ["fix.mbx", "fix.mbx"]);
    assert_eq!(found[1].2.over.as_deref(), Some(found[0].2));

    let package = "source:linux-source-6.1@bookworm=6.1.176-1";
    let loaded = tree.load(&format!("-b {package}+../fix.mbx -w fork-exit"));
    let origin = Origin::Debian {
        package: "linux-source-6.1".into(),
        suite: "bookworm".into(),
        version: Some("6.1.176-1".into()),
    };
    assert_eq!(sides(&loaded)[1].2.origin, origin);
    let said = tree.refused("-a v6.1.9 -b v6.1.9+../no.mbx -w fork-exit");
    assert!(said.contains("no.mbx does not exist"), "{said}");
    let said = tree.refused("-a debian:sid -b debian:sid+../fix.mbx -w fork-exit");
    assert!(said.contains("patches need a kernel that is built here"), "{said}");
}

#[test]
fn a_config_of_the_command_line_is_that_of_every_kernel_built_here() {
    let tree = Tree::new();
    tree.put(".config", "CONFIG_SMP=y\n");
    let line = "-a v6.1.9 -b . --config tree --config-item CONFIG_HZ=250 --config-item-b CONFIG_PSI=n -w fork-exit";
    let loaded = tree.load(line);
    let found = sides(&loaded);
    let item = |setting: &str| ConfigPart::Item { setting: setting.to_owned(), optional: false };
    let path = tree.linux.join(".config").display().to_string();
    assert_eq!(found[0].2.config, [ConfigPart::File { path: path.clone() }, item("CONFIG_HZ=250")]);
    assert_eq!(found[1].2.config[2], item("CONFIG_PSI=n"));
    let loaded = tree.load("-a v6.1.9 -b v6.1.9 --config-item-b CONFIG_PSI=n -w fork-exit");
    assert_eq!(sides(&loaded)[1].2.config, [ConfigPart::Minimal, item("CONFIG_PSI=n")]);

    let said = tree.refused("-a v6.1.9 -b . --config-item-b PSI=y -w fork-exit");
    assert!(said.contains("did you mean `CONFIG_PSI=y`?"), "{said}");
    let said = tree.refused("-a host -b debian:sid --config tree -w fork-exit");
    assert!(said.contains("are for kernels that are built here"), "{said}");
}

#[test]
fn a_saved_document_names_the_tree_that_it_is_not_in() {
    let tree = Tree::new();
    tree.put("kernel/new.c", "int n;\n");
    tree.put("../fix.patch", "--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1 @@\n-x\n+y\n");
    let lines = [
        "-w fork-exit",
        "-a v6.1.9 -b .+../fix.patch --config-item CONFIG_PSI=y -w fork-exit",
        "-a v6.1.9 -b ../linux+../fix.patch -w fork-exit",
    ];
    for (number, line) in lines.into_iter().enumerate() {
        for file in [format!("../{number}.yaml"), format!(".git/{number}.yaml")] {
            let loaded = tree.load(&format!("{line} --save {file}"));
            loaded.save().unwrap();
            let written = fs::read_to_string(tree.linux.join(&file)).unwrap();
            let again = tree.load_in(&tree.linux, &format!("-f {file}"));
            let again = again.unwrap_or_else(|error| panic!("{line}\n{written}\n{error}"));
            // The same files may be called by other ways.
            let plain = |spec: &SourceSpec| {
                let real = |path: &String| fs::canonicalize(path).unwrap().display().to_string();
                SourceSpec { patches: spec.patches.iter().map(real).collect(), ..spec.clone() }
            };
            let specs = |loaded: &Loaded| {
                let sides = sides(loaded);
                sides.iter().map(|side| (side.0.to_owned(), plain(side.2))).collect::<Vec<_>>()
            };
            for (one, other) in specs(&loaded).iter().zip(specs(&again)) {
                assert_eq!(one.0, other.0);
                assert!(one.1.is_same(&other.1), "{written}\n{one:?}\n{other:?}");
            }
        }
    }
}

#[test]
fn an_unknown_revision_is_told_with_the_names_near_to_it() {
    let tree = Tree::new();
    let said = tree.refused("-a v6.1.8 -b topc -w fork-exit");
    assert!(said.contains("`v6.1.8` is no kernel and no revision"), "{said}");
    assert!(said.contains("did you mean `v6.1.9`?") && said.contains("did you mean `topic`?"));

    let elsewhere = tree.dir.path();
    for (line, wanted) in [
        ("-a v6.1.9 -b host -w fork-exit", "is in no git tree of a kernel"),
        ("-a host -b . -w fork-exit", "is a kernel's working tree under git"),
    ] {
        let said = tree.load_in(elsewhere, line).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
    }
    let said = tree.load_in(elsewhere, "-w fork-exit").unwrap_err().to_string();
    assert!(said.contains("failed to read the document"), "{said}");
    fs::remove_dir_all(tree.linux.join(".git")).unwrap();
    let said = tree.refused("-a host -b . -w fork-exit");
    assert!(said.contains("source:."), "{said}");
    let loaded = tree.load("-a source:. -b host -w fork-exit");
    let plain = KernelSpec::Source(Box::new(SourceSpec {
        origin: Origin::Folder { path: tree.linux.display().to_string() },
        patches: Vec::new(),
        config: vec![ConfigPart::Minimal],
        toolchain: Default::default(),
        cflags: Vec::new(),
        over: None,
    }));
    assert_eq!(loaded.experiments[0].sides[0].kernel, plain);
}

#[test]
fn a_document_names_sources_in_every_way() {
    let tree = Tree::new();
    tree.put("../linux.tar.xz", "x");
    tree.put("../p/2.patch", "x");
    tree.put("../p/1.patch", "x");
    let text = "version: 1
kernels:
  third: { extends: second, patches: [p/2.patch], config: [host] }
  second: { extends: first, patches: p/1.patch, config: { optional: CONFIG_PSI=y }, cflags: -O3 }
  first: { source: { git: linux, rev: topic }, toolchain: clang-16, config: [minimal, CONFIG_HZ=100] }
  tree: { source: { folder: linux } }
  here: { source: { git: linux, rev: . }, patches: [\"p/*.patch\"] }
  elsewhere: { source: { git: \"https://host.invalid/linux.git\", rev: v6.12 } }
  tarball: { source: linux.tar.xz }
  package: { source: { debian: linux-source-6.1, suite: bookworm }, config: distribution }
experiments:
  demo:
    sides: { one: first, two: second, three: third, four: second+p/2.patch }
    workloads: [fork-exit]
";
    fs::write(tree.dir.path().join("kernels.yaml"), text).unwrap();
    let loaded = tree.load_in(tree.dir.path(), "demo").unwrap_or_else(|error| panic!("{error}"));
    let spec = |name: &str| match &loaded.kernels[name] {
        KernelSpec::Source(spec) => &**spec,
        other => panic!("{other:?}"),
    };
    let (first, second, third) = (spec("first"), spec("second"), spec("third"));
    assert_eq!(commit_of(first), tree.id("topic"));
    assert_eq!((second.over.as_deref(), third.over.as_deref()), (Some(first), Some(second)));
    assert_eq!((second.patches.len(), third.patches.len()), (1, 2));
    assert_eq!(second.toolchain, first.toolchain);
    let optional = ConfigPart::Item { setting: "CONFIG_PSI=y".to_owned(), optional: true };
    assert_eq!((second.config.len(), &second.config[2]), (3, &optional));
    assert_eq!(
        (&third.config[..], &third.cflags[..]),
        (&[ConfigPart::Host][..], &["-O3".to_owned()][..])
    );
    assert_eq!(commit_of(spec("tree")), tree.id("HEAD"), "a folder under git is a snapshot");
    assert!(spec("here").patches[0].ends_with("p/1.patch"));
    assert_eq!(commit_of(spec("elsewhere")), "", "asked when it is needed");
    assert!(
        matches!(&spec("tarball").origin, Origin::Tarball { path } if path.ends_with("/linux.tar.xz"))
    );
    let distribution =
        ConfigPart::Distribution { suite: "bookworm".into(), flavour: "cloud-amd64".into() };
    assert_eq!(spec("package").config, [distribution]);
    let four = &loaded.experiments[0].sides[3].kernel;
    assert!(matches!(four, KernelSpec::Source(four) if four.over.as_deref() == Some(second)));
}
