//! A task's steps: announced, timed, and summed up at its end.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::shell;

/// The steps done so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<(String, Duration)>,
}

impl Steps {
    /// Does the next step. Its time is kept whether it succeeds or not.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        eprintln!("\n==> {name}");
        let (outcome, took) = shell::timed(work);
        self.done.push((name.to_owned(), took));
        eprintln!("    {name}: {}", seconds(took));
        outcome.with_context(|| format!("failed at step `{name}`"))
    }

    /// The time of each step, and of all.
    pub fn summary(&self) -> String {
        let total = ("total".to_owned(), self.done.iter().map(|(_, took)| *took).sum());
        let lines = || self.done.iter().chain([&total]);
        let width = lines().map(|(name, _)| name.len()).max().unwrap_or(0);
        lines().map(|(name, took)| format!("    {name:width$}  {:>10}\n", seconds(*took))).collect()
    }
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(60) {
        return format!("{:.1} s", time.as_secs_f64());
    }
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        assert_eq!(seconds(Duration::from_millis(940)), "0.9 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 05 s");
    }

    #[test]
    fn a_failed_step_is_named_and_counted() {
        let mut steps = Steps::default();
        let failure = steps.run("lint", || -> Result<()> { anyhow::bail!("no") }).unwrap_err();
        assert_eq!(format!("{failure:#}"), "failed at step `lint`: no");
        assert!(steps.summary().starts_with("    lint        0.0 s\n"), "{}", steps.summary());
    }
}
