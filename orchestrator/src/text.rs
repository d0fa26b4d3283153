//! Text for people: escaping of what guests say, plurals, near words.

/// Makes text from a guest or a file safe for terminals, HTML and mail: control characters (C0, C1,
/// DEL), bidirectional overrides and zero-width characters become `\x1b`-like escapes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => safe.push(' '),
            c if is_unsafe(c) && u32::from(c) < 0x100 => {
                safe.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            c if is_unsafe(c) => safe.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => safe.push(c),
        }
    }
    safe
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `1 pair`, `2 pairs`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// The candidate nearest to `word` by edit distance, if it is near enough to be a slip.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let shifted = rows[i - 1][j].min(rows[i][j - 1]) + 1;
                let swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swapped = if swap { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(shifted).min(swapped)
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_could_move_a_cursor_or_turn_text_round() {
        assert_eq!(escape("a\x1b]0;x\x07b"), "a\\x1b]0;x\\x07b");
        assert_eq!(escape("\u{9b}2J\u{202e}x\r"), "\\x9b2J\\u{202e}x\\x0d");
        assert_eq!(escape("plain ± text"), "plain ± text");
    }

    #[test]
    fn offers_the_nearest_word_only_if_it_is_near() {
        assert_eq!(nearest("fork-exti", ["fork-exec", "fork-exit", "syscall"]), Some("fork-exit"));
        assert_eq!(nearest("volano", ["fork-exit", "syscall"]), None);
    }
}
