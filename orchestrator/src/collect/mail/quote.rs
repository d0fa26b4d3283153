use super::line::Line;

/// Takes the quote marks of every depth off: `> > text`, `>> text`, `AB> text`.
pub fn unquoted(line: Line<'_>) -> Line<'_> {
    let (depth, bytes) = marks(&line.text);
    let mut line = if bytes == 0 { line } else { line.without(bytes) };
    line.depth = depth;
    line
}

/// How many quote marks a text begins with, and the bytes that they take.
fn marks(text: &str) -> (usize, usize) {
    let (mut depth, mut at) = (0, 0);
    loop {
        let rest = &text[at..];
        let indent = if depth == 0 { rest.len() - rest.trim_start_matches(' ').len() } else { 0 };
        let name = rest[indent..].bytes().take_while(u8::is_ascii_uppercase).count();
        let mark = indent + if name <= 3 { name } else { 0 };
        // An indented mark is rather a prompt or an arrow, unless it is by one space only.
        if indent > 1 || !rest[mark..].starts_with('>') {
            return (depth, at);
        }
        depth += 1;
        at += mark + 1;
        if text[at..].starts_with(' ') {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> (String, usize) {
        let line = unquoted(Line::new(1, text));
        (line.text.into_owned(), line.depth)
    }

    #[test]
    fn quote_marks_go_and_indentation_stays() {
        assert_eq!(plain(">   1.5 task-clock"), ("  1.5 task-clock".to_owned(), 1));
        assert_eq!(plain("> > >a"), ("a".to_owned(), 3));
        assert_eq!(plain(">> a"), ("a".to_owned(), 2));
        assert_eq!(plain("AB> > a"), ("a".to_owned(), 2));
        assert_eq!(plain("a > b"), ("a > b".to_owned(), 0));
        assert_eq!(plain("   > prompt"), ("   > prompt".to_owned(), 0));
        assert_eq!(plain("± > b"), ("± > b".to_owned(), 0));
    }
}
