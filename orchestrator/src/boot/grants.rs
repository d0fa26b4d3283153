//! What guests of timed runs get of the host for themselves, where the user asks for it. Pure.

use serde::{Deserialize, Serialize};

use super::Accel;
use super::process::NO_FILES;

/// Nothing unless it was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Grants {
    /// The guest idles on the host's CPUs by itself, without a way out to the host. Only for vCPUs
    /// that share theirs with nobody; the host then sees these CPUs busy all the time. With KVM only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cpu_pm: bool,
    /// The guest's memory is in huge pages that the host keeps ready, all taken before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<HugePages>,
}

/// The size of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HugePages {
    /// 2 MiB.
    #[serde(rename = "2M")]
    TwoMib,
    /// 1 GiB.
    #[serde(rename = "1G")]
    OneGib,
}

impl HugePages {
    /// All sizes that x86 has.
    pub const ALL: [Self; 2] = [Self::TwoMib, Self::OneGib];

    /// Of one of them, in MiB.
    pub fn mib(self) -> u64 {
        match self {
            Self::TwoMib => 2,
            Self::OneGib => 1024,
        }
    }

    /// As QEMU and documents write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TwoMib => "2M",
            Self::OneGib => "1G",
        }
    }
}

impl Grants {
    /// Nothing was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// QEMU's arguments for a guest of `memory_mib`, with NUMA nodes or without.
    pub(super) fn options(
        &self,
        accel: Accel,
        memory_mib: u64,
        nodes: bool,
    ) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        if self.cpu_pm && accel == Accel::Kvm {
            options.push(("overcommit", "cpu-pm=on".to_owned()));
        }
        // Nodes have objects of their own.
        if self.huge_pages.is_some() && !nodes {
            let object = format!("{PLAIN},id=ram,size={memory_mib}M");
            options.push(("object", self.object(&object)));
            options.push(("machine", "memory-backend=ram".to_owned()));
        }
        options
    }

    /// How large files of QEMU may become: memory in huge pages is one, if without a name.
    pub(super) fn file_bytes(&self, memory_mib: u64) -> u64 {
        match self.huge_pages {
            Some(_) => memory_mib << 20,
            None => NO_FILES,
        }
    }

    /// An object of QEMU's, its memory in huge pages if it is memory and they were asked for.
    pub(super) fn object(&self, object: &str) -> String {
        let rest = object.strip_prefix(PLAIN).and_then(|rest| rest.strip_prefix(','));
        match (self.huge_pages, rest) {
            (Some(pages), Some(rest)) => format!(
                "memory-backend-memfd,hugetlb=on,hugetlbsize={},prealloc=on,share=off,{rest}",
                pages.name()
            ),
            _ => object.to_owned(),
        }
    }
}

/// Memory of a guest where nobody asks for more.
const PLAIN: &str = "memory-backend-ram";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_that_was_not_asked_for() {
        let none = Grants::default();
        assert_eq!(none.options(Accel::Kvm, 512, false), []);
        let object = "memory-backend-ram,id=ram0,size=512M";
        assert_eq!(none.object(object), object);
        assert_eq!(none.file_bytes(512), NO_FILES);
        assert_eq!(serde_json::to_string(&none).unwrap(), "{}");
    }

    #[test]
    fn memory_in_huge_pages_may_be_as_large_as_it_is() {
        let grants = Grants { huge_pages: Some(HugePages::TwoMib), ..Grants::default() };
        assert_eq!(grants.file_bytes(1024), 1 << 30);
    }

    #[test]
    fn objects_that_are_no_memory_stay_as_they_are() {
        let grants = Grants { huge_pages: Some(HugePages::TwoMib), ..Grants::default() };
        assert_eq!(grants.object("iothread,id=x"), "iothread,id=x");
        assert_eq!(grants.options(Accel::Kvm, 512, true), []);
    }
}
