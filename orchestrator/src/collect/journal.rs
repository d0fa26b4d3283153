use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::fault::{Failure, FailureClass};

use super::BootRecord;
use super::write::host_io;

/// `journal.jsonl`, the truth about a run: one line per boot, each with a checksum over the record's
/// own bytes, appended and synced when the boot ends.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
}

/// What a journal holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recovered {
    /// In the order they were written, up to the first bad line.
    pub records: Vec<BootRecord>,
    /// Bytes of the good lines.
    pub length: u64,
    /// What follows them, if anything does.
    pub cut: Option<Cut>,
}

/// The part of a journal that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The first bad line, from 1.
    pub line: usize,
    /// How many bytes, to the end of the file.
    pub bytes: u64,
    /// What is wrong with that line.
    pub reason: &'static str,
}

impl Journal {
    /// Opens the journal at `path`, makes it if it is not there, and cuts it behind its good lines.
    ///
    /// # Errors
    ///
    /// `HostIo`; also, and then nothing is cut, if whole records of another version follow.
    pub fn open(path: &Path) -> Result<(Self, Recovered), Failure> {
        let io = |doing: &'static str| move |error| host_io(doing, path, &error);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)
            .map_err(io("open"))?;
        let recovered = recover_file(path)?;
        if let Some(cut) = &recovered.cut {
            if cut.reason == OTHER_VERSION {
                let title = format!("line {} of {}: {OTHER_VERSION}", cut.line, path.display());
                return Err(Failure::new(FailureClass::HostIo, title)
                    .hint("go on with the kduel that began the run; its report can be read"));
            }
            file.set_len(recovered.length).map_err(io("cut"))?;
            file.sync_all().map_err(io("sync"))?;
        }
        Ok((Self { path: path.to_owned(), file, length: recovered.length }, recovered))
    }

    /// Appends one record and syncs it. When this returns, the record outlives a power cut.
    ///
    /// # Errors
    ///
    /// `HostIo` where the disk is full or broken; `Internal` where the record would not read back.
    /// The journal then ends with the record before.
    pub fn append(&mut self, record: &BootRecord) -> Result<(), Failure> {
        let line = encode(record)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // If this fails too, the next recovery cuts the torn line by its checksum.
            _ = self.file.set_len(self.length);
            return Err(host_io("append a boot to", &self.path, &error));
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

const BEFORE_SUM: &str = "{\"crc\":\"";
const AFTER_SUM: &str = "\",\"record\":";
const SUM_DIGITS: usize = 8;

/// Of a record that is whole: unlike a torn line it is somebody's result.
const OTHER_VERSION: &str = "the record is of another version of kduel";

fn encode(record: &BootRecord) -> Result<String, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::new(
            FailureClass::Internal,
            format!("failed to store the record of boot {}: {error}", record.boot),
        )
    };
    let json = serde_json::to_string(record).map_err(|error| unreadable(&error))?;
    // JSON has no NaN: such a record would be written, and never read again.
    serde_json::from_str::<BootRecord>(&json).map_err(|error| unreadable(&error))?;
    Ok(format!("{BEFORE_SUM}{}{AFTER_SUM}{json}}}\n", checksum(json.as_bytes())))
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32c::crc32c(bytes))
}

/// Reads a journal up to its first bad line. Never re-orders, never skips.
pub fn recover(bytes: &[u8]) -> Recovered {
    // Memory can always be read.
    recover_from(bytes, bytes.len() as u64).unwrap_or_default()
}

/// As [`recover`], of the journal in the file `path`.
///
/// # Errors
///
/// `HostIo`.
pub(super) fn recover_file(path: &Path) -> Result<Recovered, Failure> {
    let read = || {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        recover_from(BufReader::new(file), bytes)
    };
    read().map_err(|error: std::io::Error| host_io("read", path, &error))
}

/// Longest line that is a record: of more than a million samples.
const LONGEST_LINE: u64 = 1 << 30;

/// As [`recover`], line by line, of a journal of so many bytes.
///
/// # Errors
///
/// It cannot be read.
fn recover_from(mut journal: impl BufRead, bytes: u64) -> std::io::Result<Recovered> {
    let mut recovered = Recovered::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        journal.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(recovered);
        }
        let whole = line.strip_suffix(b"\n");
        match whole.ok_or("the line is cut off").and_then(decode) {
            Ok(record) => {
                recovered.records.push(record);
                recovered.length += line.len() as u64;
            }
            Err(reason) => {
                let number = recovered.records.len() + 1;
                let bytes = bytes.saturating_sub(recovered.length);
                recovered.cut = Some(Cut { line: number, bytes, reason });
                return Ok(recovered);
            }
        }
    }
}

