//! What a person sees while a run goes on: bars on a terminal, plain lines elsewhere.

mod bars;
mod estimate;
mod lines;

use std::sync::Arc;

use crate::boot::Listener;
use crate::event::RunEvent;
use crate::fault::Fault;
use crate::text;

use bars::Bars;
use lines::Lines;

/// What is shown besides progress.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Stream the console of this side.
    pub console: Option<String>,
    /// Show each boot's QEMU command line and console tail.
    pub verbose: bool,
}

/// Shows events on standard error.
pub enum Watcher {
    /// For a terminal.
    Bars(Bars),
    /// For everything else.
    Lines(Lines),
}

impl Watcher {
    /// Bars where standard error is a terminal.
    pub fn new(terminal: bool, options: WatchOptions) -> Arc<Self> {
        Arc::new(if terminal {
            Self::Bars(Bars::new(options))
        } else {
            Self::Lines(Lines::new(options))
        })
    }

    /// What the dispatcher and the machines are given.
    pub fn listener(self: &Arc<Self>) -> Listener {
        let watcher = self.clone();
        Arc::new(move |event| watcher.handle(&event))
    }

    /// Shows one event.
    pub fn handle(&self, event: &RunEvent) {
        match self {
            Self::Bars(bars) => bars.handle(event),
            Self::Lines(lines) => lines.handle(event),
        }
    }

    /// A line of talk that does not tear the bars.
    pub fn say(&self, line: &str) {
        match self {
            Self::Bars(bars) => bars.say(line),
            Self::Lines(lines) => lines.say(line),
        }
    }

    /// Takes the bars away; what follows on standard output stands alone.
    pub fn finish(&self) {
        if let Self::Bars(bars) = self {
            bars.finish();
        }
    }
}

/// The lines that both ways of showing print, as they are.
fn lines_of(event: &RunEvent, options: &WatchOptions) -> Vec<String> {
    match event {
        RunEvent::Note(note) => vec![text::escape(note)],
        RunEvent::CommandLine { boot, argv } if options.verbose => {
            vec![format!("{boot}: {}", text::escape(&argv.join(" ")))]
        }
        RunEvent::Console { side, line } if options.console.as_ref() == Some(side) => {
            vec![format!("{side} | {}", text::escape(line))]
        }
        RunEvent::BootFailed { boot, failure, retried, .. } => {
            // What ends the run is told in full at its end.
            let goes_on =
                *retried || matches!(failure.fault(), Fault::KernelUnderTest | Fault::Workload);
            let said = if goes_on { failure.to_string() } else { failure.class.words().to_owned() };
            let mut lines: Vec<String> =
                format!("{boot}: {said}").lines().map(Into::into).collect();
            if options.verbose {
                let tail = &failure.console_tail;
                lines.extend(tail.iter().map(|line| format!("  | {}", text::escape(line))));
            }
            if *retried {
                lines.push(format!("{boot}: a fault of the rig, booting again"));
            }
            lines
        }
        RunEvent::Stopping => vec![
            "stopping: finished pairs are kept and reported (Ctrl-C again stops at once)"
                .to_owned(),
        ],
        _ => Vec::new(),
    }
}
