//! What this host was calibrated to, kept from run to run.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kduel_protocol::Topology;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::HostInfo;
use super::write::{host_io, write_atomically};
use crate::boot::Accel;
use crate::fault::{Failure, FailureClass};
use crate::plan::{CalibratedSeries, Plan};

/// The format of the file.
const FORMAT: &str = "kduel-calibration/1";

/// Where it holds: margins are of one host, one accelerator, one kind of guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conditions {
    /// What tells this host from others: a digest of its machine id and processor.
    pub host: String,
    /// What executes the guests.
    pub accelerator: Accel,
    /// What they look like.
    pub topology: Topology,
}

impl Conditions {
    /// Of guests with this topology on the host below `root`, which is `/` outside of tests.
    pub fn of(root: &Path, accelerator: Accel, topology: &Topology) -> Self {
        let id = fs::read_to_string(root.join("etc/machine-id")).unwrap_or_default();
        let info = HostInfo::read(root);
        let digest = Sha256::digest(format!("{}\n{}\n{}", id.trim(), info.cpu_model, info.cpus));
        let host = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { host, accelerator, topology: topology.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    conditions: Conditions,
    series: CalibratedSeries,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    format: String,
    entries: Vec<Entry>,
}

/// The file that keeps calibrations.
#[derive(Debug)]
pub struct Calibrations {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl Calibrations {
    /// Reads the file; one that is not there holds nothing.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read, or is of a newer kduel.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), entries: Vec::new() });
            }
            Err(error) => return Err(Failure::host_io("read", path, &error)),
        };
        let wrong = |why: String| {
            Failure::new(FailureClass::HostIo, format!("failed to read {}: {why}", path.display()))
                .hint("remove it, and calibrate again with `kduel run --calibrate`")
        };
        let stored: Stored =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if stored.format != FORMAT {
            return Err(wrong(format!("its format is {}, not {FORMAT}", stored.format)));
        }
        Ok(Self { path: path.to_owned(), entries: stored.entries })
    }

    /// What is known of `conditions`.
    pub fn of(&self, conditions: &Conditions) -> Vec<CalibratedSeries> {
        let own = self.entries.iter().filter(|entry| entry.conditions == *conditions);
        own.map(|entry| entry.series.clone()).collect()
    }

    /// Keeps what was found in place of what was known of the same series.
    pub fn put(&mut self, conditions: &Conditions, found: Vec<CalibratedSeries>) {
        for series in found {
            let same = |entry: &Entry| {
                entry.conditions == *conditions
                    && entry.series.workload == series.workload
                    && entry.series.metric == series.metric
            };
            self.entries.retain(|entry| !same(entry));
            self.entries.push(Entry { conditions: conditions.clone(), series });
        }
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`FailureClass::HostIo`].
    pub fn save(self) -> Result<(), Failure> {
        let stored = Stored { format: FORMAT.to_owned(), entries: self.entries };
        let text = serde_json::to_string_pretty(&stored).map_err(|error| {
            Failure::new(FailureClass::Internal, format!("failed to write calibrations: {error}"))
        })?;
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|error| host_io("create", folder, &error))?;
        }
        write_atomically(&self.path, text.as_bytes())
    }

    /// Takes into `plan` what is known of its guests on the host below `root`.
    pub fn enter(&self, plan: &mut Plan, root: &Path, accelerator: Accel) {
        for experiment in &mut plan.experiments {
            let conditions = Conditions::of(root, accelerator, &experiment.topology);
            experiment.calibrated = self.of(&conditions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::plan;

    fn series(metric: &str, margin: f64) -> CalibratedSeries {
        CalibratedSeries {
            workload: "fork-exit".into(),
            metric: metric.into(),
            margin,
            iteration_variance: 1e-4,
            boot_variance: 2e-4,
            run: "r".into(),
        }
    }

    #[test]
    fn what_was_found_is_found_again_under_the_same_conditions_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        let mut plan = plan(&["base", "patched"], 1);
        let topology = plan.experiments[0].topology.clone();
        let here = Conditions::of(folder.path(), Accel::Tcg, &topology);
        let mut known = Calibrations::load(&path).unwrap();
        known.put(&here, vec![series("time", 0.2), series("throughput", 0.1)]);
        known.put(&here, vec![series("time", 0.04)]);
        known.save().unwrap();
        let known = Calibrations::load(&path).unwrap();
        assert_eq!(known.of(&here).len(), 2);
        assert!(known.of(&Conditions { accelerator: Accel::Kvm, ..here.clone() }).is_empty());
        let larger = Topology { cores: 2, ..topology };
        assert!(known.of(&Conditions { topology: larger, ..here }).is_empty());
        known.enter(&mut plan, folder.path(), Accel::Tcg);
        assert_eq!(plan.experiments[0].calibrated[1], series("time", 0.04));
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/machine-id"), "another\n").unwrap();
        known.enter(&mut plan, folder.path(), Accel::Tcg);
        assert!(plan.experiments[0].calibrated.is_empty());
    }

    #[test]
    fn a_file_of_a_newer_kduel_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        fs::write(&path, r#"{"format": "kduel-calibration/2", "entries": []}"#).unwrap();
        let failure = Calibrations::load(&path).unwrap_err();
        assert!(failure.title.contains("kduel-calibration/2"), "{failure}");
        fs::write(&path, "{").unwrap();
        assert!(Calibrations::load(&path).is_err());
    }
}