fn decode(line: &[u8]) -> Result<BootRecord, &'static str> {
    const BROKEN: &str = "the line is not a journal record";
    let rest = line.strip_prefix(BEFORE_SUM.as_bytes()).ok_or(BROKEN)?;
    let (sum, rest) = rest.split_at_checked(SUM_DIGITS).ok_or(BROKEN)?;
    let rest = rest.strip_prefix(AFTER_SUM.as_bytes()).ok_or(BROKEN)?;
    let json = rest.strip_suffix(b"}").ok_or(BROKEN)?;
    if checksum(json).as_bytes() != sum {
        return Err("the checksum does not fit");
    }
    serde_json::from_slice(json).map_err(|_| OTHER_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::BootOutcome;
    use crate::collect::testing::{completed, failed};
    use proptest::prelude::*;

    fn records() -> Vec<BootRecord> {
        vec![
            completed("fork", "base", 0, &[("time", 151_000.25), ("time", 0.1 + 0.2)]),
            failed("fork", "patched", 0, FailureClass::Panic, "Oops: \u{1b}[2J \u{202e}"),
            completed("fork", "base", 1, &[("time", 1e308)]),
        ]
    }

    fn bytes(records: &[BootRecord]) -> Vec<u8> {
        records.iter().flat_map(|record| encode(record).unwrap().into_bytes()).collect()
    }

    #[test]
    fn what_was_appended_is_read_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found, Recovered::default());
        for record in records() {
            journal.append(&record).unwrap();
        }
        let (_, found) = Journal::open(&path).unwrap();
        assert_eq!((found.records, found.cut), (records(), None));
    }

    #[test]
    fn a_torn_end_is_cut_and_writing_goes_on_behind_the_good_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let whole = bytes(&records());
        std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        let (mut journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found.records, records()[..2]);
        let cut = found.cut.unwrap();
        assert_eq!((cut.line, cut.reason), (3, "the line is cut off"));
        journal.append(&records()[2]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn whole_records_of_another_version_are_not_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let json = "{\"boot\":7}";
        let foreign = format!("{BEFORE_SUM}{}{AFTER_SUM}{json}}}\n", checksum(json.as_bytes()));
        let whole = [bytes(&records()[..1]), foreign.into_bytes()].concat();
        std::fs::write(&path, &whole).unwrap();
        let refused = Journal::open(&path).unwrap_err();
        assert!(refused.title.starts_with("line 2 of "), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn a_full_disk_is_the_hosts_fault_and_says_what_to_do() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let mut journal = Journal { path: "/dev/full".into(), file, length: 0 };
        let failure = journal.append(&records()[0]).unwrap_err();
        assert_eq!(failure.class, FailureClass::HostIo);
        assert!(failure.title.contains("No space left"), "{failure}");
        assert!(failure.hint.unwrap().contains("--resume"));
        assert_eq!(journal.length, 0);
    }

    #[test]
    fn a_record_that_would_not_read_back_is_never_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, _) = Journal::open(&path).unwrap();
        let bad = completed("fork", "base", 0, &[("time", f64::NAN)]);
        assert_eq!(journal.append(&bad).unwrap_err().class, FailureClass::Internal);
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_record_without_results_reads_back() {
        let mut record = records()[0].clone();
        record.outcome = BootOutcome::Completed(Box::default());
        assert_eq!(recover(&bytes(&[record.clone()])).records, [record]);
    }

    proptest! {
        #[test]
        fn any_damage_leaves_a_prefix(at in 0.0..1.0_f64, flip in 1..=255_u8, truncate: bool) {
            let whole = bytes(&records());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below len")]
            let at = (at * whole.len() as f64) as usize;
            let mut damaged = whole.clone();
            if truncate { damaged.truncate(at) } else { damaged[at] ^= flip }
            let found = recover(&damaged);
            prop_assert!(records().starts_with(&found.records));
            prop_assert!(found.records.len() < 3);
            prop_assert_eq!(&damaged[..bytes(&found.records).len()], bytes(&found.records));
            prop_assert_eq!(found.length, bytes(&found.records).len() as u64);
            prop_assert_eq!(found.cut.is_some(), found.length < damaged.len() as u64);
        }

        #[test]
        fn no_bytes_make_it_panic(junk in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(recover(&junk).records.is_empty());
        }
    }
}
