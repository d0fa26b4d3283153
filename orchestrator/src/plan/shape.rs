//! A topology in words.

use kduel_protocol::{Topology, TopologyNode, ranges};

use crate::text::count;
use crate::units;

/// In one line: `14 of 16 CPUs: 2 sockets x 8 cores, 2048 MiB, 2 nodes`.
pub fn summary(topology: &Topology) -> String {
    let (cpus, possible) = (topology.cpus(), topology.possible_cpus());
    let all = count(possible as usize, "CPU");
    let cpus = if cpus == possible { all } else { format!("{cpus} of {all}") };
    let levels = [
        (topology.sockets, "socket"),
        (topology.dies, "die"),
        (topology.cores, "core"),
        (topology.threads, "thread"),
    ];
    let several: Vec<String> = levels
        .into_iter()
        .filter(|(n, _)| *n > 1)
        .map(|(n, name)| count(n as usize, name))
        .collect();
    let is_plain = several.len() <= 1 && topology.cores == possible;
    let shape = if is_plain { String::new() } else { format!(": {}", several.join(" x ")) };
    let nodes = match topology.nodes.len() {
        0 => String::new(),
        n => format!(", {}", count(n, "node")),
    };
    format!("{cpus}{shape}, {} MiB{nodes}", topology.memory_mib)
}

/// What [`summary`] leaves out: caches that were asked for, and a table of the nodes.
pub fn details(topology: &Topology) -> Vec<String> {
    let mut lines = Vec::new();
    let caches: Vec<String> = topology
        .caches
        .iter()
        .map(|shared| format!("{} by the CPUs of a {}", shared.cache.name(), shared.by.name()))
        .collect();
    if !caches.is_empty() {
        lines.push(format!("caches shared: {}", caches.join(", ")));
    }
    lines.extend(table(topology));
    lines
}

/// A row for each node; columns with nothing in them are left out.
fn table(topology: &Topology) -> Vec<String> {
    if topology.nodes.is_empty() {
        return Vec::new();
    }
    let headings = ["node", "CPUs", "memory", "distances", "latencies, ns", "bandwidths, per s"];
    let rows = topology.nodes.iter().enumerate().map(|(id, node)| row(topology, id, node));
    let rows: Vec<[String; 6]> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    let is_used = |column: usize| rows.iter().skip(1).any(|row| !row[column].is_empty());
    let columns: Vec<(usize, usize)> = (0..headings.len())
        .filter(|column| is_used(*column))
        .map(|column| (column, rows.iter().map(|row| row[column].len()).max().unwrap_or(0)))
        .collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = columns
            .iter()
            .map(|(column, width)| {
                let cell = if row[*column].is_empty() { "-" } else { &row[*column] };
                format!("{cell:width$}")
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn row(topology: &Topology, id: usize, node: &TopologyNode) -> [String; 6] {
    let words = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let memory = match node.memory_mib {
        0 => String::new(),
        mib => units::size(mib << 20),
    };
    let distances = topology.distances.get(id).map(|row| words(row)).unwrap_or_default();
    let columns = 0..topology.nodes.len();
    let latencies = columns.clone().map(|to| topology.latency(id, to).map(|ns| ns.to_string()));
    let bandwidths =
        columns.map(|to| topology.bandwidth(id, to).map(|mib| units::size(u64::from(mib) << 20)));
    [id.to_string(), ranges(&node.cpus), memory, distances, figures(latencies), figures(bandwidths)]
}

/// Nothing if there is none.
fn figures(figures: impl Iterator<Item = Option<String>>) -> String {
    let figures: Vec<Option<String>> = figures.collect();
    if figures.iter().all(Option::is_none) {
        return String::new();
    }
    let shown = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "-".to_owned()));
    shown.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use kduel_protocol::{Cache, Group, SharedCache};

    use super::*;
    use crate::plan::topology::named;

    fn shown(topology: &Topology) -> String {
        std::iter::once(summary(topology)).chain(details(topology)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn plain_guests_take_few_words() {
        let of = |name: &str| shown(&named(name).unwrap());
        assert_eq!(of("1s1c"), "1 CPU, 512 MiB");
        assert_eq!(of("1s2c"), "2 CPUs, 512 MiB");
        assert_eq!(of("1s4c2t"), "8 CPUs: 4 cores x 2 threads, 1024 MiB");
    }

    #[test]
    fn nodes_are_a_table() {
        insta::assert_snapshot!(shown(&named("numa-q-16").unwrap()));
        let node = |cpus: std::ops::Range<u32>, memory_mib| TopologyNode {
            cpus: cpus.collect(),
            memory_mib,
        };
        let tiers = Topology {
            sockets: 2,
            dies: 2,
            threads: 2,
            present: Some(6),
            caches: vec![SharedCache { cache: Cache::L2, by: Group::Die }],
            memory_mib: 768,
            nodes: vec![node(0..4, 512), node(4..8, 0), node(0..0, 256)],
            distances: vec![vec![10, 21, 31], vec![21, 10, 41], vec![31, 41, 10]],
            latencies: vec![vec![100, 400], vec![250, 300]],
            bandwidths: vec![vec![20480, 5120], vec![10240, 6144]],
            ..Topology::default()
        };
        insta::assert_snapshot!(shown(&tiers));
    }
}
