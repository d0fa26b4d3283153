//! The whole command with scripted machines: milliseconds a run.

use std::fs;
use std::process::{Command, Output};

use crate::Sandbox;

/// What one run of kduel said and how it ended.
#[derive(Debug)]
pub struct Said {
    /// Exit code; absent if a signal ended it.
    pub code: Option<i32>,
    /// Results.
    pub stdout: String,
    /// Talk.
    pub stderr: String,
}

impl Said {
    /// Of a command that is run to its end.
    #[track_caller]
    pub fn by(command: &mut Command) -> Self {
        let output = command.output().unwrap_or_else(|error| panic!("start kduel: {error}"));
        Self::from(output)
    }

    /// Fails the test unless the command ended with this exit code.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Fails the test unless all `parts` are on standard output, wherever lines are broken.
    #[track_caller]
    pub fn reports(self, parts: &[&str]) -> Self {
        for part in parts {
            let there = unwrapped(&self.stdout).contains(part);
            assert!(there, "no `{part}` in the report of {self}");
        }
        self
    }

    /// Fails the test unless all `parts` are on standard error.
    #[track_caller]
    pub fn tells(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no `{part}` in the talk of {self}");
        }
        self
    }

    /// Fails the test if a terminal would take anything in the output for more than text.
    #[track_caller]
    pub fn is_plain_text(self) -> Self {
        let harmless = |c: char| c == '\n' || !(c.is_control() || is_bidi_control(c));
        for text in [&self.stdout, &self.stderr] {
            let bad = text.chars().find(|c| !harmless(*c));
            assert_eq!(bad, None, "raw in {self}");
        }
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap_or_else(|error| panic!("kduel wrote no text: {error}"))
        };
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, stdout, stderr } = self;
        write!(f, "exit code {code:?}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Two sides, `a` and `b`, one workload.
pub const AD_HOC: [&str; 6] = ["-a", "debian:bookworm", "-b", "debian:trixie", "-w", "fork-exit"];

impl Sandbox {
    /// kduel with these arguments, to its end.
    #[track_caller]
    pub fn says(&self, arguments: &[&str]) -> Said {
        Said::by(self.kduel().args(arguments))
    }

    /// Another program, in [`Self::work`].
    pub fn program(&self, name: &str) -> Command {
        let mut program = Command::new(name);
        program.current_dir(self.work());
        program
    }

    /// `kduel run` on machines that play `script`; not started yet.
    #[track_caller]
    pub fn fake(&self, script: &str, arguments: &[&str]) -> Command {
        self.write("script.yaml", script);
        let mut kduel = self.kduel();
        kduel.args(["run", "--backend", "fake:script.yaml"]).args(arguments);
        kduel
    }

    /// [`AD_HOC`], always with the same seed, six pairs, on machines that play `script`.
    #[track_caller]
    pub fn ad_hoc(&self, script: &str, more: &[&str]) -> Said {
        let quick = ["--quick", "--seed", "7"];
        Said::by(self.fake(script, &AD_HOC).args(quick).args(more))
    }

    /// `kduel run` of `document` in `kernels.yaml` on machines that play `script`.
    #[track_caller]
    pub fn run_document(&self, document: &str, script: &str, more: &[&str]) -> Said {
        self.write("kernels.yaml", document);
        Said::by(self.fake(script, &["--seed", "7"]).args(more))
    }

    /// Writes a file in [`Self::work`].
    #[track_caller]
    pub fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        fs::write(&path, content)
            .unwrap_or_else(|error| panic!("failed to write {}: {error}", path.display()));
    }

    /// The newest run's folder.
    #[track_caller]
    pub fn latest(&self) -> std::path::PathBuf {
        self.runs().pop().unwrap_or_else(|| panic!("there is no run"))
    }
}
