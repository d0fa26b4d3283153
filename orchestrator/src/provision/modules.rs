//! Kernel modules: found, unpacked, and put into the order in which they must be loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{cache, compression, elf};
use crate::fault::{Failure, FailureClass};

/// What a guest of a timed run cannot do without: the network card that SSH comes in by. Unix
/// sockets, IPv4, pipes, tmpfs and cgroups are built into every kernel that can run Debian.
pub const NEEDED: &[&str] = &["virtio_pci", "virtio_net"];

/// What a guest with an image needs besides, on a virtio disk or, in exact runs, as memory.
pub fn image_modules(exact: bool) -> &'static [&'static str] {
    match exact {
        false => &["virtio_blk", "erofs", "overlay"],
        true => &["libnvdimm", "nfit", "nd_btt", "nd_pmem", "erofs", "overlay"],
    }
}

/// A module ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// With underscores: `virtio_net`.
    pub name: String,
    /// The unpacked ELF object.
    pub content: Vec<u8>,
}

/// The modules of one kernel.
#[derive(Debug, Clone, Default)]
pub struct ModuleTree {
    dir: PathBuf,
    files: BTreeMap<String, PathBuf>,
    builtin: Option<BTreeSet<String>>,
    digests: BTreeMap<PathBuf, String>,
}

impl ModuleTree {
    /// The modules at or below `dir`: by `modules.order` where one lies there, else by looking.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn scan(dir: &Path) -> Result<Self, Failure> {
        let order = fs::read_to_string(dir.join("modules.order")).ok();
        let mut paths = order.as_deref().map_or_else(Vec::new, |order| ordered(dir, order));
        // An empty list is that of a kernel without modules, and saves walking its tree.
        if paths.is_empty() && order.is_none_or(|order| !order.trim().is_empty()) {
            walk(dir, &mut paths)?;
        }
        let files =
            paths.into_iter().filter_map(|path| Some((module_name(&path)?, path))).collect();
        let builtin = fs::read_to_string(dir.join("modules.builtin"))
            .ok()
            .map(|text| text.lines().filter_map(|line| module_name(Path::new(line))).collect());
        Ok(Self { dir: dir.to_owned(), files, builtin, digests: BTreeMap::new() })
    }

    /// With SHA-256 by path below the folder, checked whenever a module is read.
    #[must_use]
    pub fn with_digests(mut self, digests: BTreeMap<PathBuf, String>) -> Self {
        self.digests = digests;
        self
    }

    /// How many modules there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The modules `wanted` and all they depend on, in load order. A name that is no file is built
    /// in: certainly so if `modules.builtin` lists it; if there is no such list it is assumed, and
    /// the kernel's config is what is checked.
    ///
    /// # Errors
    /// If one is neither a file nor in a list that is there, is broken, or of another kernel.
    pub fn closure(&self, wanted: &[&str], release: &str) -> Result<Vec<Module>, Failure> {
        let mut loaded = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted {
            self.load(name, None, release, &mut seen, &mut loaded)?;
        }
        Ok(loaded)
    }

    fn load(
        &self,
        name: &str,
        needed_by: Option<&str>,
        release: &str,
        seen: &mut BTreeSet<String>,
        loaded: &mut Vec<Module>,
    ) -> Result<(), Failure> {
        let name = name.replace('-', "_");
        if !seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.files.get(&name) else {
            return match &self.builtin {
                Some(builtin) if !builtin.contains(&name) => Err(self.missing(&name, needed_by)),
                _ => Ok(()),
            };
        };
        let content = self.read(path)?;
        let info = elf::modinfo(&content).ok_or_else(|| unusable(path, "is no kernel module"))?;
        let value = |key: &str| info.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let built_for = value("vermagic").and_then(|magic| magic.split(' ').next()).unwrap_or("");
        if built_for != release {
            let why = format!("was built for {built_for}, but the kernel is {release}");
            return Err(unusable(path, &why).hint("give the modules folder of the same build"));
        }
        let depends = value("depends").unwrap_or_default().split(',');
        for needed in depends.filter(|needed| !needed.is_empty()) {
            self.load(needed, Some(&name), release, seen, loaded)?;
        }
        loaded.push(Module { name, content });
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let digest = path.strip_prefix(&self.dir).ok().and_then(|below| self.digests.get(below));
        let packed = match digest {
            Some(sha256) => cache::read_verified(path, sha256)?,
            None => fs::read(path).map_err(|error| Failure::host_io("read", path, &error))?,
        };
        let mut content = Vec::new();
        let name = path.to_string_lossy();
        compression::unpack(&name, packed.as_slice())
            .and_then(|mut reader| reader.read_to_end(&mut content))
            .map_err(|error| unusable(path, &format!("cannot be unpacked: {error}")))?;
        Ok(content)
    }

    fn missing(&self, name: &str, needed_by: Option<&str>) -> Failure {
        let who =
            needed_by.map_or_else(|| "kduel's guests need".to_owned(), |by| format!("{by} needs"));
        Failure::new(
            FailureClass::KernelUnusable,
            format!("{who} the module {name}, which {} does not have", self.dir.display()),
        )
        .hint("build it in or as a module (virtio: CONFIG_VIRTIO_PCI, CONFIG_VIRTIO_NET)")
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::new(FailureClass::KernelUnusable, format!("module {} {why}", path.display()))
}

/// `virtio_net` for `kernel/drivers/net/virtio-net.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = ["", ".xz", ".zst", ".gz"]
        .iter()
        .find_map(|end| name.strip_suffix(end)?.strip_suffix(".ko"))?;
    Some(stem.replace('-', "_"))
}

