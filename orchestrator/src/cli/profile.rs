//! Fetches what profiles are made of from a run's folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kduel_counts::Symbols;

use crate::analyse::profile::{BootCode, Functions, Groups, RunProfiles, Terms, run_profiles};
use crate::collect::{BootRecord, StoredRun};
use crate::fault::{Failure, FailureClass};
use crate::id::BootId;
use crate::plan::{Measure, Plan};
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
    let here = |record: &BootRecord| Some((stored, record.boot.clone()));
    profiles_from(&stored.plan, &stored.records, terms, &here)
}

/// As [`profiles`], of boots that `origin` knows the run of, and their names in it.
///
/// # Errors
///
/// A file is there and cannot be read.
pub fn profiles_from<'a>(
    plan: &Plan,
    records: &[BootRecord],
    terms: &Terms,
    origin: Origin<'_, 'a>,
) -> Result<RunProfiles, Failure> {
    if plan.measure != Measure::Instructions {
        return Ok(RunProfiles::default());
    }
    let kernels = Kernels { origin, known: Mutex::default() };
    run_profiles(plan, records, terms, &|record| kernels.load(record))
}

/// Where a boot was stored, and under which name.
pub type Origin<'o, 'a> = &'o (dyn Fn(&BootRecord) -> Option<(&'a StoredRun, BootId)> + Sync);

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

pub(super) fn noted(failure: &Failure) -> RunProfiles {
    let notes = vec![format!("no profile: {}", failure.title)];
    RunProfiles { notes, ..RunProfiles::default() }
}

/// Symbols that were read already, by digest: seeds share their kernel.
struct Kernels<'o, 'a> {
    origin: Origin<'o, 'a>,
    known: Mutex<BTreeMap<String, Arc<Functions>>>,
}

impl Kernels<'_, '_> {
    fn load(&self, record: &BootRecord) -> Result<Option<BootCode>, Failure> {
        let Some((stored, boot)) = (self.origin)(record) else { return Ok(None) };
        let Some(bytes) = stored.counts(&boot)? else { return Ok(None) };
        let counts = kduel_counts::read(&bytes).map_err(|error| {
            let title = format!("the counts of {}: {error}", record.boot);
            Failure::new(FailureClass::OutputMalformed, title)
                .hint("use the kduel that wrote it, or run it again")
        })?;
        let digest = record.exact.as_ref().and_then(|exact| exact.inputs.get(SYMBOLS));
        let functions = digest.map_or_else(|| Ok(Arc::default()), |d| self.functions(stored, d))?;
        Ok(Some(BootCode { counts, functions }))
    }

    fn functions(&self, stored: &StoredRun, digest: &str) -> Result<Arc<Functions>, Failure> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(functions) = known().get(digest) {
            return Ok(functions.clone());
        }
        let Some(text) = stored.symbols(digest)? else { return Ok(Arc::default()) };
        let symbols = Symbols::parse(&text).map_err(|error| {
            Failure::new(FailureClass::OutputMalformed, format!("the kernel's symbols: {error}"))
        })?;
        let functions = Arc::new(Functions::new(&symbols));
        known().insert(digest.to_owned(), functions.clone());
        Ok(functions)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::analyse::analyse;
    use crate::analyse::profile::Scope;
    use crate::collect::BootOutcome;
    use crate::report::{Look, Report, diffprofile, text};

