//! `event`: telling oneself that something happened.

use std::os::fd::OwnedFd;

use kduel_protocol::TrialProblem;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::{Iteration, Window, Workload, failed};
use crate::sys;

/// Descriptors that `epoll` watches.
const WATCHED: usize = 64;

/// By what means, with what it needs.
pub enum Event {
    /// A counter: written, read.
    Counter(OwnedFd),
    /// One of several counters, each in its turn: written, waited for, read.
    Epoll(OwnedFd, Vec<OwnedFd>),
    /// A signal to this process, whose handler does nothing.
    Signal(Pid),
    /// A timer: armed for later, disarmed.
    Timer(OwnedFd),
}

impl Event {
    /// `kind` as in the workload's parameter.
    pub fn new(kind: &str) -> Result<Self, TrialProblem> {
        let timer = || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let made = match kind {
            "eventfd" => counter().map(Self::Counter),
            "epoll" => watched(),
            "signal" => {
                sys::handle_user_signal().map_err(|error| failed("installing a handler", error))?;
                Ok(Self::Signal(getpid()))
            }
            "timer" => timer().map(Self::Timer),
            other => return Err(failed("the event", format!("\"{other}\" is not known"))),
        };
        made.map_err(|error| failed("preparing events", error))
    }

    /// One operation, with the counter whose turn it is.
    #[inline]
    fn happen(&self, turn: usize) -> rustix::io::Result<()> {
        match self {
            Self::Counter(counter) => raise(counter).and_then(|()| clear(counter)),
            Self::Epoll(watcher, counters) => {
                let counter = &counters[turn % WATCHED];
                raise(counter)?;
                let nothing =
                    epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
                epoll::wait(watcher, &mut [nothing], None)?;
                clear(counter)
            }
            Self::Signal(own) => kill_process(*own, Signal::USR1),
            Self::Timer(timer) => arm(timer, 1).and_then(|()| arm(timer, 0)),
        }
    }
}

fn counter() -> rustix::io::Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC)
}

/// An epoll instance and the counters that it watches.
fn watched() -> rustix::io::Result<Event> {
    let watcher = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut counters = Vec::new();
    for _ in 0..WATCHED {
        let counter = counter()?;
        epoll::add(&watcher, &counter, EventData::new_u64(0), EventFlags::IN)?;
        counters.push(counter);
    }
    Ok(Event::Epoll(watcher, counters))
}

#[inline]
fn raise(counter: &OwnedFd) -> rustix::io::Result<()> {
    rustix::io::write(counter, &1u64.to_ne_bytes()).map(drop)
}

#[inline]
fn clear(counter: &OwnedFd) -> rustix::io::Result<()> {
    rustix::io::read(counter, &mut [0; 8]).map(drop)
}

/// Sets a timer to expire once in so many seconds; 0 disarms it.
#[inline]
fn arm(timer: &OwnedFd, seconds: i64) -> rustix::io::Result<()> {
    let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
    let it_value = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let when = Itimerspec { it_interval, it_value };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &when).map(drop)
}

impl Workload for Event {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let open = window.open();
        let mut turn = 0;
        for _ in 0..ops {
            self.happen(turn).map_err(|error| failed("the event", error))?;
            turn = (turn + 1) % WATCHED;
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
