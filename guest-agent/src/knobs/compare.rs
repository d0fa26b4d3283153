//! When what was found is what was wanted. Pure.

/// The chosen word of a list of choices: `always [madvise] never`, `none (voluntary) full`.
pub fn selected(text: &str) -> Option<&str> {
    text.split_whitespace()
        .find_map(|word| inside(word, '[', ']').or_else(|| inside(word, '(', ')')))
}

fn inside(word: &str, open: char, close: char) -> Option<&str> {
    word.strip_prefix(open)?.strip_suffix(close).filter(|inner| !inner.is_empty())
}

/// Whether a file that holds `found` has taken `wanted`:
///
/// - the same words, or numbers of the same value, or truth values of the same meaning;
/// - the chosen one of a list of choices;
/// - a name in a list of names (`NO_HRTICK` among scheduler features; `+cpu`, `-cpu` among
///   controllers).
pub fn is_same(wanted: &str, found: &str) -> bool {
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let words: Vec<&str> = found.split_whitespace().collect();
    if wanted.len() == words.len() && wanted.iter().zip(&words).all(|(a, b)| is_same_word(a, b)) {
        return true;
    }
    if let Some(selected) = selected(found) {
        return wanted == [selected];
    }
    !wanted.is_empty() && wanted.iter().all(|name| is_listed(name, &words))
}

fn is_same_word(wanted: &str, found: &str) -> bool {
    let numbers = (number(wanted), number(found));
    wanted == found
        || matches!(numbers, (Some(a), Some(b)) if a == b)
        || matches!((truth(wanted), truth(found)), (Some(a), Some(b)) if a == b)
        // A truth value written, a set of bits read: as multi-generation LRU does.
        || matches!((truth_word(wanted), number(found)), (Some(a), Some(b)) if a == (b != 0))
}

fn number(word: &str) -> Option<i128> {
    match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn truth(word: &str) -> Option<bool> {
    match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => truth_word(word),
    }
}

fn truth_word(word: &str) -> Option<bool> {
    match word {
        "n" | "N" | "no" | "off" | "false" => Some(false),
        "y" | "Y" | "yes" | "on" | "true" => Some(true),
        _ => None,
    }
}

fn is_listed(name: &str, list: &[&str]) -> bool {
    // A number among numbers says nothing.
    if !name.contains(|letter: char| letter.is_ascii_alphabetic()) {
        return false;
    }
    match (name.strip_prefix('+'), name.strip_prefix('-')) {
        (Some(name), _) => list.contains(&name),
        (_, Some(name)) => !list.contains(&name),
        _ => list.contains(&name),
    }
}

/// Whether all words of `wanted` stand on a kernel command line, in this order.
pub fn has_words(line: &str, wanted: &str) -> bool {
    let line: Vec<&str> = line.split_whitespace().collect();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    !wanted.is_empty() && line.windows(wanted.len()).any(|words| words == wanted)
}

/// Whether a CPU flag with its sign in front is among the kernel's names for flags.
pub fn has_flag(flags: &str, flag: &str) -> bool {
    // QEMU writes sse4.2 and spec-ctrl where the kernel writes underscores.
    let name = flag.trim_start_matches(['+', '-']).replace(['.', '-'], "_");
    flags.split_whitespace().any(|word| word == name)
}

/// Where a module's parameter is read: `module.parameter`.
pub fn parameter_path(name: &str) -> String {
    let (module, parameter) = name.split_once('.').unwrap_or((name, ""));
    format!("/sys/module/{}/parameters/{parameter}", module.replace('-', "_"))
}

/// Where a sysctl is read: dots are slashes, unless the name has slashes of its own.
pub fn sysctl_path(name: &str) -> String {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    format!("/proc/sys/{path}")
}

/// What is handed to the kernel in one write each: scheduler features are taken one at a time.
pub fn pieces<'a>(path: &str, value: &'a str) -> Vec<&'a str> {
    let is_list = path.ends_with("/sched/features") || path.ends_with("/sched_features");
    if is_list { value.split_whitespace().collect() } else { vec![value] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_meaning() {
        for (wanted, found) in [
            ("0", "0\n"),
            ("4096 131072 6291456", "4096\t131072\t6291456\n"),
            ("madvise", "always [madvise] never\n"),
            ("full", "none voluntary (full)\n"),
            ("NO_HRTICK", "PLACE_LAG NO_HRTICK NI_RANDOM\n"),
            ("HRTICK", "PLACE_LAG HRTICK\n"),
            ("+memory", "cpu memory\n"),
            ("-memory", "cpu\n"),
            ("1", "Y\n"),
            ("n", "0x0000\n"),
            ("y", "0x0007\n"),
            ("7", "0x0007\n"),
            ("", "\n"),
        ] {
            assert!(is_same(wanted, found), "{wanted:?} is {found:?}");
        }
        for (wanted, found) in [
            ("1", "0\n"),
            ("always", "always [madvise] never\n"),
            ("none", "none (voluntary) full\n"),
            ("HRTICK", "PLACE_LAG NO_HRTICK\n"),
            ("2", "1 2 3\n"),
            ("-memory", "cpu memory\n"),
            ("0", "Y\n"),
            ("", "5\n"),
            ("y", "0x0000\n"),
        ] {
            assert!(!is_same(wanted, found), "{wanted:?} is not {found:?}");
        }
    }

    #[test]
    fn names_become_paths() {
        assert_eq!(
            sysctl_path("kernel.sched_rt_runtime_us"),
            "/proc/sys/kernel/sched_rt_runtime_us"
        );
        assert_eq!(
            sysctl_path("net/ipv4/conf/a.b/forwarding"),
            "/proc/sys/net/ipv4/conf/a.b/forwarding"
        );
        assert_eq!(
            parameter_path("virtio-net.napi_tx"),
            "/sys/module/virtio_net/parameters/napi_tx"
        );
    }

    #[test]
    fn scheduler_features_are_written_one_by_one() {
        let path = "/sys/kernel/debug/sched/features";
        assert_eq!(pieces(path, "NO_HRTICK NO_DELAY_ZERO"), ["NO_HRTICK", "NO_DELAY_ZERO"]);
        assert_eq!(pieces("/proc/sys/net/ipv4/tcp_rmem", "1 2 3"), ["1 2 3"]);
    }

    #[test]
    fn words_and_flags_are_whole() {
        assert!(has_words("a mitigations=off b", "mitigations=off"));
        assert!(has_words("a b c", "b c"));
        assert!(!has_words("a mitigations=offish", "mitigations=off"));
        assert!(!has_words("a", ""));
        assert!(has_flag("fpu sse4_2", "+sse4.2") && has_flag("fpu erms", "-erms"));
        assert!(!has_flag("fpu", "+erms"));
    }
}
