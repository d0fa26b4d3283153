use std::io::Write as _;

/// A line on standard error. Where nobody can read it any more, a run of hours goes on all the same.
pub(super) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
