//! One trial from the parent's side: a child of its own, its lines, its deadline, its end.

use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin};

use kduel_protocol::{Event, GuestPlan, MAX_LINE_BYTES, TrialProblem, TrialSpec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::child::Request;
use crate::clock::{self, SECOND_NS};
use crate::monitor::Beside;
use crate::process::{self, Scratch};
use crate::sys;

/// How often progress is reported when the child says nothing: often enough to be taken for alive.
const PROGRESS_NS: u64 = 4 * SECOND_NS;

type Send<'a> = &'a mut dyn FnMut(&Event) -> io::Result<()>;

/// Runs a trial of `plan` and passes on what its child sends. A trial that goes wrong is reported, not an
/// error.
///
/// # Errors
///
/// Nobody reads our events any more.
pub fn run(trial: &TrialSpec, plan: &GuestPlan, send: Send<'_>) -> io::Result<()> {
    send(&Event::TrialBegin { trial: trial.id })?;
    let before = children_of_this();
    let complaints = Scratch::new()?;
    let mut beside = Beside::new(&plan.monitors, plan.monitor_terms, trial.id);
    let mut child = start(trial, plan, &complaints)?;
    let outcome = Listener::new(trial, child.stdin.take(), &mut beside).listen(&mut child, send);
    // The deadline's and the reader's end as well as the ordinary one: nothing may be left running.
    end_group(&child);
    let ended = child_pid(&child).map(sys::wait);
    end_leftovers(&before);
    let problem = match outcome? {
        Outcome::Said(problem) => problem,
        Outcome::TimedOut => Some(TrialProblem::TimedOut { after_s: trial.deadline_s }),
        Outcome::Broken(what) => {
            let ended = match ended {
                Some(Ok(ended)) => ended.to_string(),
                _ => "unknown status".to_owned(),
            };
            let message = format!("{what} ({ended})\n{}", complaints.tail());
            Some(TrialProblem::Failed { message: message.trim_end().to_owned() })
        }
    };
    beside.finish().iter().try_for_each(&mut *send)?;
    send(&Event::TrialEnd { trial: trial.id, problem })
}

fn start(trial: &TrialSpec, plan: &GuestPlan, complaints: &Scratch) -> io::Result<Child> {
    let (trial, monitors) = (trial.clone(), plan.monitors.clone());
    let request = Request { trial, monitors, together: plan.together };
    let mut child = process::own_child("child", complaints)?;
    if let Some(input) = &mut child.stdin {
        // A child that died at once is noticed by its silence.
        let _ = input.write_all((serde_json::to_string(&request)? + "\n").as_bytes());
    }
    Ok(child)
}

/// How the conversation with the child ended.
enum Outcome {
    /// It sent its end.
    Said(Option<TrialProblem>),
    /// The deadline passed.
    TimedOut,
    /// It went away or sent nonsense.
    Broken(String),
}

/// Reads a child's lines while keeping an eye on the clock.
struct Listener<'a> {
    trial: &'a TrialSpec,
    /// The child's standard input.
    input: Option<ChildStdin>,
    buffer: Vec<u8>,
    done: u32,
    deadline: u64,
    told: u64,
    beside: &'a mut Beside,
}

impl<'a> Listener<'a> {
    fn new(trial: &'a TrialSpec, input: Option<ChildStdin>, beside: &'a mut Beside) -> Self {
        let now = clock::now_ns();
        let deadline = now + u64::from(trial.deadline_s) * SECOND_NS;
        Self { trial, input, buffer: Vec::new(), done: 0, deadline, told: now, beside }
    }

    fn listen(mut self, child: &mut Child, send: Send<'_>) -> io::Result<Outcome> {
        let Some(output) = child.stdout.take() else {
            return Ok(Outcome::Broken("the workload's process has no output".to_owned()));
        };
        loop {
            while let Some(line) = self.next_line() {
                if let Some(outcome) = self.take(&line, send)? {
                    return Ok(outcome);
                }
            }
            if self.buffer.len() >= MAX_LINE_BYTES {
                return Ok(Outcome::Broken(
                    "the workload's process sent an endless line".to_owned(),
                ));
            }
            let now = clock::now_ns();
            if now >= self.deadline {
                return Ok(Outcome::TimedOut);
            }
            if now >= self.told + PROGRESS_NS {
                self.told = now;
                send(&self.progress())?;
            }
            self.beside.look(now);
            let next = self.deadline.min(self.told + PROGRESS_NS);
            let next = self.beside.due_ns().map_or(next, |due| due.min(next));
            let pause = clock::timespec(next.saturating_sub(now));
            let mut ready = [PollFd::new(&output, PollFlags::IN)];
            match poll(&mut ready, Some(&pause)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            if !self.read(output.as_fd())? {
                return Ok(Outcome::Broken(
                    "the workload's process ended without a result".to_owned(),
                ));
            }
        }
    }

    /// Takes what is there; false at the end of the output.
    fn read(&mut self, output: impl AsFd) -> io::Result<bool> {
        let mut chunk = [0; 8192];
        let read = rustix::io::read(output, &mut chunk)?;
        self.buffer.extend_from_slice(&chunk[..read]);
        Ok(read > 0)
    }

    fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n')?;
        let rest = self.buffer.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.pop();
        Some(line)
    }

