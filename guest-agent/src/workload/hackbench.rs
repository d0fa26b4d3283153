//! `hackbench`: groups of senders and receivers that pass messages.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use kduel_protocol::{Better, TrialProblem};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::partners::{Partners, buffer, pipe, read_all, write_all};
use super::{Iteration, Params, Value, Window, Workload, failed};
use crate::clock;

/// Threads need little more than their message.
const STACK_BYTES: usize = 64 * 1024;

/// What is passed, by how many, through what.
pub struct Hackbench {
    groups: u64,
    /// Senders of a group, and as many receivers.
    fds: u64,
    loops: u64,
    message: Vec<u8>,
    threads: bool,
    sockets: bool,
}

impl Hackbench {
    /// Takes the workload's parameters.
    pub fn new(params: &Params<'_>) -> Result<Self, TrialProblem> {
        let this = Self {
            groups: params.integer("groups")?,
            fds: params.integer("fds")?,
            loops: params.integer("loops")?,
            message: buffer(params.integer("bytes")?)?,
            threads: params.word("mode")? == "thread",
            sockets: params.word("channel")? == "socket",
        };
        // Threads share one table: two descriptors per receiver, and some to spare.
        let wanted = Some(this.groups * this.fds * 2 + 64);
        let current = rustix::process::getrlimit(Resource::Nofile);
        if current.current.is_some_and(|limit| Some(limit) < wanted) {
            let _ = setrlimit(
                Resource::Nofile,
                Rlimit { current: wanted, maximum: wanted.max(current.maximum) },
            );
        }
        Ok(this)
    }

    fn messages(&self) -> u64 {
        self.groups * self.fds * self.fds * self.loops
    }

    /// Where to read, where to write.
    fn channel(&self) -> Result<(OwnedFd, OwnedFd), TrialProblem> {
        if !self.sockets {
            return pipe();
        }
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| failed("making a socket pair", error))
    }

    /// One whole run: starts all tasks, lets them go, gives the time until the last has ended.
    fn run(&self, window: Window) -> Result<u64, TrialProblem> {
        let gate = Arc::new(Gate::new()?);
        let mut tasks =
            Tasks { threads: self.threads.then(Vec::new), processes: Partners::default() };
        for _ in 0..self.groups {
            self.start_group(&gate, &mut tasks)?;
        }
        gate.wait_for(tasks.len()).map_err(|error| failed("waiting for the tasks", error))?;
        let open = window.open();
        gate.open().map_err(|error| failed("giving the start signal", error))?;
        tasks.join()?;
        Ok(open.close())
    }

    fn start_group(&self, gate: &Arc<Gate>, tasks: &mut Tasks) -> Result<(), TrialProblem> {
        let mut writers = Vec::new();
        let (loops, fds) = (self.loops, self.fds);
        for _ in 0..self.fds {
            let (reader, writer) = self.channel()?;
            writers.push(writer);
            let (gate, mut message) = (Arc::clone(gate), self.message.clone());
            tasks.add(move || {
                gate.pass()?;
                (0..loops * fds).try_for_each(|_| read_all(&reader, &mut message))
            })?;
        }
        let writers = Arc::new(writers);
        for _ in 0..self.fds {
            let (gate, message) = (Arc::clone(gate), self.message.clone());
            let writers = Arc::clone(&writers);
            tasks.add(move || {
                gate.pass()?;
                for _ in 0..loops {
                    writers.iter().try_for_each(|writer| write_all(writer, &message))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Holds all tasks back until every one of them is there.
struct Gate {
    arrived: (OwnedFd, OwnedFd),
    signal: (OwnedFd, OwnedFd),
}

impl Gate {
    fn new() -> Result<Self, TrialProblem> {
        Ok(Self { arrived: pipe()?, signal: pipe()? })
    }

    /// A task: says that it is there, waits for the signal. Nobody reads the signal away.
    fn pass(&self) -> io::Result<()> {
        write_all(&self.arrived.1, &[1])?;
        poll(&mut [PollFd::new(&self.signal.0, PollFlags::IN)], None)?;
        Ok(())
    }

    fn wait_for(&self, tasks: usize) -> io::Result<()> {
        read_all(&self.arrived.0, &mut vec![0; tasks])
    }

    fn open(&self) -> io::Result<()> {
        write_all(&self.signal.1, &[1])
    }
}

/// Senders and receivers: threads, if there is a list of them, else processes.
struct Tasks {
    threads: Option<Vec<JoinHandle<io::Result<()>>>>,
    processes: Partners,
}

impl Tasks {
    fn add<F>(&mut self, body: F) -> Result<(), TrialProblem>
    where
        F: FnOnce() -> io::Result<()> + Send + 'static,
    {
        let Some(threads) = &mut self.threads else { return self.processes.add(body) };
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
        threads.push(thread.map_err(|error| failed("starting a thread", error))?);
        Ok(())
    }

    fn len(&self) -> usize {
        self.threads.as_ref().map_or(self.processes.len(), Vec::len)
    }

    fn join(&mut self) -> Result<(), TrialProblem> {
        for thread in self.threads.iter_mut().flat_map(|threads| threads.drain(..)) {
            let ended = thread.join().map_err(|_| failed("a thread", "panicked"))?;
            ended.map_err(|error| failed("a thread", error))?;
        }
        self.processes.join()
    }
}

impl Workload for Hackbench {
    fn fixed_ops(&self) -> Option<u64> {
        Some(self.messages())
    }

    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let elapsed_ns = self.run(window)?;
        let mut iteration = Iteration::timed(ops, elapsed_ns);
        iteration.values.push(Value {
            metric: "elapsed".to_owned(),
            unit: "s".to_owned(),
            better: Better::Lower,
            value: elapsed_ns as f64 / clock::SECOND_NS as f64,
            ops: 1,
        });
        Ok(iteration)
    }
}
