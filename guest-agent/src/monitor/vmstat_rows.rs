//! The columns of procps's vmstat, row by row.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use kduel_protocol::{Event, Monitor};

/// In the order of procps.
pub const COLUMNS: [&str; 17] = [
    "r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy",
    "id", "wa", "st",
];

/// Rows per line of the protocol.
const CHUNK: usize = 100;

/// What is read at one moment.
#[derive(Debug, Clone, Default)]
struct Moment {
    at_ns: u64,
    /// First numbers of lines, by the lines' names.
    stat: BTreeMap<String, f64>,
    /// The line `cpu`.
    cpu: Vec<f64>,
    memory: BTreeMap<String, f64>,
    paged: BTreeMap<String, f64>,
}

/// Collects rows.
#[derive(Debug)]
pub struct VmstatRows {
    interval_ns: u64,
    begin_ns: u64,
    last: Moment,
    rows: Vec<Vec<f64>>,
}

impl VmstatRows {
    /// Begins at `now_ns`.
    pub fn begin(root: &Path, interval_ns: u64, now_ns: u64) -> io::Result<Self> {
        let last = Moment::read(root, now_ns)?;
        Ok(Self { interval_ns, begin_ns: now_ns, last, rows: Vec::new() })
    }

    /// When the next row is due.
    pub fn due_ns(&self) -> u64 {
        self.last.at_ns + self.interval_ns
    }

    /// Takes a row.
    pub fn take(&mut self, root: &Path, now_ns: u64) {
        let Ok(now) = Moment::read(root, now_ns) else { return };
        let at_ms = (now_ns - self.begin_ns) as f64 / 1e6;
        self.rows.push(std::iter::once(at_ms).chain(row(&self.last, &now)).collect());
        self.last = now;
    }

    /// The last row: a rest of less than half an interval would be told by a few ticks, and is left
    /// out unless there is nothing else.
    pub fn end(&mut self, root: &Path, now_ns: u64) {
        let rest_ns = now_ns - self.last.at_ns;
        if rest_ns > 0 && (self.rows.is_empty() || rest_ns >= self.interval_ns / 2) {
            self.take(root, now_ns);
        }
    }

    /// All rows.
    pub fn events(&self, trial: u32) -> Vec<Event> {
        let columns = || COLUMNS.map(str::to_owned).to_vec();
        let event = |rows: &[Vec<f64>]| Event::Rows {
            trial,
            monitor: Monitor::Vmstat,
            columns: columns(),
            rows: rows.to_vec(),
        };
        self.rows.chunks(CHUNK).map(event).collect()
    }
}

impl Moment {
    fn read(root: &Path, at_ns: u64) -> io::Result<Self> {
        let text = |name: &str| fs::read_to_string(root.join("proc").join(name));
        let stat = text("stat")?;
        let cpu = stat.lines().find_map(|line| line.strip_prefix("cpu "));
        let cpu = cpu.map(|rest| rest.split_whitespace().filter_map(|w| w.parse().ok()).collect());
        Ok(Self {
            at_ns,
            cpu: cpu.unwrap_or_default(),
            stat: numbers(&stat),
            memory: numbers(&text("meminfo")?),
            // Absent where the kernel was built without it.
            paged: text("vmstat").map(|text| numbers(&text)).unwrap_or_default(),
        })
    }
}

/// First number of every line, by the line's first word.
fn numbers(text: &str) -> BTreeMap<String, f64> {
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.trim_end_matches(':');
        Some((name.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

/// In the units of procps: tasks, KiB, KiB/s, 1/s and percent.
fn row(before: &Moment, now: &Moment) -> [f64; COLUMNS.len()] {
    let seconds = (now.at_ns - before.at_ns) as f64 / 1e9;
    let of = |numbers: &BTreeMap<String, f64>, name: &str| {
        numbers.get(name).copied().unwrap_or_default()
    };
    let memory = |name| of(&now.memory, name);
    let grown = |numbers: fn(&Moment) -> &BTreeMap<String, f64>, name: &str| {
        ((of(numbers(now), name) - of(numbers(before), name)) / seconds).max(0.0)
    };
    let paged = |name| grown(|moment| &moment.paged, name);
    let counted = |name| grown(|moment| &moment.stat, name);
    let page_kib = rustix::param::page_size() as f64 / 1024.0;
    let ticks = |at: usize| {
        let of = |moment: &Moment| moment.cpu.get(at).copied().unwrap_or_default();
        (of(now) - of(before)).max(0.0)
    };
    // Guest time is within user time already.
    let all: f64 = (0..8).map(ticks).sum();
    let percent = |places: &[usize]| match all > 0.0 {
        true => places.iter().map(|at| ticks(*at)).sum::<f64>() * 100.0 / all,
        false => 0.0,
    };
    [
        // Whoever reads this runs, too.
        (of(&now.stat, "procs_running") - 1.0).max(0.0),
        of(&now.stat, "procs_blocked"),
        memory("SwapTotal") - memory("SwapFree"),
        memory("MemFree"),
        memory("Buffers"),
        memory("Cached") + memory("SReclaimable"),
        paged("pswpin") * page_kib,
        paged("pswpout") * page_kib,
        paged("pgpgin"),
        paged("pgpgout"),
        counted("intr"),
        counted("ctxt"),
        percent(&[0, 1]),
        percent(&[2, 5, 6]),
        percent(&[3]),
        percent(&[4]),
        percent(&[7]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, ctxt: u32, idle: u32) {
        fs::create_dir_all(root.join("proc")).unwrap();
        let stat = format!(
            "cpu  10 0 10 {idle} 0 0 0 0 0 0\ncpu0 1 2 3\nintr 100 7 7\nctxt {ctxt}\n\
             procs_running 5\nprocs_blocked 1\n"
        );
        fs::write(root.join("proc/stat"), stat).unwrap();
        let memory = "MemFree: 1000 kB\nBuffers: 5 kB\nCached: 50 kB\nSwapTotal: 8 kB\n\
                      SwapFree: 3 kB\nSReclaimable: 7 kB\n";
        fs::write(root.join("proc/meminfo"), memory).unwrap();
    }

    #[test]
    fn rates_are_per_second_and_shares_in_percent() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), 1000, 100);
        let mut rows = VmstatRows::begin(root.path(), 1_000_000_000, 0).unwrap();
        assert_eq!(rows.due_ns(), 1_000_000_000);
        write(root.path(), 5000, 300);
        rows.take(root.path(), 2_000_000_000);
        // Too short a rest for a row of its own.
        rows.end(root.path(), 2_100_000_000);
        let events = rows.events(3);
        let [Event::Rows { columns, rows, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(rows.len(), 1);
        let value =
            |name: &str| rows[0][1 + columns.iter().position(|column| column == name).unwrap()];
        assert_eq!((rows[0][0], value("r"), value("b"), value("cs")), (2000.0, 4.0, 1.0, 2000.0));
        assert_eq!((value("swpd"), value("free"), value("cache")), (5.0, 1000.0, 57.0));
        assert_eq!((value("id"), value("us")), (100.0, 0.0));
    }
}
