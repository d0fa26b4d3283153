//! What the page of a run shows beside the report: call chains, and the executed code of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{annotate, chains};
use crate::analyse::annotate::{Question, Scope, SideInput, Wanted, annotate as annotation};
use crate::analyse::profile::{DiffProfile, RunProfiles, SeriesProfile};
use crate::analyse::{Analysis, points, sampled};
use crate::collect::StoredRun;
use crate::fault::{Failure, FailureClass};
use crate::plan::{Measure, Plan, PlannedExperiment, PlannedSide, series_label};
use crate::report::{Beside, Report, annotation_html, charted, flame_graph, html, matter};

/// Functions whose code is written out: of a run, and of one comparison.
const FUNCTIONS: usize = 48;
const OF_SERIES: usize = 24;

/// Where the code lies, beside the page.
const CODE: &str = "annotate";

/// The whole page, and what it links to by its place beside it; without links if it is a `single` file.
///
/// # Errors
///
/// A file of the run is there and cannot be read.
pub fn page(
    stored: &StoredRun,
    analysis: &Analysis,
    profiles: &RunProfiles,
    single: bool,
) -> Result<(String, BTreeMap<PathBuf, String>), Failure> {
    let mut beside = Beside::default();
    graphs(stored, &mut beside)?;
    // Boots of different runs are no pairs, so there are no charts of any.
    let paired = stored.info.compared.is_empty() || stored.plan.measure == Measure::Instructions;
    for place in charted(analysis).into_iter().filter(|_| paired) {
        let comparison = &analysis.comparisons[place];
        beside.points.insert(place, points(&stored.plan, &stored.records, comparison));
    }
    let mut pages = BTreeMap::new();
    if !single {
        for place in 0..profiles.series.len() {
            codes(stored, profiles, place, &mut beside, &mut pages);
        }
    }
    let report = Report { info: &stored.info, plan: &stored.plan, analysis, profiles };
    Ok((html(&report, &beside), pages))
}

