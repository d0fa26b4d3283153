//! Small helpers for text that ends up in a line of bounded length.

/// The last `limit` bytes of `text` or a little less, cut between characters.
pub fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The first `limit` bytes of `text` or a little less, with a mark where something was cut off.
pub fn head(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// Expands a list of numbers as the kernel writes it: `0-3,7`. Nothing if it is malformed or longer
/// than any machine.
pub fn number_list(list: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 65_536;
    let mut numbers = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last >= MOST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded() {
        assert_eq!(number_list("0-2,7\n"), Some(vec![0, 1, 2, 7]));
        assert_eq!(number_list(""), Some(vec![]));
        assert_eq!(number_list("3-1"), None);
        assert_eq!(number_list("a"), None);
        assert_eq!(number_list("0-4000000000"), None);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(tail("äöü", 3), "ü");
        assert_eq!(head("äöü", 3), "ä…");
        assert_eq!(head("abc", 3), "abc");
        assert_eq!(tail("abc", 9), "abc");
    }
}
