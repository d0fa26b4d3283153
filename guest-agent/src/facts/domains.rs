//! How the scheduler groups the CPUs.

use kduel_protocol::{DomainFacts, ranges};

use super::Source;

/// The scheduler's domains by level, from `/proc/schedstat`; none where the kernel does not tell them.
///
/// Their names are there since version 17. Before, debugfs has them, of later kernels only if they
/// were asked to be verbose.
pub fn domains(source: &Source<'_>) -> Vec<DomainFacts> {
    let table = source.text("proc/schedstat");
    let mut found: Vec<DomainFacts> = Vec::new();
    let mut cpu = "";
    for line in table.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first.starts_with("cpu") {
            cpu = first;
        }
        let Some(Ok(level)) = first.strip_prefix("domain").map(str::parse::<u32>) else { continue };
        let (Some(second), third) = (words.next(), words.next().unwrap_or_default()) else {
            continue;
        };
        let is_named = second.starts_with(|c: char| c.is_ascii_uppercase());
        let (name, mask) = if is_named {
            (second.to_owned(), third)
        } else {
            (source.text(&format!("sys/kernel/debug/sched/domains/{cpu}/{first}/name")), second)
        };
        let Some(span) = mask_cpus(mask).map(|cpus| ranges(&cpus)) else { continue };
        let name = Some(name).filter(|name| !name.is_empty());
        match found.iter_mut().find(|known| known.level == level && known.name == name) {
            Some(known) if known.spans.contains(&span) => {}
            Some(known) => known.spans.push(span),
            None => found.push(DomainFacts { level, name, spans: vec![span] }),
        }
    }
    found.sort_by_key(|domain| domain.level);
    found
}

/// The CPUs in a mask of the kernel: hex digits, the highest CPU first, a comma every 32 CPUs.
fn mask_cpus(mask: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    let mut first = 0;
    for digit in mask.chars().rev().filter(|c| *c != ',') {
        let bits = digit.to_digit(16)?;
        cpus.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| first + bit));
        first += 4;
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(u32, Option<String>, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let domains = domains(&Source(root.path())).into_iter();
        domains.map(|domain| (domain.level, domain.name, domain.spans.join(" "))).collect()
    }

    #[test]
    fn names_are_in_the_table_of_new_kernels() {
        let table = "version 17\ntimestamp 1\ncpu0 0 0 0\ndomain0 SMT 0003 0 0\ndomain1 PKG 000f 0\n\
                     cpu2 0 0 0\ndomain0 SMT 000c 0 0\ndomain1 PKG 000f 0\n";
        let expected = [
            (0, Some("SMT".to_owned()), "0-1 2-3".to_owned()),
            (1, Some("PKG".to_owned()), "0-3".to_owned()),
        ];
        assert_eq!(found(&[("proc/schedstat", table)]), expected);
    }

    #[test]
    fn names_of_old_kernels_are_in_debugfs_if_anywhere() {
        let table =
            "version 15\ntimestamp 1\ncpu0 0 0\ndomain0 ff 0 0\ncpu33 0\ndomain0 2,000000ff 0";
        let name = ("sys/kernel/debug/sched/domains/cpu0/domain0/name", "MC\n");
        let named = (0, Some("MC".to_owned()), "0-7".to_owned());
        let nameless = (0, None, "0-7,33".to_owned());
        assert_eq!(found(&[("proc/schedstat", table), name]), [named, nameless]);
        assert_eq!(found(&[]), []);
    }
}
