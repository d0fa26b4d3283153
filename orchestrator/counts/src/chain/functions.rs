//! Which function an address belongs to.

use std::collections::BTreeMap;

use super::Place;
use crate::symbols::{Symbol, Symbols};

/// Everything that processes execute.
pub(crate) const USER: u32 = 0;

/// Code of the kernel that no symbol covers.
const UNKNOWN: u32 = 1;

/// Functions by address; the first two places are for code without symbols.
#[derive(Debug)]
pub(crate) struct Functions {
    /// Ascending, with the place of the function that begins there.
    starts: Vec<(u64, Place)>,
    /// Name and address, by place.
    functions: Vec<(String, u64)>,
}

impl Functions {
    /// All code among the symbols. The part of a function that was moved out of the way, `NAME.cold`,
    /// belongs to `NAME`.
    pub fn new(symbols: &Symbols) -> Self {
        let mut functions = vec![("[user]".to_owned(), 0), ("[unknown]".to_owned(), 0)];
        let mut starts = Vec::new();
        let code: Vec<&Symbol> = symbols.iter().filter(|s| "tTwW".contains(s.letter)).collect();
        let of_one_address = code.chunk_by(|a, b| a.address == b.address);
        let named: Vec<&Symbol> = of_one_address.filter_map(best).collect();
        let mut by_name = BTreeMap::<&str, Vec<u32>>::new();
        for symbol in named.iter().filter(|symbol| hot_part(&symbol.name).is_none()) {
            let place = u32::try_from(functions.len()).unwrap_or(UNKNOWN);
            functions.push((symbol.name.clone(), symbol.address));
            starts.push((symbol.address, Place { function: place, start: true }));
            by_name.entry(&symbol.name).or_default().push(place);
        }
        for symbol in &named {
            let Some(hot) = hot_part(&symbol.name) else { continue };
            let place = match by_name.get(hot).map(Vec::as_slice) {
                Some(&[function]) => Place { function, start: false },
                _ => {
                    functions.push((symbol.name.clone(), symbol.address));
                    let function = u32::try_from(functions.len() - 1).unwrap_or(UNKNOWN);
                    Place { function, start: true }
                }
            };
            starts.push((symbol.address, place));
        }
        starts.sort_unstable_by_key(|(address, _)| *address);
        Self { starts, functions }
    }

    /// The function at an address.
    pub fn at(&self, address: u64) -> Place {
        if address >> 63 == 0 {
            return Place { function: USER, start: false };
        }
        let behind = self.starts.partition_point(|(start, _)| *start <= address);
        match behind.checked_sub(1).and_then(|index| self.starts.get(index)) {
            Some((start, place)) => Place { start: place.start && *start == address, ..*place },
            None => Place { function: UNKNOWN, start: false },
        }
    }

    /// Name and address of a function.
    pub fn get(&self, function: u32) -> (&str, u64) {
        self.functions.get(function as usize).map_or(("", 0), |(name, at)| (name, *at))
    }
}

/// `NAME` of `NAME.cold` and `NAME.cold.12`.
fn hot_part(name: &str) -> Option<&str> {
    name.split_once(".cold").map(|(hot, _)| hot)
}

/// Of several names of one address the one that is no bound of a section and has the fewest
/// underscores in front.
fn best<'a>(aliases: &[&'a Symbol]) -> Option<&'a Symbol> {
    let rank = |symbol: &&&'a Symbol| {
        let name = symbol.name.as_str();
        let bound = name.ends_with("text_start") || name.ends_with("text_end");
        (bound, name.len() - name.trim_start_matches('_').len())
    };
    aliases.iter().min_by_key(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_to_the_function_before_them() {
        let text = "ffffffff81000000 T __entry_text_start\nffffffff81000000 T entry\n\
                    ffffffff81000100 t twice\nffffffff81000200 t twice\n\
                    ffffffff81000300 t entry.cold\nffffffff81000400 t twice.cold\n\
                    ffffffff81000500 d data\n";
        let functions = Functions::new(&Symbols::parse(text).expect("well-formed"));
        let name = |offset: u64| {
            let place = functions.at(0xffff_ffff_8100_0000 + offset);
            (functions.get(place.function).0, place.start)
        };
        assert_eq!(name(0), ("entry", true));
        assert_eq!(name(8), ("entry", false));
        assert_eq!(name(0x300), ("entry", false), "its cold part, which is no call of it");
        assert_eq!(name(0x400), ("twice.cold", true), "one of two, nobody knows which");
        assert_eq!(name(0x508), ("twice.cold", false), "data is no function");
        assert_eq!(functions.at(0x1000).function, USER);
        assert_eq!(functions.at(0xffff_0000_0000_0000).function, UNKNOWN);
    }
}
