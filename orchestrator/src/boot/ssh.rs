//! A session with the guest's SSH server. Never blocks for longer than [`PAUSE`] without asking its
//! caller whether the guest still lives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use ssh2::{BlockDirections, Channel, ErrorCode, MethodType, Session};

use super::lines::OutputLines;
use super::{Dialogue, ExecEnd, SshIdentity};
use crate::clock::{Deadline, Stopwatch};
use crate::fault::{Failure, FailureClass};

/// How long a crash, an end of QEMU or a request to stop may go unseen.
const PAUSE: Duration = Duration::from_millis(100);

/// How much of what one command says on its standard error goes into the log, in bytes: the guest
/// may say more than the disk holds.
const COMPLAINT_BYTES: usize = 64 * 1024;

/// For opening one connection, before it is tried anew.
const ATTEMPT: Duration = Duration::from_secs(10);

const LIBSSH2_ERROR_EAGAIN: i32 = -37;
const LIBSSH2_ERROR_AUTHENTICATION_FAILED: i32 = -18;
const LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED: i32 = -19;

/// Says whether there is a reason to give up.
pub type Pulse<'a> = &'a mut dyn FnMut() -> Result<(), Failure>;

/// Why an operation over SSH came to nothing.
#[derive(Debug)]
pub enum Trouble {
    /// The pulse or the reader of lines said so, or the failure explains itself.
    Certain(Failure),
    /// The connection failed; the guest's state may explain it.
    Connection(Failure),
    /// Nothing came for this long.
    NoProgress(Duration),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Certain(failure)
    }
}

/// A session, logged in as root.
pub struct Ssh {
    session: Session,
    socket: TcpStream,
}

impl Ssh {
    /// Connects to `port` on the loopback address, again and again until the server answers, at
    /// most `longest`. The server's key is compared before ours is shown.
    ///
    /// # Errors
    ///
    /// [`FailureClass::WrongHostKey`] or [`FailureClass::SshRefused`], at once;
    /// [`Trouble::Connection`] with the last attempt's error after `longest`.
    pub fn connect(
        port: u16,
        identity: &SshIdentity,
        longest: Duration,
        pulse: Pulse<'_>,
    ) -> Result<Self, Trouble> {
        let deadline = Deadline::after(longest);
        loop {
            match Self::attempt(port, identity, deadline.left().min(ATTEMPT), pulse) {
                Err(Trouble::Connection(_) | Trouble::NoProgress(_)) if !deadline.passed() => {
                    pulse()?;
                    std::thread::sleep(PAUSE);
                }
                Err(Trouble::NoProgress(waited)) => {
                    return Err(Trouble::Connection(Failure::new(
                        FailureClass::SshRefused,
                        format!("the SSH server did not answer within {} s", waited.as_secs_f64()),
                    )));
                }
                other => return other,
            }
        }
    }

    fn attempt(
        port: u16,
        identity: &SshIdentity,
        longest: Duration,
        pulse: Pulse<'_>,
    ) -> Result<Self, Trouble> {
        let (session, socket) =
            open(port, longest).map_err(|error| refused("connect to", port, &error.to_string()))?;
        let mut ssh = Self { session, socket };
        ssh.drive(longest, pulse, |session| session.handshake())?
            .map_err(|error| refused("agree with", port, &ssh.with_banner(&error)))?;
        ssh.check_host_key(identity)?;
        ssh.drive(longest, pulse, |session| {
            session.userauth_pubkey_memory(
                "root",
                Some(&identity.client_public_line),
                &identity.client_private_pem,
                None,
            )
        })?
        .map_err(|error| ssh.not_logged_in(port, &error))?;
        Ok(ssh)
    }

    /// Runs `command` and lets `dialogue` speak with it; `input` instead is all that it is told.
    /// `progress` is the longest time between two lines.
    ///
    /// # Errors
    ///
    /// [`FailureClass::SshCut`] as [`Trouble::Connection`]; see [`Trouble`].
    pub fn exec(
        &mut self,
        command: &str,
        input: Option<&[u8]>,
        progress: Duration,
        dialogue: &mut dyn Dialogue,
        pulse: Pulse<'_>,
    ) -> Result<ExecEnd, Trouble> {
        let mut channel = self.start(command, progress, pulse)?;
        if let Some(input) = input {
            self.send(&mut channel, input, progress, pulse)?;
        }
        self.receive(&mut channel, progress, dialogue, pulse)?;
        self.drive(progress, pulse, |_| channel.close())?.map_err(|error| self.cut(&error))?;
        self.drive(progress, pulse, |_| channel.wait_close())?.map_err(|error| self.cut(&error))?;
        // Dropbear reports status 0 beside a signal, so the signal is asked for first.
        let signal = channel.exit_signal().map_err(|error| self.cut(&error))?.exit_signal;
        if let Some(signal) = signal {
            return Ok(ExecEnd::Signal(signal));
        }
        Ok(ExecEnd::Status(channel.exit_status().map_err(|error| self.cut(&error))?))
    }