    /// One window of a real run: fork+exit on Debian's 6.1 and 6.12, symbols of what was executed.
    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/profile/fork-exit")
    }

    fn found(fold: bool) -> (StoredRun, RunProfiles) {
        let stored = StoredRun::read(&folder()).unwrap();
        let profiles = profiles(&stored, &terms(None, false, fold).unwrap()).unwrap();
        assert_eq!((profiles.series.len(), &profiles.notes[..]), (1, &[][..]));
        (stored, profiles)
    }

    #[test]
    fn the_rows_of_a_real_run_add_up_to_what_its_windows_counted() {
        for fold in [true, false] {
            let (stored, profiles) = found(fold);
            let profile = &profiles.series[0].profile;
            let windows = ["a", "b"].map(|side| {
                let record = stored.records.iter().find(|r| r.side == side && !r.is_again());
                let BootOutcome::Completed(result) = &record.unwrap().outcome else { panic!() };
                result.windows[0].clone()
            });
            assert!(profile.sections.iter().all(|section| section.adds_up(profile.operations)));
            let own = profile.own().unwrap();
            let counted = windows.clone().map(|window| window.own["instructions"]);
            assert_eq!([own.base, own.value], counted);
            assert_eq!(
                [profile.operations.base, profile.operations.value],
                windows.clone().map(|w| w.ops)
            );
            let all = profile
                .sections
                .iter()
                .fold([0, 0], |sum, section| [sum[0] + section.base, sum[1] + section.value]);
            assert_eq!(all, windows.map(|window| window.total));
            let split: f64 = own
                .rows
                .iter()
                .map(|row| {
                    let split = row.split(profile.operations);
                    split.map_or_else(|| row.difference(profile.operations), |s| s.calls + s.cost)
                })
                .sum();
            let difference = profile.operations.difference(own.base, own.value);
            assert!((split - difference).abs() < 1e-6, "{split} {difference}");
            assert_eq!(profile.folds.is_empty(), !fold);
        }
    }

    #[test]
    fn what_the_report_says_of_functions() {
        let (stored, profiles) = found(true);
        let analysis = analyse(&stored.plan, &stored.records);
        let (info, plan) = (&stored.info, &stored.plan);
        let report = Report { info, plan, analysis: &analysis, profiles: &profiles };
        let page = text(&report, Look::default());
        let lines = page.lines().skip_while(|line| !line.starts_with("  functions, own tasks"));
        let part: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        assert!(part.iter().all(|line| line.chars().count() <= 80), "{part:#?}");
        let all = diffprofile(&report);
        let ends = |line: &&str| {
            line.contains("_rmap")
                || line.contains("add up")
                || line.contains("folded")
                || line.contains("moved")
                || line.contains("system call")
        };
        let some: Vec<&str> = all.lines().filter(ends).collect();
        insta::assert_snapshot!(format!("{}\n\n{}", part.join("\n"), some.join("\n")));
    }

    #[test]
    fn own_tasks_are_not_all_that_is_there() {
        let (_, profiles) = found(true);
        let scopes: Vec<Scope> =
            profiles.series[0].profile.sections.iter().map(|section| section.scope).collect();
        assert!(scopes.starts_with(&[Scope::Own, Scope::Others, Scope::Interrupts]), "{scopes:?}");
    }

    /// A copy of the stored run, to be broken.
    fn copy() -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        std::fs::create_dir(copy.path().join("profile")).unwrap();
        for part in ["", "profile"] {
            for entry in std::fs::read_dir(folder().join(part)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let to = copy.path().join(part).join(path.file_name().unwrap());
                    std::fs::copy(&path, to).unwrap();
                }
            }
        }
        copy
    }

    fn remove(copy: &tempfile::TempDir, ending: &str) {
        for entry in std::fs::read_dir(copy.path().join("profile")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().ends_with(ending) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    #[test]
    fn what_was_not_kept_is_said_and_what_is_broken_is_refused() {
        let terms = terms(None, false, true).unwrap();
        let unnamed = copy();
        remove(&unnamed, ".kallsyms.zst");
        let found = profiles(&StoredRun::read(unnamed.path()).unwrap(), &terms).unwrap();
        assert!(found.notes[0].starts_with("functions of a have no names"), "{:?}", found.notes);
        let profile = &found.series[0].profile;
        assert!(profile.own().unwrap().adds_up(profile.operations));

        let uncounted = copy();
        remove(&uncounted, "-b.counts.zst");
        let found = profiles(&StoredRun::read(uncounted.path()).unwrap(), &terms).unwrap();
        assert!(found.series.is_empty());
        assert!(found.notes[0].starts_with("no profile of b"), "{:?}", found.notes);

        let newer = copy();
        let path = newer.path().join("profile/adhoc-b00-a.counts.zst");
        let mut bytes = zstd::decode_all(&std::fs::read(&path).unwrap()[..]).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&path, zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
        let stored = StoredRun::read(newer.path()).unwrap();
        let failure = profiles(&stored, &terms).unwrap_err();
        assert!(failure.title.contains("the counts of adhoc-b00-a"), "{failure:?}");
        assert!(profiles_or_note(&stored, &terms).notes[0].starts_with("no profile: "));
    }

    #[test]
    fn a_file_of_groups_that_was_asked_for_must_be_there() {
        let missing = Path::new("no/such/groups.yaml");
        assert!(terms(Some(missing), false, true).is_ok());
        assert_eq!(terms(Some(missing), true, true).unwrap_err().class, FailureClass::Usage);
    }
}
