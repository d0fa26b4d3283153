use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::fault::{Failure, FailureClass};
use crate::text::{escape, nearest};

use super::folder::read_info;
use super::list::{ListedRun, list_runs};

/// How a user names a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRef {
    /// The newest is 0, the one before 1: `@1`.
    Back(usize),
    /// The start of an id, or a label.
    Named(String),
    /// Its folder: anything with a slash in it.
    Path(PathBuf),
}

impl Default for RunRef {
    fn default() -> Self {
        Self::Back(0)
    }
}

impl FromStr for RunRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let back = text.strip_prefix('@').and_then(|number| number.parse().ok());
        Ok(match back {
            Some(back) => Self::Back(back),
            None if text == "last" => Self::Back(0),
            None if text.contains('/') || text == "." => Self::Path(text.into()),
            None => Self::Named(text.to_owned()),
        })
    }
}

/// The folder of the run that `run` names.
///
/// # Errors
///
/// `Usage` for a name that fits no run or several, with what comes near; `HostIo`.
pub fn find_run(runs_dir: &Path, run: &RunRef) -> Result<PathBuf, Failure> {
    if let RunRef::Path(path) = run {
        // Read, since a run may be removed by its path and other folders have a run.json too.
        let no_run = || unknown(format!("{} is not the folder of a run", path.display()));
        let info = read_info(path).map_err(|why| no_run().detail(why.title));
        // `last` is a link; the run's own name is behind it.
        return info.map(|_| path.canonicalize().unwrap_or_else(|_| path.clone()));
    }
    let runs = list_runs(runs_dir)?;
    match run {
        RunRef::Back(back) => runs.get(*back).map(|run| run.path.clone()).ok_or_else(|| {
            let there = crate::text::count(runs.len(), "run");
            let hint = "`kduel runs` lists them, `kduel run` makes one";
            unknown(format!("there is no run @{back}; {there} in {}", runs_dir.display()))
                .hint(hint)
        }),
        RunRef::Named(name) => named(&runs, name),
        RunRef::Path(path) => Ok(path.clone()),
    }
}

fn named(runs: &[ListedRun], name: &str) -> Result<PathBuf, Failure> {
    let label = |run: &&ListedRun| run.label() == Some(name);
    let prefix = |run: &&ListedRun| run.id.0.starts_with(name);
    let exact = runs.iter().find(|run| run.id.0 == name);
    let found: Vec<&ListedRun> = match exact {
        Some(run) => vec![run],
        None if runs.iter().any(|run| label(&run)) => runs.iter().filter(label).collect(),
        None => runs.iter().filter(prefix).collect(),
    };
    match found[..] {
        [run] => Ok(run.path.clone()),
        [] => {
            let names =
                runs.iter().flat_map(|run| [Some(run.id.0.as_str()), run.label()]).flatten();
            let near = nearest(name, names).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| "`kduel runs` lists them".into());
            Err(unknown(format!("there is no run `{}`", escape(name))).hint(hint))
        }
        [..] => {
            let ids: Vec<&str> = found.iter().map(|run| run.id.0.as_str()).collect();
            Err(unknown(format!("`{}` fits {} runs", escape(name), found.len()))
                .detail(ids.join(", "))
                .hint("write more of the id"))
        }
    }
}

fn unknown(title: String) -> Failure {
    Failure::new(FailureClass::Usage, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_apart_by_their_look() {
        let parse = |text: &str| text.parse::<RunRef>().unwrap();
        assert_eq!(parse("@1"), RunRef::Back(1));
        assert_eq!(parse("last"), RunRef::default());
        assert_eq!(parse("2026"), RunRef::Named("2026".into()));
        assert_eq!(parse("@home"), RunRef::Named("@home".into()));
        assert_eq!(parse("./x"), RunRef::Path("./x".into()));
    }
}
