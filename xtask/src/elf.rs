//! As much of the ELF format as tells a static program from one that needs a loader.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

const INTERPRETER: u32 = 3;

/// Whether the program in `file` runs without a loader and libraries of its system.
///
/// Fails if it cannot be read or is no 64-bit little-endian ELF file.
pub fn is_static(file: &Path) -> Result<bool> {
    let bytes = fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
    static_program(&bytes).with_context(|| format!("{} is not as expected", file.display()))
}

fn static_program(bytes: &[u8]) -> Result<bool> {
    ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let table = usize::try_from(u64::from_le_bytes(field(bytes, 32)?))?;
    let entry_size = usize::from(u16::from_le_bytes(field(bytes, 54)?));
    let entries = usize::from(u16::from_le_bytes(field(bytes, 56)?));
    for entry in 0..entries {
        let kind = u32::from_le_bytes(field(bytes, table.saturating_add(entry * entry_size))?);
        if kind == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let field = bytes.get(at..).and_then(<[u8]>::first_chunk);
    field.copied().context("the file ends within its headers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn an_interpreter_makes_it_dynamic() {
        assert!(static_program(&program(&[1, 2, 6])).unwrap());
        assert!(!static_program(&program(&[6, 3, 1])).unwrap());
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        assert!(static_program(b"#!/bin/sh").is_err());
        let cut = &program(&[1, 3])[..100];
        assert!(static_program(cut).is_err());
    }

    #[test]
    fn this_test_is_dynamic() {
        assert!(!is_static(&std::env::current_exe().unwrap()).unwrap());
    }
}
