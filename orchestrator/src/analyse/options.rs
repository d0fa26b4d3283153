//! In what the configs of kernels differ, and which options spoil measurements. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// The options of a kernel that are on or have a value, by name with `CONFIG_`.
pub type Options = BTreeMap<String, String>;

/// Options that check at run time what a kernel in use does not check, and cost accordingly.
const DEBUGGING: [&str; 22] = [
    "CONFIG_DEBUG_ATOMIC_SLEEP",
    "CONFIG_DEBUG_KMEMLEAK",
    "CONFIG_DEBUG_LOCK_ALLOC",
    "CONFIG_DEBUG_MUTEXES",
    "CONFIG_DEBUG_OBJECTS",
    "CONFIG_DEBUG_PAGEALLOC",
    "CONFIG_DEBUG_PREEMPT",
    "CONFIG_DEBUG_RWSEMS",
    "CONFIG_DEBUG_SPINLOCK",
    "CONFIG_DEBUG_VM",
    "CONFIG_DEBUG_WW_MUTEX_SLOWPATH",
    "CONFIG_FAULT_INJECTION",
    "CONFIG_GCOV_KERNEL",
    "CONFIG_KASAN",
    "CONFIG_KCOV",
    "CONFIG_KCSAN",
    "CONFIG_KMSAN",
    "CONFIG_LOCK_STAT",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_PROVE_RCU",
    "CONFIG_SLUB_DEBUG_ON",
    "CONFIG_UBSAN",
];

/// An option that two configs have differently; `n` stands for one that is off or not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OptionDifference {
    /// With `CONFIG_`.
    pub option: String,
    /// What the base has.
    pub base: String,
    /// What the other has.
    pub value: String,
}

/// The options in the text of a `.config`.
pub fn options(config: &str) -> Options {
    let lines = config.lines().filter(|line| line.starts_with("CONFIG_"));
    let settings = lines.filter_map(|line| line.trim_end().split_once('='));
    settings
        .filter(|(_, value)| *value != "n")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Of each kernel, the options that not all of them have alike, and those that spoil measurements.
pub fn telling(kernels: BTreeMap<String, Options>) -> BTreeMap<String, Options> {
    let names: BTreeSet<String> =
        kernels.values().flat_map(|options| options.keys().cloned()).collect();
    let differs = |name: &String| {
        let mut values = kernels.values().map(|options| options.get(name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let told: BTreeSet<String> = names
        .into_iter()
        .filter(|name| DEBUGGING.contains(&name.as_str()) || differs(name))
        .collect();
    let only =
        |options: Options| options.into_iter().filter(|(name, _)| told.contains(name)).collect();
    kernels.into_iter().map(|(kernel, options)| (kernel, only(options))).collect()
}

/// The options that differ, by name.
pub fn differences(base: &Options, other: &Options) -> Vec<OptionDifference> {
    let names: BTreeSet<&String> = base.keys().chain(other.keys()).collect();
    let value = |options: &Options, name: &String| {
        options.get(name).map_or_else(|| "n".to_owned(), String::clone)
    };
    names
        .into_iter()
        .map(|name| {
            let (base, value) = (value(base, name), value(other, name));
            OptionDifference { option: name.clone(), base, value }
        })
        .filter(|difference| difference.base != difference.value)
        .collect()
}

/// The options that are on and spoil measurements.
pub fn debugging(options: &Options) -> Vec<&'static str> {
    let on = |name: &&str| options.get(*name).is_some_and(|value| value == "y");
    DEBUGGING.into_iter().filter(on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_or_spoils_is_kept() {
        let base = options("# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_HZ=250\nCONFIG_KASAN=y\n");
        let other = options("CONFIG_A=m\nCONFIG_B=y\nCONFIG_HZ=1000\nCONFIG_KASAN=y\nCONFIG_C=n\n");
        let kernels = BTreeMap::from([("a".to_owned(), base), ("b".to_owned(), other)]);
        let told = telling(kernels);
        assert!(!told["a"].contains_key("CONFIG_B"));
        let found: Vec<String> = differences(&told["a"], &told["b"])
            .into_iter()
            .map(|each| format!("{} {} {}", each.option, each.base, each.value))
            .collect();
        assert_eq!(found, ["CONFIG_A n m", "CONFIG_HZ 250 1000"]);
        assert_eq!(debugging(&told["a"]), ["CONFIG_KASAN"]);
    }
}
