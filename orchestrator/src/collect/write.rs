use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use crate::fault::Failure;

/// Writes `content` to `path` whole or not at all, and durably: temporary file beside it, synced,
/// renamed, folder synced.
///
/// # Errors
///
/// `HostIo`; `path` then holds what it held before.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // The first error is the one to tell.
        _ = fs::remove_file(&temporary);
        return Err(host_io("write", path, &error));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or_else(|| Path::new(".")))
}

/// Makes the names in `folder` durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Failure> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| host_io("sync", folder, &error))
}

/// [`Failure::host_io`] with a hint where there is one to give.
pub(super) fn host_io(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::host_io(doing, path, error);
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => failure
            .hint("make room there; `kduel run --resume RUN` goes on with a run that stopped"),
        _ => failure,
    }
}