    fn progress(&self) -> Event {
        let of = self.trial.warmup.saturating_add(self.trial.iterations);
        Event::Progress { trial: self.trial.id, done: self.done, of }
    }

    /// Passes a line on, or ends the conversation.
    fn take(&mut self, line: &[u8], send: Send<'_>) -> io::Result<Option<Outcome>> {
        match serde_json::from_slice(line) {
            Ok(Event::TrialEnd { problem, .. }) => return Ok(Some(Outcome::Said(problem))),
            // Told when it is due, however often the child tells.
            Ok(Event::Progress { done, .. }) => self.done = done,
            Ok(event @ Event::Waiting { .. }) => {
                send(&event)?;
                self.pass_on_go(send)?;
            }
            Ok(Event::Kept { begin, .. }) => self.beside.kept(begin),
            Ok(event) => send(&event)?,
            Err(error) => {
                let what = format!("the workload's process sent a line that is no event: {error}");
                return Ok(Some(Outcome::Broken(what)));
            }
        }
        Ok(None)
    }

    /// Waits for the line that starts the kept iterations and hands it to the child; what the wait
    /// takes is not the trial's time.
    fn pass_on_go(&mut self, send: Send<'_>) -> io::Result<()> {
        let since = clock::now_ns();
        let input = io::stdin();
        let pause = clock::timespec(PROGRESS_NS);
        loop {
            match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&pause)) {
                Ok(0) => send(&self.progress())?,
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut line = String::new();
        input.lock().read_line(&mut line)?;
        if line.is_empty() {
            // Nobody is there to say it, and the child may know.
            self.input = None;
        }
        if let Some(child) = &mut self.input {
            // A child that died meanwhile is noticed by its silence.
            let _ = child.write_all(line.as_bytes());
        }
        self.told = clock::now_ns();
        self.deadline += self.told - since;
        Ok(())
    }
}

fn child_pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().cast_signed())
}

fn end_group(child: &Child) {
    if let Some(group) = child_pid(child) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// Ends whatever left the child's process group and came to us when its parent ended; `before`
/// lists the children that have nothing to do with the trial, such as daemons of a set-up command.
fn end_leftovers(before: &[Pid]) {
    // Each round may orphan another generation.
    for _ in 0..100 {
        let mut left = children_of_this();
        left.retain(|pid| !before.contains(pid));
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = sys::wait(pid);
        }
    }
}

/// The children of this process, by the parent that `/proc` gives for each process.
fn children_of_this() -> Vec<Pid> {
    let own = rustix::process::getpid();
    let is_child = |stat: &str| {
        // After the name, which is in parentheses and may hold anything: state, parent.
        let (_, rest) = stat.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
    };
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|pid| {
            let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
            std::fs::read_to_string(path).is_ok_and(|stat| is_child(&stat) == Some(own))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> TrialSpec {
        TrialSpec {
            id: 7,
            workload: "fork-exit".to_owned(),
            params: Default::default(),
            command: None,
            warmup: 1,
            iterations: 2,
            min_interval_ns: 0,
            deadline_s: 1,
        }
    }

    #[test]
    fn lines_are_cut_out_of_the_stream() {
        let spec = spec();
        let mut beside = Beside::new(&[], Default::default(), spec.id);
        let mut listener = Listener::new(&spec, None, &mut beside);
        listener.buffer = b"a\nbc\nd".to_vec();
        assert_eq!(listener.next_line().unwrap(), b"a");
        assert_eq!(listener.next_line().unwrap(), b"bc");
        assert!(listener.next_line().is_none());
        assert_eq!(listener.buffer, b"d");
    }

    #[test]
    fn nonsense_ends_the_conversation_and_progress_is_kept_back() {
        let spec = spec();
        let mut beside = Beside::new(&[], Default::default(), spec.id);
        let mut listener = Listener::new(&spec, None, &mut beside);
        let mut sent = 0;
        let mut send = |_: &Event| {
            sent += 1;
            Ok(())
        };
        let line = br#"{"event":"progress","trial":7,"done":2,"of":3}"#;
        assert!(listener.take(line, &mut send).unwrap().is_none());
        assert!(matches!(listener.take(b"hello", &mut send), Ok(Some(Outcome::Broken(_)))));
        assert_eq!((listener.done, sent), (2, 0));
    }
}
