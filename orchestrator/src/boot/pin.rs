//! Threads of a paused QEMU are bound to CPUs of the host, and asked where they are.

use std::collections::BTreeMap;
use std::fs;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::fault::{Failure, FailureClass};
use crate::host::topology::CpuList;
use crate::plan::Placement;

/// QEMU may start a thread while its others are bound; not so often that they were never all bound.
const ROUNDS: usize = 5;

/// Binds the vCPU threads of process `pid`, in the order of the vCPUs, and all its others, as
/// `placement` says, and reads back that they are. A thread that executes several vCPUs is bound as
/// the first of them.
///
/// # Errors
///
/// `NotPinned` with what was wanted and what was found.
pub fn pin(pid: u32, vcpus: &[u64], placement: &Placement) -> Result<(), Failure> {
    if vcpus.len() != placement.vcpus.len() {
        let title = format!(
            "QEMU names {} vCPU threads where {} are placed",
            vcpus.len(),
            placement.vcpus.len()
        );
        return Err(Failure::new(FailureClass::NotPinned, title));
    }
    let mut wanted: BTreeMap<u64, (String, &CpuList)> = BTreeMap::new();
    for (vcpu, (thread, cpus)) in vcpus.iter().zip(&placement.vcpus).enumerate() {
        wanted.entry(*thread).or_insert_with(|| (format!("vCPU {vcpu}"), cpus));
    }
    let other = ("another thread of QEMU".to_owned(), &placement.emulator);
    let mut wrong = Vec::new();
    for _ in 0..ROUNDS {
        wrong.clear();
        let there = threads(pid)?;
        for gone in vcpus.iter().filter(|thread| !there.contains(thread)) {
            wrong.push(format!("vCPU thread {gone} is not a thread of QEMU"));
        }
        let mut moved = false;
        for thread in there {
            let (what, cpus) = wanted.get(&thread).unwrap_or(&other);
            let Some(found) = affinity(thread)? else { continue };
            if found != **cpus {
                moved = true;
                bind(thread, cpus)?;
                let now = affinity(thread)?;
                if now.as_ref().is_some_and(|now| now != *cpus) {
                    let now = now.unwrap_or_default();
                    wrong.push(format!("{what} (thread {thread}): wanted CPU {cpus}, found {now}"));
                }
            }
        }
        // Nothing had to be moved any more: all threads that there are have been read back.
        if !moved && wrong.is_empty() {
            return Ok(());
        }
    }
    let title = match wrong.first() {
        Some(first) => first.clone(),
        None => "QEMU goes on starting threads while it is paused".to_owned(),
    };
    let failure = Failure::new(FailureClass::NotPinned, title);
    Err(wrong
        .into_iter()
        .skip(1)
        .fold(failure, Failure::detail)
        .hint("may this user still run on these CPUs? `kduel plan` shows what would be used now"))
}

fn threads(pid: u32) -> Result<Vec<u64>, Failure> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder)
        .map_err(|error| not_pinned(&format!("list the threads of QEMU in {folder}"), &error))?;
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.collect())
}

/// Where a thread may run; nothing if it has ended.
fn affinity(thread: u64) -> Result<Option<CpuList>, Failure> {
    let Some(id) = thread_id(thread) else { return Ok(None) };
    match sched_getaffinity(Some(id)) {
        Ok(set) => {
            let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
            Ok(Some(all.filter_map(|cpu| u32::try_from(cpu).ok()).collect()))
        }
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(not_pinned(&format!("read where thread {thread} may run"), &error)),
    }
}

fn bind(thread: u64, cpus: &CpuList) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| cpu as usize) {
        if cpu >= CpuSet::MAX_CPU {
            let title = format!("CPU {cpu} is beyond the {} that can be bound to", CpuSet::MAX_CPU);
            return Err(Failure::new(FailureClass::NotPinned, title));
        }
        set.set(cpu);
    }
    let Some(id) = thread_id(thread) else { return Ok(()) };
    match sched_setaffinity(Some(id), &set) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(not_pinned(&format!("bind thread {thread} to CPU {cpus}"), &error)),
    }
}

fn thread_id(thread: u64) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(thread).ok()?)
}

fn not_pinned(doing: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureClass::NotPinned, format!("failed to {doing}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn list(text: &str) -> CpuList {
        CpuList::parse(text).unwrap()
    }

    fn own() -> (u64, CpuList) {
        let id = u64::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        (id, affinity(id).unwrap().unwrap())
    }

    /// What [`pin`] does to this test's own process, whose second thread stands for a vCPU.
    fn pinned(vcpus: &[CpuList]) -> Result<(CpuList, CpuList), Failure> {
        let (stop, stopped) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(own().0).unwrap();
            _ = stopped.recv();
            own().1
        });
        let id = told.recv().unwrap();
        let all = own().1;
        let threads = vec![id; vcpus.len()];
        let placement =
            Placement { vcpus: vcpus.to_vec(), emulator: all.clone(), ..Placement::default() };
        let outcome = pin(std::process::id(), &threads, &placement);
        drop(stop);
        let there = thread.join().unwrap();
        outcome.map(|()| (there, own().1))
    }

    #[test]
    fn threads_are_where_they_were_put_and_one_of_several_vcpus_only_once() {
        let all = own().1;
        let last = list(&all.iter().last().unwrap().to_string());
        assert_eq!(pinned(std::slice::from_ref(&last)).unwrap(), (last.clone(), all.clone()));
        let first = list(&all.first().unwrap().to_string());
        assert_eq!(pinned(&[first.clone(), last]).unwrap(), (first, all));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_told_with_what_is() {
        let failure = pinned(&[list("0,900")]).unwrap_err();
        assert_eq!(failure.class, FailureClass::NotPinned);
        assert!(failure.title.contains("wanted CPU 0,900, found 0"), "{failure}");
        assert!(pinned(&[list("900")]).unwrap_err().title.contains("failed to bind thread"));
    }

    #[test]
    fn a_thread_of_another_process_is_no_vcpu() {
        let vcpus = vec![list("0")];
        let placement = Placement { vcpus, emulator: own().1, ..Placement::default() };
        let failure = pin(std::process::id(), &[1], &placement).unwrap_err();
        assert_eq!(failure.title, "vCPU thread 1 is not a thread of QEMU");
        assert!(pin(std::process::id(), &[], &placement).is_err());
    }
}
