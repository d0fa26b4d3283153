//! Marks for the plugin that counts exact runs; NOPs everywhere else.

use std::arch::asm;

use kduel_protocol::Mark;

const BEGIN: [u8; 7] = Mark::Begin.bytes();
const END: [u8; 7] = Mark::End.bytes();

/// Places a mark in the instruction stream, the window's number in `rdi`.
macro_rules! place {
    ($mark:ident, $number:expr) => {
        // SAFETY: a NOP with a memory operand accesses no memory, whatever `rax` holds; nothing is
        // changed. It may not be moved across memory accesses, so it says nothing about them.
        unsafe {
            asm!(
                ".byte {}, {}, {}, {}, {}, {}, {}",
                const $mark[0], const $mark[1], const $mark[2], const $mark[3],
                const $mark[4], const $mark[5], const $mark[6],
                in("rdi") $number,
                options(nostack, preserves_flags),
            )
        }
    };
}

/// Counting starts behind it, for this task and its descendants.
#[inline]
pub fn mark_begin(window: u64) {
    place!(BEGIN, window);
}

/// Counting ends before it.
#[inline]
pub fn mark_end(window: u64) {
    place!(END, window);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_do_nothing() {
        let mut sum = 0u64;
        for number in [0, 65_536, u64::MAX] {
            mark_begin(number);
            sum = sum.wrapping_add(number);
            mark_end(number);
        }
        assert_eq!(sum, 65_535);
    }
}
