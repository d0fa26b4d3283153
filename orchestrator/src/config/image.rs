use kduel_protocol::{KERNBENCH, Topology};
use serde_json::Value;

use super::check::Check;
use super::experiment::Terms;
use super::node::{Entry, Node};
use super::workloads::WorkloadUse;
use crate::plan::PlannedImage;
use crate::provision::image::{BUILT_IN, Recipe};

/// What a guest with an image needs at least: what is changed in it stays in memory.
const LEAST_MIB: u64 = 512;

/// What a whole tinyconfig kernel takes in memory besides, objects and compilers.
const SMALL_MIB: u64 = 1024;

/// Of a defconfig kernel.
const LARGE_MIB: u64 = 4096;

/// Reads `image:`, a name or a file.
pub fn read(check: &mut Check<'_>, node: &Node) -> Option<PlannedImage> {
    let name = check.text(node, "`image`")?;
    match Recipe::find(&name, check.files.folder) {
        Ok(recipe) => Some(PlannedImage { name, recipe, file: None }),
        Err(why) => {
            let known = BUILT_IN.map(|(known, _)| known);
            if why.starts_with("there is no image") {
                check.unknown(node.spot, "image", &name, &known);
            } else {
                check.advise(node.spot, why, "`kduel images list` shows those that there are");
            }
            None
        }
    }
}

/// Whether workloads have the image that they need, and it has the memory that it needs.
pub fn fits(
    check: &mut Check<'_>,
    entry: &Entry,
    workloads: &[WorkloadUse],
    terms: &Terms,
    topology: &Topology,
) {
    let kernbench = workloads.iter().find(|workload| workload.info.name == KERNBENCH);
    if let (Some(workload), None) = (kernbench, &terms.image)
        && check.lacks(&entry.value, "image")
    {
        let message = format!("`{KERNBENCH}` builds a kernel tree that the guest's image has");
        let hint = format!("add `image: {KERNBENCH}`, or without a document --image {KERNBENCH}");
        check.advise(workload.spot, message, hint);
    }
    if terms.image.is_none() {
        return;
    }
    let least = kernbench.map_or(LEAST_MIB, least_mib);
    if topology.memory_mib < least {
        let spot = entry.value.get("image").map_or(entry.spot, |node| node.spot);
        let has = topology.memory_mib;
        let message =
            format!("guests of this experiment need {least} MiB of memory, and have {has}");
        check.advise(spot, message, "what is changed in an image stays in memory; give them more");
    }
}

fn least_mib(kernbench: &WorkloadUse) -> u64 {
    let has = |word: &str| {
        let values = kernbench.params.iter().flat_map(|(_, values)| values);
        values.filter_map(Value::as_str).any(|value| value == word)
    };
    match () {
        () if has("large") => LARGE_MIB,
        () if has("small") || has("tmpfs") => SMALL_MIB,
        () => LEAST_MIB,
    }
}
