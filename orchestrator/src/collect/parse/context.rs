use serde::Serialize;

use super::pattern::{Pattern, group};
use crate::collect::mail::Line;
use crate::text::escape;

static CPUS: Pattern = Pattern::new(
    r"(?i)(?:^|[^\w.])(?P<count>\d{1,4}|two|four|eight|sixteen)(?:[ -]way\b| (?:logical |online |physical )?(?:cpus|processors|hardware threads|threads,? \d+ sockets)\b|-cpu\b)",
);
static SOCKETS: Pattern = Pattern::new(
    r"(?i)\b(?P<sockets>\d{1,2}|two|four|eight) sockets?(?: of|,| with| x) (?P<cores>\d{1,3}|two|four|eight) cores\b",
);
static PARAMETER: Pattern = Pattern::new(
    r"^\s*(?P<name>testcase|test machine|nr_task|nr_threads|test|mode|ipc|cpufreq_governor|runtime): +(?P<value>\S.*?)\s*$",
);

/// The computer of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// Its CPUs.
    pub cpus: u32,
    /// The line that says so.
    pub line: usize,
}

/// What the text around the tables tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Context {
    /// The first machine that is told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// `testcase: hackbench` and the like.
    pub parameters: Vec<(String, String)>,
}

impl Context {
    /// Looks at a line and the next, since what is told may be wrapped.
    pub fn look(&mut self, line: &Line<'_>, next: Option<&Line<'_>>) {
        if line.text.len() > 500 {
            return;
        }
        if self.machine.is_none() && line.text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            let wrapped = || {
                // What stands in the next line alone is found there.
                let next =
                    next.filter(|next| next.text.len() <= 500 && cpus(&next.text).is_none())?;
                cpus(&format!("{} {}", line.text.trim_end(), next.text.trim_start()))
            };
            let cpus = cpus(&line.text).or_else(wrapped);
            self.machine = cpus.map(|cpus| Machine { cpus, line: line.number });
        }
        if self.parameters.len() < 100
            && line.text.contains(": ")
            && let Some(found) = PARAMETER.captures(&line.text)
        {
            let pair = (group(&found, "name").to_owned(), escape(group(&found, "value")));
            if !self.parameters.contains(&pair) {
                self.parameters.push(pair);
            }
        }
    }
}

fn cpus(text: &str) -> Option<u32> {
    if text.contains("ocket")
        && let Some(found) = SOCKETS.captures(text)
    {
        return Some(count(group(&found, "sockets"))? * count(group(&found, "cores"))?);
    }
    let telling = ["way", "cpu", "CPU", "rocessor", "thread"];
    if !telling.iter().any(|word| text.contains(word)) {
        return None;
    }
    CPUS.captures(text).and_then(|found| count(group(&found, "count"))).filter(|count| *count > 0)
}

fn count(word: &str) -> Option<u32> {
    match word.to_ascii_lowercase().as_str() {
        "two" => Some(2),
        "four" => Some(4),
        "eight" => Some(8),
        "sixteen" => Some(16),
        digits => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_by_their_cpus() {
        assert_eq!(cpus("on a 16-way NUMA-Q"), Some(16));
        assert_eq!(cpus("box with two sockets of four cores each"), Some(8));
        assert_eq!(cpus("test machine: 104 threads 2 sockets (a processor)"), Some(104));
        assert_eq!(cpus("it has 8 CPUs"), Some(8));
        assert_eq!(cpus("0.119 CPUs utilized"), None);
        assert_eq!(cpus("in two ways"), None);
    }
}
