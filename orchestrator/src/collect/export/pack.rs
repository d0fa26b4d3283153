use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::{FORMAT, LIST, List, Listed};
use crate::collect::RunInfo;
use crate::collect::write::host_io;
use crate::fault::{Failure, FailureClass};
use crate::provision::{sha256_of, sha256_of_file};

/// Of zstd: counts and symbols are compressed already, samples shrink well at once.
const LEVEL: i32 = 7;

/// What goes into an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// A file of the host, as it is.
    File(PathBuf),
    /// What was made for the archive.
    Content(Vec<u8>),
}

/// Writes the archive of the run `info` to `path`, whole or not at all. `files` are by their path in
/// it: relative, with slashes.
///
/// # Errors
///
/// `HostIo`.
pub fn pack(
    path: &Path,
    info: &RunInfo,
    files: &BTreeMap<String, Exported>,
) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for (name, file) in files {
        let (bytes, sha256) = match file {
            Exported::Content(content) => (content.len() as u64, sha256_of(content)),
            Exported::File(source) => {
                let about = fs::metadata(source).map_err(|e| host_io("read", source, &e))?;
                let sum = sha256_of_file(source).map_err(|e| host_io("read", source, &e))?;
                (about.len(), sum)
            }
        };
        listed.push(Listed { path: name.clone(), bytes, sha256 });
    }
    let list = List {
        format: FORMAT.to_owned(),
        run: info.id.0.clone(),
        kduel: env!("CARGO_PKG_VERSION").to_owned(),
        files: listed,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let written = write(&temporary, &list, files)
        .and_then(|()| fs::rename(&temporary, path).map_err(|e| host_io("write", path, &e)));
    if written.is_err() {
        // The first error is the one to tell.
        _ = fs::remove_file(&temporary);
    }
    written
}

fn write(path: &Path, list: &List, files: &BTreeMap<String, Exported>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| host_io("write", path, &error);
    let file = File::create(path).map_err(failed)?;
    let mut packer = zstd::Encoder::new(BufWriter::new(file), LEVEL).map_err(failed)?;
    packer.include_checksum(true).map_err(failed)?;
    let mut archive = tar::Builder::new(packer);
    let mut text = serde_json::to_vec_pretty(list)
        .map_err(|error| Failure::new(FailureClass::Internal, error.to_string()))?;
    text.push(b'\n');
    append(&mut archive, LIST, text.len() as u64, &text[..]).map_err(failed)?;
    for (listed, source) in list.files.iter().zip(files.values()) {
        match source {
            Exported::Content(content) => {
                append(&mut archive, &listed.path, listed.bytes, &content[..]).map_err(failed)?;
            }
            Exported::File(source) => {
                let open = File::open(source).map_err(|e| host_io("read", source, &e))?;
                // A file that grew meanwhile is cut, one that shrank ends the archive early: both
                // are found by their digests when it is read.
                append(&mut archive, &listed.path, listed.bytes, open.take(listed.bytes))
                    .map_err(failed)?;
            }
        }
    }
    let packer = archive.into_inner().map_err(failed)?;
    let mut file = packer.finish().map_err(failed)?;
    file.flush().map_err(failed)?;
    file.get_ref().sync_all().map_err(failed)
}

/// Nobody's, of no time.
fn append(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    bytes: u64,
    content: impl Read,
) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_entry_type(tar::EntryType::Regular);
    archive.append_data(&mut header, path, content)
}
