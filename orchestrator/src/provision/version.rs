//! The order of Debian versions.

use std::cmp::Ordering;

/// Compares two Debian versions (`[epoch:]upstream[-revision]`) as dpkg does: numbers by value,
/// letters before other characters, `~` before everything, even the end.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, rest_a) = split_epoch(a);
    let (epoch_b, rest_b) = split_epoch(b);
    let (upstream_a, revision_a) = rest_a.rsplit_once('-').unwrap_or((rest_a, ""));
    let (upstream_b, revision_b) = rest_b.rsplit_once('-').unwrap_or((rest_b, ""));
    epoch_a
        .cmp(&epoch_b)
        .then_with(|| compare_part(upstream_a.as_bytes(), upstream_b.as_bytes()))
        .then_with(|| compare_part(revision_a.as_bytes(), revision_b.as_bytes()))
}

/// Whether `version` is `wanted` or begins with it at a boundary: `6.12.4` is no start of `6.12.43`.
pub fn matches(version: &str, wanted: &str) -> bool {
    let Some(rest) = version.strip_prefix(wanted) else { return false };
    let ends_in_digit = wanted.ends_with(|c: char| c.is_ascii_digit());
    !(ends_in_digit && rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn split_epoch(version: &str) -> (u64, &str) {
    version
        .split_once(':')
        .and_then(|(epoch, rest)| Some((epoch.parse().ok()?, rest)))
        .unwrap_or((0, version))
}

fn compare_part(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let text = |part: &[u8]| part.iter().take_while(|c| !c.is_ascii_digit()).count();
        let (text_a, text_b) = (text(a), text(b));
        for i in 0..text_a.max(text_b) {
            let weight = |part: &[u8], len: usize| if i < len { weight(part[i]) } else { 0 };
            match weight(a, text_a).cmp(&weight(b, text_b)) {
                Ordering::Equal => {}
                other => return other,
            }
        }
        (a, b) = (&a[text_a..], &b[text_b..]);
        let digits = |part: &[u8]| part.iter().take_while(|c| c.is_ascii_digit()).count();
        let (digits_a, digits_b) = (digits(a), digits(b));
        match compare_numbers(&a[..digits_a], &b[..digits_b]) {
            Ordering::Equal => (a, b) = (&a[digits_a..], &b[digits_b..]),
            other => return other,
        }
    }
    Ordering::Equal
}

fn weight(c: u8) -> i32 {
    match c {
        b'~' => -1,
        c if c.is_ascii_alphabetic() => i32::from(c),
        c => i32::from(c) + 256,
    }
}

fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |n: &[u8]| n.iter().skip_while(|c| **c == b'0').copied().collect::<Vec<u8>>();
    let (a, b) = (significant(a), significant(b));
    a.len().cmp(&b.len()).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_rising_order() {
        let rising = [
            "6.1~rc3-1~exp1",
            "6.1-1",
            "6.1.9-1",
            "6.1.10-1",
            "6.1.176-1~bpo11+1",
            "6.1.176-1",
            "6.1.176-1+b1",
            "6.1.176-2",
            "6.12.90-1",
            "6.12.90.1-1",
            "7.2.13-1",
            "1:1.0-1",
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} against {b}");
            }
        }
        assert_eq!(compare("1.01-1", "1.1-1"), Ordering::Equal);
    }

    #[test]
    fn a_version_may_be_given_by_its_start() {
        assert!(matches("6.12.43-1", "6.12.43-1"));
        assert!(matches("6.12.43-1", "6.12.43"));
        assert!(matches("6.12.43-1", "6.12"));
        assert!(!matches("6.12.43-1", "6.12.4"));
        assert!(!matches("6.12.43-1", "6.1"));
        assert!(matches("6.12.43-1~bpo12+1", "6.12.43-1~bpo"));
    }
}
