//! Names of the kernel's functions, from `/proc/kallsyms`.

use std::fs;
use std::path::Path;

/// No function is longer, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Functions by their first address.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Reads all below `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(root.join("proc/kallsyms"))
            .map_err(|error| format!("/proc/kallsyms: {error}; CONFIG_KALLSYMS is needed"))?;
        let symbols = Self::parse(&text);
        if symbols.0.is_empty() {
            return Err("/proc/kallsyms hides the addresses of functions".to_owned());
        }
        Ok(symbols)
    }

    fn parse(text: &str) -> Self {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|a| *a != 0)?;
            let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
            let name = words.next()?;
            let is_padding = name.starts_with("__pfx_") || name.starts_with("__cfi_");
            (is_code && !is_padding).then(|| (address, name.replace(';', "_")))
        };
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(symbol).collect();
        // Of several names at one address the plainest, as exact profiles choose it.
        symbols.sort_by(|(a, one), (b, two)| (a, plainness(one)).cmp(&(b, plainness(two))));
        symbols.dedup_by_key(|(address, _)| *address);
        Self(symbols)
    }

    /// The function that holds the address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let place = self.0.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let (start, name) = &self.0[place];
        (address - start < LONGEST).then_some(name)
    }
}

/// The lower, the better for reading.
fn plainness(name: &str) -> (bool, bool, usize, usize) {
    let marks_section = name.ends_with("text_start") || name.ends_with("text_end");
    let underscores = name.chars().take_while(|c| *c == '_').count();
    (!name.starts_with("__x64_sys_"), marks_section, underscores, name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_plainest_name() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T __do_fork\nffffffff81000000 T fork\nffffffff81000010 d data\n\
             ffffffff81000020 t __pfx_x\nffffffff81000030 t x\t[module]\n",
        );
        assert_eq!(symbols.name(0xffff_ffff_8100_0011), Some("fork"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0031), Some("x"));
        assert_eq!(symbols.name(0xffff_ffff_8200_0000), None);
        assert!(Symbols::parse("0000000000000000 T hidden\n").0.is_empty());
    }
}
