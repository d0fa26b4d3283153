//! Which kernel this is and how it is set.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use super::Source;
use crate::knobs::selected;
use crate::text::{hex, number_list};

/// The largest config that is read; real ones have 300 KiB.
const CONFIG_LIMIT: u64 = 16 << 20;

/// State that sides must share: name, and the file that holds it.
const SETTINGS: [(&str, &str); 11] = [
    ("transparent-hugepage", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("transparent-hugepage-defrag", "sys/kernel/mm/transparent_hugepage/defrag"),
    ("multi-generation-lru", "sys/kernel/mm/lru_gen/enabled"),
    ("ksm", "sys/kernel/mm/ksm/run"),
    ("preemption", "sys/kernel/debug/sched/preempt"),
    ("numa-balancing", "proc/sys/kernel/numa_balancing"),
    ("autogroup", "proc/sys/kernel/sched_autogroup_enabled"),
    ("address-randomisation", "proc/sys/kernel/randomize_va_space"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("frequency-governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("boot-cpus", "sys/devices/system/cpu/possible"),
];

/// Those of the settings that this kernel has; of a list of choices the chosen one.
pub fn settings(source: &Source<'_>) -> BTreeMap<String, String> {
    let read = |(name, path): &(&str, &str)| {
        let text = source.text(path);
        let value = selected(&text).unwrap_or(&text).to_owned();
        (!value.is_empty()).then(|| ((*name).to_owned(), value))
    };
    let mut settings: BTreeMap<String, String> = SETTINGS.iter().filter_map(read).collect();
    let present = number_list(&source.text("sys/devices/system/cpu/present")).unwrap_or_default();
    let (version, cmdline) = (source.text("proc/sys/kernel/version"), source.text("proc/cmdline"));
    if let Some(word) = smp_alternatives(&version, &cmdline, present.len()) {
        settings.insert("smp-alternatives".to_owned(), word.to_owned());
    }
    settings
}

/// Whether a kernel built for several CPUs has its lock prefixes: it patches them away where it
/// boots with one CPU. Nothing for a kernel that has none, or if the CPUs are not known.
fn smp_alternatives(version: &str, cmdline: &str, present: usize) -> Option<&'static str> {
    let words = || cmdline.split_whitespace();
    if present == 0 || !version.split_whitespace().any(|word| word == "SMP") {
        return None;
    }
    let most =
        words().filter_map(|word| word.strip_prefix("maxcpus=")?.parse::<u32>().ok()).next_back();
    let boots_with_one =
        present == 1 || most.is_some_and(|most| most <= 1) || words().any(|word| word == "nosmp");
    let is_kept = words().any(|word| word == "noreplace-smp");
    Some(if boots_with_one && !is_kept { "patched away" } else { "live" })
}

/// What the kernel says about each known weakness of the CPU.
pub fn vulnerabilities(source: &Source<'_>) -> BTreeMap<String, String> {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let names = source.names(FOLDER).into_iter();
    names.map(|name| (name.clone(), source.text(&format!("{FOLDER}/{name}")))).collect()
}

/// The build id in a kernel's ELF notes, lower-case hex.
pub fn build_id(notes: &[u8]) -> Option<String> {
    const BUILD_ID: usize = 3;
    let mut rest = notes;
    loop {
        let word = |at: usize| {
            let bytes = rest.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_ne_bytes(bytes)).ok()
        };
        let (name_size, value_size, kind) = (word(0)?, word(4)?, word(8)?);
        let value_start = 12 + name_size.checked_next_multiple_of(4)?;
        let value = rest.get(value_start..value_start.checked_add(value_size)?)?;
        if kind == BUILD_ID && rest.get(12..16) == Some(b"GNU\0") {
            return Some(hex(value));
        }
        rest = rest.get(value_start + value_size.checked_next_multiple_of(4)?..)?;
    }
}

/// The digest of the config inside `/proc/config.gz`, unpacked; nothing if that is not to be had.
pub fn config_sha256(packed: &[u8]) -> Option<String> {
    let mut config = Vec::new();
    GzDecoder::new(packed).take(CONFIG_LIMIT).read_to_end(&mut config).ok()?;
    (!config.is_empty()).then(|| hex(&Sha256::digest(&config)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn note(kind: u32, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [u32::try_from(name.len()).unwrap(), u32::try_from(value.len()).unwrap(), kind]
        {
            note.extend(word.to_ne_bytes());
        }
        for part in [name, value] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = note(6, b"Xen\0", b"abcde");
        notes.extend(note(3, b"GNU\0", &[0xab, 0x01]));
        assert_eq!(build_id(&notes).as_deref(), Some("ab01"));
        assert_eq!(build_id(&notes[..30]), None);
        assert_eq!(build_id(&[0xff; 40]), None);
        assert_eq!(build_id(&[]), None);
    }

    #[test]
    fn one_cpu_loses_its_lock_prefixes_unless_told_otherwise() {
        let smp = |cmdline, present| smp_alternatives("#1 SMP PREEMPT Debian", cmdline, present);
        assert_eq!(smp("quiet", 1), Some("patched away"));
        assert_eq!(smp("quiet noreplace-smp", 1), Some("live"));
        assert_eq!(smp("quiet", 2), Some("live"));
        assert_eq!(smp("maxcpus=1", 2), Some("patched away"));
        assert_eq!(smp("quiet", 0), None);
        assert_eq!(smp_alternatives("#1 PREEMPT", "", 1), None);
    }

    #[test]
    fn a_config_is_hashed_unpacked() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"abc").unwrap();
        let digest = config_sha256(&packer.finish().unwrap()).unwrap();
        assert!(digest.starts_with("ba7816bf"), "{digest}");
        assert_eq!(config_sha256(b"no gzip"), None);
    }
}
