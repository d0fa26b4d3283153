//! Ctrl-C: the first stops a run in order, the second at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::boot::Listener;
use crate::event::RunEvent;
use crate::exit_code;

/// Sets `stop` at the first SIGINT, SIGTERM or SIGHUP and ends the process at the second. Must be
/// called within the runtime.
///
/// # Errors
///
/// The operating system refused a handler.
pub fn watch(stop: Arc<AtomicBool>, listener: Listener) -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if stop.swap(true, Ordering::Relaxed) {
                end_at_once();
            }
            listener(RunEvent::Stopping);
        }
    });
    Ok(())
}

/// The guests die with the threads that started them.
#[expect(clippy::exit, reason = "the second Ctrl-C must not wait for anything")]
fn end_at_once() -> ! {
    std::process::exit(exit_code::INTERRUPTED.into())
}
