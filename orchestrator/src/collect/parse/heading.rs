use crate::collect::mail::Line;

/// How far above a table its heading may stand, in lines.
const LOOK: usize = 12;

/// A longer name is cut.
const LONGEST: usize = 60;

/// What names the table that begins at line `at`: the nearest line above it that is neither blank nor
/// a command; with its index. None if another table, which ends before `free`, stands between.
pub fn heading(lines: &[Line<'_>], at: usize, free: usize) -> Option<(usize, String)> {
    let first = free.max(at.saturating_sub(LOOK));
    let names = |line: &Line<'_>| !is_command(&line.text) && !is_ornament(&line.text);
    let index =
        first + lines[first..at].iter().rposition(|line| !line.is_blank() && names(line))?;
    let line = &lines[index];
    let name = line.text.trim().trim_start_matches(['*', '-', '=', '#', ' ']);
    let name = name.trim_end_matches(['*', '-', '=', '#', ' ', ':', ',', '.']);
    (!name.is_empty()).then(|| (index, cut(name)))
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", name[..at].trim_end()),
        None => name.to_owned(),
    }
}

/// What was typed at a prompt.
fn is_command(text: &str) -> bool {
    let text = text.trim_start();
    ["$ ", "# ", "% ", "./", "~# ", "+ "].iter().any(|prompt| text.starts_with(prompt))
}

/// A ruler or a bracket has no name in it.
fn is_ornament(text: &str) -> bool {
    !text.chars().any(char::is_alphanumeric)
}
