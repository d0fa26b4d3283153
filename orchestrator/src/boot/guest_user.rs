//! Users for guests: each QEMU started by root runs as a user of its own.
//!
//! The range is 0x70000000 to 0x73ffffff (1879048192 to 1946157055), which no distribution gives to
//! people, services or containers. A user's number is made of kduel's process id and a slot.

use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u32 = 0x7000_0000;
const PID_BITS: u32 = 0x3f_ffff;
const SLOT_BITS: u32 = 4;

/// One bit per slot in use.
static SLOTS: AtomicU16 = AtomicU16::new(0);

/// A user that no other guest of this host has until this is dropped.
#[derive(Debug)]
pub struct GuestUser {
    slot: u32,
}

impl GuestUser {
    /// Takes a free one; none if sixteen guests run already.
    pub fn take() -> Option<Self> {
        let taken = SLOTS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |slots| {
            (slots != u16::MAX).then(|| slots | 1 << slots.trailing_ones())
        });
        Some(Self { slot: taken.ok()?.trailing_ones() })
    }

    /// Its number, which is its group's as well.
    pub fn uid(&self) -> u32 {
        FIRST + ((std::process::id() & PID_BITS) << SLOT_BITS | self.slot)
    }
}

impl Drop for GuestUser {
    fn drop(&mut self) {
        SLOTS.fetch_and(!(1 << self.slot), Ordering::Relaxed);
    }
}

/// Whether `uid` exists in the user namespace that `map`, the content of `/proc/self/uid_map`,
/// describes. In a container it may not.
pub fn mapped(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(length))) =
            (fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        (first..first.saturating_add(length)).contains(&u64::from(uid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_differ_until_they_are_given_back() {
        let first = GuestUser::take().unwrap();
        let second = GuestUser::take().unwrap();
        assert_ne!(first.uid(), second.uid());
        assert!((0x7000_0000..=0x73ff_ffff).contains(&second.uid()));
    }

    #[test]
    fn a_container_may_lack_the_range() {
        assert!(mapped("         0          0 4294967295\n", 0x7000_0000));
        assert!(!mapped("         0     100000      65536\n", 0x7000_0000));
        assert!(!mapped("nonsense", 0x7000_0000));
    }
}
