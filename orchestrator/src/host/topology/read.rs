use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{CpuList, HostCpu, HostNode, HostTopology};

/// Cores this much slower than the fastest of their kind are another kind. Favoured cores of one kind
/// differ by a tenth at most.
const OTHER_KIND: f64 = 0.8;

/// Folders of processors below the root.
const CPUS: &str = "sys/devices/system/cpu";

impl HostTopology {
    /// Reads the host below `root`, which is `/` outside of tests. `allotted` is the number of CPUs
    /// that a batch system says this process has.
    pub fn read(root: &Path, allotted: Option<u32>) -> Self {
        let files = Files(root);
        let own = files.status("Cpus_allowed_list:");
        let online = files.list(&format!("{CPUS}/online")).filter(|list| !list.is_empty());
        let online = online.or_else(|| files.processors()).or_else(|| own.clone());
        let mut limits = Vec::new();
        let usable = usable(&files, &online.clone().unwrap_or_default(), own, &mut limits);
        let mut nodes = Vec::new();
        let node_of = files.nodes(&mut nodes);
        let classes = classes(&files, &online.clone().unwrap_or_default());
        let isolated = files.list(&format!("{CPUS}/isolated")).unwrap_or_default();
        let tickless = files.list(&format!("{CPUS}/nohz_full")).unwrap_or_default();
        let cpus = online.iter().flat_map(CpuList::iter).map(|id| HostCpu {
            node: node_of.get(&id).copied(),
            class: classes.get(&id).copied().unwrap_or(0),
            usable: usable.contains(id),
            isolated: isolated.contains(id),
            tickless: tickless.contains(id),
            ..files.cpu(id)
        });
        if let Some(allotted) = allotted
            && (allotted as usize) < usable.len()
        {
            limits.push(format!(
                "Slurm allotted {allotted} CPUs but lets this process run on {}: CPUs of other jobs \
                 may be among them",
                usable.len()
            ));
        }
        let cpus = cpus.collect();
        Self {
            cpus,
            offline: files.list(&format!("{CPUS}/offline")).unwrap_or_default(),
            nodes,
            limits,
        }
    }
}

/// Those of `online` that neither the process's affinity nor a cpuset keeps it from.
fn usable(
    files: &Files<'_>,
    online: &CpuList,
    own: Option<CpuList>,
    limits: &mut Vec<String>,
) -> CpuList {
    let mut left = online.clone();
    let masks = [("this process's CPU affinity", own), ("its cgroup's cpuset", files.cpuset())];
    for (what, mask) in masks {
        let Some(mask) = mask else { continue };
        let both: CpuList = left.iter().filter(|cpu| mask.contains(*cpu)).collect();
        // A cpuset of another hierarchy than the one that counts.
        if both.is_empty() {
            continue;
        }
        if both.len() < left.len() {
            limits.push(format!("{what} leaves CPUs {both} of {online}"));
        }
        left = both;
    }
    left
}

/// The kind of each core where there are several, 0 for the fastest.
fn classes(files: &Files<'_>, online: &CpuList) -> BTreeMap<u32, u32> {
    let of_kind = |kind: &str| files.list(&format!("sys/devices/{kind}/cpus"));
    if let (Some(fast), Some(slow)) = (of_kind("cpu_core"), of_kind("cpu_atom")) {
        return fast.iter().map(|id| (id, 0)).chain(slow.iter().map(|id| (id, 1))).collect();
    }
    let speeds = |file: &str| -> Option<Vec<(u32, u64)>> {
        online
            .iter()
            .map(|id| Some((id, files.number(&format!("{CPUS}/cpu{id}/{file}"))?)))
            .collect()
    };
    let found = speeds("cpu_capacity").or_else(|| speeds("cpufreq/cpuinfo_max_freq"));
    let mut speeds = found.unwrap_or_default();
    speeds.sort_by_key(|(_, speed)| std::cmp::Reverse(*speed));
    let mut class = 0;
    let mut fastest = speeds.first().map_or(0, |(_, speed)| *speed);
    let mut classes = BTreeMap::new();
    for (id, speed) in speeds {
        if (speed as f64) < fastest as f64 * OTHER_KIND {
            class += 1;
            fastest = speed;
        }
        classes.insert(id, class);
    }
    classes
}

