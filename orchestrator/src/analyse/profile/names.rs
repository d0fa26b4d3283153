//! What the names of functions say about each other.

use std::collections::BTreeSet;

/// Endings that compilers and tools give to parts and copies of a function. A number may follow.
const PARTS: [&str; 6] = ["part", "isra", "constprop", "cold", "llvm", "lto_priv"];

/// The kernel's own ending for a function whose allocations are accounted by its callers.
const NOPROF: &str = "_noprof";

/// Beginnings that do not change what a function is about.
const BEGINNINGS: [&str; 6] = ["do_", "ksys_", "native_", "raw_", "x64_sys_", "se_sys_"];

/// Endings that name one of several ways to do the same.
const WAYS: [&str; 8] =
    ["_orig", "_erms", "_fsrm", "_rep", "_unrolled", "_string", "_generic", "_alternative"];

/// What a compiler made of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartOf {
    /// It is the function, or a copy of it that is called in its place.
    Whole,
    /// A part that the rest of the function calls.
    Part,
    /// Code of it that is seldom executed, jumped to.
    Cold,
}

/// The name in the source of what a compiler calls `foo.isra.0`, and what it is of it.
pub fn source_name(name: &str) -> (&str, PartOf) {
    let mut rest = name;
    let mut part = PartOf::Whole;
    while let Some((before, ending)) = split_ending(rest) {
        part = match ending {
            "cold" => PartOf::Cold,
            "part" if part == PartOf::Whole => PartOf::Part,
            _ => part,
        };
        rest = before;
    }
    (rest.strip_suffix(NOPROF).filter(|short| !short.is_empty()).unwrap_or(rest), part)
}

/// `foo.constprop.0` into `foo` and `constprop`.
fn split_ending(name: &str) -> Option<(&str, &str)> {
    let (before, last) = name.rsplit_once('.')?;
    let is_number = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let (before, ending) = if is_number { before.rsplit_once('.')? } else { (before, last) };
    (PARTS.contains(&ending) && !before.is_empty()).then_some((before, ending))
}

/// A name without what does not change what it is about: `do_schedule` and `__schedule` are both
/// `schedule`, `memcpy_orig` is `memcpy`.
pub fn core_name(name: &str) -> &str {
    let mut core = source_name(name).0.trim_start_matches('_');
    while let Some(rest) = BEGINNINGS.iter().find_map(|begin| core.strip_prefix(begin)) {
        core = rest.trim_start_matches('_');
    }
    let shorter = WAYS.iter().find_map(|way| core.strip_suffix(way));
    shorter.filter(|short| !short.is_empty()).unwrap_or(core)
}

/// Words of a name that say what it is about; a folio is what a page became.
pub fn words(name: &str) -> BTreeSet<&str> {
    let words = name.split(['_', '.', ' ']).filter(|word| word.len() > 1);
    words
        .map(|word| match word {
            "folio" | "folios" | "pages" => "page",
            "ptes" => "pte",
            word => word,
        })
        .filter(|word| word.bytes().any(|b| b.is_ascii_alphabetic()))
        .collect()
}

/// Words that make another function of one that has the others in common.
const DECISIVE: [&str; 30] = [
    "get", "set", "put", "add", "del", "lock", "unlock", "alloc", "free", "inc", "dec", "start",
    "stop", "begin", "end", "map", "unmap", "enter", "exit", "init", "destroy", "enqueue",
    "dequeue", "charge", "uncharge", "arch", "read", "write", "try", "fast",
];

/// Whether two names differ in nothing that makes another function.
pub fn differ_harmlessly(one: &BTreeSet<&str>, other: &BTreeSet<&str>) -> bool {
    one.symmetric_difference(other).all(|word| !DECISIVE.contains(word))
}

/// Words that too many functions have in their names to relate them.
const COMMON: [&str; 22] = [
    "get", "put", "set", "add", "del", "page", "lock", "unlock", "free", "alloc", "task", "init",
    "do", "to", "from", "sys", "irq", "rcu", "mm", "user", "list", "new",
];

/// Words of the name that can relate it to others.
pub fn telling_words(name: &str) -> impl Iterator<Item = &str> {
    words(name).into_iter().filter(|word| word.len() > 2 && !COMMON.contains(word))
}

/// How much of two names is the same, 0 to 1: common words over all words.
pub fn likeness(one: &BTreeSet<&str>, other: &BTreeSet<&str>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_of_compilers_are_taken_off() {
        let table = [
            ("foo", "foo", PartOf::Whole),
            ("foo.isra.0", "foo", PartOf::Whole),
            ("foo.constprop.0.isra.0", "foo", PartOf::Whole),
            ("foo.part.0", "foo", PartOf::Part),
            ("foo.isra.0.cold", "foo", PartOf::Cold),
            ("foo_noprof", "foo", PartOf::Whole),
            ("foo_noprof.part.0", "foo", PartOf::Part),
            ("foo.123", "foo.123", PartOf::Whole),
            (".cold", ".cold", PartOf::Whole),
            ("_noprof", "_noprof", PartOf::Whole),
            ("a.b", "a.b", PartOf::Whole),
        ];
        for (name, source, part) in table {
            assert_eq!(source_name(name), (source, part), "{name}");
        }
    }

    #[test]
    fn names_are_about_the_same_thing() {
        for same in ["schedule", "__schedule", "do_schedule", "__do_schedule"] {
            assert_eq!(core_name(same), "schedule");
        }
        assert_eq!(core_name("memcpy_orig"), "memcpy");
        assert_eq!(core_name("__get_free_pages"), core_name("get_free_pages_noprof"));
        assert_eq!(core_name("_orig"), "orig");
        let alike = likeness(&words("page_remove_rmap"), &words("folio_remove_rmap_ptes"));
        assert_eq!(alike, 0.75);
        let harmless = |one, other| differ_harmlessly(&words(one), &words(other));
        assert!(harmless("page_remove_rmap", "folio_remove_rmap_ptes"));
        assert!(!harmless("get_mm_exe_file", "set_mm_exe_file"));
        assert_eq!(telling_words("pgd_alloc_page").collect::<Vec<_>>(), ["pgd"]);
    }
}
