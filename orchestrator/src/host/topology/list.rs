use std::fmt;

use kduel_protocol::ranges;
use serde::{Deserialize, Serialize};

/// No host has CPUs of a higher number: the kernel's own limit is 8192.
const MOST: u32 = 1 << 14;

/// CPUs of the host in ascending order, as the kernel writes them: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<u32>);

impl CpuList {
    /// Reads the kernel's form; nothing of `text` if it is not that.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text == "(null)" {
            return Some(Self::default());
        }
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().ok()?;
            let last: u32 = last.trim().parse().ok()?;
            if first > last || last >= MOST {
                return None;
            }
            cpus.extend(first..=last);
        }
        Some(cpus.into_iter().collect())
    }

    /// The numbers.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The lowest.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Whether `cpu` is one of them.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ranges(&self.0))
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

impl TryFrom<String> for CpuList {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no list of CPUs such as 0-3,8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_form_is_read_and_written() {
        for text in ["", "0", "0-3", "0,2,4-7", "5,7-8"] {
            assert_eq!(CpuList::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CpuList::parse(" (null)\n").unwrap(), CpuList::default());
        assert_eq!(CpuList::parse("3,0-1,1\n").unwrap().to_string(), "0-1,3");
        for bad in ["x", "3-1", "1-", "-1", "0-99999999", ",", "1,,2"] {
            assert_eq!(CpuList::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn it_is_stored_as_a_string() {
        let list = CpuList::parse("0-3,8").unwrap();
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(json, r#""0-3,8""#);
        assert_eq!(serde_json::from_str::<CpuList>(&json).unwrap(), list);
        assert!(serde_json::from_str::<CpuList>(r#""3-1""#).is_err());
    }
}