/// Files below a root.
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn list(&self, path: &str) -> Option<CpuList> {
        CpuList::parse(&self.text(path)?)
    }

    fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.trim().parse().ok()
    }

    /// A list of this process's own status.
    fn status(&self, name: &str) -> Option<CpuList> {
        let status = self.text("proc/self/status")?;
        CpuList::parse(status.lines().find_map(|line| line.strip_prefix(name))?)
    }

    fn processors(&self) -> Option<CpuList> {
        let text = self.text("proc/cpuinfo")?;
        let lines = text.lines().filter_map(|line| line.strip_prefix("processor"));
        let list: CpuList =
            lines.filter_map(|line| line.split_once(':')?.1.trim().parse().ok()).collect();
        (!list.is_empty()).then_some(list)
    }

    fn cpu(&self, id: u32) -> HostCpu {
        let folder = format!("{CPUS}/cpu{id}");
        let number = |file: &str| self.number(&format!("{folder}/topology/{file}")).unwrap_or(0);
        let siblings = ["thread_siblings_list", "core_cpus_list"]
            .iter()
            .find_map(|file| self.list(&format!("{folder}/topology/{file}")));
        HostCpu {
            id,
            package: number("physical_package_id"),
            die: number("die_id"),
            core: siblings.and_then(|list| list.first()).unwrap_or(id),
            cache: self.largest_cache(&folder),
            ..HostCpu::default()
        }
    }

    fn largest_cache(&self, folder: &str) -> Option<u32> {
        let caches = (0..8).filter_map(|index| {
            let level: u32 = self.number(&format!("{folder}/cache/index{index}/level"))?;
            let shared = self.list(&format!("{folder}/cache/index{index}/shared_cpu_list"))?;
            Some((level, shared.first()?))
        });
        caches.max_by_key(|(level, _)| *level).map(|(_, first)| first)
    }

    /// Adds the nodes; gives the node of each CPU.
    fn nodes(&self, nodes: &mut Vec<HostNode>) -> BTreeMap<u32, u32> {
        let folder = "sys/devices/system/node";
        let entries = fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten();
        let mut ids: Vec<u32> = entries
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
            .collect();
        ids.sort_unstable();
        let allowed = self.status("Mems_allowed_list:");
        let mut node_of = BTreeMap::new();
        for id in ids {
            let cpus = self.list(&format!("{folder}/node{id}/cpulist")).unwrap_or_default();
            node_of.extend(cpus.iter().map(|cpu| (cpu, id)));
            let distances = self.text(&format!("{folder}/node{id}/distance")).unwrap_or_default();
            nodes.push(HostNode {
                id,
                memory_mib: self.node_memory(&format!("{folder}/node{id}/meminfo")),
                distances: distances.split_whitespace().filter_map(|d| d.parse().ok()).collect(),
                usable: allowed.as_ref().is_none_or(|allowed| allowed.contains(id)),
            });
        }
        node_of
    }

    fn node_memory(&self, path: &str) -> Option<u64> {
        let text = self.text(path)?;
        let line = text.lines().find(|line| line.contains("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().nth_back(1)?.parse().ok()?;
        Some(kib / 1024)
    }

    /// What this process's cgroup leaves it, by the nearest folder that says so.
    fn cpuset(&self) -> Option<CpuList> {
        let text = self.text("proc/self/cgroup")?;
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let (base, names): (_, &[&str]) = if controllers.is_empty() {
                ("sys/fs/cgroup", &["cpuset.cpus.effective"])
            } else if controllers.split(',').any(|name| name == "cpuset") {
                ("sys/fs/cgroup/cpuset", &["cpuset.effective_cpus", "cpuset.cpus"])
            } else {
                return None;
            };
            // In a container the path may be one of the host's, which is not to be seen here.
            let relative: PathBuf = Path::new(path.trim_start_matches('/')).to_owned();
            relative.ancestors().filter(|part| !part.starts_with("..")).find_map(|part| {
                let folder = Path::new(base).join(part);
                let read = |name: &&str| self.list(folder.join(name).to_str()?);
                names.iter().find_map(read).filter(|list| !list.is_empty())
            })
        })
    }
}