    /// Starts `command` and does not wait for its end.
    ///
    /// # Errors
    ///
    /// As [`Ssh::exec`].
    pub fn start(
        &mut self,
        command: &str,
        longest: Duration,
        pulse: Pulse<'_>,
    ) -> Result<Channel, Trouble> {
        let mut channel = self.channel(longest, pulse)?;
        self.drive(longest, pulse, |_| channel.exec(command))?.map_err(|error| self.cut(&error))?;
        Ok(channel)
    }

    /// A channel on which nothing runs yet.
    pub(super) fn channel(
        &mut self,
        longest: Duration,
        pulse: Pulse<'_>,
    ) -> Result<Channel, Trouble> {
        self.drive(longest, pulse, |session| session.channel_session())?
            .map_err(|error| self.cut(&error))
    }

    /// The connection, to wait for what it says.
    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn send(
        &mut self,
        channel: &mut Channel,
        input: &[u8],
        longest: Duration,
        pulse: Pulse<'_>,
    ) -> Result<(), Trouble> {
        self.send_some(channel, input, longest, pulse)?;
        self.drive(longest, pulse, |_| channel.send_eof())?.map_err(|error| self.cut(&error))
    }

    /// Sends `input`; more may follow.
    pub(super) fn send_some(
        &mut self,
        channel: &mut Channel,
        mut input: &[u8],
        longest: Duration,
        pulse: Pulse<'_>,
    ) -> Result<(), Trouble> {
        while !input.is_empty() {
            let sent = self
                .drive_io(longest, pulse, || channel.write(input))?
                .map_err(|error| self.cut(&error))?;
            input = &input[sent..];
        }
        Ok(())
    }

    fn receive(
        &mut self,
        channel: &mut Channel,
        progress: Duration,
        dialogue: &mut dyn Dialogue,
        pulse: Pulse<'_>,
    ) -> Result<(), Trouble> {
        let mut lines = OutputLines::default();
        let mut buffer = [0; 16 * 1024];
        let mut deadline = Deadline::after(progress);
        let mut asked = Stopwatch::start();
        let mut complaints = 0;
        loop {
            if let Some(text) = dialogue.say() {
                self.send_some(channel, text.as_bytes(), progress, pulse)?;
            }
            let said =
                ready(channel.stderr().read(&mut buffer)).map_err(|error| self.cut(&error))?;
            let said = said.unwrap_or(0);
            if said > 0 && complaints < COMPLAINT_BYTES {
                complaints += said;
                tracing::debug!(
                    "guest: {}",
                    crate::text::escape(&String::from_utf8_lossy(&buffer[..said]))
                );
            }
            let read = ready(channel.read(&mut buffer)).map_err(|error| self.cut(&error))?;
            let read = read.unwrap_or(0);
            if read > 0 {
                lines.feed(&buffer[..read], &mut |line| dialogue.line(line))?;
                deadline = Deadline::after(progress);
            }
            if read == 0 && said == 0 {
                if channel.eof() {
                    return Ok(lines.end(&mut |line| dialogue.line(line))?);
                }
                self.wait();
            }
            if asked.elapsed() >= PAUSE || (read == 0 && said == 0) {
                pulse()?;
                asked = Stopwatch::start();
            }
            if deadline.passed() {
                return Err(Trouble::NoProgress(progress));
            }
        }
    }

    /// Repeats `operation` until it no longer would block.
    pub(super) fn drive<T>(
        &mut self,
        longest: Duration,
        pulse: Pulse<'_>,
        mut operation: impl FnMut(&mut Session) -> Result<T, ssh2::Error>,
    ) -> Result<Result<T, ssh2::Error>, Trouble> {
        let deadline = Deadline::after(longest);
        loop {
            match operation(&mut self.session) {
                Err(error) if error.code() == ErrorCode::Session(LIBSSH2_ERROR_EAGAIN) => {}
                other => return Ok(other),
            }
            self.wait();
            pulse()?;
            if deadline.passed() {
                return Err(Trouble::NoProgress(longest));
            }
        }
    }

