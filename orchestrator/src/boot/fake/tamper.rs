use kduel_protocol::MAX_LINE_BYTES;
use serde::Deserialize;

use crate::boot::lines::MAX_OUTPUT_BYTES;

/// Something that is done to the agent's output. Lines are counted from 0, or from -1 at the end.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tamper {
    /// The output ends before this line.
    Truncate {
        /// Which.
        line: i64,
    },
    /// The output ends in the middle of this line.
    Cut {
        /// Which.
        line: i64,
    },
    /// The line is missing.
    Drop {
        /// Which.
        line: i64,
    },
    /// The line comes twice.
    Duplicate {
        /// Which.
        line: i64,
    },
    /// The line and the next change places.
    Swap {
        /// Which.
        line: i64,
    },
    /// Another line stands in its place: control characters, no JSON, a wrong nonce, ….
    Replace {
        /// Which.
        line: i64,
        /// What.
        with: String,
    },
    /// The line becomes longer than allowed.
    Oversize {
        /// Which.
        line: i64,
    },
    /// The line becomes invalid UTF-8.
    Garble {
        /// Which.
        line: i64,
    },
    /// More output than allowed follows the line, in lines of allowed length.
    Flood {
        /// Which.
        line: i64,
    },
}

impl Tamper {
    /// Changes `lines`, each with its newline. What names a line that is not there changes nothing.
    pub(super) fn apply(&self, lines: &mut Vec<Vec<u8>>) {
        let (Self::Truncate { line }
        | Self::Cut { line }
        | Self::Drop { line }
        | Self::Duplicate { line }
        | Self::Swap { line }
        | Self::Replace { line, .. }
        | Self::Oversize { line }
        | Self::Garble { line }
        | Self::Flood { line }) = self;
        let Some(at) = index(*line, lines.len()) else { return };
        match self {
            Self::Truncate { .. } => lines.truncate(at),
            Self::Cut { .. } => {
                lines.truncate(at + 1);
                let half = lines[at].len() / 2;
                lines[at].truncate(half);
            }
            Self::Drop { .. } => drop(lines.remove(at)),
            Self::Duplicate { .. } => lines.insert(at, lines[at].clone()),
            Self::Swap { .. } if at + 1 < lines.len() => lines.swap(at, at + 1),
            Self::Swap { .. } => {}
            Self::Replace { with, .. } => lines[at] = format!("{with}\n").into_bytes(),
            Self::Oversize { .. } => lines[at].splice(0..0, [b' '; MAX_LINE_BYTES]).for_each(drop),
            Self::Garble { .. } => lines[at].insert(0, 0xff),
            Self::Flood { .. } => {
                let mut line = vec![b'x'; MAX_LINE_BYTES - 1];
                line.push(b'\n');
                let count =
                    usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX) / line.len() + 1;
                lines.splice(at + 1..at + 1, std::iter::repeat_n(line, count)).for_each(drop);
            }
        }
    }
}

fn index(line: i64, length: usize) -> Option<usize> {
    let from_end = i64::try_from(length).ok()?.checked_add(line)?;
    let at = usize::try_from(if line < 0 { from_end } else { line }).ok()?;
    (at < length).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(yaml: &str) -> String {
        let tamper: Tamper = serde_yaml::from_str(yaml).unwrap();
        let mut lines: Vec<Vec<u8>> = ["aa\n", "bb\n", "cc\n"].map(|line| line.into()).to_vec();
        tamper.apply(&mut lines);
        String::from_utf8_lossy(&lines.concat()).into_owned()
    }

    #[test]
    fn each_kind_does_what_it_says() {
        assert_eq!(after("{do: truncate, line: -1}"), "aa\nbb\n");
        assert_eq!(after("{do: cut, line: 1}"), "aa\nb");
        assert_eq!(after("{do: drop, line: 0}"), "bb\ncc\n");
        assert_eq!(after("{do: duplicate, line: 1}"), "aa\nbb\nbb\ncc\n");
        assert_eq!(after("{do: swap, line: 0}"), "bb\naa\ncc\n");
        assert_eq!(after("{do: swap, line: -1}"), "aa\nbb\ncc\n");
        assert_eq!(after("{do: replace, line: 2, with: \"\\e[2J\"}"), "aa\nbb\n\x1b[2J\n");
        assert_eq!(after("{do: garble, line: 0}"), "\u{fffd}aa\nbb\ncc\n");
        assert_eq!(after("{do: oversize, line: 0}").len(), MAX_LINE_BYTES + 9);
        assert!(after("{do: flood, line: 0}").len() as u64 > MAX_OUTPUT_BYTES);
        assert_eq!(after("{do: drop, line: 3}"), "aa\nbb\ncc\n");
    }
}