/// The files of a `modules.order` that are there. A built tree has its paths without `kernel/`,
/// and since 6.3 lists objects; an installed folder may have compressed its modules.
fn ordered(dir: &Path, order: &str) -> Vec<PathBuf> {
    let existing = |line: &str| {
        let module =
            line.strip_suffix(".o").map_or_else(|| line.to_owned(), |stem| format!("{stem}.ko"));
        let bare = module.strip_prefix("kernel/").unwrap_or(&module).to_owned();
        ["", ".xz", ".zst", ".gz"]
            .iter()
            .flat_map(|end| [format!("{module}{end}"), format!("{bare}{end}")])
            .map(|name| dir.join(name))
            .find(|path| path.exists())
    };
    order.lines().filter_map(existing).collect()
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::host_io("list", dir, &error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(&entry.path(), found)?;
        } else if kind.is_file() && module_name(&entry.path()).is_some() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF object with nothing but a `.modinfo` section.
    fn module(info: &str) -> Vec<u8> {
        let info = info.replace(' ', "\0").into_bytes();
        let names = b"\0.modinfo\0.shstrtab\0";
        let (info_at, names_at) = (64, 64 + info.len());
        let sections_at = (names_at + names.len()).next_multiple_of(8);
        let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for half in [1_u16, 62] {
            elf.extend(half.to_le_bytes());
        }
        elf.extend(1_u32.to_le_bytes());
        for word in [0_u64, 0, sections_at as u64] {
            elf.extend(word.to_le_bytes());
        }
        elf.extend(0_u32.to_le_bytes());
        for half in [64_u16, 0, 0, 64, 3, 2] {
            elf.extend(half.to_le_bytes());
        }
        elf.extend(&info);
        elf.extend(names);
        elf.resize(sections_at, 0);
        let sections =
            [(0, 0, 0, 0), (1_u32, 1_u32, info_at, info.len()), (10, 3, names_at, names.len())];
        for (name, kind, at, size) in sections {
            elf.extend(name.to_le_bytes());
            elf.extend(kind.to_le_bytes());
            for word in [0, 0, at as u64, size as u64, 0, 1, 0] {
                elf.extend(word.to_le_bytes());
            }
        }
        elf
    }

    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    fn names(modules: &[Module]) -> Vec<&str> {
        modules.iter().map(|module| module.name.as_str()).collect()
    }

    #[test]
    fn dependencies_are_loaded_first_and_once() {
        let a = module("depends=virtio-ring,virtio vermagic=6.1 ");
        let ring = module("depends=virtio vermagic=6.1 ");
        let virtio = module("depends= vermagic=6.1 SMP ");
        let ring = zstd::encode_all(ring.as_slice(), 1).unwrap();
        let dir = tree(&[
            ("kernel/a/virtio_net.ko", &a),
            ("kernel/b/virtio_ring.ko.zst", &ring),
            ("kernel/c/virtio.ko", &virtio),
            ("kernel/c/unused.ko", b"broken"),
        ]);
        let modules = ModuleTree::scan(dir.path()).unwrap();
        assert_eq!(modules.len(), 4);
        let loaded = modules.closure(&["virtio_net", "virtio"], "6.1").unwrap();
        assert_eq!(names(&loaded), ["virtio", "virtio_ring", "virtio_net"]);
        assert_eq!(loaded[0].content, virtio);
    }

    #[test]
    fn what_is_no_file_is_built_in_or_missing() {
        let a = module("depends=virtio,failover vermagic=6.1 ");
        let dir = tree(&[("kernel/a.ko", &a)]);
        let modules = ModuleTree::scan(dir.path()).unwrap();
        assert_eq!(names(&modules.closure(&["a", "virtio_pci"], "6.1").unwrap()), ["a"]);
        fs::write(dir.path().join("modules.builtin"), "kernel/drivers/virtio/virtio.ko\n").unwrap();
        let failure = ModuleTree::scan(dir.path()).unwrap().closure(&["a"], "6.1").unwrap_err();
        assert!(failure.title.contains("a needs the module failover"), "{failure}");
    }

    #[test]
    fn modules_of_another_build_are_refused() {
        let dir = tree(&[("a.ko", &module("depends= vermagic=6.2 ")), ("b.ko", b"text")]);
        let modules = ModuleTree::scan(dir.path()).unwrap();
        let failure = modules.closure(&["a"], "6.1").unwrap_err();
        assert!(failure.title.contains("was built for 6.2"), "{failure}");
        assert!(modules.closure(&["b"], "6.1").unwrap_err().title.contains("no kernel module"));
    }

    #[test]
    fn the_order_of_a_built_tree_spares_walking_it() {
        let a = module("depends= vermagic=6.6 ");
        let dir = tree(&[
            ("drivers/net/virtio_net.ko", &a),
            ("other/left-over.ko", &a),
            ("modules.order", b"drivers/net/virtio_net.o\nkernel/gone.ko\n"),
        ]);
        assert_eq!(ModuleTree::scan(dir.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_changed_module_is_not_used() {
        let dir = tree(&[("a.ko", &module("depends= vermagic=6.1 "))]);
        let digests = BTreeMap::from([(PathBuf::from("a.ko"), "00".to_owned())]);
        let modules = ModuleTree::scan(dir.path()).unwrap().with_digests(digests);
        assert!(modules.closure(&["a"], "6.1").unwrap_err().title.contains("has changed"));
    }
}
