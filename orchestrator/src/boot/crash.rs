//! What a console says about the kernel's health. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::fault::FailureClass;

/// A crash found on a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// [`FailureClass::Panic`], `OutOfMemory`, `BootFailed` or `Reboot`.
    pub class: FailureClass,
    /// The kernel's own words without time stamp; never empty. Raw.
    pub title: String,
    /// Where the line of the title begins, in bytes from the start of what was read.
    pub start: usize,
}

/// Reads a console line by line and keeps the first crash.
#[derive(Debug, Clone, Default)]
pub struct Detector {
    position: usize,
    banners: u32,
    crash: Option<Crash>,
    note: Option<String>,
}

impl Detector {
    /// Takes one line without its newline. Gives the crash if this line begins one.
    pub fn line(&mut self, line: &str) -> Option<&Crash> {
        let start = self.position;
        self.position += line.len() + 1;
        if self.crash.is_some() {
            return None;
        }
        let found = find_in(line)?;
        let class = match found.rule {
            Rule::Note => {
                self.note = Some(found.title);
                return None;
            }
            Rule::Banner => {
                self.banners += 1;
                if self.banners < 2 {
                    return None;
                }
                FailureClass::Reboot
            }
            Rule::Fatal(class) => class,
        };
        self.crash = Some(Crash { class, title: found.title, start });
        self.crash.as_ref()
    }

    /// The first crash so far.
    pub fn crash(&self) -> Option<&Crash> {
        self.crash.as_ref()
    }

    /// The last line that is bad news but no crash by itself: a warning, a stall, a hung task.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Whether the kernel printed its banner.
    pub fn kernel_started(&self) -> bool {
        self.banners > 0
    }
}

/// The first crash in a whole log.
pub fn find(log: &str) -> Option<Crash> {
    let mut detector = Detector::default();
    for line in log.split('\n') {
        detector.line(line);
    }
    detector.crash
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// The kernel cannot go on, or what it does from here on means nothing.
    Fatal(FailureClass),
    /// Worth telling if the guest comes to nothing.
    Note,
    /// The first line of every kernel.
    Banner,
}

struct Found {
    rule: Rule,
    title: String,
}

/// In order: the first that fits decides, so exceptions stand before what they are exceptions of.
const RULES: &[(&str, Rule)] = &[
    (r"Linux version \d", Rule::Banner),
    (
        r"Kernel panic - not syncing: (VFS: Unable to mount root fs|No working init found|Requested init )",
        Rule::Fatal(FailureClass::BootFailed),
    ),
    (
        r"Kernel panic - not syncing: (Out of memory|System is deadlocked on memory)",
        Rule::Fatal(FailureClass::OutOfMemory),
    ),
    (
        r"(Out of memory|Memory cgroup out of memory): Killed process \d+ \((kduel-agent|agent|init|dropbear)\)",
        Rule::Fatal(FailureClass::OutOfMemory),
    ),
    (r"(Out of memory|Memory cgroup out of memory): Killed process ", Rule::Note),
    (r"(WARNING|INFO|UBSAN): ", Rule::Note),
    (r"unregister_netdevice: waiting for ", Rule::Note),
    (r"(Kernel panic|PANIC: double fault)", Rule::Fatal(FailureClass::Panic)),
    (r"(kernel )?BUG (at |kmalloc-)", Rule::Fatal(FailureClass::Panic)),
    (r"BUG: ", Rule::Fatal(FailureClass::Panic)),
    (r"Unable to handle kernel ", Rule::Fatal(FailureClass::Panic)),
    (
        r"(general protection fault|stack segment|divide error|invalid opcode|int3|Internal error|Oops)(: |, )",
        Rule::Fatal(FailureClass::Panic),
    ),
    (r"rust_kernel: panicked", Rule::Fatal(FailureClass::Panic)),
];

static PATTERNS: LazyLock<Vec<(Regex, Rule)>> = LazyLock::new(|| {
    RULES.iter().filter_map(|(text, rule)| Some((Regex::new(text).ok()?, *rule))).collect()
});

/// Lines that quote what looks like a crash: the command line, and traps of user programs.
fn quotes(line: &str) -> bool {
    line.contains("ommand line: ") || line.contains("traps: ")
}

fn find_in(line: &str) -> Option<Found> {
    if quotes(line) {
        return None;
    }
    PATTERNS.iter().find_map(|(pattern, rule)| {
        let at = pattern.find_iter(line).find(|at| begins_message(&line[..at.start()]))?;
        Some(Found { rule: *rule, title: line[at.start()..].trim_end().to_owned() })
    })
}

/// Whether a message may begin behind `prefix`: at the line's start, or behind a time stamp, a log
/// level, a CPU or task mark, or the name of a subsystem (`watchdog: BUG: …`).
fn begins_message(prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches(' ');
    prefix.is_empty() || prefix.ends_with([']', '>', ':'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_rule_is_a_regular_expression() {
        assert_eq!(PATTERNS.len(), RULES.len());
    }

    #[test]
    fn quoted_and_foreign_crashes_are_none() {
        for line in [
            "[    0.000000] Kernel command line: console=ttyS0 x=BUG: y",
            "[    9.1] traps: a.out[123] general protection fault ip:40 sp:7f error:0 in a.out",
            "[    9.1] ODEBUG: something",
            "DEBUG: something",
            "[    9.1] debug kernel BUGS: none",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }

    #[test]
    fn the_first_crash_is_kept_with_its_place() {
        let log = "[ 1.0] x\r\n[ 1.1] BUG: unable to handle page fault\n[ 1.2] Kernel panic - y\n";
        let crash = find(log).unwrap();
        assert_eq!(crash.title, "BUG: unable to handle page fault");
        assert_eq!(crash.start, log.find("[ 1.1]").unwrap());
    }

    fn line() -> impl Strategy<Value = String> {
        let words = RULES.iter().map(|(text, _)| text.replace(['\\', '(', ')'], "")).chain(
            ["[    1.5] ", "watchdog: ", "Linux version 6.1", "Kernel panic", "BUG: ", "Oops: "]
                .map(str::to_owned),
        );
        let word =
            prop_oneof![proptest::sample::select(words.collect::<Vec<_>>()), any::<String>()];
        proptest::collection::vec(word, 0..5).prop_map(|words| words.concat())
    }

    proptest! {
        #[test]
        fn titles_are_never_empty_and_reading_again_from_the_start_finds_the_same(
            lines in proptest::collection::vec(line(), 0..12),
        ) {
            let log = lines.join("\n");
            if let Some(crash) = find(&log) {
                prop_assert!(!crash.title.is_empty());
                prop_assert!(crash.start < log.len());
                let again = find(&log[crash.start..]);
                if crash.class == FailureClass::Reboot {
                    // The second banner alone is a first one.
                    prop_assert!(again.is_none_or(|again| again.title != crash.title || again.start > 0));
                } else {
                    prop_assert_eq!(again, Some(Crash { start: 0, ..crash }));
                }
            }
        }
    }
}
