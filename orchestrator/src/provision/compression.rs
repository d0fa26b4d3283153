//! Compressed files, by the end of their names.

use std::io::{self, Read};

/// Reads `inner`, unpacked as the end of `name` says: `.xz`, `.zst`, `.gz`, or else as it is.
pub fn unpack<'a>(name: &str, inner: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "xz" => Box::new(lzma_rust2::XzReader::new(inner, true)),
        "zst" => Box::new(zstd::Decoder::new(inner)?),
        "gz" => Box::new(flate2::read::MultiGzDecoder::new(inner)),
        _ => Box::new(inner),
    })
}
