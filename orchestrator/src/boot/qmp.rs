//! QEMU's control protocol, as much of it as one guest needs.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Deadline;
use crate::fault::{Failure, FailureClass};

/// The longest message QEMU may send, in bytes.
const MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// What QEMU told without being asked, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QmpEvent {
    /// The guest ended; QEMU's word for why: `guest-shutdown`, `guest-reset`, `host-qmp-quit`, ….
    Shutdown {
        /// `reason`.
        reason: String,
    },
    /// The guest no longer runs.
    Stop,
    /// The guest's panic device was used.
    Panicked,
    /// The guest was reset and goes on.
    Reset,
}

/// The client's end of a control socket.
pub struct Qmp {
    stream: UnixStream,
    buffer: Vec<u8>,
    /// So much of the buffer has no end of a line.
    searched: usize,
    events: VecDeque<QmpEvent>,
    patience: Duration,
    next_id: u64,
    closed: bool,
}

impl Qmp {
    /// Takes the greeting and negotiates. Each reply may take `patience`.
    ///
    /// # Errors
    ///
    /// [`FailureClass::QemuStuck`] without an answer, [`FailureClass::QemuFailed`] if it hung up.
    pub fn greet(stream: UnixStream, patience: Duration) -> Result<Self, Failure> {
        let mut qmp = Self {
            stream,
            buffer: Vec::new(),
            searched: 0,
            events: VecDeque::new(),
            patience,
            next_id: 0,
            closed: false,
        };
        let deadline = Deadline::after(patience);
        loop {
            if qmp.message(deadline, "its greeting")?.get("QMP").is_some() {
                break;
            }
        }
        qmp.execute("qmp_capabilities", Value::Null)?;
        Ok(qmp)
    }

