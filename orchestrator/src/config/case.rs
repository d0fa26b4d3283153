//! A report of others as a folder: what was claimed, what must come out here.

use std::collections::BTreeMap;
use std::path::Path;

use super::check::Check;
use super::claims;
use super::diagnostic::{Diagnostic, Diagnostics, Source};
use super::document;
use super::environment::Environment;
use super::expect::{self, Known};
use super::experiment::Experiment;
use super::files::Files;
use super::load::{current_files, finish, read_bytes};
use super::node::{Content, Node};
use crate::plan::{Claim, Expected};

/// The files of a case beside its document; it need not have them.
const CLAIM_FILE: &str = "claim.yaml";
const EXPECT_FILE: &str = "expect.yaml";

/// What a case says beside its experiments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Case {
    /// What was reported, in a line.
    pub report: Option<String>,
    /// What the report says of the sides, by experiment.
    pub claims: BTreeMap<String, Vec<Claim>>,
    /// What must come out.
    pub expected: Expected,
}

/// Whether a word of the command line names a folder.
pub fn is_folder(word: &str) -> bool {
    word.contains('/')
}

/// Reads what the case in `folder` says, without its document.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn load_case(folder: &Path, environment: &Environment) -> Result<Case, Diagnostics> {
    let shown = folder.strip_prefix(&environment.current_dir).unwrap_or(folder);
    let mut check = Check::new(Files { folder, ..current_files(environment) });
    let known = Known { names: &[], experiments: &[] };
    let case = read(&mut check, &shown.to_string_lossy(), &known);
    finish(check.found, "")?;
    Ok(case)
}

/// Reads both files in the folder of `check`, which is shown as `shown`. The claims go into the
/// experiments, too.
pub fn read_into(
    check: &mut Check<'_>,
    shown: &str,
    root: &Node,
    experiments: &mut [Experiment],
) -> Case {
    let names = names(root);
    let case = read(check, shown, &Known { names: &names, experiments });
    for experiment in experiments {
        experiment.claims.extend(case.claims.get(&experiment.name).into_iter().flatten().cloned());
    }
    case
}

fn read(check: &mut Check<'_>, shown: &str, known: &Known<'_>) -> Case {
    let mut case = Case::default();
    if let Some(root) = file(check, shown, CLAIM_FILE) {
        claimed(check, &root, known, &mut case);
    }
    if let Some(root) = file(check, shown, EXPECT_FILE) {
        case.expected = expect::read(check, &root, known);
    }
    case
}

fn claimed(check: &mut Check<'_>, root: &Node, known: &Known<'_>, case: &mut Case) {
    if check.map(root, "the claims", &["version", "report", "claims"]).is_none() {
        return;
    }
    case.report = root.get("report").and_then(|at| check.text(at, "`report`"));
    let Some(node) = root.get("claims") else { return };
    for entry in check.section(node, "`claims`").unwrap_or_default() {
        expect::is_experiment(check, entry.spot, &entry.key, known);
        let experiment = known.experiments.iter().find(|known| known.name == entry.key);
        let claims = match experiment {
            Some(own) => claims::read(check, &entry.value, &own.sides, &own.workloads),
            None => claims::read(check, &entry.value, &[], &[]),
        };
        case.claims.insert(entry.key.clone(), claims);
    }
}

/// The tree of a file, if it is there and is one; `version` is checked.
fn file(check: &mut Check<'_>, shown: &str, name: &str) -> Option<Node> {
    let path = check.files.absolute(name);
    if !path.exists() {
        return None;
    }
    let name = Path::new(shown).join(name).to_string_lossy().into_owned();
    let index = check.sources.len();
    let parsed = match read_bytes(&path) {
        Ok(bytes) => document::parse(index, &name, &bytes),
        Err(error) => {
            let complaint = Diagnostic::whole(&name, format!("failed to read it: {error}"));
            Err(Diagnostics::one(complaint))
        }
    };
    match parsed {
        Ok((source, root, complaints)) => {
            check.sources.push(source);
            check.found.extend(complaints);
            version(check, &root);
            Some(root)
        }
        Err(Diagnostics(fatal)) => {
            check.sources.push(Source { name, lines: Vec::new() });
            check.found.extend(fatal);
            None
        }
    }
}

fn version(check: &mut Check<'_>, root: &Node) {
    match root.get("version") {
        Some(node) if node.text() == Some("1") => {}
        Some(node) => {
            check.advise(node.spot, "a version that is not known", "write `version: 1`");
        }
        None if matches!(root.content, Content::Map(_)) => {
            check.advise(root.spot, "there is no `version`", "begin it with `version: 1`");
        }
        None => {}
    }
}

/// The experiments that a document names; none if it makes others by a matrix.
fn names(root: &Node) -> Vec<String> {
    match root.get("experiments").map(|node| &node.content) {
        Some(Content::Map(entries)) if root.get("matrix").is_none() => {
            entries.iter().map(|entry| entry.key.clone()).collect()
        }
        _ => Vec::new(),
    }
}
