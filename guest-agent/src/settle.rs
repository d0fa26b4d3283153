//! Waits until the guest has nothing left to do from its boot.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use kduel_protocol::{Event, Settle};

use crate::clock::{self, SECOND_NS};

/// The guest is idle when its CPUs together were so for this share of one second.
const IDLE_SHARE: f64 = 0.99;
const WINDOW_NS: u64 = SECOND_NS;
/// How many tasks are named when the wait is given up.
const NAMED: usize = 10;

/// Waits as `rule` says; gives [`Event::Settled`]. Calls `on_busy` after each second in which the guest
/// was not idle: emulated, such a second can take the host minutes.
///
/// # Errors
///
/// Those of `on_busy`.
pub fn settle(rule: Settle, on_busy: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Event> {
    let begin = clock::now_ns();
    let mut quiet = 0;
    loop {
        // Outside the window: reading the tasks is work of its own.
        let tasks_before = task_ticks();
        let before = Ticks::read();
        clock::sleep_ns(WINDOW_NS);
        let is_quiet = before.idle_share(&Ticks::read()) >= IDLE_SHARE;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        let waited_ns = clock::now_ns() - begin;
        if let Some(idle) = decide(rule, quiet, waited_ns) {
            let busy = if idle { Vec::new() } else { busiest(&tasks_before, &task_ticks()) };
            return Ok(Event::Settled { waited_ms: waited_ns / 1_000_000, idle, busy });
        }
        if !is_quiet {
            on_busy()?;
        }
    }
}

/// Whether the guest is idle after so many quiet windows in a row; nothing while that is open.
fn decide(rule: Settle, quiet: u32, waited_ns: u64) -> Option<bool> {
    let [at_least_ns, at_most_ns] =
        [rule.at_least_s, rule.at_most_s].map(|seconds| u64::from(seconds) * SECOND_NS);
    let is_idle = quiet >= rule.quiet_s && waited_ns >= at_least_ns;
    (is_idle || waited_ns >= at_most_ns).then_some(is_idle)
}

/// CPU time since boot over all CPUs, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ticks {
    idle: u64,
    all: u64,
}

impl Ticks {
    fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// From the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let fields: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        let idle = fields.iter().skip(3).take(2).sum();
        Self { idle, all: fields.iter().sum() }
    }

    /// The idle share between two readings; nothing measured is not idle.
    fn idle_share(self, after: &Self) -> f64 {
        let all = after.all.saturating_sub(self.all);
        let idle = after.idle.saturating_sub(self.idle);
        if all == 0 { 0.0 } else { idle as f64 / all as f64 }
    }
}

/// A task as it is named to the user, and its CPU time in ticks.
type TaskTicks = BTreeMap<String, u64>;

fn task_ticks() -> TaskTicks {
    let Ok(entries) = fs::read_dir("/proc") else { return TaskTicks::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .filter_map(|entry| parse_task(&fs::read_to_string(entry.path().join("stat")).ok()?))
        .collect()
}

/// `PID (NAME) STATE …`; user and system time are fields 14 and 15.
fn parse_task(stat: &str) -> Option<(String, u64)> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((format!("{name} ({pid})"), user + system))
}

/// The tasks that used most CPU time between two readings.
fn busiest(before: &TaskTicks, after: &TaskTicks) -> Vec<String> {
    let used = |(task, ticks): (&String, &u64)| {
        let used = ticks.saturating_sub(before.get(task).copied().unwrap_or(0));
        (used > 0).then(|| (used, task.clone()))
    };
    let mut tasks: Vec<(u64, String)> = after.iter().filter_map(used).collect();
    tasks.sort_by(|left, right| right.cmp(left));
    let named = tasks.into_iter().take(NAMED);
    named.map(|(ticks, task)| format!("{task}: {} ms", ticks * 10)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_seconds_must_follow_one_another_and_be_late_enough() {
        let sealed = |quiet, waited_s| decide(Settle::SEALED, quiet, waited_s * SECOND_NS);
        assert_eq!(sealed(4, 4), None);
        assert_eq!(sealed(2, 20), None);
        assert_eq!(sealed(3, 5), Some(true));
        assert_eq!(sealed(2, 60), Some(false));
        assert_eq!(sealed(3, 60), Some(true));
        assert_eq!(decide(Settle::first_quiet_second(10), 1, SECOND_NS), Some(true));
    }

    #[test]
    fn a_guest_that_is_never_idle_tells_so_every_second_and_is_given_up() {
        let never = Settle { quiet_s: 60, at_least_s: 60, at_most_s: 2 };
        let (mut told, stop) = (0, std::sync::atomic::AtomicBool::new(false));
        let is_on = || !stop.load(std::sync::atomic::Ordering::Relaxed);
        let event = std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().unwrap().get() {
                scope.spawn(|| while is_on() {});
            }
            let event = settle(never, &mut || {
                told += 1;
                Ok(())
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            event.unwrap()
        });
        let Event::Settled { waited_ms, idle, busy } = event else { panic!("{event:?}") };
        assert!(waited_ms >= 2000 && !idle && !busy.is_empty(), "{waited_ms} {busy:?}");
        assert_eq!(told, 1);
    }

    #[test]
    fn idle_is_a_share_of_what_passed() {
        let before = Ticks::parse("cpu  10 0 10 100 5 0 0 0 0 0\ncpu0 1 1 1 1\n");
        assert_eq!(before, Ticks { idle: 105, all: 125 });
        let after = Ticks::parse("cpu  11 0 10 298 6 0 0 0 0 0\n");
        assert_eq!(before.idle_share(&after), 0.995);
        assert_eq!(before.idle_share(&before), 0.0);
    }

    #[test]
    fn the_busiest_task_is_named_first() {
        let task = |stat| parse_task(stat).unwrap();
        let before = TaskTicks::from([task("7 (a) b) S 1 7 7 0 -1 4 5 0 0 0 20 10 0 0")]);
        let after = TaskTicks::from([
            task("7 (a) b) S 1 7 7 0 -1 4 5 0 0 0 21 12 0 0"),
            task("8 (c) R 1 8 8 0 -1 4 5 0 0 0 9 0 0 0"),
            task("9 (d) S 1 9 9 0 -1 4 5 0 0 0 0 0 0 0"),
        ]);
        assert_eq!(busiest(&before, &after), ["c (8): 90 ms", "a) b (7): 30 ms"]);
    }
}
