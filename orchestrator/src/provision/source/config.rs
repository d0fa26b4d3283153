//! The config of a kernel from the parts that the user names.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Provisioner, kconfig};
use super::SourceTree;
use super::options::{Draft, Wanted, settings};
use super::symbols::Symbols;
use crate::config::{ConfigPart, DebianSpec, KernelSpec, Origin, SourceSpec};
use crate::fault::{Failure, FailureClass};

/// On top of `make tinyconfig`.
const MINIMAL: &str = include_str!("../../../../images/kconfig/minimal.config");

/// What is in the configs of distributions and cannot be had outside of their own builds, or makes each
/// build another.
const FOREIGN: &str = "\
CONFIG_SYSTEM_TRUSTED_KEYS=\"\"
CONFIG_SYSTEM_REVOCATION_KEYS=\"\"
CONFIG_BUILD_SALT=\"\"
# CONFIG_MODULE_SIG is not set
# CONFIG_DEBUG_INFO_BTF is not set
";

/// The first line of what `make` writes itself: a whole config, not a fragment.
const WHOLE: &str = "Automatically generated file";

/// What a kernel's config is made of.
pub struct Recipe {
    /// Whether it begins with `make tinyconfig`.
    pub tiny: bool,
    /// What is set on top.
    pub draft: Draft,
}

impl Recipe {
    /// Stands for the recipe in a key.
    pub fn text(&self) -> String {
        let begin = if self.tiny { "tinyconfig" } else { "nothing" };
        format!("on top of {begin}\n{}", self.draft.text())
    }
}

impl Provisioner {
    /// Reads the parts of the config of `spec`.
    pub(super) fn recipe(
        &self,
        spec: &SourceSpec,
        tree: &SourceTree,
        symbols: &Symbols,
    ) -> Result<Recipe, Failure> {
        let mut recipe = Recipe { tiny: false, draft: Draft::default() };
        let draft = &mut recipe.draft;
        for part in &spec.config {
            match part {
                ConfigPart::Minimal => {
                    recipe.tiny = true;
                    minimal(draft, symbols);
                }
                ConfigPart::Tree => whole(draft, &tree_config(spec, tree)?, symbols),
                ConfigPart::Host => {
                    whole(draft, &self.host_config()?, symbols);
                    whole(draft, FOREIGN, symbols);
                }
                ConfigPart::Distribution { suite, flavour } => {
                    whole(draft, &self.distribution_config(suite, flavour)?, symbols);
                    whole(draft, FOREIGN, symbols);
                }
                ConfigPart::File { path } => {
                    let text = read(Path::new(path))?;
                    if text.lines().take(3).any(|line| line.contains(WHOLE)) {
                        whole(draft, &text, symbols);
                    } else {
                        settings(&text).into_iter().for_each(|each| draft.want(each, symbols));
                    }
                }
                ConfigPart::Item { setting, optional } => {
                    draft.want(item(setting, *optional)?, symbols)
                }
            }
        }
        guest(draft);
        Ok(recipe)
    }

    fn host_config(&self) -> Result<String, Failure> {
        let uname = rustix::system::uname();
        let path =
            self.host_root.join(format!("boot/config-{}", uname.release().to_string_lossy()));
        read(&path).map_err(|failure| {
            failure.hint("name another config: minimal, distribution, or a file")
        })
    }

    fn distribution_config(&self, suite: &str, flavour: &str) -> Result<String, Failure> {
        let (suite, flavour) = (suite.to_owned(), flavour.to_owned());
        let spec = KernelSpec::Debian(DebianSpec { suite, flavour, version: None });
        let source = self.source("config", &spec, None)?;
        let origin = source.origin;
        let config = source.config.ok_or_else(|| {
            Failure::new(FailureClass::KernelUnusable, format!("{origin} comes without a config"))
        })?;
        read(&config)
    }
}

/// Options that this tree does not have, since it is older or newer, are left out.
fn minimal(draft: &mut Draft, symbols: &Symbols) {
    for wanted in settings(MINIMAL).into_iter().filter(|wanted| symbols.has(&wanted.name)) {
        // What is switched off saves time only.
        match wanted.value.as_str() {
            "n" => draft.set(&wanted.name, "n", symbols),
            _ => draft.want(wanted, symbols),
        }
    }
}

fn whole(draft: &mut Draft, text: &str, symbols: &Symbols) {
    for Wanted { name, value, .. } in settings(text) {
        draft.set(&name, &value, symbols);
    }
}

/// What no guest can do without; drivers may stay modules.
fn guest(draft: &mut Draft) {
    for wanted in settings(kconfig::BUILT_IN) {
        draft.insist(wanted);
    }
    for wanted in settings(kconfig::OR_MODULE) {
        if draft.value(&wanted.name) != Some("m") {
            draft.insist(wanted);
        }
    }
}

fn item(setting: &str, optional: bool) -> Result<Wanted, Failure> {
    let wanted = settings(setting).pop();
    let wanted = wanted.map(|wanted| Wanted { optional: optional || wanted.optional, ..wanted });
    wanted.ok_or_else(|| {
        Failure::new(FailureClass::Usage, format!("`{setting}` sets no option of a config"))
            .hint("write it as in a .config: CONFIG_PSI=y, CONFIG_HZ=1000, CONFIG_SMP=n")
    })
}

/// The `.config` where the source comes from; what was made of it has none.
fn tree_config(spec: &SourceSpec, tree: &SourceTree) -> Result<String, Failure> {
    let own = match &spec.origin {
        Origin::Folder { path } => Some(PathBuf::from(path)),
        Origin::Git { repository, .. } => Some(PathBuf::from(repository)),
        Origin::Debian { .. } | Origin::Tarball { .. } => None,
    };
    let places = own.iter().chain([&tree.pristine]).map(|dir| dir.join(".config"));
    let Some(path) = places.into_iter().find(|path| path.is_file()) else {
        let title = format!("there is no .config in {}", tree.origin);
        return Err(Failure::new(FailureClass::KernelUnusable, title)
            .hint("name another config: minimal, host, distribution, or a file"));
    };
    read(&path)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        let title = format!("failed to read the config {}: {error}", path.display());
        Failure::new(FailureClass::KernelUnusable, title)
    })
}
