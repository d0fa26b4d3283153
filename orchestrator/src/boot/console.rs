//! A guest's console: read from before boot, kept within bounds, searched for crashes as it comes.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Watch;
use super::crash::{Crash, Detector};
use crate::clock::{Deadline, Stopwatch};
use crate::event::RunEvent;

/// How much of the console's beginning, and how much of its end, is kept, in bytes each.
pub const KEPT_BYTES: usize = 256 * 1024;

/// How many lines a failure quotes.
pub const TAIL_LINES: usize = 40;

/// A longer line is cut here, in bytes, and goes on as the next.
const LINE_BYTES: usize = 8 * 1024;

/// QEMU writes single bytes. To be woken by each would cost the guest's own processors dearly, so
/// some are left to come together; the pipe holds far more than comes in this time.
const GATHER: Duration = Duration::from_millis(5);

/// The console of one guest.
pub struct Console {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    record: Record,
    lines: Lines,
    detector: Detector,
    recent: VecDeque<String>,
    ready_line: String,
    ready: bool,
    closed: bool,
    last_byte: Stopwatch,
    length: u64,
}

impl Console {
    /// Reads `source` to its end in a thread of its own. `ready_line` is what the agent prints.
    ///
    /// # Errors
    ///
    /// No thread could be started.
    pub fn read(
        source: impl Read + Send + 'static,
        side: String,
        ready_line: String,
        watch: Watch,
    ) -> std::io::Result<Self> {
        let state = State {
            record: Record::default(),
            lines: Lines::default(),
            detector: Detector::default(),
            recent: VecDeque::new(),
            ready_line,
            ready: false,
            closed: false,
            last_byte: Stopwatch::start(),
            length: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let reader = std::thread::Builder::new()
            .name(format!("console {side}"))
            .spawn(move || pump(source, &theirs, &side, &watch))?;
        Ok(Self { shared, reader: Some(reader) })
    }

    /// Whether the agent said that it is ready.
    pub fn ready(&self) -> bool {
        self.shared.lock().ready
    }

    /// Whether the kernel printed its banner.
    pub fn kernel_started(&self) -> bool {
        self.shared.lock().detector.kernel_started()
    }

    /// The first crash.
    pub fn crash(&self) -> Option<Crash> {
        self.shared.lock().detector.crash().cloned()
    }

    /// The last warning, stall or hung task.
    pub fn note(&self) -> Option<String> {
        self.shared.lock().detector.note().map(str::to_owned)
    }

    /// How long nothing has come.
    pub fn silence(&self) -> Duration {
        self.shared.lock().last_byte.elapsed()
    }

    /// The last [`TAIL_LINES`] lines, raw.
    pub fn tail(&self) -> Vec<String> {
        let state = self.shared.lock();
        let partial = state.lines.partial();
        let all: Vec<_> =
            state.recent.iter().cloned().chain((!partial.is_empty()).then_some(partial)).collect();
        all[all.len().saturating_sub(TAIL_LINES)..].to_vec()
    }

    /// How much has come, in bytes.
    pub fn length(&self) -> u64 {
        self.shared.lock().length
    }

    /// The whole record, raw.
    pub fn text(&self) -> String {
        self.shared.lock().record.text()
    }

    /// Waits for another line or the end, at most `longest`.
    pub fn wait(&self, longest: Duration) {
        let state = self.shared.lock();
        drop(self.shared.changed.wait_timeout(state, longest));
    }

    /// Waits for a report that may still be arriving: until the console is closed, or has been
    /// `quiet` for that long, at most `longest`.
    pub fn settle(&self, quiet: Duration, longest: Duration) {
        let deadline = Deadline::after(longest);
        while !deadline.passed() {
            let state = self.shared.lock();
            let silence = state.last_byte.elapsed();
            if state.closed || silence >= quiet {
                return;
            }
            let pause = (quiet - silence).min(deadline.left());
            drop(self.shared.changed.wait_timeout(state, pause));
        }
    }

    /// Waits for the reader to end, once the other end is closed.
    pub fn join(&mut self) {
        if let Some(reader) = self.reader.take()
            && reader.join().is_err()
        {
            tracing::error!("the console's reader ended with a panic");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pump(mut source: impl Read, shared: &Shared, side: &str, watch: &Watch) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // A reset by the other end is an end like another.
            Err(_) => break,
        };
        let lines = shared.lock().take(&buffer[..read]);
        if !lines.is_empty() {
            shared.changed.notify_all();
        }
        for line in lines {
            watch.tell(RunEvent::Console { side: side.to_owned(), line });
        }
        if read < buffer.len() {
            std::thread::sleep(GATHER);
        }
    }
    shared.lock().closed = true;
    shared.changed.notify_all();
}

impl State {
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.last_byte = Stopwatch::start();
        self.length += bytes.len() as u64;
        self.record.add(bytes);
        let lines = self.lines.add(bytes);
        for line in &lines {
            self.ready |= line.contains(&self.ready_line);
            self.detector.line(line);
            self.recent.push_back(line.clone());
            if self.recent.len() > TAIL_LINES {
                self.recent.pop_front();
            }
        }
        lines
    }
}

