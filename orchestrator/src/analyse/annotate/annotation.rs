//! The question of a user, and its answer.

use std::rc::Rc;

use kduel_counts::Counts;
use kduel_protocol::{TrialSpec, workload};

use super::gather::{Boot, Scope};
use super::listing::Listing;
use super::names::{Function, Names, OFFERED, Wanted};
use crate::collect::{BootOutcome, BootRecord};
use crate::plan::series_label;

/// One side of an experiment, with everything that was counted on it.
#[derive(Debug)]
pub struct SideInput<'a> {
    /// The side's name.
    pub name: &'a str,
    /// Its kernel's release.
    pub release: &'a str,
    /// Its kernel's symbols.
    pub names: Rc<Names>,
    /// Boots on one CPU model, each with what the plugin counted.
    pub boots: Vec<(&'a BootRecord, Counts)>,
}

impl SideInput<'_> {
    fn boots_of(&self, trial: &TrialSpec) -> Vec<Boot<'_>> {
        let windows = |record: &BootRecord| match &record.outcome {
            BootOutcome::Completed(result) => {
                let own = result.windows.iter().filter(|window| window.trial == trial.id);
                own.map(|w| (kduel_protocol::window_number(w.trial, w.iteration), w.ops)).collect()
            }
            BootOutcome::Failed(_) => Vec::new(),
        };
        self.boots
            .iter()
            .map(|(record, counts)| Boot { counts, windows: windows(record) })
            .collect()
    }

    fn build_id(&self) -> Option<String> {
        self.boots.iter().find_map(|(record, _)| match &record.outcome {
            BootOutcome::Completed(result) => result.facts.build_id.clone(),
            BootOutcome::Failed(_) => None,
        })
    }

    fn listings(&self, wanted: &Wanted, trial: &TrialSpec, scope: Scope) -> Vec<Listing> {
        let boots = self.boots_of(trial);
        let functions = self.names.find(wanted);
        functions.iter().map(|found| Listing::of(&self.names, found, &boots, scope)).collect()
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Of which function.
    pub wanted: &'a Wanted,
    /// Whose executions count.
    pub scope: Scope,
    /// On which CPU model the boots were.
    pub cpu: &'a str,
}

/// A function as the sides executed it in one workload.
#[derive(Debug)]
pub struct Annotation {
    /// The function, as the user wrote it.
    pub function: String,
    /// The workload with its parameters.
    pub workload: String,
    /// What is counted per: `fork+exit`.
    pub operation: String,
    /// QEMU's name of the processor.
    pub cpu: String,
    /// Whose executions count.
    pub scope: Scope,
    /// One, or the base and another.
    pub sides: Vec<AnnotatedSide>,
    /// What the reader has to know, in sentences.
    pub notes: Vec<String>,
}

/// What one side has of it.
#[derive(Debug)]
pub struct AnnotatedSide {
    /// The side's name.
    pub name: String,
    /// Its kernel's release.
    pub release: String,
    /// Its kernel's GNU build id, lower-case hex, as the guest told it.
    pub build_id: Option<String>,
    /// Absent if the kernel has no such function; without code if it was never executed.
    pub listing: Option<Listing>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// No side has a function of that name; some with a name like it.
    Unknown(Vec<String>),
    /// Nothing of it was executed; in brackets: but by others than the workload's own tasks it was.
    NeverExecuted(bool),
    /// A side has several functions of that name: side, address, calls of it.
    Several(Vec<(String, u64, u64)>),
}

/// What `sides` executed of a function in the first of `trials` in which any of them did.
///
/// # Errors
///
/// [`Unanswered`].
pub fn annotate(
    question: Question<'_>,
    trials: &[&TrialSpec],
    sides: &[SideInput<'_>],
) -> Result<Annotation, Unanswered> {
    let Question { wanted, scope, cpu } = question;
    let is_known = |side: &SideInput<'_>| !side.names.find(wanted).is_empty();
    if !sides.iter().any(is_known) {
        return Err(unknown(wanted, sides));
    }
    let executed = |trial: &TrialSpec, scope| {
        sides.iter().any(|s| s.listings(wanted, trial, scope).iter().any(|l| l.instructions > 0))
    };
    let mut those = trials.iter().copied().filter(|trial| executed(trial, scope));
    let Some(trial) = those.next() else {
        let elsewhere = trials.iter().any(|trial| executed(trial, Scope::All));
        return Err(Unanswered::NeverExecuted(elsewhere));
    };
    let mut notes = Vec::new();
    let others: Vec<String> = those.map(series_label).collect();
    if !others.is_empty() {
        notes.push(format!("executed also by {} (--workload)", others.join(", ")));
    }
    let mut annotated = Vec::new();
    let mut several = Vec::new();
    for side in sides {
        let listings = side.listings(wanted, trial, scope);
        let places =
            listings.iter().map(|l| (side.name.to_owned(), l.function.range.start, l.calls));
        several.extend(places);
        annotated.push(choose(side, listings, &mut notes));
    }
    let annotated: Option<Vec<AnnotatedSide>> = annotated.into_iter().collect();
    let Some(annotated) = annotated else { return Err(Unanswered::Several(several)) };
    notes.extend(annotated.iter().filter_map(AnnotatedSide::note));
    Ok(Annotation {
        function: wanted.text.clone(),
        workload: series_label(trial),
        operation: workload(&trial.workload).map_or("operation", |info| info.operation).to_owned(),
        cpu: cpu.to_owned(),
        scope,
        sides: annotated,
        notes,
    })
}

/// The one listing of a side, or the only one that was executed; `None` if that is not clear.
fn choose(
    side: &SideInput<'_>,
    mut listings: Vec<Listing>,
    notes: &mut Vec<String>,
) -> Option<AnnotatedSide> {
    if listings.len() > 1 {
        let address = |function: &Function| format!("{:x}", function.range.start);
        let all: Vec<String> = listings.iter().map(|l| address(&l.function)).collect();
        listings.retain(|listing| listing.instructions > 0);
        let [only] = &listings[..] else { return None };
        let chosen = address(&only.function);
        let (name, all) = (side.name, all.join(", "));
        notes
            .push(format!("{name} has several of this name, at {all}: only {chosen} was executed"));
    }
    Some(AnnotatedSide {
        name: side.name.to_owned(),
        release: side.release.to_owned(),
        build_id: side.build_id(),
        listing: listings.pop(),
    })
}

impl AnnotatedSide {
    fn note(&self) -> Option<String> {
        let name = &self.name;
        match &self.listing {
            None => Some(format!("{name} has no function of this name")),
            Some(listing) if listing.code.is_empty() => Some(format!("{name} did not execute it")),
            Some(listing) if listing.is_rewritten() => {
                let what = "the kernel rewrote some of it between executions";
                Some(format!("{name}: {what}; both forms are shown, each with its own count"))
            }
            Some(_) => None,
        }
    }
}

fn unknown(wanted: &Wanted, sides: &[SideInput<'_>]) -> Unanswered {
    let mut like: Vec<String> = Vec::new();
    for name in sides.iter().flat_map(|side| side.names.like(wanted)) {
        if !like.iter().any(|known| known == name) {
            like.push(name.to_owned());
        }
    }
    like.truncate(OFFERED);
    Unanswered::Unknown(like)
}
