//! Where functions are, and what is at an address.

use std::ops::Range;

use kduel_counts::{Symbol, Symbols};

use crate::text::nearest;

/// Further from its symbol than this an address of data is taken for a plain number.
const NEAR: u64 = 0x1000;

/// Below this `gs` reaches a variable that every CPU has its own of, by the symbols' offsets.
const PER_CPU_END: u64 = 0x10_0000;

/// So many names are offered instead of one that is not there.
pub(super) const OFFERED: usize = 5;

/// A function: from its symbol to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The symbol's name, as the guest told it: escape it before it is shown.
    pub name: String,
    /// Guest virtual addresses.
    pub range: Range<u64>,
}

/// The function that a user asks for: a name, and addresses where the name alone is not enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// As the user wrote it.
    pub text: String,
    name: String,
    at: Vec<u64>,
}

impl Wanted {
    /// Reads `NAME` or `NAME@ADDRESS[@ADDRESS]`. What is no address belongs to the name.
    pub fn parse(text: &str) -> Self {
        let mut name = text;
        let mut at = Vec::new();
        while let Some((before, word)) = name.rsplit_once('@') {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            let Ok(address) = u64::from_str_radix(digits, 16) else { break };
            at.push(address);
            name = before;
        }
        Self { text: text.to_owned(), name: name.to_owned(), at }
    }
}

/// A kernel's symbols, to be asked in both directions.
#[derive(Debug, Default)]
pub struct Names(Vec<Symbol>);

impl Names {
    /// Takes over all symbols.
    pub fn new(symbols: &Symbols) -> Self {
        Self(symbols.iter().cloned().collect())
    }

    /// Every symbol, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Symbol> {
        self.0.iter()
    }

    /// The functions of that name, by address; usually one.
    pub fn find(&self, wanted: &Wanted) -> Vec<Function> {
        let named = |name: &str| -> Vec<Function> {
            let own = self.0.iter().filter(|s| s.name == name && is_code(s));
            own.map(|symbol| self.function(symbol)).collect()
        };
        let whole = named(&wanted.text);
        if !whole.is_empty() || wanted.at.is_empty() {
            return whole;
        }
        let mut found = named(&wanted.name);
        // An address of the other side says nothing where there is no choice.
        if found.len() > 1 {
            found.retain(|function| wanted.at.contains(&function.range.start));
        }
        found
    }

    fn function(&self, symbol: &Symbol) -> Function {
        let start = symbol.address;
        let next = self.0.partition_point(|s| s.address <= start);
        let end = self.0.get(next).map_or_else(|| start.saturating_add(1), |s| s.address);
        Function { name: symbol.name.clone(), range: start..end }
    }

    /// Names like the one that is not there, likeliest first.
    pub fn like(&self, wanted: &Wanted) -> Vec<&str> {
        let word = wanted.name.as_str();
        // The padding before a function has a symbol of its own in newer kernels.
        let is_offered = |s: &&Symbol| is_code(s) && !s.name.starts_with("__pfx_");
        let code = || self.0.iter().filter(is_offered).map(|s| s.name.as_str());
        let length = word.chars().count();
        let near_length = |name: &&str| name.len().abs_diff(length) <= 1 + name.len() / 3;
        let mut offered: Vec<&str> =
            nearest(word, code().filter(near_length)).into_iter().collect();
        let mut holding: Vec<&str> =
            code().filter(|name| word.len() > 2 && name.contains(word)).collect();
        holding.sort_unstable_by_key(|name| (name.len(), *name));
        holding.dedup();
        holding.retain(|name| !offered.contains(name));
        offered.extend(holding);
        offered.truncate(OFFERED);
        offered
    }

    /// The function at an address of code, and how far into it.
    pub fn code_at(&self, address: u64) -> Option<(&str, u64)> {
        let symbol = self.last_at(address, is_code)?;
        Some((&symbol.name, address - symbol.address))
    }

    /// What is at an address that an operand names, and how far into it.
    pub(super) fn operand_at(&self, address: u64) -> Option<(&str, u64)> {
        let symbol = self.last_at(address, |s| s.address >> 63 == 1)?;
        let offset = address - symbol.address;
        (offset < NEAR).then_some((&symbol.name, offset))
    }

    /// The variable that every CPU has its own of at an offset from `gs`.
    pub(super) fn per_cpu_at(&self, offset: u64) -> Option<(&str, u64)> {
        let symbol = self.last_at(offset, |s| s.address < PER_CPU_END)?;
        (offset < PER_CPU_END).then_some((&symbol.name, offset - symbol.address))
    }

    /// The first that fits of the symbols at the last address that has any, at or below `address`.
    fn last_at(&self, address: u64, fits: impl Fn(&Symbol) -> bool) -> Option<&Symbol> {
        let below = &self.0[..self.0.partition_point(|s| s.address <= address)];
        let last = below.iter().rev().find(|s| fits(s))?;
        let same = below.iter().rev().take_while(|s| s.address == last.address);
        same.filter(|s| fits(s)).last()
    }
}

fn is_code(symbol: &Symbol) -> bool {
    matches!(symbol.letter, 't' | 'T' | 'w' | 'W')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let text = "1000 A pcpu_hot\nffffffff81000000 T fork\nffffffff81000040 t init\n\
                    ffffffff81000080 t init\nffffffff81000080 T alias\nffffffff810000c0 t odd@name\n\
                    ffffffff81000100 D table\n";
        Names::new(&Symbols::parse(text).unwrap())
    }

    fn find(text: &str) -> Vec<u64> {
        names().find(&Wanted::parse(text)).iter().map(|f| f.range.start & 0xfff).collect()
    }

    #[test]
    fn functions_are_found_by_name_and_told_apart_by_address() {
        assert_eq!(find("fork"), [0]);
        assert_eq!(find("init"), [0x40, 0x80]);
        assert_eq!(find("init@ffffffff81000080"), [0x80]);
        assert_eq!(find("init@0xffffffff81000040@1234"), [0x40]);
        assert_eq!(find("init@1234"), [0u64; 0]);
        assert_eq!(find("fork@1234"), [0], "an address of the other side");
        assert_eq!(find("odd@name"), [0xc0]);
        assert_eq!(find("table"), [0u64; 0], "data");
        let [function] = &names().find(&Wanted::parse("fork"))[..] else { panic!("one") };
        assert_eq!(function.range, 0xffff_ffff_8100_0000..0xffff_ffff_8100_0040);
    }

    #[test]
    fn names_that_are_not_there_are_answered_with_near_ones() {
        let names = names();
        let like = |text: &str| names.like(&Wanted::parse(text)).join(" ");
        assert_eq!(like("frok"), "fork");
        assert_eq!(like("odd"), "odd@name");
        assert_eq!(like("xyzzyx"), "");
    }

    #[test]
    fn addresses_have_names() {
        let names = names();
        assert_eq!(names.code_at(0xffff_ffff_8100_0044), Some(("init", 4)));
        assert_eq!(names.code_at(0x44), None);
        assert_eq!(names.per_cpu_at(0x1008), Some(("pcpu_hot", 8)));
        assert_eq!(names.operand_at(0xffff_ffff_8100_0108), Some(("table", 8)));
        assert_eq!(names.operand_at(u64::MAX - 4094), None, "an error number");
    }
}
