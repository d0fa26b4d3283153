//! Imports a mailbox of 10 MB made of the fixtures' reports: how long it takes, and how much memory.
//! Ends with an error above the bounds.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::path::Path;
use std::process::ExitCode;

use kduel::clock::Stopwatch;
use kduel::collect::parse::import;
use kduel::report::{reported_json, reported_text};

const BYTES: usize = 10_000_000;
const SECONDS: f64 = 2.0;

fn main() -> ExitCode {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import");
    let mailbox = match mailbox(&fixtures) {
        Ok(mailbox) => mailbox,
        Err(error) => {
            println!("failed to read the fixtures: {error}");
            return ExitCode::FAILURE;
        }
    };
    let watch = Stopwatch::start();
    let imported = import(&mailbox);
    let read = watch.elapsed().as_secs_f64();
    let text = reported_text(&imported, true).len() + reported_json(&imported).len();
    let all = watch.elapsed().as_secs_f64();
    println!(
        "{:.1} MB, {} tables: read in {read:.3} s, shown in {:.3} s as {:.1} MB; at most {SECONDS} s",
        mailbox.len() as f64 / 1e6,
        imported.tables.len(),
        all - read,
        text as f64 / 1e6,
    );
    if all <= SECONDS { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The fixtures' mails and plain outputs over and over, each as a mail of its own.
fn mailbox(fixtures: &Path) -> std::io::Result<Vec<u8>> {
    let mut texts = Vec::new();
    for folder in ["mails", "real", "shapes"] {
        let entries = std::fs::read_dir(fixtures.join(folder))?;
        let mut files: Vec<_> =
            entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            texts.push((folder == "mails", std::fs::read(file)?));
        }
    }
    let mut mailbox = Vec::new();
    for (is_mail, text) in texts.iter().cycle() {
        if mailbox.len() >= BYTES || texts.is_empty() {
            break;
        }
        if !text.starts_with(b"From ") {
            mailbox.extend_from_slice(b"From nobody Mon Nov 30 00:00:00 2026\n");
        }
        if !is_mail {
            mailbox.extend_from_slice(b"Subject: output of a benchmark\n\n");
        }
        mailbox.extend_from_slice(text);
        mailbox.extend_from_slice(b"\n\n");
    }
    Ok(mailbox)
}
