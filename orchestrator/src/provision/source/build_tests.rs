//! Builds of a tree whose Makefile makes a kernel of a header and two sources, the way a kernel's does
//! as far as it matters here: objects are made anew if their source is newer.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::super::testing::bzimage;
use super::super::{Cache, Provisioner};
use super::store::Built;
use crate::config::{ConfigPart, Origin, SourceSpec, Toolchain};
use crate::fault::{Failure, FailureClass};

const MAKEFILE: &str = "\
tinyconfig:
\t@echo CONFIG_TINY=y >.config
olddefconfig:
\t@sed -i -e /CONFIG_CONDITIONAL=y/d .config
kernel/%.o: kernel/%.c
\t@echo '  CC      $@'
\t@if grep -n BROKEN $<; then echo '$<:1:1: error: BROKEN' >&2; exit 1; fi
\t@cat $< >$@
arch/x86/boot/bzImage: kernel/fork.o kernel/exit.o .config
\t@echo '  BUILD   $@'
\t@cat arch/x86/header $^ >$@
\t@echo $(KBUILD_BUILD_USER) $(CURDIR) >>$@
\t@touch System.map vmlinux
bzImage: arch/x86/boot/bzImage
";

const KCONFIG: &str = "config TINY\nconfig CONDITIONAL\n\tdepends on MORE\nconfig MORE\n";

const FIX: &str =
    "--- a/kernel/fork.c\n+++ b/kernel/fork.c\n@@ -1 +1 @@\n-int fork;\n+long fork;\n";

struct Bench {
    dir: tempfile::TempDir,
    provisioner: Provisioner,
    told: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = told.clone();
        let provisioner = Provisioner {
            cache: Cache::new(dir.path().join("cache")),
            agent: PathBuf::from("agent"),
            tell: Arc::new(move |what| heard.lock().unwrap().push(what)),
            host_root: dir.path().join("no-host"),
            modules: &[],
        };
        let bench = Self { dir, provisioner, told };
        bench.write("linux/Makefile", MAKEFILE.as_bytes());
        bench.write("linux/Kconfig", KCONFIG.as_bytes());
        bench.write("linux/arch/x86/header", &bzimage("6.1.9-test"));
        bench.write("linux/kernel/fork.c", b"int fork;\n");
        bench.write("linux/kernel/exit.c", b"int exit;\n");
        fs::create_dir_all(bench.dir.path().join("linux/arch/x86/boot")).unwrap();
        bench.write("linux/arch/x86/boot/Makefile", b"#\n");
        bench
    }

    fn write(&self, place: &str, content: &[u8]) -> String {
        let path = self.dir.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    fn spec(&self) -> SourceSpec {
        SourceSpec {
            origin: Origin::Folder { path: self.dir.path().join("linux").display().to_string() },
            patches: Vec::new(),
            config: vec![ConfigPart::Minimal],
            toolchain: Toolchain::default(),
            cflags: Vec::new(),
            over: None,
        }
    }

    fn patched(&self, patch: &str) -> SourceSpec {
        let patches = vec![self.write("fix.patch", patch.as_bytes())];
        SourceSpec { patches, over: Some(Box::new(self.spec())), ..self.spec() }
    }

    fn build(&self, spec: &SourceSpec) -> Result<Built, Failure> {
        self.provisioner.build(spec)
    }

    fn entries(&self, folder: &str) -> usize {
        fs::read_dir(self.dir.path().join("cache").join(folder)).map_or(0, Iterator::count)
    }
}

fn text(dir: &Path, name: &str) -> String {
    String::from_utf8_lossy(&fs::read(dir.join(name)).unwrap()).into_owned()
}

#[test]
fn the_same_source_gives_the_same_kernel_and_is_built_once() {
    let bench = Bench::new();
    let first = bench.build(&bench.spec()).unwrap();
    assert_eq!(first.about.release, "6.1.9-test");
    assert!(text(&first.dir, "vmlinuz").contains("int fork;\nint exit;\n"));
    assert!(text(&first.dir, "config").contains("CONFIG_TTY=y"), "guests need it");
    let told = bench.told.lock().unwrap().len();
    assert_eq!(bench.build(&bench.spec()).unwrap().about, first.about);
    assert_eq!(bench.told.lock().unwrap().len(), told, "from the cache without a word");
    assert_eq!(bench.entries("rooms"), 0);
    assert_eq!(bench.provisioner.drop_builds(true).unwrap(), 2);
    let again = bench.build(&bench.spec()).unwrap();
    assert_eq!(again.about.digests, first.about.digests);
    let source = again.source().unwrap();
    assert_eq!((source.release, source.modules_dir), ("6.1.9-test".to_owned(), None));
}

#[test]
fn a_patched_sibling_is_built_on_the_objects_of_its_base() {
    let bench = Bench::new();
    bench.build(&bench.spec()).unwrap();
    let sibling = bench.build(&bench.patched(FIX)).unwrap();
    let log = text(&sibling.dir, "build.log");
    assert!(log.contains("CC      kernel/fork.o"), "{log}");
    assert!(!log.contains("kernel/exit.o"), "{log}");
    assert!(sibling.about.incremental);
    assert!(text(&sibling.dir, "vmlinuz").contains("long fork;\nint exit;\n"));

    let alone = SourceSpec { over: None, ..bench.patched(FIX) };
    bench.provisioner.drop_builds(true).unwrap();
    let full = bench.build(&alone).unwrap();
    assert!(!full.about.incremental);
    assert_eq!(full.about.digests, sibling.about.digests);
    assert!(text(Path::new(&bench.dir.path().join("linux/kernel")), "fork.c").contains("int fork"));
}

#[test]
fn a_source_that_does_not_compile_is_the_kernels_fault_and_leaves_no_kernel() {
    let bench = Bench::new();
    let failure = bench.build(&bench.patched(&FIX.replace("long", "BROKEN"))).unwrap_err();
    assert_eq!(failure.class, FailureClass::BuildFailed);
    assert!(failure.title.ends_with("kernel/fork.c:1:1: error: BROKEN"), "{failure}");
    assert!(failure.title.contains("with fix.patch"), "{failure}");
    assert_eq!((bench.entries("builds"), bench.entries("rooms")), (1, 0), "the base only");
    assert_eq!(bench.entries("logs"), 2);
}

#[test]
fn an_option_that_cannot_be_had_is_an_error_unless_it_is_optional() {
    let bench = Bench::new();
    let with = |optional| {
        let setting = "CONFIG_CONDITIONAL=y".to_owned();
        let item = ConfigPart::Item { setting, optional };
        SourceSpec { config: vec![ConfigPart::Minimal, item], ..bench.spec() }
    };
    let failure = bench.build(&with(false)).unwrap_err();
    assert_eq!(failure.class, FailureClass::BuildFailed);
    let row = "CONFIG_CONDITIONAL: wanted y, found n: depends on MORE (Kconfig:2); here MORE=n";
    assert_eq!(failure.details, [row]);
    bench.build(&with(true)).unwrap();
    assert!(bench.told.lock().unwrap().iter().any(|line| line.ends_with(row)));
}

#[test]
fn what_a_killed_build_left_is_swept_up_by_the_next() {
    let bench = Bench::new();
    bench.write("cache/rooms/.tmpX1y2Z3/room/upper/kernel/fork.o", b"half");
    bench.build(&bench.spec()).unwrap();
    assert_eq!(bench.entries("rooms"), 0);
}
