//! Counters of `/proc/stat` and `/proc/vmstat`.

use std::fs;
use std::io;
use std::path::Path;

use super::Counters;

/// `/proc/stat` counts CPU time in hundredths of a second on every architecture.
const MS_PER_TICK: f64 = 10.0;

/// Fields of the line `cpu`, by their place in it.
const CPU_FIELDS: [(usize, &str); 4] =
    [(0, "cpu-user-ms"), (2, "cpu-system-ms"), (3, "cpu-idle-ms"), (7, "cpu-steal-ms")];

/// Lines of `/proc/stat` whose first number is a total.
const TOTALS: [&str; 4] = ["ctxt", "processes", "intr", "softirq"];

/// Reads both files below `root`.
pub fn read(root: &Path) -> io::Result<Counters> {
    let mut counters = stat(&fs::read_to_string(root.join("proc/stat"))?);
    // Absent where the kernel was built without it.
    if let Ok(text) = fs::read_to_string(root.join("proc/vmstat")) {
        counters.extend(vmstat(&text));
    }
    Ok(counters)
}

/// What the hypervisor took from the CPUs since the boot, in milliseconds.
pub fn steal_ms(root: &Path) -> Option<f64> {
    stat(&fs::read_to_string(root.join("proc/stat")).ok()?).get("cpu-steal-ms").copied()
}

fn stat(text: &str) -> Counters {
    let mut counters = Counters::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let numbers: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        if name == "cpu" {
            let named = CPU_FIELDS.iter().filter_map(|(at, name)| Some((name, numbers.get(*at)?)));
            counters.extend(named.map(|(name, ticks)| ((*name).to_owned(), ticks * MS_PER_TICK)));
        } else if let (true, Some(total)) = (TOTALS.contains(&name), numbers.first()) {
            counters.insert(name.to_owned(), *total);
        }
    }
    counters
}

fn vmstat(text: &str) -> Counters {
    let wanted = |name: &str| matches!(name, "pgfault" | "pgmajfault") || name.starts_with("numa_");
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| wanted(name))
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_absent_where_the_kernel_does_not_tell() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(steal_ms(root.path()), None);
        fs::create_dir(root.path().join("proc")).unwrap();
        for (text, steal) in [("cpu  1 1 1 1 1 1 1 7 0 0\n", Some(70.0)), ("cpu  1 1 1 1\n", None)]
        {
            fs::write(root.path().join("proc/stat"), text).unwrap();
            assert_eq!(steal_ms(root.path()), steal);
        }
    }

    #[test]
    fn both_files_are_read() {
        let text = "cpu  10 1 20 300 0 0 0 7 0 0\ncpu0 1 2 3\nintr 99 1 2\nctxt 5\nprocesses 4\n\
                    softirq 77 1\nbtime 1\n";
        let found = stat(text);
        assert_eq!(found["cpu-user-ms"], 100.0);
        assert_eq!(found["cpu-system-ms"], 200.0);
        assert_eq!(found["cpu-idle-ms"], 3000.0);
        assert_eq!(found["cpu-steal-ms"], 70.0);
        assert_eq!((found["ctxt"], found["intr"], found["softirq"]), (5.0, 99.0, 77.0));
        assert!(!found.contains_key("btime"));
        let found = vmstat("pgfault 3\npgmajfault 1\nnuma_hit 8\nnr_free_pages 7\n");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["numa_hit", "pgfault", "pgmajfault"]);
    }
}
