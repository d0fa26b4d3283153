//! What monitors of a scripted guest say.

use std::collections::BTreeMap;

use kduel_protocol::{Event, GuestPlan, LogKind, Monitor};

/// Ten seconds; rates are `value` a second, and so rows of vmstat settle after three of them.
pub(super) fn events(plan: &GuestPlan, trial: u32, value: f64) -> Vec<Event> {
    plan.monitors.iter().map(|monitor| event(*monitor, trial, value)).collect()
}

fn event(monitor: Monitor, trial: u32, value: f64) -> Event {
    let monitored = |deltas: &[(&str, f64)], absent: &[(&str, &str)]| Event::Monitored {
        trial,
        deltas: deltas.iter().map(|(name, delta)| ((*name).to_owned(), *delta)).collect(),
        elapsed_ns: 10_000_000_000,
        monitor: Some(monitor),
        ops: 1000,
        absent: absent.iter().map(|(name, why)| ((*name).into(), (*why).into())).collect(),
    };
    match monitor {
        Monitor::Vmstat => {
            let row = |second: u32| {
                let rate = if second <= 3 { 9.0 * value } else { value };
                vec![f64::from(second) * 1000.0, rate / 100.0, 0.0, rate]
            };
            Event::Rows {
                trial,
                monitor,
                columns: ["r", "b", "cs"].map(str::to_owned).to_vec(),
                rows: (1..=10).map(row).collect(),
            }
        }
        Monitor::Profile => Event::Stacks {
            trial,
            period_ns: 1e6,
            clock: "cpu-clock".to_owned(),
            stacks: BTreeMap::from([("own;entry;copy".to_owned(), 700), ("own;[user]".into(), 9)]),
            lost: 0,
        },
        Monitor::Dmesg => {
            let title = "WARNING: CPU: 0 PID: 1 at fake.c:1 fake+0x1/0x2".to_owned();
            let lines = vec![title.clone(), "Call Trace:".to_owned()];
            Event::KernelLog { trial, kind: LogKind::Warning, title, lines }
        }
        Monitor::PerfStat => monitored(
            &[("task-clock", value * 500_000.0), ("context-switches", 2000.0)],
            &[("cycles", "the guest's CPU counts no such event")],
        ),
        Monitor::Psi => monitored(&[], &[("psi", "/proc/pressure/cpu: no such file")]),
        Monitor::Interrupts | Monitor::Schedstat | Monitor::Rusage => {
            monitored(&[("counted", value * 10.0)], &[])
        }
    }
}
