//! Fetches what profiles are made of from a run's folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kduel_counts::Symbols;

use crate::analyse::profile::{BootCode, Functions, Groups, RunProfiles, Terms, run_profiles};
use crate::collect::{BootRecord, StoredRun};
use crate::fault::{Failure, FailureClass};
use crate::plan::Measure;
use crate::run::exact::SYMBOLS;

/// How profiles are compared, as the user has it: groups from `file`, which need not be there unless it
/// was asked for.
///
/// # Errors
///
/// `Usage`: the file is not there though it was asked for, or is malformed.
pub fn terms(file: Option<&Path>, asked: bool, fold: bool) -> Result<Terms, Failure> {
    let internal = |error| Failure::new(FailureClass::Internal, format!("groups: {error}"));
    let mut groups = Groups::standard().map_err(internal)?;
    if let Some(path) = file.filter(|path| asked || path.is_file()) {
        let usage = |error: &dyn std::fmt::Display| {
            let title = format!("failed to read the groups in {}: {error}", path.display());
            Failure::new(FailureClass::Usage, title)
        };
        let text = std::fs::read_to_string(path).map_err(|error| usage(&error))?;
        groups = groups.extend(&text).map_err(|error| usage(&error))?;
    }
    Ok(Terms { groups, fold })
}

/// The profiles of a stored run; none of a timed one.
///
/// # Errors
///
/// A file is there and cannot be read.
pub fn profiles(stored: &StoredRun, terms: &Terms) -> Result<RunProfiles, Failure> {
    if stored.plan.measure != Measure::Instructions {
        return Ok(RunProfiles::default());
    }
    let kernels = Kernels { stored, known: Mutex::default() };
    run_profiles(&stored.plan, &stored.records, terms, &|record| kernels.load(record))
}

/// As [`profiles`], behind a run that must not have been for nothing: what is wrong becomes a note.
pub fn after_run(stored: &StoredRun, groups: Option<&Path>) -> RunProfiles {
    match terms(groups, false, true) {
        Ok(terms) => profiles_or_note(stored, &terms),
        Err(failure) => noted(&failure),
    }
}

/// As [`profiles`], where a report is worth having without them: what is wrong becomes a note.
pub fn profiles_or_note(stored: &StoredRun, terms: &Terms) -> RunProfiles {
    profiles(stored, terms).unwrap_or_else(|failure| noted(&failure))
}

fn noted(failure: &Failure) -> RunProfiles {
    let notes = vec![format!("no profile: {}", failure.title)];
    RunProfiles { notes, ..RunProfiles::default() }
}

/// Symbols that were read already, by digest: seeds share their kernel.
struct Kernels<'a> {
    stored: &'a StoredRun,
    known: Mutex<BTreeMap<String, Arc<Functions>>>,
}

impl Kernels<'_> {
    fn load(&self, record: &BootRecord) -> Result<Option<BootCode>, Failure> {
        let Some(bytes) = self.stored.counts(&record.boot)? else { return Ok(None) };
        let counts = kduel_counts::read(&bytes).map_err(|error| {
            let title = format!("the counts of {}: {error}", record.boot);
            Failure::new(FailureClass::OutputMalformed, title)
                .hint("use the kduel that wrote it, or run it again")
        })?;
        let digest = record.exact.as_ref().and_then(|exact| exact.inputs.get(SYMBOLS));
        let functions = digest.map_or_else(|| Ok(Arc::default()), |d| self.functions(d))?;
        Ok(Some(BootCode { counts, functions }))
    }

    fn functions(&self, digest: &str) -> Result<Arc<Functions>, Failure> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(functions) = known().get(digest) {
            return Ok(functions.clone());
        }
        let Some(text) = self.stored.symbols(digest)? else { return Ok(Arc::default()) };
        let symbols = Symbols::parse(&text).map_err(|error| {
            Failure::new(FailureClass::OutputMalformed, format!("the kernel's symbols: {error}"))
        })?;
        let functions = Arc::new(Functions::new(&symbols));
        known().insert(digest.to_owned(), functions.clone());
        Ok(functions)
    }
}
