//! Sets a side's knobs, then reads every one of them back: what counts is what is found.

mod compare;
mod mount;

use std::fs;
use std::io::Write;

use kduel_protocol::{KnobKind, KnobReading, Knobs};

use crate::process;
use crate::text;

pub use compare::selected;

/// How much of a reading is kept, in bytes.
const FOUND_BYTES: usize = 2000;

/// Sets all knobs, then reads all of them back, in the order of the document's keys.
pub fn apply(knobs: &Knobs) -> Vec<KnobReading> {
    let mut set: Vec<Setting> = Vec::new();
    set.extend(knobs.cmdline.iter().map(|word| Setting::cmdline(word)));
    set.extend(knobs.cpu_flags.iter().map(|flag| Setting::cpu_flag(flag)));
    set.extend(knobs.modparam.iter().map(|(name, value)| Setting::modparam(name, value)));
    set.extend(knobs.mount.iter().map(|(kind, options)| Setting::mount(kind, options)));
    set.extend(knobs.sysctl.iter().map(|(name, value)| Setting::sysctl(name, value)));
    set.extend(knobs.write.iter().map(|(path, value)| Setting::write(path, value)));
    set.extend(knobs.setup.iter().map(|line| Setting::setup(line)));
    set.into_iter().map(Setting::read_back).collect()
}

/// A knob that was set, with what is needed to read it back.
struct Setting {
    kind: KnobKind,
    name: String,
    wanted: String,
    outcome: Outcome,
}

/// How setting it went, and where it is read back.
enum Outcome {
    /// Nothing more to read: this was found.
    Final { found: String, took: bool },
    /// The file it can be read from, and what went wrong with writing.
    File { path: String, error: Option<String> },
    /// The file system whose options are to be read, and what went wrong with mounting.
    Mount { error: Option<String> },
}

impl Setting {
    fn new(kind: KnobKind, name: &str, wanted: &str, outcome: Outcome) -> Self {
        Self { kind, name: name.to_owned(), wanted: wanted.to_owned(), outcome }
    }

    fn cmdline(word: &str) -> Self {
        let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let took = compare::has_words(&line, word);
        let found = if took { word.to_owned() } else { format!("not in \"{}\"", line.trim()) };
        Self::new(KnobKind::Cmdline, word, word, Outcome::Final { found, took })
    }

    fn cpu_flag(flag: &str) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let is_there = compare::has_flag(crate::facts::cpu_field(&cpuinfo, "flags"), flag);
        let took = is_there != flag.starts_with('-');
        let found = if is_there { "present" } else { "absent" }.to_owned();
        Self::new(KnobKind::CpuFlags, flag, flag, Outcome::Final { found, took })
    }

    fn modparam(name: &str, value: &str) -> Self {
        let path = compare::parameter_path(name);
        // Given when the module was loaded; a parameter of built-in code may be writable.
        let error = match fs::read_to_string(&path) {
            Ok(found) if compare::is_same(value, &found) => None,
            Ok(_) => write(&path, value),
            Err(error) => Some(error.to_string()),
        };
        Self::new(KnobKind::Modparam, name, value, Outcome::File { path, error })
    }

    fn mount(kind: &str, options: &str) -> Self {
        let error = mount::set(kind, options).err();
        Self::new(KnobKind::Mount, kind, options, Outcome::Mount { error })
    }

    fn sysctl(name: &str, value: &str) -> Self {
        let path = compare::sysctl_path(name);
        let error = write(&path, value);
        Self::new(KnobKind::Sysctl, name, value, Outcome::File { path, error })
    }

    fn write(path: &str, value: &str) -> Self {
        let error = write(path, value);
        let path_again = path.to_owned();
        Self::new(KnobKind::Write, path, value, Outcome::File { path: path_again, error })
    }

    fn setup(line: &str) -> Self {
        let (found, took) = match process::shell(line, &[], None) {
            Ok((status, output)) => {
                let last = process::last_line(&output);
                (format!("{status}: {last}").trim_end_matches(": ").to_owned(), status.success())
            }
            Err(error) => (format!("{}: {error}", process::SHELL), false),
        };
        Self::new(KnobKind::Setup, line, "exit status 0", Outcome::Final { found, took })
    }

    fn read_back(self) -> KnobReading {
        let (found, took) = match self.outcome {
            Outcome::Final { found, took } => (found, took),
            Outcome::File { path, error } => read_file(&path, &self.wanted, error),
            Outcome::Mount { error } => mount::read(&self.name, &self.wanted, error),
        };
        KnobReading {
            kind: self.kind,
            name: text::head(&self.name, FOUND_BYTES),
            wanted: text::head(&self.wanted, FOUND_BYTES),
            found: text::head(&found, FOUND_BYTES),
            took,
        }
    }
}

/// Writes `value`; gives what went wrong.
fn write(path: &str, value: &str) -> Option<String> {
    // Not `fs::write`: a knob that does not exist must not come into being as a file.
    let mut pieces = compare::pieces(path, value).into_iter();
    pieces.find_map(|piece| {
        let file = fs::OpenOptions::new().write(true).truncate(true).open(path);
        let written = file.and_then(|mut file| file.write_all(piece.as_bytes()));
        written.err().map(|error| error.to_string())
    })
}

/// What a file holds now, and whether that is what was wanted.
fn read_file(path: &str, wanted: &str, error: Option<String>) -> (String, bool) {
    match (fs::read_to_string(path), error) {
        (Ok(found), error) => {
            let took = compare::is_same(wanted, &found);
            let found = found.trim().to_owned();
            match error {
                Some(error) if !took => (format!("{found} ({error})"), false),
                _ => (found, took),
            }
        }
        (Err(_), Some(error)) => (error, false),
        (Err(error), None) => (format!("written, cannot be read back: {error}"), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("knob").to_string_lossy().into_owned();
        let knobs = |value: &str| Knobs {
            write: [(path.clone(), value.to_owned())].into(),
            ..Knobs::default()
        };
        let missing = apply(&knobs("5"));
        assert!(!missing[0].took && missing[0].found.contains("No such file"), "{missing:?}");
        assert!(!std::path::Path::new(&path).exists(), "a knob must not make a file");
        fs::write(&path, "1\n").unwrap();
        let reading = &apply(&knobs("5"))[0];
        assert_eq!((reading.found.as_str(), reading.took), ("5", true));
    }

    #[test]
    fn a_set_up_command_takes_when_it_succeeds() {
        let knobs = Knobs {
            setup: vec!["echo one; echo two".to_owned(), "echo no >&2; exit 3".to_owned()],
            ..Knobs::default()
        };
        let readings = apply(&knobs);
        assert_eq!((readings[0].took, readings[0].found.as_str()), (true, "exit status: 0: two"));
        assert_eq!((readings[1].took, readings[1].found.as_str()), (false, "exit status: 3: no"));
    }

    #[test]
    fn words_that_are_not_there_did_not_take() {
        let knobs = Knobs {
            cmdline: vec!["kduel.surely-not=1".to_owned()],
            cpu_flags: vec!["+surely_not".to_owned(), "-surely_not".to_owned()],
            ..Knobs::default()
        };
        let took: Vec<bool> = apply(&knobs).iter().map(|reading| reading.took).collect();
        assert_eq!(took, [false, false, true]);
    }
}
