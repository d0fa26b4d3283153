//! Whether a kernel's config has what a guest needs, told before it is booted.

use std::collections::BTreeMap;

use crate::fault::{Failure, FailureClass};

/// Options that must be built in.
pub(super) const BUILT_IN: &str = include_str!("../../../images/kconfig/guest.config");

/// Options for which a module will do, if modules come with the kernel.
pub(super) const OR_MODULE: &str = include_str!("../../../images/kconfig/guest-modules.config");

/// Checks the text of a `.config`; `has_modules`: modules come with the kernel. `kernel` is what
/// the user called it.
///
/// # Errors
/// If options are missing: all of them, as a fragment that can be pasted.
pub fn check(config: &str, has_modules: bool, kernel: &str) -> Result<(), Failure> {
    let missing = missing(config, has_modules);
    if missing.is_empty() {
        return Ok(());
    }
    let title = format!("{kernel} is built without options that a guest needs");
    let failure = missing
        .into_iter()
        .fold(Failure::new(FailureClass::KernelUnusable, title), |f, line| f.detail(line));
    Err(failure
        .hint("append these lines to its .config, run make olddefconfig, and build it again"))
}

/// The lines of the fragment for what is missing in `config`.
fn missing(config: &str, has_modules: bool) -> Vec<&'static str> {
    let set = settings(config);
    let lacks = |option: &str, module_will_do: bool| match set.get(option) {
        Some(&"y") => false,
        Some(&"m") => !module_will_do,
        _ => true,
    };
    let built_in = wanted(BUILT_IN).filter(|(option, _)| lacks(option, false));
    let or_module = wanted(OR_MODULE).filter(|(option, _)| lacks(option, has_modules));
    built_in.chain(or_module).map(|(_, line)| line).collect()
}

/// Options and their lines.
fn wanted(fragment: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    fragment.lines().filter_map(|line| Some((line.split_once('=')?.0, line)))
}

fn settings(config: &str) -> BTreeMap<&str, &str> {
    let lines = config.lines().filter(|line| line.starts_with("CONFIG_"));
    lines.filter_map(|line| line.trim_end().split_once('=')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> String {
        format!("{BUILT_IN}{OR_MODULE}")
    }

    #[test]
    fn the_fragments_themselves_are_enough() {
        assert_eq!(missing(&complete(), false), Vec::<&str>::new());
        check(&complete(), false, "k").unwrap();
    }

    #[test]
    fn a_module_counts_only_where_it_can_be_loaded() {
        let config = complete()
            .replace("CONFIG_VIRTIO_NET=y", "CONFIG_VIRTIO_NET=m")
            .replace("CONFIG_UNIX=y", "CONFIG_UNIX=m");
        assert_eq!(missing(&config, true), ["CONFIG_UNIX=y"]);
        assert_eq!(missing(&config, false), ["CONFIG_UNIX=y", "CONFIG_VIRTIO_NET=y"]);
    }

    #[test]
    fn all_that_is_missing_is_listed_to_be_pasted() {
        let config = complete()
            .replace("CONFIG_TMPFS=y", "# CONFIG_TMPFS is not set")
            .replace("CONFIG_PCI=y\n", "");
        let failure = check(&config, true, "./bzImage").unwrap_err();
        assert_eq!(failure.details, ["CONFIG_PCI=y", "CONFIG_TMPFS=y"]);
        assert!(failure.title.starts_with("./bzImage "));
    }
}
