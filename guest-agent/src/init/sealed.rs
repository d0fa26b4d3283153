//! A sealed guest: the plan is carried out without anybody from outside.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::Child;

use kduel_protocol::{Event, GuestPlan};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::network;
use super::port::Port;
use crate::clock::{self, SECOND_NS};
use crate::process;
use crate::serve::Lines;
use crate::sys::{self, Caught, Signals};

/// The longest wait between two looks at the clock, in milliseconds.
const LONGEST_WAIT_MS: u64 = 3_600_000;

const RANDOM: &str = "/dev/random";

/// Carries the plan out in a process of its own, as a login would, and writes to the port. What
/// keeps it from being finished is written there, too.
pub fn run(plan: &GuestPlan) -> Result<(), String> {
    let port = Port::open()?;
    let outcome = prepare().and_then(|()| carry_out(&port, plan));
    let mut lines = Lines::new(port);
    match outcome {
        Ok(()) => lines.flush().map_err(|error| format!("emptying the port: {error}")),
        Err(message) => {
            let event = Event::Failed { message: message.clone() };
            lines.send(&event).map_err(|error| format!("{message}; telling so: {error}"))?;
            Err(message)
        }
    }
}

fn prepare() -> Result<(), String> {
    network::loopback()?;
    make_generator_ready().map_err(|error| format!("seeding {RANDOM}: {error}"))
}

/// Without a device that gives entropy the kernel's generator would stay unready: every number would
/// cost it more than on any real machine, and who asks for some would wait. What is already in the
/// pool, the command line above all, still decides which numbers come out.
fn make_generator_ready() -> io::Result<()> {
    let random = File::options().write(true).open(RANDOM)?;
    sys::seed_pool(random.as_fd(), std::array::from_fn(|_| 0x6b64_7565))
}

fn carry_out(port: &Port, plan: &GuestPlan) -> Result<(), String> {
    let start = || process::plan_runner(port.writer()?);
    let runner = start().map_err(|error| format!("starting the agent: {error}"))?;
    // Not earlier: the runner would inherit the block. Its end is not missed, see below.
    let signals = Signals::block().map_err(|error| format!("blocking signals: {error}"))?;
    let outcome = wait_for(&runner, &signals, plan.deadline_s);
    if outcome.is_err()
        && let Some(group) = Pid::from_raw(runner.id().cast_signed())
    {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let _ = sys::wait(group);
    }
    outcome
}

/// Reaps until the runner has ended or its time is up.
fn wait_for(runner: &Child, signals: &Signals, deadline_s: Option<u32>) -> Result<(), String> {
    let limit_ns = deadline_s.map(|seconds| u64::from(seconds) * SECOND_NS);
    let begin_ns = clock::now_ns();
    loop {
        if let Some(status) = reap(runner) {
            return judge(status);
        }
        let passed_ns = clock::now_ns() - begin_ns;
        let left_ms = match limit_ns {
            None => LONGEST_WAIT_MS,
            Some(limit_ns) if passed_ns >= limit_ns => {
                let seconds = limit_ns / SECOND_NS;
                return Err(format!("the plan was not finished within {seconds} s of guest time"));
            }
            Some(limit_ns) => ((limit_ns - passed_ns) / 1_000_000 + 1).min(LONGEST_WAIT_MS),
        };
        if signals.wait(u32::try_from(left_ms).unwrap_or(u32::MAX)) == Caught::PowerOff {
            return Err("somebody in the guest asked for its end".to_owned());
        }
    }
}

/// Collects every child that has ended; the runner's status if it is among them.
fn reap(runner: &Child) -> Option<WaitStatus> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid.as_raw_nonzero().get().unsigned_abs() == runner.id() {
            return Some(status);
        }
    }
    None
}

/// With an exit status it has said itself what there is to say.
fn judge(status: WaitStatus) -> Result<(), String> {
    match status.terminating_signal() {
        None => Ok(()),
        Some(signal) => Err(format!("the agent was ended by signal {signal}")),
    }
}