/// Cuts bytes into lines; carriage returns are dropped, invalid UTF-8 is replaced.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' || self.partial.len() >= LINE_BYTES {
                lines.push(self.partial());
                self.partial.clear();
            }
            if byte != b'\n' && byte != b'\r' {
                self.partial.push(byte);
            }
        }
        lines
    }

    fn partial(&self) -> String {
        String::from_utf8_lossy(&self.partial).into_owned()
    }
}

/// The first and the last [`KEPT_BYTES`] of a stream.
#[derive(Debug, Default)]
struct Record {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Record {
    fn add(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(KEPT_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let over = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }

    fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let mut bytes = self.head.clone();
        if self.dropped > 0 {
            bytes.extend(format!("\n[… {} bytes left out …]\n", self.dropped).into_bytes());
        }
        bytes.extend(tail);
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::fault::FailureClass;

    struct Chunks(VecDeque<Vec<u8>>);

    impl Read for Chunks {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let chunk = self.0.pop_front().unwrap_or_default();
            buffer[..chunk.len()].copy_from_slice(&chunk);
            Ok(chunk.len())
        }
    }

    fn console_of(chunks: &[&[u8]]) -> (Console, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&told);
        let watch = Watch {
            listener: Arc::new(move |event| {
                if let RunEvent::Console { line, .. } = event {
                    theirs.lock().unwrap().push(line);
                }
            }),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let source = Chunks(chunks.iter().map(|chunk| chunk.to_vec()).collect());
        let mut console =
            Console::read(source, "base".into(), "kduel-agent: ready abc".into(), watch).unwrap();
        console.join();
        (console, told)
    }

    #[test]
    fn lines_split_over_reads_are_put_together() {
        let (console, told) = console_of(&[
            b"Linux version 6.1\r\n[ 1] kduel-agent: re",
            b"ady abc\r\n[ 2] Kernel pa",
            b"nic - not syncing: x\r\npartial",
        ]);
        assert!(console.ready() && console.kernel_started());
        let crash = console.crash().unwrap();
        assert_eq!(
            (crash.class, crash.title.as_str()),
            (FailureClass::Panic, "Kernel panic - not syncing: x")
        );
        assert_eq!(told.lock().unwrap().len(), 3);
        assert_eq!(console.tail().last().unwrap(), "partial");
    }

    #[test]
    fn a_ready_line_with_another_nonce_proves_nothing() {
        assert!(!console_of(&[b"kduel-agent: ready abd\n"]).0.ready());
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let flood = vec![b'x'; 4096];
        let mut chunks: Vec<&[u8]> = vec![b"first\n"];
        chunks.extend(std::iter::repeat_n(flood.as_slice(), 200));
        chunks.push(b"\nlast\n");
        let (console, _) = console_of(&chunks);
        let text = console.text();
        assert!(text.starts_with("first\n") && text.ends_with("\nlast\n"));
        assert!(text.contains("bytes left out"));
        assert!(text.len() <= 2 * KEPT_BYTES + 100);
        assert!(console.tail().iter().all(|line| line.len() <= LINE_BYTES));
    }
}
