//! Copies the kernel's own list of symbols to the port.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use kduel_protocol::KALLSYMS_END;
use sha2::{Digest, Sha256};

use super::port::Port;
use crate::text;

const SYMBOLS: &str = "/proc/kallsyms";
/// While it is not zero, addresses are shown as zeros.
const RESTRICTION: &str = "/proc/sys/kernel/kptr_restrict";

/// Copies [`SYMBOLS`], then the line that proves it.
pub fn send() -> Result<(), String> {
    fs::write(RESTRICTION, "0").map_err(|error| format!("writing {RESTRICTION}: {error}"))?;
    let symbols = File::open(SYMBOLS).map_err(|error| {
        format!("opening {SYMBOLS}: {error}: was the kernel built with CONFIG_KALLSYMS?")
    })?;
    let mut port = Port::open()?;
    copy(symbols, &mut port)
        .and_then(|()| port.flush())
        .map_err(|error| format!("copying {SYMBOLS}: {error}"))
}

fn copy(mut from: impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut hash = Sha256::new();
    let mut lines = 0;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        let chunk = &chunk[..read];
        hash.update(chunk);
        lines += chunk.iter().filter(|byte| **byte == b'\n').count();
        to.write_all(chunk)?;
    }
    writeln!(to, "{KALLSYMS_END}{} {lines}", text::hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_proves_the_others() {
        let mut copied = Vec::new();
        copy(b"0 T a\n1 t b\n".as_slice(), &mut copied).unwrap();
        let digest = text::hex(&Sha256::digest(b"0 T a\n1 t b\n"));
        let expected = format!("0 T a\n1 t b\nkduel-kallsyms-end {digest} 2\n");
        assert_eq!(String::from_utf8(copied).unwrap(), expected);
    }
}
