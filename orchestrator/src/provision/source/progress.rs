//! How far a build is, by the lines that `make` prints. Pure.

use std::time::Duration;

/// How long nothing is told.
const QUIET: Duration = Duration::from_secs(10);

/// The share that has to be done before it says anything about the rest: the first steps are tools of
/// the build, and take longer than objects.
const FORESEEABLE: f64 = 0.05;

/// Counts what is done.
#[derive(Debug)]
pub struct Progress {
    name: String,
    /// Steps in all, as far as it is known.
    of: Option<usize>,
    done: usize,
    told: Duration,
}

impl Progress {
    /// Of the build of `name`.
    pub fn new(name: &str, of: Option<usize>) -> Self {
        Self { name: name.to_owned(), of, done: 0, told: Duration::ZERO }
    }

    /// Takes a line of the output that came `after` the start: what there is to tell, if anything.
    pub fn line(&mut self, line: &str, after: Duration) -> Option<String> {
        if !is_step(line) {
            return None;
        }
        self.done += 1;
        if after < self.told + QUIET {
            return None;
        }
        self.told = after;
        Some(self.said(after))
    }

    /// Steps so far.
    pub fn done(&self) -> usize {
        self.done
    }

    fn said(&self, after: Duration) -> String {
        let Self { name, of, done, .. } = self;
        match of {
            Some(of) if done < of => {
                let share = *done as f64 / *of as f64;
                let percent = (share * 100.0).floor();
                let left = if share < FORESEEABLE {
                    String::new()
                } else {
                    let left = after.as_secs_f64() * (1.0 - share) / share;
                    format!(", about {} left", clock(left))
                };
                format!("building {name}: {done} of {of} steps ({percent} %){left}")
            }
            _ => format!("building {name}: {done} steps"),
        }
    }
}

/// `  CC      kernel/fork.o`
fn is_step(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("  ") else { return false };
    let word = rest.split(' ').next().unwrap_or_default();
    !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-')
}

fn clock(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_told_now_and_then() {
        let mut progress = Progress::new("k", Some(4));
        let at = Duration::from_secs;
        assert_eq!(progress.line("  CC      kernel/fork.o", at(5)), None);
        assert_eq!(progress.line("kernel/fork.c:1: warning: x", at(20)), None);
        let told = progress.line("  HOSTCC  scripts/x", at(20)).unwrap();
        assert_eq!(told, "building k: 2 of 4 steps (50 %), about 0:20 left");
        assert_eq!(progress.line("  AR      built-in.a", at(25)), None);
        let told = progress.line("  LD      vmlinux", at(90)).unwrap();
        assert_eq!(told, "building k: 4 steps");
        assert_eq!(progress.done(), 4);
    }

    #[test]
    fn the_first_steps_say_nothing_about_the_rest() {
        let mut progress = Progress::new("k", Some(1682));
        let told = progress.line("  HOSTCC  scripts/x", Duration::from_secs(11)).unwrap();
        assert_eq!(told, "building k: 1 of 1682 steps (0 %)");
    }
}