/// A graph for every side that is compared; an exact run without chains says so.
fn graphs(stored: &StoredRun, beside: &mut Beside) -> Result<(), Failure> {
    let has_samples = !sampled(&stored.plan, &stored.records).is_empty();
    if stored.plan.measure == Measure::Time && !has_samples {
        return Ok(());
    }
    let workloads = match chains::of_run(stored) {
        Ok(workloads) => workloads,
        Err(failure) if failure.class == FailureClass::Usage => {
            beside.graphless = Some(failure.title);
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    let compared: BTreeSet<&str> = workloads
        .iter()
        .flat_map(|each| each.sides.iter().skip(1))
        .map(|(side, _)| side.as_str())
        .collect();
    for side in compared {
        let graph = flame_graph(&workloads, side).map_err(|error| {
            Failure::new(FailureClass::Internal, format!("failed to draw a flame graph: {error}"))
        })?;
        beside.graphs.push(graph);
    }
    Ok(())
}

/// The code of the functions that matter in one comparison. What cannot be shown has no link.
fn codes(
    stored: &StoredRun,
    profiles: &RunProfiles,
    place: usize,
    beside: &mut Beside,
    pages: &mut BTreeMap<PathBuf, String>,
) {
    let series = &profiles.series[place];
    let Some((experiment, trial, cpu)) = of_series(&stored.plan, series) else { return };
    let rows = (FUNCTIONS / profiles.series.len()).clamp(1, OF_SERIES);
    let names = functions(&series.profile, rows);
    let sides = experiment.sides.iter();
    let sides: Vec<&PlannedSide> =
        sides.filter(|side| side.name == series.base || side.name == series.side).collect();
    // What is missing of the run's folder is told where its functions are.
    let read = |side| annotate::input(stored, experiment, side, cpu);
    let Ok(inputs) = sides.into_iter().map(read).collect::<Result<Vec<SideInput<'_>>, _>>() else {
        return;
    };
    for name in names {
        let wanted = Wanted::parse(&name);
        let question = Question { wanted: &wanted, scope: Scope::Own, cpu };
        if let Ok(found) = annotation(question, &[&experiment.trials[trial]], &inputs) {
            let file = file_name(&name, place, pages);
            let link = format!("{CODE}/{file}");
            pages.insert(PathBuf::from(&link), annotation_html(&found));
            beside.code.insert((place, name), link);
        }
    }
}

/// The names of both sides in the rows that matter.
fn functions(profile: &DiffProfile, rows: usize) -> Vec<String> {
    let Some(own) = profile.own() else { return Vec::new() };
    let mut names = Vec::new();
    for row in matter(own, profile.operations, rows) {
        names.extend(row.code.name().map(str::to_owned));
        let fold = profile.folds.iter().find(|fold| fold.row == row.code.to_string());
        names
            .extend(fold.into_iter().flat_map(|fold| fold.base.iter().chain(&fold.value)).cloned());
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The experiment, the place of its trial and the CPU model that a comparison is of.
fn of_series<'a>(
    plan: &'a Plan,
    series: &SeriesProfile,
) -> Option<(&'a PlannedExperiment, usize, &'a str)> {
    let experiment = plan.experiments.iter().find(|e| e.name == series.experiment)?;
    let cpus = experiment.blocks.iter().filter_map(|block| block.cpu.as_deref());
    let mut each = cpus.flat_map(|cpu| experiment.trials.iter().enumerate().map(move |t| (cpu, t)));
    each.find_map(|(cpu, (place, trial))| {
        let label = series_label(trial);
        let is_it = series.workload == label || series.workload == format!("{label} cpu={cpu}");
        is_it.then_some((experiment, place, cpu))
    })
}

/// `copy_process.html`: a name that is good in every file system and address, and not taken.
fn file_name(function: &str, place: usize, pages: &BTreeMap<PathBuf, String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = function.chars().take(100).map(|c| if plain(c) { c } else { '_' }).collect();
    let name = if place == 0 { name } else { format!("{name}-{}", place + 1) };
    let is_free = |name: &String| {
        !pages.keys().any(|path| path.as_os_str().eq_ignore_ascii_case(format!("{CODE}/{name}")))
    };
    let mut names = (1..).map(|number| match number {
        1 => format!("{name}.html"),
        _ => format!("{name}~{number}.html"),
    });
    names.find(is_free).unwrap_or(name)
}

/// Writes the page as `index.html` into the folder, and the others beside it.
///
/// # Errors
///
/// Something cannot be written.
pub fn write(folder: &Path, index: &str, pages: &BTreeMap<PathBuf, String>) -> Result<(), Failure> {
    let code = folder.join(CODE);
    std::fs::create_dir_all(&code).map_err(|error| Failure::host_io("create", &code, &error))?;
    for (name, page) in pages {
        file(&folder.join(name), page)?;
    }
    file(&folder.join("index.html"), index)
}

/// Writes one file.
///
/// # Errors
///
/// It cannot be written.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::host_io("write", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::profile::Code;
    use crate::cli::profile::{profiles, terms};
    use crate::cli::report::analyse_stored;

    fn stored() -> StoredRun {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/profile/fork-exit");
        StoredRun::read(&folder).unwrap()
    }

    fn pages(single: bool) -> (String, BTreeMap<PathBuf, String>) {
        let stored = stored();
        let profiles = profiles(&stored, &terms(None, false, true).unwrap()).unwrap();
        page(&stored, &analyse_stored(&stored), &profiles, single).unwrap()
    }

    /// Kept without the rows that a reader has to ask for.
    #[test]
    fn the_page_of_a_real_run_is_the_same_again() {
        let (index, code) = pages(false);
        assert_eq!(pages(false), (index.clone(), code.clone()));
        let own = index.split("<tbody>").find(|part| part.contains("memcpy")).unwrap();
        let shown: Vec<&str> = own.lines().filter(|line| line.starts_with("<tr><td")).collect();
        let head = index.split("</style>").nth(1).unwrap().split("<h3>functions").next().unwrap();
        let tables = index.split("<h3>").skip(2).collect::<Vec<_>>().join("<h3>");
        let tables = tables.split("<details>").next().unwrap();
        let files: Vec<_> = code.keys().map(|path| path.display().to_string()).collect();
        insta::assert_snapshot!(format!(
            "{head}\n…\n{}\n…\n{tables}\n…\n{}",
            shown.join("\n"),
            files.join("\n")
        ));
    }

    #[test]
    fn every_function_has_a_bar_and_every_link_a_page() {
        let (index, code) = pages(false);
        let stored = stored();
        let profiles = profiles(&stored, &terms(None, false, true).unwrap()).unwrap();
        let own = profiles.series[0].profile.own().unwrap();
        let table = index.split("id=\"f0\"").nth(1).unwrap().split("</table>").next().unwrap();
        // The heading, the total and the rest beside them.
        assert_eq!(table.matches("<tr").count(), own.rows.len() + 3);
        let links: BTreeSet<&str> =
            index.split("href=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
        let files: BTreeSet<&str> = code.keys().map(|path| path.to_str().unwrap()).collect();
        assert!(files.len() > 10, "{files:?}");
        assert_eq!(
            links.into_iter().filter(|link| !link.starts_with('#')).collect::<BTreeSet<_>>(),
            files
        );
        let (single, none) = pages(true);
        assert!(none.is_empty() && !single.contains("href=\"annotate"));
    }

    #[test]
    fn nothing_is_fetched() {
        let (index, code) = pages(false);
        for page in code.values().chain([&index]) {
            assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("url("));
        }
    }

    #[test]
    fn odd_names_of_functions_are_shown_and_are_no_paths() {
        let stored = stored();
        let mut profiles = profiles(&stored, &terms(None, false, true).unwrap()).unwrap();
        let section = &mut profiles.series[0].profile.sections[0];
        section.rows[0].code = Code::function("../<b>\u{1b}[2J\"");
        let (index, _) = page(&stored, &analyse_stored(&stored), &profiles, true).unwrap();
        assert!(index.contains("../&lt;b&gt;\\x1b[2J&quot;"));
        let mut taken = BTreeMap::new();
        assert_eq!(file_name("../<b>", 0, &taken), ".._b_.html".replacen('_', "__", 1));
        taken.insert(PathBuf::from("annotate/Init.html"), String::new());
        assert_eq!(file_name("init", 0, &taken), "init~2.html");
        assert_eq!(file_name("init", 1, &taken), "init-2.html");
    }
}
