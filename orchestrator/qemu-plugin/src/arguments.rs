//! What the plugin is told on QEMU's command line.

use std::fs::{self, File, OpenOptions};
use std::io;

use kduel_counts::{Hooks, Symbols};

/// `-plugin FILE,out=PATH[,symbols=PATH][,chains=on]`, with the files opened.
#[derive(Debug)]
pub struct Arguments {
    /// Where the counts go when QEMU exits.
    pub out: File,
    /// What is known of the kernel.
    pub hooks: Hooks,
    /// To follow call chains by, if they are to be followed.
    pub chains: Option<Symbols>,
}

impl Arguments {
    /// Reads `key=value` words.
    ///
    /// # Errors
    /// Text that reads after "failed to start: ".
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let (mut out, mut hooks) = (None, Hooks::default());
        let (mut known, mut chains) = (Symbols::default(), false);
        for word in words {
            match word.split_once('=') {
                Some(("out", path)) => {
                    let file = open(path).map_err(|e| format!("cannot write to {path}: {e}"))?;
                    out = Some(file);
                }
                Some(("symbols", path)) => {
                    let text = fs::read_to_string(path)
                        .map_err(|e| format!("cannot read symbols from {path}: {e}"))?;
                    let symbols = Symbols::parse(&text).map_err(|e| e.to_string())?;
                    hooks = Hooks::new(&symbols);
                    known = symbols;
                }
                Some(("chains", "on")) => chains = true,
                Some(("chains", "off")) => chains = false,
                _ => {
                    return Err(format!(
                        "unknown argument {word}\n  known are out=, symbols= and chains=on|off"
                    ));
                }
            }
        }
        let out = out.ok_or("argument out is missing\n  it names the file for the counts")?;
        Ok(Self { out, hooks, chains: chains.then_some(known) })
    }
}

fn open(path: &str) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).open(path)
}
