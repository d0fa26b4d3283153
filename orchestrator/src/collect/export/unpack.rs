use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{FORMAT, LIST, List, Listed};
use crate::collect::write::host_io;
use crate::fault::{Failure, FailureClass};

/// Most bytes of all files together, most files, and the longest list.
const MOST_BYTES: u64 = 8 << 30;
const MOST_FILES: usize = 100_000;
const LONGEST_LIST: u64 = 32 << 20;

/// Unpacks the archive at `path` into `folder`, which is empty, and checks every file. What is not in
/// the list, or not as it says, is refused: so are links, folders, and paths that lead elsewhere.
///
/// # Errors
///
/// `HostIo`, also for what is no whole, unchanged archive.
pub fn unpack(path: &Path, folder: &Path) -> Result<(), Failure> {
    let file = File::open(path).map_err(|error| host_io("open", path, &error))?;
    let broken = |why: &str| broken(path, why);
    let unpacker = zstd::Decoder::new(file).and_then(|mut unpacker| {
        // No frame that `pack` writes needs more.
        unpacker.window_log_max(27)?;
        Ok(unpacker)
    });
    let unpacker = unpacker.map_err(|error| host_io("read", path, &error))?;
    read(&mut BufReader::new(unpacker), folder).map_err(|error| match error {
        Why::Broken(why) => broken(&why),
        Why::Host(failure) => *failure,
    })
}

enum Why {
    Broken(String),
    Host(Box<Failure>),
}

impl From<std::io::Error> for Why {
    fn from(error: std::io::Error) -> Self {
        let why = match error.kind() {
            std::io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            _ => format!("it cannot be read to its end: {error}"),
        };
        Self::Broken(why)
    }
}

fn broken(path: &Path, why: &str) -> Failure {
    let title = format!("failed to read {}: {why}", path.display());
    Failure::new(FailureClass::HostIo, title)
        .hint("copy it again from where `kduel export` wrote it")
}

fn read(packed: &mut impl Read, folder: &Path) -> Result<(), Why> {
    let mut archive = tar::Archive::new(packed);
    let mut entries = archive.entries()?;
    let first = entries.next().ok_or_else(|| no_export("it is empty"))?;
    let first = first.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Why::from(error),
        _ => no_export("it is no archive"),
    })?;
    let list = list(first)?;
    let mut wanted = list.iter();
    for entry in entries {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let Some(listed) = wanted.next() else {
            return Err(Why::Broken(format!("{name} is not in its list")));
        };
        let regular = entry.header().entry_type() == tar::EntryType::Regular;
        if !regular || name != listed.path || entry.size() != listed.bytes {
            let path = &listed.path;
            return Err(Why::Broken(format!("{path} is not as its list says: it was changed")));
        }
        place(&mut entry, listed, folder)?;
    }
    if let Some(missing) = wanted.next() {
        return Err(Why::Broken(format!("it ends too early: {} is missing", missing.path)));
    }
    // What follows the archive's end is read, too, so that its checksum is.
    std::io::copy(&mut archive.into_inner().take(1 << 20), &mut std::io::sink())?;
    Ok(())
}

fn no_export(why: &str) -> Why {
    Why::Broken(format!("it is not what `kduel export` writes: {why}"))
}

fn list(entry: tar::Entry<'_, impl Read>) -> Result<Vec<Listed>, Why> {
    if *entry.path_bytes() != *LIST.as_bytes() || entry.size() > LONGEST_LIST {
        return Err(no_export(&format!("it does not begin with {LIST}")));
    }
    let mut text = Vec::new();
    entry.take(LONGEST_LIST).read_to_end(&mut text)?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| no_export(&format!("{LIST}: {error}")))?;
    let format = value.get("format").and_then(|format| format.as_str()).unwrap_or("none");
    if format != FORMAT {
        return Err(no_export(&format!("its format is {format}, this kduel reads {FORMAT}")));
    }
    let list: List =
        serde_json::from_value(value).map_err(|error| no_export(&format!("{LIST}: {error}")))?;
    let bytes = list.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes));
    if list.files.len() > MOST_FILES || bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
        return Err(Why::Broken("it is larger than any run".to_owned()));
    }
    for pair in list.files.windows(2) {
        if pair[0].path >= pair[1].path {
            return Err(no_export("its list is not sorted"));
        }
    }
    for file in &list.files {
        if inside(&file.path).is_none() {
            return Err(Why::Broken(format!("{} leads out of it", file.path)));
        }
    }
    Ok(list.files)
}

/// The path, if it stays where it is put.
fn inside(path: &str) -> Option<PathBuf> {
    let parts: Option<Vec<&std::ffi::OsStr>> = Path::new(path)
        .components()
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let joined: PathBuf = parts?.iter().collect();
    (joined.to_str() == Some(path) && !path.contains('\0')).then_some(joined)
}

fn place(entry: &mut impl Read, listed: &Listed, folder: &Path) -> Result<(), Why> {
    let Some(relative) = inside(&listed.path) else {
        return Err(Why::Broken(format!("{} leads out of it", listed.path)));
    };
    let path = folder.join(relative);
    let host = |error: std::io::Error| Why::Host(Box::new(host_io("write", &path, &error)));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(host)?;
    }
    let mut file = File::create_new(&path).map_err(host)?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = entry.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        sum.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(host)?;
    }
    let found: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found != listed.sha256 {
        return Err(Why::Broken(format!(
            "{} is not as its list says: it was changed",
            listed.path
        )));
    }
    Ok(())
}
