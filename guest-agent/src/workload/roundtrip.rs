//! `pipe-roundtrip` and `socket-roundtrip`: a message to another process and back.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;

use kduel_protocol::TrialProblem;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::partners::{Partners, buffer, pipe, read_all, write_all};
use super::{Iteration, Window, Workload, failed};

/// One end of a conversation: where to read, where to write.
type End = (OwnedFd, OwnedFd);

/// This process's end.
pub struct Roundtrip {
    message: Vec<u8>,
    end: End,
    /// The process that echoes.
    _echo: Partners,
}

impl Roundtrip {
    /// Over two pipes, in messages of `bytes`.
    pub fn pipe(bytes: u64) -> Result<Self, TrialProblem> {
        let (there, back) = (pipe()?, pipe()?);
        Self::between(bytes, (back.0, there.1), &(there.0, back.1))
    }

    /// Over sockets; `kind` as in the workload's parameter.
    pub fn socket(kind: &str, bytes: u64) -> Result<Self, TrialProblem> {
        let (ours, theirs) = match kind {
            "unix" => unix(),
            "tcp" => tcp(),
            "udp" => udp(),
            other => return Err(failed("the socket", format!("\"{other}\" is not known"))),
        }
        .map_err(|error| failed("connecting sockets", error))?;
        let both = |socket: OwnedFd| {
            let copy = socket.try_clone().map_err(|error| failed("a socket", error))?;
            Ok((copy, socket))
        };
        Self::between(bytes, both(ours)?, &both(theirs)?)
    }

    fn between(bytes: u64, ours: End, theirs: &End) -> Result<Self, TrialProblem> {
        let message = buffer(bytes)?;
        let mut echo = Partners::default();
        echo.add(|| {
            let mut message = message.clone();
            loop {
                read_all(&theirs.0, &mut message)?;
                write_all(&theirs.1, &message)?;
            }
        })?;
        Ok(Self { message, end: ours, _echo: echo })
    }
}

fn unix() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

fn tcp() -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours.into(), theirs.into()))
}

fn udp() -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let theirs = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    ours.connect(theirs.local_addr()?)?;
    theirs.connect(ours.local_addr()?)?;
    Ok((ours.into(), theirs.into()))
}

impl Workload for Roundtrip {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let (from, to) = &self.end;
        let open = window.open();
        for _ in 0..ops {
            write_all(to, &self.message)
                .and_then(|()| read_all(from, &mut self.message))
                .map_err(|error| failed("a round trip", error))?;
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
