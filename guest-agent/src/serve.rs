//! Carries a plan out and speaks the protocol on standard output.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use kduel_protocol::{
    After, Event, GuestPlan, MAX_LINE_BYTES, PROTOCOL, Phase, Transcript, Transport,
};

use crate::{facts, init, knobs, monitor, settle, text, trial};

/// Between two signs of life while knobs are set.
const HEARTBEAT: Duration = Duration::from_secs(4);

/// Set-up commands have ten minutes.
const SET_UP_BEATS: u32 = 150;

/// Writes events as lines and keeps the transcript that proves them.
pub struct Lines<W> {
    out: W,
    transcript: Transcript,
}

impl<W: Write> Lines<W> {
    /// An empty transcript.
    pub fn new(out: W) -> Self {
        Self { out, transcript: Transcript::default() }
    }

    /// Sends one event at once.
    ///
    /// # Errors
    ///
    /// Nobody reads any more, or the line is longer than the protocol allows.
    pub fn send(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_string(event)?;
        if line.len() >= MAX_LINE_BYTES {
            let start = text::head(&line, 80);
            return Err(io::Error::other(format!("a line is too long to send: {start}")));
        }
        self.transcript.add(&line, matches!(event, Event::Sample(_)));
        line.push('\n');
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }

    /// Waits until everything has left.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end(&mut self, nonce: &str) -> io::Result<()> {
        let end = self.transcript.end(nonce);
        self.send(&Event::End(end))
    }
}

/// Standard output. Where it is a serial port, a flush waits for the last byte: sending must not go
/// on beside what is measured next.
struct Output(io::Stdout);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        if self.0.is_terminal() {
            rustix::termios::tcdrain(&self.0)?;
        }
        Ok(())
    }
}

/// `kduel-agent run`: carries out the plan at `path`. The exit status says whether the end marker
/// was sent, not how the trials went.
pub fn run(path: &Path) -> ExitCode {
    let mut lines = Lines::new(Output(io::stdout()));
    match carry_out(path, &mut lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "kduel-agent: {message}");
            let _ = lines.send(&Event::Failed { message: text::head(&message, 4000) });
            ExitCode::FAILURE
        }
    }
}

/// From the first line to the last.
pub fn carry_out<W: Write>(path: &Path, lines: &mut Lines<W>) -> Result<(), String> {
    let sending = |error: io::Error| format!("sending an event: {error}");
    let agent = env!("CARGO_PKG_VERSION").to_owned();
    lines.send(&Event::Hello { protocol: PROTOCOL, agent }).map_err(sending)?;
    let text =
        fs::read_to_string(path).map_err(|error| format!("reading {}: {error}", path.display()))?;
    let plan = init::read_plan(&text)?;
    let facts = facts::collect(Path::new("/"));
    lines.send(&Event::Facts(Box::new(facts))).map_err(sending)?;
    if set_knobs(&plan, lines)? {
        run_trials(&plan, lines).map_err(sending)?;
    }
    lines.end(&plan.nonce).map_err(sending)
}

/// Sets, reads back and reports all knobs; whether every one took. Says again and again that it is at
/// it: a set-up command that takes its time is no hang of the kernel.
fn set_knobs<W: Write>(plan: &GuestPlan, lines: &mut Lines<W>) -> Result<bool, String> {
    let sending = |error: io::Error| format!("sending an event: {error}");
    let (sender, done) = mpsc::channel();
    let wanted = plan.knobs.clone();
    std::thread::spawn(move || sender.send(knobs::apply(&wanted)));
    let mut beats = 0;
    let readings = loop {
        lines.send(&Event::Phase { phase: Phase::Knobs }).map_err(sending)?;
        match done.recv_timeout(HEARTBEAT) {
            Ok(readings) => break readings,
            Err(mpsc::RecvTimeoutError::Timeout) if beats < SET_UP_BEATS => beats += 1,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let seconds = HEARTBEAT.as_secs() * u64::from(SET_UP_BEATS);
                return Err(format!("knobs and set-up commands are not done after {seconds} s"));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err("setting knobs ended in a panic".to_owned());
            }
        }
    };
    let all_took = readings.iter().all(|reading| reading.took);
    for reading in readings {
        lines.send(&Event::Knob(reading)).map_err(sending)?;
    }
    Ok(all_took)
}

fn run_trials<W: Write>(plan: &GuestPlan, lines: &mut Lines<W>) -> io::Result<()> {
    if plan.settle.at_most_s > 0 {
        let mut tell = || lines.send(&Event::Phase { phase: Phase::Settling });
        tell()?;
        let settled = settle::settle(plan.settle, &mut tell)?;
        lines.send(&settled)?;
    }
    lines.send(&Event::Phase { phase: Phase::Trials })?;
    // What a workload's processes leave behind comes to us, so that it can be ended with the trial.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let root = Path::new("/");
    let steal_before = monitor::steal_ms(root);
    for spec in &plan.trials {
        trial::run(spec, plan, &mut |event| lines.send(event))?;
    }
    // Nothing takes anything from a sealed guest, and its clock is its own.
    if plan.transport == Transport::Ssh {
        let steal = monitor::steal_ms(root).zip(steal_before);
        let steal_ms = steal.map(|(after, before)| after - before);
        lines.send(&Event::After(After { clocksource: facts::clocksource(root), steal_ms }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_not_sent() {
        let mut lines = Lines::new(Vec::new());
        let message = "x".repeat(MAX_LINE_BYTES);
        assert!(lines.send(&Event::Failed { message }).is_err());
        assert!(lines.out.is_empty());
    }

    #[test]
    fn the_end_marker_fits_the_bytes_before_it() {
        let mut lines = Lines::new(Vec::new());
        lines.send(&Event::Phase { phase: Phase::Knobs }).unwrap();
        lines.end("n1").unwrap();
        let text = String::from_utf8(lines.out).unwrap();
        let mut sent: Vec<&str> = text.lines().collect();
        let Event::End(end) = serde_json::from_str(sent.pop().unwrap()).unwrap() else {
            panic!("{text}")
        };
        let mut transcript = Transcript::default();
        sent.iter().for_each(|line| transcript.add(line, false));
        transcript.check(&end, "n1").unwrap();
    }
}
