//! The kernel's symbols, as `/proc/kallsyms` lists them.

/// A name and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Guest virtual address.
    pub address: u64,
    /// The letter of `nm`: `t` and `T` are code.
    pub letter: char,
    /// The name, without its module.
    pub name: String,
    /// The module that it is in, if it is in one.
    pub module: Option<Box<str>>,
}

/// Symbols in the order of their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols(Vec<Symbol>);

/// Why a list of symbols cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolsError {
    /// A line is not `address letter name`.
    #[error("line {line} of the symbols is not \"address letter name\"")]
    Malformed {
        /// Counted from one.
        line: usize,
    },
    /// The kernel hides its addresses from the reader.
    #[error(
        "every address of the symbols is zero\n  read /proc/kallsyms as root with kptr_restrict=0"
    )]
    Hidden,
}

impl Symbols {
    /// Reads lines of `address letter name [module]`; empty lines are skipped.
    ///
    /// # Errors
    /// [`SymbolsError`]: a line is malformed, or all addresses are zero.
    pub fn parse(text: &str) -> Result<Self, SymbolsError> {
        let mut symbols = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let symbol = parse_line(line).ok_or(SymbolsError::Malformed { line: index + 1 })?;
            symbols.push(symbol);
        }
        if !symbols.is_empty() && symbols.iter().all(|s| s.address == 0) {
            return Err(SymbolsError::Hidden);
        }
        symbols.sort_by_key(|s| s.address);
        Ok(Self(symbols))
    }

    /// Every symbol, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Symbol> {
        self.0.iter()
    }

    /// Address of the symbol with this name, the lowest if there are several.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.0.iter().find(|s| s.name == name).map(|s| s.address)
    }

    /// From a symbol's address to the next symbol's, which ends its code.
    pub fn end_of(&self, address: u64) -> u64 {
        let next = self.0.partition_point(|s| s.address <= address);
        self.0.get(next).map_or_else(|| address.saturating_add(1), |s| s.address)
    }
}

fn parse_line(line: &str) -> Option<Symbol> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let letter = words.next()?;
    let name = words.next()?.to_owned();
    let mut letters = letter.chars();
    let (letter, None) = (letters.next()?, letters.next()) else { return None };
    let module = words.next().map(|word| word.trim_matches(['[', ']']).into());
    Some(Symbol { address, letter, name, module })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_kallsyms_are_read_with_and_without_module() {
        let text = "ffffffff81000010 T second\nffffffff81000000 t first\n\
                    ffffffffc0000000 t inner\t[module]\n";
        let symbols = Symbols::parse(text).expect("well-formed");
        assert_eq!(symbols.address("first"), Some(0xffff_ffff_8100_0000));
        assert_eq!(symbols.address("inner"), Some(0xffff_ffff_c000_0000));
        assert_eq!(symbols.end_of(0xffff_ffff_8100_0000), 0xffff_ffff_8100_0010);
        let modules: Vec<_> = symbols.iter().map(|s| s.module.as_deref()).collect();
        assert_eq!(modules, [None, None, Some("module")]);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        assert_eq!(Symbols::parse("\nxyz T name"), Err(SymbolsError::Malformed { line: 2 }));
        assert_eq!(Symbols::parse("ff TT name"), Err(SymbolsError::Malformed { line: 1 }));
        assert_eq!(Symbols::parse("0 T a\n0 T b"), Err(SymbolsError::Hidden));
    }
}