    /// Carries out `command` and gives what it returns. Events on the way are kept.
    ///
    /// # Errors
    ///
    /// As [`Qmp::greet`]; also [`FailureClass::QemuFailed`] if QEMU refuses the command.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, Failure> {
        self.next_id += 1;
        let mut request = json!({ "execute": command, "id": self.next_id });
        if !arguments.is_null() {
            request["arguments"] = arguments;
        }
        self.stream
            .write_all(format!("{request}\n").as_bytes())
            .map_err(|error| hung_up(&format!("failed to send `{command}`: {error}")))?;
        let deadline = Deadline::after(self.patience);
        loop {
            let mut reply = self.message(deadline, command)?;
            if reply.get("id").and_then(Value::as_u64) != Some(self.next_id) {
                continue;
            }
            if let Some(error) = reply.get("error") {
                let why = error.get("desc").and_then(Value::as_str).unwrap_or("no reason given");
                return Err(Failure::new(
                    FailureClass::QemuFailed,
                    format!("QEMU refused `{command}`: {why}"),
                ));
            }
            return Ok(reply["return"].take());
        }
    }

    /// What a line of the human monitor prints.
    ///
    /// # Errors
    ///
    /// As [`Qmp::execute`].
    pub fn monitor(&mut self, line: &str) -> Result<String, Failure> {
        let text = self.execute("human-monitor-command", json!({ "command-line": line }))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// The next event that has already arrived. Does not wait.
    ///
    /// # Errors
    ///
    /// [`FailureClass::QemuFailed`] for what is no QMP. That QEMU hung up is none: see
    /// [`Qmp::closed`].
    pub fn event(&mut self) -> Result<Option<QmpEvent>, Failure> {
        loop {
            while let Some(message) = self.buffered()? {
                self.keep_event(&message);
            }
            if self.closed || !self.events.is_empty() || self.read(Duration::from_millis(1))? == 0 {
                break;
            }
        }
        Ok(self.events.pop_front())
    }

    /// Whether QEMU hung up.
    pub fn closed(&self) -> bool {
        self.closed
    }

    fn message(&mut self, deadline: Deadline, waiting_for: &str) -> Result<Value, Failure> {
        loop {
            while let Some(message) = self.buffered()? {
                if !self.keep_event(&message) {
                    return Ok(message);
                }
            }
            if self.closed {
                return Err(hung_up(&format!("QEMU hung up before it answered `{waiting_for}`")));
            }
            if deadline.passed() {
                let waited = self.patience.as_secs_f64();
                return Err(Failure::new(
                    FailureClass::QemuStuck,
                    format!("no answer to `{waiting_for}` on the control socket within {waited} s"),
                ));
            }
            self.read(deadline.left())?;
        }
    }

    /// Reads what there is, waiting at most `longest`; gives the number of bytes.
    fn read(&mut self, longest: Duration) -> Result<usize, Failure> {
        let mut chunk = [0; 4096];
        let longest = longest.max(Duration::from_millis(1));
        let read =
            self.stream.set_read_timeout(Some(longest)).and_then(|()| self.stream.read(&mut chunk));
        match read {
            Ok(0) => self.closed = true,
            Ok(read) => {
                self.buffer.extend_from_slice(&chunk[..read]);
                if self.buffer.len() > MESSAGE_BYTES {
                    return Err(hung_up("QEMU sent a message without end on its control socket"));
                }
                return Ok(read);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(_) => self.closed = true,
        }
        Ok(0)
    }

    fn buffered(&mut self) -> Result<Option<Value>, Failure> {
        let found = self.buffer[self.searched..].iter().position(|&byte| byte == b'\n');
        let Some(end) = found.map(|place| self.searched + place) else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        self.searched = 0;
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        serde_json::from_slice(&line)
            .map(Some)
            .map_err(|error| hung_up(&format!("QEMU's control socket sent no JSON: {error}")))
    }

    /// Whether `message` was an event; those that matter are kept.
    fn keep_event(&mut self, message: &Value) -> bool {
        let Some(name) = message.get("event").and_then(Value::as_str) else { return false };
        let reason = || message["data"]["reason"].as_str().unwrap_or_default().to_owned();
        let event = match name {
            "SHUTDOWN" => Some(QmpEvent::Shutdown { reason: reason() }),
            "STOP" => Some(QmpEvent::Stop),
            "GUEST_PANICKED" => Some(QmpEvent::Panicked),
            "RESET" => Some(QmpEvent::Reset),
            _ => None,
        };
        self.events.extend(event);
        true
    }
}

fn hung_up(title: &str) -> Failure {
    Failure::new(FailureClass::QemuFailed, title)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    const GREETING: &str = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\n";

    /// A QEMU that answers each request with the next of `answers`, in which `ID` is the request's.
    fn qemu(answers: &'static [&'static str]) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut writer = theirs.try_clone().unwrap();
            writer.write_all(GREETING.as_bytes()).unwrap();
            let mut requests = BufReader::new(theirs).lines();
            for answer in ["{\"return\": {}, \"id\": ID}\n"].iter().chain(answers) {
                let request: Value =
                    serde_json::from_str(&requests.next().unwrap().unwrap()).unwrap();
                let answer = answer.replace("ID", &request["id"].to_string());
                writer.write_all(answer.as_bytes()).unwrap();
            }
            drop(requests.next());
        });
        ours
    }

    #[test]
    fn events_between_request_and_reply_are_kept_in_order() {
        let stream = qemu(&[
            "{\"event\": \"STOP\", \"timestamp\": {}}\n{\"event\": \"RTC_CHANGE\"}\n{\"return\": 7, \"id\": ID}\n\
             {\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-reset\"}}\n",
        ]);
        let mut qmp = Qmp::greet(stream, Duration::from_secs(5)).unwrap();
        assert_eq!(qmp.execute("query-x", Value::Null).unwrap(), json!(7));
        assert_eq!(qmp.event().unwrap(), Some(QmpEvent::Stop));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(qmp.event().unwrap(), Some(QmpEvent::Shutdown { reason: "guest-reset".into() }));
        assert_eq!(qmp.event().unwrap(), None);
    }

    #[test]
    fn a_refusal_names_the_command_and_the_reason() {
        let stream =
            qemu(&["{\"error\": {\"class\": \"X\", \"desc\": \"no such thing\"}, \"id\": ID}\n"]);
        let mut qmp = Qmp::greet(stream, Duration::from_secs(5)).unwrap();
        let failure = qmp.execute("frobnicate", Value::Null).unwrap_err();
        assert_eq!(failure.title, "QEMU refused `frobnicate`: no such thing");
    }

    #[test]
    fn silence_is_stuck_and_an_end_is_a_failure() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let failure =
            Qmp::greet(ours.try_clone().unwrap(), Duration::from_millis(50)).err().unwrap();
        assert_eq!(failure.class, FailureClass::QemuStuck);
        drop(theirs);
        let failure = Qmp::greet(ours, Duration::from_secs(5)).err().unwrap();
        assert_eq!(failure.class, FailureClass::QemuFailed);
    }

    #[test]
    fn a_message_without_end_is_refused() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || while theirs.write_all(&[b'x'; 4096]).is_ok() {});
        let failure = Qmp::greet(ours, Duration::from_secs(20)).err().unwrap();
        assert_eq!(failure.class, FailureClass::QemuFailed);
    }
}
