use serde::{Deserialize, Serialize};

/// A kernel that is built here. Two that build the same bits may differ in `over` only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceSpec {
    /// Where the unpatched source comes from.
    pub origin: Origin,
    /// Patches on top, in the order they are applied; absolute paths of files of one or several
    /// patches each (a diff, a mail, an mbox).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub patches: Vec<String>,
    /// The config, later parts over earlier ones.
    pub config: Vec<ConfigPart>,
    /// What compiles it.
    #[serde(default)]
    pub toolchain: Toolchain,
    /// Appended to the compiler's flags (`KCFLAGS`).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cflags: Vec<String>,
    /// The kernel whose objects a build may begin with: `extends` of a document, the base of an
    /// ad-hoc comparison. Changes how long a build takes, never what comes out of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub over: Option<Box<SourceSpec>>,
}

impl SourceSpec {
    /// Whether another one describes the same kernel, whatever its revision is called and its build
    /// may begin with.
    pub fn is_same(&self, other: &Self) -> bool {
        let plain = |spec: &Self| {
            let mut plain = Self { over: None, ..spec.clone() };
            if let Origin::Git { revision, .. } = &mut plain.origin {
                revision.clear();
            }
            plain
        };
        plain(self) == plain(other)
    }

    /// Whether another one begins with the same source: the same repository, or else the same tree.
    pub fn is_beside(&self, other: &Self) -> bool {
        match (&self.origin, &other.origin) {
            (Origin::Git { repository: a, .. }, Origin::Git { repository: b, .. }) => a == b,
            (a, b) => a == b,
        }
    }
}

/// Where a source comes from; all paths absolute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Origin {
    /// A Debian source package such as `linux-source-6.1`, a binary package with a tarball in it.
    Debian {
        /// The package.
        package: String,
        /// Exactly one suite.
        suite: String,
        /// The package version, or the start of one; the suite's newest if absent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        version: Option<String>,
    },
    /// A tarball, compressed or not, with one folder at its top.
    Tarball {
        /// The file.
        path: String,
    },
    /// A source tree as it lies there.
    Folder {
        /// Its top folder.
        path: String,
    },
    /// A commit.
    Git {
        /// The repository: a path, or anything else that git can fetch from.
        repository: String,
        /// As the user wrote it; `commit` is what it meant.
        revision: String,
        /// The commit's full id; empty until a repository that is elsewhere was asked.
        commit: String,
    },
}

/// A part of a kernel's config.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ConfigPart {
    /// The small config that comes with kduel.
    Minimal,
    /// The `.config` in the tree.
    Tree,
    /// The config of the running kernel.
    Host,
    /// The config of the Debian kernel with the same version, by suite and flavour.
    Distribution {
        /// Exactly one suite.
        suite: String,
        /// As in a binary package.
        flavour: String,
    },
    /// A whole config or a fragment; absolute path.
    File {
        /// The file.
        path: String,
    },
    /// One option, as in a `.config`: `CONFIG_PSI=y`, `CONFIG_HZ=1000`, `CONFIG_SMP=n`.
    Item {
        /// The whole setting.
        setting: String,
        /// Whether the build goes on if the option cannot be had.
        #[serde(default)]
        optional: bool,
    },
}

/// What compiles a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Toolchain {
    /// Which compiler.
    pub compiler: Compiler,
    /// Its major version, as in `gcc-12`; the one without a number if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u32>,
}

/// Which compiler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// GCC.
    #[default]
    Gcc,
    /// Clang, with LLVM's linker and tools.
    Clang,
}
