//! What is compared where not all sides are named: a kernel's working tree with what it is based on.

use super::diagnostic::{COMMAND_LINE, Diagnostic, Diagnostics};
use super::files::{Files, is_kernel, string};
use super::source_words::{WORKING_TREE, is_working_tree, with_patches};
use crate::cli::args::RunArgs;
use crate::fault::Failure;
use crate::host::git::{Repository, Snapshot, short};

/// Arguments with all sides, as far as they can be known.
pub struct Filled {
    /// The arguments.
    pub args: RunArgs,
    /// What was taken, in sentences for the user.
    pub notes: Vec<String>,
}

/// Adds the sides that are missing: in a kernel's git tree the working tree, and what it is based on;
/// of a SPEC with patches the SPEC without them. What cannot be known stays missing.
///
/// # Errors
/// If the tree has nothing to compare, or git refuses it.
pub fn fill(args: &RunArgs, files: &Files<'_>) -> Result<Filled, Diagnostics> {
    let mut filled = Filled { args: args.clone(), notes: Vec::new() };
    let by_document = !args.experiments.is_empty() || args.file.is_some();
    let has_work = !args.workloads.is_empty() || !args.command.is_empty();
    if by_document || args.calibrate {
        return Ok(filled);
    }
    match (&args.base, args.candidates.as_slice()) {
        (None, []) if has_work => both(&mut filled, files)?,
        (Some(_), []) => {
            if let Some((repository, snapshot)) = working_tree(files)? {
                filled.notes.push(format!("b: {}", described(&repository, &snapshot)));
                filled.args.candidates = vec![WORKING_TREE.to_owned()];
            }
        }
        (None, [first, ..]) => base_of(&mut filled, first, files)?,
        _ => {}
    }
    Ok(filled)
}

fn both(filled: &mut Filled, files: &Files<'_>) -> Result<(), Diagnostics> {
    let Some((repository, snapshot)) = working_tree(files)? else { return Ok(()) };
    let Some(head) = &snapshot.head else {
        let message = format!("{} has no commit yet to compare with", string(&repository.top));
        return Err(wrong(message, "commit something, or give -a SPEC"));
    };
    let upstream = repository.upstream("HEAD").map_err(refused)?;
    let (commit, why) = match &upstream {
        Some(upstream) => (&upstream.commit, format!(", which it has with {}", upstream.name)),
        None => (head, ", its HEAD".to_owned()),
    };
    if *commit == snapshot.commit {
        let message = format!(
            "there is nothing to compare: the working tree is the same as {}{why}",
            short(commit)
        );
        return Err(wrong(
            message,
            "change something, or name what it is compared with: -a REVISION",
        ));
    }
    let name = repository.name_of(commit);
    filled.notes.push(format!("base: {}{why}", called(&name, commit)));
    filled.notes.push(format!("patched: {}", described(&repository, &snapshot)));
    filled.args.base = Some(name);
    filled.args.candidates = vec![WORKING_TREE.to_owned()];
    filled.args.by_default = true;
    Ok(())
}

/// The base for a candidate that is the first.
fn base_of(filled: &mut Filled, candidate: &str, files: &Files<'_>) -> Result<(), Diagnostics> {
    if let Some((kernel, _)) = with_patches(candidate) {
        filled.notes.push(format!("a: {kernel}, without the patches"));
        filled.args.base = Some(kernel.to_owned());
        return Ok(());
    }
    let Some(repository) = kernel_repository(files)? else { return Ok(()) };
    let tip = if is_working_tree(candidate) { "HEAD" } else { candidate };
    let Some(commit) = repository.commit(tip).map_err(refused)? else { return Ok(()) };
    let upstream = repository.upstream(tip).map_err(refused)?;
    let (base, why) = match upstream {
        Some(found) if tip == "HEAD" || found.commit != commit => {
            (found.commit, format!(", which it has with {}", found.name))
        }
        None if tip == "HEAD" => (commit, ", its HEAD".to_owned()),
        _ => return Ok(()),
    };
    let name = repository.name_of(&base);
    filled.notes.push(format!("a: {}{why}", called(&name, &base)));
    filled.args.base = Some(name);
    Ok(())
}

/// `v6.1 (0123456789ab)`, or the id alone.
fn called(name: &str, commit: &str) -> String {
    let short = short(commit);
    if name == short { name.to_owned() } else { format!("{name} ({short})") }
}

fn described(repository: &Repository, snapshot: &Snapshot) -> String {
    let top = string(&repository.top);
    match &snapshot.head {
        Some(head) if snapshot.is_changed() => {
            format!("the working tree {top}, {} and changes", short(head))
        }
        Some(head) => format!("the working tree {top}, {} without changes", short(head)),
        None => format!("the working tree {top}"),
    }
}

fn working_tree(files: &Files<'_>) -> Result<Option<(Repository, Snapshot)>, Diagnostics> {
    let Some(repository) = kernel_repository(files)? else { return Ok(None) };
    let snapshot = repository.snapshot().map_err(refused)?;
    Ok(Some((repository, snapshot)))
}

/// The repository of the current folder, if it is a kernel's and there is git.
fn kernel_repository(files: &Files<'_>) -> Result<Option<Repository>, Diagnostics> {
    let is_inside = |folder: &std::path::Path| folder.join(".git").exists();
    if !files.folder.ancestors().any(is_inside) {
        return Ok(None);
    }
    let found = files.repository(".").map_err(refused)?;
    Ok(found.filter(|repository| is_kernel(&repository.top)))
}

fn refused(failure: Failure) -> Diagnostics {
    let text = std::iter::once(failure.title).chain(failure.details).collect::<Vec<_>>();
    wrong(text.join("; "), &failure.hint.unwrap_or_default())
}

fn wrong(message: String, hint: &str) -> Diagnostics {
    let complaint = Diagnostic::whole(COMMAND_LINE, message);
    Diagnostics::one(if hint.is_empty() { complaint } else { complaint.hint(hint) })
}
