//! Real counts for tests.

use std::path::PathBuf;
use std::rc::Rc;

use kduel_counts::{Counts, Symbols};

use super::{Annotation, Boot, Names, Question, Scope, SideInput, Unanswered, Wanted, annotate};
use crate::collect::testing::{completed, trial};
use crate::collect::{BootOutcome, BootRecord, WindowCounts};

/// A file of the fixture: `a.counts`, `a.kallsyms`.
pub fn read(file: &str) -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/annotate"));
    std::fs::read(folder.join(file)).unwrap()
}

/// What the plugin counted on a side, `a` or `b`.
pub fn counts(side: &str) -> Counts {
    kduel_counts::read(&read(&format!("{side}.counts"))).unwrap()
}

/// The symbols of a side's kernel.
pub fn symbols(side: &str) -> Names {
    let text = String::from_utf8(read(&format!("{side}.kallsyms"))).unwrap();
    Names::new(&Symbols::parse(&text).unwrap())
}

fn operations(side: &str) -> u64 {
    if side == "a" { 349 } else { 308 }
}

/// A side's boot with both its windows.
pub fn boot<'a>(counts: &'a Counts, side: &str) -> Boot<'a> {
    Boot { counts, windows: vec![(0, operations(side)), (1, operations(side))] }
}

/// Everything that a question needs.
pub struct Fixture {
    /// Of each side.
    pub records: Vec<BootRecord>,
    counts: Vec<Counts>,
    /// Of each side.
    pub names: Vec<Rc<Names>>,
}

/// Both sides.
pub fn fixture() -> Fixture {
    let record = |side: &str| {
        let mut record = completed("fork", side, 0, &[("instructions", 1.0)]);
        let BootOutcome::Completed(result) = &mut record.outcome else { return record };
        result.windows = (0..2)
            .map(|iteration| WindowCounts {
                trial: 0,
                iteration,
                ops: operations(side),
                own: Default::default(),
                contexts: Default::default(),
                total: 0,
                events: Default::default(),
            })
            .collect();
        record
    };
    let sides = ["a", "b"];
    Fixture {
        records: sides.map(record).to_vec(),
        counts: sides.map(counts).to_vec(),
        names: sides.map(|side| Rc::new(symbols(side))).to_vec(),
    }
}

impl Fixture {
    /// Asks both sides.
    pub fn annotate(&self, wanted: &Wanted, scope: Scope) -> Result<Annotation, Unanswered> {
        let question = Question { wanted, scope, cpu: "Westmere-v1" };
        annotate(question, &[&trial(0, "fork-exit")], &self.sides())
    }

    /// Both sides.
    pub fn sides(&self) -> Vec<SideInput<'_>> {
        let sides = [("a", "6.1.0-50-cloud-amd64"), ("b", "6.12.117+deb13-cloud-amd64")];
        let inputs = sides.iter().enumerate().map(|(place, (name, release))| SideInput {
            name,
            release,
            names: Rc::clone(&self.names[place]),
            boots: vec![(&self.records[place], self.counts[place].clone())],
        });
        inputs.collect()
    }
}
