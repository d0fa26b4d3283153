use super::testing::{completed, plan};
use super::*;
use crate::boot::Accel;
use crate::fault::FailureClass;
use crate::id::BootId;
use crate::plan::PLAN_FORMAT;

fn info() -> RunInfo {
    RunInfo::new(Accel::Tcg, vec!["kduel".into(), "run".into()])
}

#[test]
fn a_run_is_written_killed_and_resumed() {
    let runs = tempfile::tempdir().unwrap();
    let plan = plan(&["base", "patched"], 2);
    let first = completed("fork", "base", 0, &[("time", 1.5)]);
    let second = completed("fork", "patched", 0, &[("time", 1.7)]);
    let mut folder = RunFolder::create(runs.path(), &plan, info()).unwrap();
    folder.append(&first).unwrap();
    drop(folder);
    let (mut folder, stored) = RunFolder::resume(runs.path(), &RunRef::default()).unwrap();
    assert_eq!((&stored.plan, &stored.records[..]), (&plan, &[first.clone()][..]));
    folder.append(&second).unwrap();
    folder.write_console(&BootId("fork-b00-../x".into()), "[ 0.0] raw \u{1b}[2J\n").unwrap();
    folder
        .write_derived("samples.jsonl", &samples_jsonl(&plan, std::slice::from_ref(&first)))
        .unwrap();
    assert!(folder.path().join("console/fork-b00-.._x.log").is_file());
    assert_eq!(StoredRun::open(runs.path(), &RunRef::Back(0)).unwrap().records, [first, second]);
    assert_eq!(
        std::fs::read_link(runs.path().join("last")).unwrap().to_str(),
        Some(&*folder.id().0)
    );
}

#[test]
fn two_writers_of_one_run_are_refused_and_readers_are_not() {
    let runs = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(runs.path(), &plan(&["base", "x"], 1), info()).unwrap();
    let refused = RunFolder::resume(runs.path(), &RunRef::default()).unwrap_err();
    assert!(refused.title.contains("going on in another kduel"), "{refused}");
    let listed = list_runs(runs.path()).unwrap().remove(0);
    assert!(listed.running && listed.bytes > 0);
    assert!(StoredRun::read(&listed.path).unwrap().records.is_empty());
    assert!(remove_run(&listed).unwrap_err().title.contains("going on"));
    drop(folder);
    assert!(!list_runs(runs.path()).unwrap()[0].running);
    remove_run(&listed).unwrap();
    assert_eq!(std::fs::read_dir(runs.path()).unwrap().count(), 0);
}

#[test]
fn runs_are_found_by_age_prefix_label_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().canonicalize().unwrap();
    let plan = plan(&["base", "x"], 1);
    let make = || RunFolder::create(&runs, &plan, info()).unwrap().path().to_owned();
    let (older, newer) = (make(), make());
    let find = |text: &str| find_run(&runs, &text.parse().unwrap());
    assert_eq!(find("@0").unwrap(), newer);
    assert_eq!(find("@1").unwrap(), older);
    let id = older.file_name().unwrap().to_str().unwrap();
    assert_eq!(find(id).unwrap(), older);
    assert_eq!(find(older.to_str().unwrap()).unwrap(), older);
    assert_eq!(find(runs.join("last").to_str().unwrap()).unwrap(), newer);
    set_label(&older, "before the patch").unwrap();
    assert_eq!(find("before the patch").unwrap(), older);
    let ambiguous = find(&id[..8]).unwrap_err();
    assert_eq!(ambiguous.class, FailureClass::Usage);
    assert!(ambiguous.title.contains("fits 2 runs"), "{ambiguous}");
    let near = find("before the path").unwrap_err();
    assert_eq!(near.hint.as_deref(), Some("did you mean `before the patch`?"));
    assert!(find("@2").unwrap_err().title.contains("2 runs in"));
    assert!(find("./nowhere").unwrap_err().title.contains("not the folder of a run"));
}

#[test]
fn files_of_another_version_are_refused_politely() {
    let runs = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(runs.path(), &plan(&["base", "x"], 1), info()).unwrap();
    let path = folder.path().join("run.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("kduel-run/1", "kduel-run/2");
    std::fs::write(&path, text).unwrap();
    let refused = StoredRun::read(folder.path()).unwrap_err();
    assert!(refused.title.contains("kduel-run/2, this kduel reads kduel-run/1"), "{refused}");
}

#[test]
fn the_journal_of_another_version_is_left_alone() {
    let runs = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(runs.path(), &plan(&["base", "x"], 1), info()).unwrap();
    let (path, journal) = (folder.path().join("plan.json"), folder.path().join("journal.jsonl"));
    drop(folder);
    let text = std::fs::read_to_string(&path).unwrap().replace(PLAN_FORMAT, "kduel-plan/99");
    std::fs::write(path, text).unwrap();
    std::fs::write(&journal, "lines of another format\n").unwrap();
    let refused = RunFolder::resume(runs.path(), &RunRef::default()).unwrap_err();
    assert!(refused.title.contains("kduel-plan/99"), "{refused}");
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), "lines of another format\n");
}
