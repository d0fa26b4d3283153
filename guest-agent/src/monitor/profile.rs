//! Sampled call chains of all CPUs, taken by the parent of the workload's process: what is measured
//! forks no event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use kduel_protocol::Event;

use super::symbols::Symbols;
use crate::clock::SECOND_NS;
use crate::sys::{Every, PerfEvent, Sampler};

/// Room for samples that are not fetched yet, in pages of each CPU.
const PAGES: usize = 256;

/// Bytes of chains in one line of the protocol.
const CHUNK: usize = 24 * 1024;

const CYCLES: PerfEvent = PerfEvent::Hardware(0);
const CPU_CLOCK: PerfEvent = PerfEvent::Software(0);

/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE`.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Above it chains have marks of where the kernel's part begins, and no addresses.
const MARKS: u64 = 4095_u64.wrapping_neg();

/// `PERF_RECORD_MISC_CPUMODE_MASK` and `_USER`.
const MODE: u16 = 7;
const USER: u16 = 2;

/// Samples by process, mode and addresses, the innermost first.
type Seen = BTreeMap<(u32, bool, Vec<u64>), u64>;

/// Samplers of all CPUs.
#[derive(Debug)]
pub struct Profile {
    samplers: Vec<Sampler>,
    clock: &'static str,
    period_ns: u64,
    /// Processes that have nothing to do with the workload.
    others: BTreeSet<u32>,
    seen: Seen,
    lost: u64,
}

impl Profile {
    /// Before the workload's process is started: who is there already is not the workload's.
    pub fn open(root: &Path, period_ns: u64) -> Result<Self, String> {
        let others = processes(root);
        let profile = |event, every, clock| -> std::io::Result<Self> {
            let open = |cpu| Sampler::open(event, every, cpu, PAGES);
            let samplers = cpus(root).into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
            let others = others.clone();
            Ok(Self { samplers, clock, period_ns, others, seen: Seen::new(), lost: 0 })
        };
        let frequency = Every::PerSecond((SECOND_NS / period_ns.max(1)).max(1));
        profile(CYCLES, frequency, "cycles")
            .or_else(|_| profile(CPU_CLOCK, Every::Events(period_ns), "cpu-clock"))
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ENOSYS) => "the kernel was built without CONFIG_PERF_EVENTS".to_owned(),
                _ => format!("perf_event_open: {error}"),
            })
    }

    /// Switches all on or off.
    pub fn switch(&self, on: bool) {
        for sampler in &self.samplers {
            let _ = sampler.switch(on);
        }
    }

    /// Fetches what there is.
    pub fn fetch(&mut self) {
        let (seen, lost) = (&mut self.seen, &mut self.lost);
        for sampler in &mut self.samplers {
            sampler.drain(|kind, misc, record| match kind {
                SAMPLE => {
                    if let Some((process, chain)) = sample(record) {
                        let is_user = misc & MODE == USER;
                        *seen.entry((process, is_user, chain)).or_default() += 1;
                    }
                }
                LOST => *lost += word(record, 8).unwrap_or_default(),
                _ => {}
            });
        }
    }

    /// All samples, with names.
    pub fn events(&self, root: &Path, trial: u32) -> Result<Vec<Event>, String> {
        static SYMBOLS: OnceLock<Result<Symbols, String>> = OnceLock::new();
        let symbols = SYMBOLS.get_or_init(|| Symbols::read(root)).as_ref().map_err(Clone::clone)?;
        let threads = kernel_threads(root);
        let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
        for ((process, is_user, chain), count) in &self.seen {
            if *process == 0 {
                continue;
            }
            let is_other = self.others.contains(process) || threads.contains(process);
            let whose = if is_other { "other tasks" } else { "own" };
            *stacks.entry(named(symbols, whose, *is_user, chain)).or_default() += count;
        }
        Ok(self.lines(trial, stacks))
    }

    fn lines(&self, trial: u32, stacks: BTreeMap<String, u64>) -> Vec<Event> {
        let event = |stacks, lost| Event::Stacks {
            trial,
            period_ns: self.period_ns as f64,
            clock: self.clock.to_owned(),
            stacks,
            lost,
        };
        let (mut events, mut chunk, mut bytes) = (Vec::new(), BTreeMap::new(), 0);
        for (stack, count) in stacks {
            bytes += stack.len() + 16;
            chunk.insert(stack, count);
            if bytes > CHUNK {
                events.push(event(std::mem::take(&mut chunk), 0));
                bytes = 0;
            }
        }
        events.push(event(chunk, self.lost));
        events
    }
}

/// Names from the outermost function on, behind whose work it is.
fn named(symbols: &Symbols, whose: &str, is_user: bool, chain: &[u64]) -> String {
    let mut names = vec![whose];
    if is_user {
        names.push("[user]");
        return names.join(";");
    }
    for (depth, address) in chain.iter().enumerate().rev() {
        // Behind the innermost come return addresses: the call is before them.
        let at = if depth == 0 { *address } else { address - 1 };
        names.push(symbols.name(at).unwrap_or("[unknown]"));
    }
    names.join(";")
}

/// Process and chain of a sample: address, process and thread, length, addresses.
fn sample(record: &[u8]) -> Option<(u32, Vec<u64>)> {
    let process = u32::from_ne_bytes(*record.get(8..)?.first_chunk()?);
    let length = usize::try_from(word(record, 16)?).ok()?;
    let addresses = (0..length).map_while(|at| word(record, 24 + at * 8));
    let mut chain: Vec<u64> = addresses.filter(|a| *a < MARKS && *a != 0).collect();
    if chain.is_empty() {
        chain.push(word(record, 0)?);
    }
    Some((process, chain))
}

fn word(record: &[u8], at: usize) -> Option<u64> {
    record.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

fn cpus(root: &Path) -> Vec<u32> {
    let text = fs::read_to_string(root.join("sys/devices/system/cpu/online")).unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse::<u32>().ok()?)
    };
    let cpus: Vec<u32> = text.trim().split(',').filter_map(range).flatten().collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

fn processes(root: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// All that the kernel's thread 2 has started.
fn kernel_threads(root: &Path) -> BTreeSet<u32> {
    let is_thread = |process: &u32| {
        let stat = fs::read_to_string(root.join(format!("proc/{process}/stat"))).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        (rest.split_whitespace().nth(1)? == "2").then_some(())
    };
    processes(root).into_iter().filter(|process| is_thread(process).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(process: u32, address: u64, chain: &[u64]) -> Vec<u8> {
        let mut bytes = address.to_ne_bytes().to_vec();
        bytes.extend(process.to_ne_bytes());
        bytes.extend(process.to_ne_bytes());
        bytes.extend((chain.len() as u64).to_ne_bytes());
        chain.iter().for_each(|address| bytes.extend(address.to_ne_bytes()));
        bytes
    }

    #[test]
    fn marks_are_no_addresses_and_a_sample_without_chain_has_its_address() {
        let kernel = 128_u64.wrapping_neg();
        assert_eq!(sample(&record(7, 1, &[kernel, 1, 2])), Some((7, vec![1, 2])));
        assert_eq!(sample(&record(7, 5, &[])), Some((7, vec![5])));
        assert_eq!(sample(&[0; 10]), None, "cut off");
    }

    #[test]
    fn cpus_are_read_as_ranges() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(cpus(root.path()), [0]);
        let folder = root.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("online"), "0-2,5\n").unwrap();
        assert_eq!(cpus(root.path()), [0, 1, 2, 5]);
    }
}
