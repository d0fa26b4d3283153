//! From a source tree to a kernel in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::cache::{CacheLock, sha256_of, sha256_of_file};
use super::super::modules::ModuleTree;
use super::super::{Provisioner, bzimage};
use super::config::Recipe;
use super::progress::Progress;
use super::room::{Room, Way};
use super::store::{self, About, Built};
use super::symbols::Symbols;
use super::toolchain::{self, Found};
use super::{SourceTree, broken, failure, layers, room};
use crate::clock::Stopwatch;
use crate::config::SourceSpec;
use crate::fault::Failure;

/// How kernels are built here; part of every key, to be renewed with it.
const RECIPE: &str = "kduel build 1";

/// How many steps a build has for a hundred options that are on, where no build of its kind is known.
const STEPS_PER_100_OPTIONS: usize = 270;

/// What is handed over.
const HAND_OVER: &str = r#"
cp arch/x86/boot/bzImage "$ROOM/out/vmlinuz"
cp .config "$ROOM/out/config"
cp System.map vmlinux "$ROOM/out/"
"#;

/// Whatever lists dependencies is not needed: kduel reads them from the modules.
const HAND_OVER_MODULES: &str = r#"
make -s "$@" modules_install INSTALL_MOD_PATH="$ROOM/installed" INSTALL_MOD_STRIP=1 DEPMOD=true
rm -f "$ROOM"/installed/lib/modules/*/build "$ROOM"/installed/lib/modules/*/source
mv "$ROOM"/installed/lib/modules/* "$ROOM/out/modules"
"#;

/// All that decides what comes out of a build.
pub struct Order {
    tree: SourceTree,
    recipe: Recipe,
    symbols: Symbols,
    compiler: Found,
    cflags: Vec<String>,
    key: String,
}

impl Provisioner {
    pub(super) fn lock_building(&self) -> Result<CacheLock, Failure> {
        self.cache.lock("builds", || {
            self.tell("waiting for another kduel that builds a kernel".to_owned());
        })
    }

    /// The kernel of `spec`, from the cache if it was built before.
    pub(super) fn build(&self, spec: &SourceSpec) -> Result<Built, Failure> {
        let order = self.order(spec)?;
        if let Some(built) = Built::get(&self.cache, &order.key)? {
            return Ok(Built {
                about: About { origin: order.tree.origin, ..built.about },
                ..built
            });
        }
        let _held = self.lock_building()?;
        if let Some(built) = Built::get(&self.cache, &order.key)? {
            return Ok(built);
        }
        let rooms = store::sweep(&self.cache)?;
        let way = Room::way(&rooms)?;
        if way == Way::Copy {
            self.tell(
                "neither root nor a user namespace may mount here: kernels are built in full, in copies of their trees"
                    .to_owned(),
            );
            return self.carry_out(&order, None, &rooms, way);
        }
        let base = root(spec).filter(|base| fits(spec, base));
        let base = base.map(|base| self.order(base)).transpose()?;
        let base = base.filter(|base| {
            base.tree.pristine_sha256 == order.tree.pristine_sha256 && base.key != order.key
        });
        let Some(base) = base else { return self.carry_out(&order, None, &rooms, way) };
        let objects = match store::objects(&self.cache, &base.key)? {
            Some(objects) => objects,
            None => {
                self.carry_out(&base, None, &rooms, way)?;
                self.cache.folder("objects")?.join(&base.key)
            }
        };
        self.carry_out(&order, Some((&base.tree, objects)), &rooms, way)
    }

    /// The kernel of `spec` if it is in the cache, built. Gets the source if there are kernels at all that
    /// could be of it, since its content decides.
    ///
    /// # Errors
    /// If the source cannot be had, or its config cannot be made.
    pub fn find_built(&self, spec: &SourceSpec) -> Result<Option<Built>, Failure> {
        if Built::all(&self.cache)?.is_empty() {
            return Ok(None);
        }
        Built::get(&self.cache, &self.order(spec)?.key)
    }

    fn order(&self, spec: &SourceSpec) -> Result<Order, Failure> {
        let compiler = toolchain::find(&spec.toolchain)?;
        let tree = self.source_tree(spec)?;
        let symbols = Symbols::read(&|place| {
            let places = tree.changed.iter().chain([&tree.pristine]).map(|dir| dir.join(place));
            places.into_iter().find_map(|path| fs::read_to_string(path).ok())
        });
        let recipe = self.recipe(spec, &tree, &symbols)?;
        let parts =
            [RECIPE, &tree.sha256, &recipe.text(), &compiler.identity, &spec.cflags.join("\n")];
        let key = sha256_of(parts.join("\0").as_bytes());
        Ok(Order { tree, recipe, symbols, compiler, cflags: spec.cflags.clone(), key })
    }

    /// Builds, over the objects of another tree if there are any.
    fn carry_out(
        &self,
        order: &Order,
        over: Option<(&SourceTree, PathBuf)>,
        rooms: &Path,
        way: Way,
    ) -> Result<Built, Failure> {
        let temporary =
            tempfile::tempdir_in(rooms).map_err(|error| broken("write", rooms, &error))?;
        let dir = temporary.path().join("room");
        fs::create_dir(&dir).map_err(|error| broken("make folder", &dir, &error))?;
        let made = self.build_in(&dir, order, over, way);
        room::clear(&dir);
        made
    }

    fn build_in(
        &self,
        dir: &Path,
        order: &Order,
        over: Option<(&SourceTree, PathBuf)>,
        way: Way,
    ) -> Result<Built, Failure> {
        let watch = Stopwatch::start();
        let incremental = over.is_some();
        let (below, objects) = match over {
            Some((tree, objects)) => (tree.clone(), Some(objects)),
            None => (layers::pristine(&order.tree), None),
        };
        let stack: Vec<PathBuf> =
            [order.tree.pristine.clone()].into_iter().chain(objects).collect();
        let room = Room::new(dir, &stack, way)?;
        room.remove(&layers::write(&order.tree, &below, &room.upper())?)?;

        let log = self.cache.folder("logs")?.join(format!("build-{}.log", &order.key[..16]));
        let mut work =
            Work { provisioner: self, order, room: &room, output: Vec::new(), log: &log };
        let config = work.configure()?;
        let steps = work.compile(&config, incremental, watch)?;
        work.hand_over(&config)?;
        work.save_log();
        let _ = fs::copy(&log, room.out().join("build.log"));
        let about = about(order, &room.out(), steps, watch.elapsed().as_secs(), incremental)?;
        let built = Built::put(&self.cache, &order.key, &room.out(), about)?;
        if way != Way::Copy && !incremental {
            store::keep_objects(&self.cache, &order.key, &room.upper())?;
        }
        let seconds = watch.elapsed().as_secs_f64();
        self.tell(format!("built {} in {seconds:.0} s", built.about.origin));
        Ok(built)
    }

    /// How many steps the build will have.
    fn expected_steps(&self, config: &str) -> Option<usize> {
        let same = |built: &Built| {
            !built.about.incremental
                && built.about.digests.get("config") == Some(&sha256_of(config.as_bytes()))
        };
        let known = Built::all(&self.cache).ok()?.into_iter().find(same);
        let on = config.lines().filter(|line| line.ends_with("=y") || line.ends_with("=m")).count();
        Some(known.map_or(on * STEPS_PER_100_OPTIONS / 100, |built| built.about.steps))
    }
}

/// The kernel at the end of the chain of those that builds begin with.
fn root(spec: &SourceSpec) -> Option<&SourceSpec> {
    let mut base = spec.over.as_deref()?;
    while let Some(over) = base.over.as_deref() {
        base = over;
    }
    Some(base)
}

/// Whether objects of `base` are of use for `spec`.
fn fits(spec: &SourceSpec, base: &SourceSpec) -> bool {
    spec.toolchain == base.toolchain
        && spec.cflags == base.cflags
        && spec.config.first() == base.config.first()
}

/// A build that is going on.
struct Work<'a> {
    provisioner: &'a Provisioner,
    order: &'a Order,
    room: &'a Room,
    output: Vec<String>,
    log: &'a Path,
}

impl Work<'_> {
    /// Gives the text of the `.config` that came out.
    fn configure(&mut self) -> Result<String, Failure> {
        let Order { recipe, symbols, tree, .. } = self.order;
        let mut text = String::new();
        if recipe.tiny {
            self.run(&self.make(&["-s", "tinyconfig"]), &mut |_| ())?;
            text = self.read_config()?;
        }
        self.room.config(&format!("{text}{}", recipe.draft.text()))?;
        self.run(&self.make(&["-s", "olddefconfig"]), &mut |_| ())?;
        let config = self.read_config()?;
        for row in recipe.draft.check(&config, symbols, &tree.origin)? {
            self.provisioner.tell(format!("{}: optional {row}", tree.origin));
        }
        Ok(config)
    }

    fn read_config(&self) -> Result<String, Failure> {
        let path = self.room.upper().join(".config");
        fs::read_to_string(&path).map_err(|error| Failure::host_io("read", &path, &error))
    }

    /// Gives the number of steps.
    fn compile(
        &mut self,
        config: &str,
        incremental: bool,
        watch: Stopwatch,
    ) -> Result<usize, Failure> {
        let provisioner = self.provisioner;
        let origin = &self.order.tree.origin;
        let expected = if incremental { None } else { provisioner.expected_steps(config) };
        let mut progress = Progress::new(origin, expected);
        let how = if incremental { ", with the objects of its base" } else { "" };
        provisioner.tell(format!("building {origin}{how}"));
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = format!("-j{jobs}");
        let mut words = vec![jobs.as_str(), "bzImage"];
        if has_modules(config) {
            words.push("modules");
        }
        self.run(&self.make(&words), &mut |line| {
            if let Some(said) = progress.line(line, watch.elapsed()) {
                provisioner.tell(said);
            }
        })?;
        Ok(progress.done())
    }

    fn hand_over(&mut self, config: &str) -> Result<(), Failure> {
        let modules = if has_modules(config) { HAND_OVER_MODULES } else { "" };
        let script = format!("set -eu\n{HAND_OVER}{modules}");
        let mut words = vec!["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
        words.extend(self.order.compiler.arguments.iter().cloned());
        self.run(&words, &mut |_| ())
    }

    fn make(&self, words: &[&str]) -> Vec<String> {
        let mut all = vec!["make".to_owned()];
        all.extend(self.order.compiler.arguments.iter().cloned());
        if !self.order.cflags.is_empty() {
            all.push(format!("KCFLAGS={}", self.order.cflags.join(" ")));
        }
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all
    }

    fn run(&mut self, words: &[String], heard: &mut dyn FnMut(&str)) -> Result<(), Failure> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let own = self.output.len();
        let output = &mut self.output;
        let ended = self.room.lines(&words, &mut |line| {
            heard(line);
            output.push(line.to_owned());
        })?;
        output.extend(ended.stderr.lines().map(str::to_owned));
        if ended.status.success() {
            return Ok(());
        }
        self.save_log();
        Err(failure::of_output(&self.order.tree.origin, &self.output[own..], self.log))
    }

    fn save_log(&self) {
        let text: String = self.output.iter().map(|line| format!("{line}\n")).collect();
        if let Err(error) = fs::write(self.log, text) {
            tracing::warn!(path = %self.log.display(), %error, "failed to write the log of a build");
        }
    }
}

fn has_modules(config: &str) -> bool {
    config.lines().any(|line| line.ends_with("=m"))
}

fn about(
    order: &Order,
    out: &Path,
    steps: usize,
    seconds: u64,
    incremental: bool,
) -> Result<About, Failure> {
    let image = out.join("vmlinuz");
    let content = fs::read(&image).map_err(|error| Failure::host_io("read", &image, &error))?;
    let digest = |name: &str| {
        let path = out.join(name);
        let digest =
            sha256_of_file(&path).map_err(|error| Failure::host_io("read", &path, &error))?;
        Ok((name.to_owned(), digest))
    };
    let modules = Some(out.join("modules")).filter(|dir| dir.is_dir());
    Ok(About {
        release: bzimage::release(&content, &image)?,
        origin: order.tree.origin.clone(),
        tree_sha256: order.tree.sha256.clone(),
        compiler: order.compiler.version.clone(),
        cflags: order.cflags.clone(),
        digests: ["vmlinuz", "config", "System.map", "vmlinux"]
            .into_iter()
            .map(digest)
            .collect::<Result<_, Failure>>()?,
        steps,
        seconds,
        incremental,
        modules: modules
            .map(|dir| ModuleTree::scan(&dir))
            .transpose()?
            .map_or(0, |tree| tree.len()),
    })
}
