//! `chat`: rooms of clients that talk to everybody in their room through a server, over the loopback.
//!
//! The server has two tasks for each connection, one that reads from it and hands on, and one that
//! writes to it; a client has one that sends and one that receives. So did the servers of its time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;

use kduel_protocol::{Better, TrialProblem};

use super::partners::Partners;
use super::{Iteration, Params, Value, Window, Workload, failed};
use crate::clock::SECOND_NS;

/// Threads need little more than their message.
const STACK_BYTES: usize = 64 * 1024;

/// Messages that wait for one connection's writer.
const WAITING: usize = 64;

/// Who talks how much.
#[derive(Debug, Clone, Copy)]
pub struct Chat {
    rooms: u64,
    clients: u64,
    messages: u64,
    bytes: usize,
    processes: bool,
}

impl Chat {
    /// Takes the workload's parameters.
    pub fn new(params: &Params<'_>) -> Result<Self, TrialProblem> {
        let bytes = params.integer("bytes")?;
        let this = Self {
            rooms: params.integer("rooms")?,
            clients: params.integer("clients")?,
            messages: params.integer("messages")?,
            bytes: usize::try_from(bytes).map_err(|error| failed("the message size", error))?,
            processes: params.word("mode")? == "process",
        };
        // Without it every connection fails with a message that says nothing of why.
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        listening.map_err(|error| TrialProblem::Unsupported {
            message: format!("no TCP over the loopback: {error}"),
        })?;
        Ok(this)
    }

    /// Every message is delivered to everybody in the room, its sender as well.
    fn deliveries(&self) -> u64 {
        self.rooms * self.clients * self.clients * self.messages
    }

    /// One whole run; gives the time from the start signal until everybody has heard everything.
    fn run(self, window: Window) -> io::Result<u64> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        // A byte from the server is the start signal; the end is that all clients have left.
        let all = usize::try_from(self.rooms * self.clients).map_err(io::Error::other)?;
        let mut partners = Partners::default();
        let mut threads = Vec::new();
        if self.processes {
            // Before there are threads: only a process of one may fork.
            for room in 0..self.rooms {
                for _ in 0..self.clients {
                    let client = move || self.client(address, room);
                    partners
                        .add(client)
                        .map_err(|problem| io::Error::other(format!("{problem:?}")))?;
                }
            }
        } else {
            for room in 0..self.rooms {
                for _ in 0..self.clients {
                    threads.push(spawn(move || self.client(address, room))?);
                }
            }
        }
        let server = Server::gather(&listener, self.rooms, all)?;
        let (serving, ready) = server.serve(self.bytes)?;
        let open = window.open();
        ready.wait();
        for thread in threads.into_iter().chain(serving) {
            thread.join().map_err(|_| io::Error::other("a thread panicked"))??;
        }
        partners.join().map_err(|problem| io::Error::other(format!("{problem:?}")))?;
        Ok(open.close())
    }

    /// Joins a room, waits for the signal, sends all it has to say and hears what everybody says.
    fn client(self, address: SocketAddr, room: u64) -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(&room.to_ne_bytes())?;
        stream.read_exact(&mut [0])?;
        let mut sending = stream.try_clone()?;
        let sender = spawn(move || {
            let message = vec![b'k'; self.bytes];
            for _ in 0..self.messages {
                sending.write_all(&message)?;
            }
            sending.shutdown(std::net::Shutdown::Write)
        })?;
        let mut message = vec![0; self.bytes];
        for _ in 0..self.clients * self.messages {
            stream.read_exact(&mut message)?;
        }
        sender.join().map_err(|_| io::Error::other("a thread panicked"))?
    }
}

type Task = thread::JoinHandle<io::Result<()>>;

fn spawn(body: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<Task> {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(body)
}

/// A message on its way; everybody gets the same one.
type Message = Arc<[u8]>;

/// The connections of every room.
struct Server(Vec<Vec<TcpStream>>);

impl Server {
    /// Waits until all clients are in their rooms.
    fn gather(listener: &TcpListener, rooms: u64, clients: usize) -> io::Result<Self> {
        let mut found: Vec<Vec<TcpStream>> = (0..rooms).map(|_| Vec::new()).collect();
        for _ in 0..clients {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let mut room = [0; 8];
            stream.read_exact(&mut room)?;
            let room = usize::try_from(u64::from_ne_bytes(room)).unwrap_or(usize::MAX);
            found.get_mut(room).ok_or(ErrorKind::InvalidData)?.push(stream);
        }
        Ok(Self(found))
    }

    /// Starts two threads for each connection. Who passes the barrier as the last gives the signal.
    fn serve(self, bytes: usize) -> io::Result<(Vec<Task>, Arc<Barrier>)> {
        let connections: usize = self.0.iter().map(Vec::len).sum();
        let ready = Arc::new(Barrier::new(connections * 2 + 1));
        let mut tasks = Vec::new();
        for room in self.0 {
            let (mut to, mut writers) = (Vec::new(), Vec::new());
            for stream in &room {
                let (sender, receiver) = sync_channel(WAITING);
                to.push(sender);
                writers.push((stream.try_clone()?, receiver));
            }
            for (stream, receiver) in writers {
                let ready = Arc::clone(&ready);
                tasks.push(spawn(move || write(stream, &receiver, &ready))?);
            }
            for stream in room {
                let (to, ready) = (to.clone(), Arc::clone(&ready));
                tasks.push(spawn(move || hand_on(stream, bytes, &to, &ready))?);
            }
        }
        Ok((tasks, ready))
    }
}

/// The task that writes to a connection, until nobody has anything for it any more.
fn write(mut stream: TcpStream, from: &Receiver<Message>, ready: &Barrier) -> io::Result<()> {
    ready.wait();
    stream.write_all(&[1])?;
    from.iter().try_for_each(|message| stream.write_all(&message))
}

/// The task that reads from a connection and hands every message on to all of its room.
fn hand_on(
    mut stream: TcpStream,
    bytes: usize,
    to: &[SyncSender<Message>],
    ready: &Barrier,
) -> io::Result<()> {
    ready.wait();
    let mut buffer = vec![0; bytes];
    loop {
        match stream.read_exact(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        let message: Message = buffer.as_slice().into();
        for sender in to {
            let _ = sender.send(Arc::clone(&message));
        }
    }
}

impl Workload for Chat {
    fn fixed_ops(&self) -> Option<u64> {
        Some(self.deliveries())
    }

    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let elapsed_ns = self.run(window).map_err(|error| failed("chatting", error))?;
        let seconds = elapsed_ns as f64 / SECOND_NS as f64;
        let value = |metric: &str, unit: &str, better, value| Value {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            better,
            value,
            ops,
        };
        let values = vec![
            value("throughput", "1/s", Better::Higher, ops as f64 / seconds),
            value("elapsed", "s", Better::Lower, seconds),
        ];
        Ok(Iteration { elapsed_ns, values, singles: Vec::new() })
    }
}