    fn drive_io<T>(
        &mut self,
        longest: Duration,
        pulse: Pulse<'_>,
        mut operation: impl FnMut() -> std::io::Result<T>,
    ) -> Result<std::io::Result<T>, Trouble> {
        let deadline = Deadline::after(longest);
        loop {
            match operation() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return Ok(other),
            }
            self.wait();
            pulse()?;
            if deadline.passed() {
                return Err(Trouble::NoProgress(longest));
            }
        }
    }

    /// Waits until the socket can do what libssh2 waits for, at most [`PAUSE`].
    fn wait(&self) {
        let flags = match self.session.block_directions() {
            BlockDirections::Outbound => PollFlags::OUT,
            BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
            BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
        };
        let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(PAUSE.subsec_nanos()) };
        // Whatever it says, the operation is tried again, and says it better.
        let _ = rustix::event::poll(&mut [PollFd::new(&self.socket, flags)], Some(&pause));
    }

    fn check_host_key(&self, identity: &SshIdentity) -> Result<(), Trouble> {
        let shown = self.session.host_key().map(|(key, _)| key).unwrap_or_default();
        if shown == identity.host_key_blob {
            return Ok(());
        }
        Err(Trouble::Certain(
            Failure::new(
                FailureClass::WrongHostKey,
                "the server behind the guest's port has another host key than the one the guest was given",
            )
            .detail(format!("wanted {}", hex(&identity.host_key_blob)))
            .detail(format!("shown  {}", hex(shown)))
            .hint("something else answers on this port: look for stray guests with `pgrep -af 'name kduel-'`"),
        ))
    }

    fn not_logged_in(&self, port: u16, error: &ssh2::Error) -> Trouble {
        match error.code() {
            ErrorCode::Session(
                LIBSSH2_ERROR_AUTHENTICATION_FAILED | LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED,
            ) => Trouble::Certain(Failure::new(
                FailureClass::SshRefused,
                format!("the guest refuses our key: {}", self.with_banner(error)),
            )),
            _ => refused("log in to", port, &self.with_banner(error)),
        }
    }

    fn with_banner(&self, error: &ssh2::Error) -> String {
        match self.session.banner() {
            Some(banner) => format!("{} (the server calls itself {banner})", error.message()),
            None => format!("{} (the server said nothing)", error.message()),
        }
    }

    pub(super) fn cut(&self, error: &dyn std::error::Error) -> Trouble {
        Trouble::Connection(Failure::new(
            FailureClass::SshCut,
            format!("the connection to the guest failed: {error}"),
        ))
    }
}

fn open(port: u16, longest: Duration) -> Result<(Session, TcpStream), Box<dyn std::error::Error>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, longest.max(PAUSE))?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let socket = stream.try_clone()?;
    let mut session = Session::new()?;
    session.set_blocking(false);
    session.method_pref(MethodType::HostKey, "ssh-ed25519")?;
    session.set_tcp_stream(stream);
    Ok((session, socket))
}

/// What was read, or nothing if that would block.
pub(super) fn ready(read: std::io::Result<usize>) -> std::io::Result<Option<usize>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn refused(doing: &str, port: u16, error: &str) -> Trouble {
    Trouble::Connection(Failure::new(
        FailureClass::SshRefused,
        format!("failed to {doing} the guest's SSH server on port {port}: {error}"),
    ))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn identity() -> SshIdentity {
        SshIdentity {
            host_key_blob: vec![1],
            client_private_pem: String::new(),
            client_public_line: String::new(),
        }
    }

    /// A port behind which each connection gets `greeting` and then silence.
    fn server(greeting: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.write_all(greeting).unwrap();
                open.push(stream);
            }
        });
        port
    }

    fn failed(port: u16, longest: Duration) -> Failure {
        match Ssh::connect(port, &identity(), longest, &mut || Ok(())).err().unwrap() {
            Trouble::Connection(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_closed_port_is_tried_until_the_deadline() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let watch = Stopwatch::start();
        let failure = failed(port, Duration::from_millis(300));
        assert_eq!(failure.class, FailureClass::SshRefused);
        assert!(failure.title.contains(&format!("port {port}")), "{failure}");
        assert!(watch.elapsed() >= Duration::from_millis(300));
    }

    #[test]
    fn a_server_that_says_nothing_or_nonsense_is_refused() {
        assert_eq!(failed(server(b""), Duration::from_millis(300)).class, FailureClass::SshRefused);
        let odd = failed(server(b"SSH-2.0-odd\r\n\0\0\0\x0cgarbage"), Duration::from_millis(300));
        assert_eq!(odd.class, FailureClass::SshRefused);
        let web = failed(server(b"HTTP/1.0 400 Bad Request\r\n\r\n"), Duration::from_millis(300));
        assert_eq!(web.class, FailureClass::SshRefused);
    }

    #[test]
    fn a_reason_to_give_up_is_seen_at_once() {
        let watch = Stopwatch::start();
        let mut pulse = || Err(Failure::new(FailureClass::Interrupted, "stop"));
        let end = Ssh::connect(server(b""), &identity(), Duration::from_secs(60), &mut pulse);
        assert!(matches!(end.err(), Some(Trouble::Certain(failure)) if failure.title == "stop"));
        assert!(watch.elapsed() < Duration::from_secs(2));
    }
}
