//! Logs: warnings on standard error, everything as JSON into the run's folder.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::fault::Failure;

/// Starts logging behind what `file` already holds; `filter` (`KDUEL_LOG`, as tracing's `EnvFilter`)
/// adds more to what is shown on standard error, with colours where `colour` says so. Later calls
/// change nothing.
///
/// # Errors
///
/// `HostIo` if the file cannot be opened.
pub fn start(file: &Path, filter: Option<&str>, colour: bool) -> Result<(), Failure> {
    let log = File::options().create(true).append(true).open(file);
    let log = log.map_err(|error| Failure::host_io("open", file, &error))?;
    let shown = match filter {
        Some(filter) => EnvFilter::new(filter),
        None => EnvFilter::new("warn"),
    };
    let json = tracing_subscriber::fmt::layer()
        .json()
        .with_writer(Mutex::new(log))
        .with_filter(LevelFilter::DEBUG);
    let people = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        // It would complain on standard error that standard error has gone.
        .log_internal_errors(false)
        .with_target(false)
        .without_time()
        .with_filter(shown);
    // Already started: the first run of this process keeps the log.
    let _ = tracing_subscriber::registry().with(json).with(people).try_init();
    Ok(())
}
