//! The kernel's random pool.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::check;

/// 32-bit words that are put into the pool.
const WORDS: usize = 16;

/// `_IOW('R', 3, int[2])`: adds words and counts them as entropy.
const RNDADDENTROPY: libc::Ioctl = 0x4008_5203;

/// `struct rand_pool_info` with room for [`WORDS`].
#[repr(C)]
struct PoolInfo {
    entropy_bits: libc::c_int,
    bytes: libc::c_int,
    words: [u32; WORDS],
}

/// Puts fixed words into the pool of `random` and counts every bit of them as entropy, so that the
/// kernel's generator is ready.
pub fn seed_pool(random: BorrowedFd<'_>, words: [u32; WORDS]) -> io::Result<()> {
    let info = PoolInfo { entropy_bits: 512, bytes: 64, words };
    // SAFETY: RNDADDENTROPY reads a rand_pool_info and as many bytes behind its head as it says.
    check(unsafe { libc::ioctl(random.as_raw_fd(), RNDADDENTROPY, &raw const info) })?;
    Ok(())
}
