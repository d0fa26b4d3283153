//! Names of processes and numbers of system calls.

use super::{COMPAT, Guest, Register, Tracker};

/// A task's name is at most so long, in words of eight bytes.
const WORDS: u64 = 2;

/// Names of processes in the order in which they were first given; place zero is for those without.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    fn place(&mut self, name: String) -> u16 {
        let known = self.0.iter().position(|known| *known == name);
        let index = known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        });
        u16::try_from(index + 1).unwrap_or(0)
    }

    /// The name at a place, empty if there is none.
    pub fn at(&self, place: u16) -> &str {
        let name = usize::from(place).checked_sub(1).and_then(|index| self.0.get(index));
        name.map_or("", String::as_str)
    }
}

impl Tracker {
    /// The kernel gives a task its name, as it does when the task executes a program.
    pub(super) fn name_task(&mut self, guest: &mut impl Guest) {
        let (Some(task), Some(text)) =
            (guest.register(Register::Rdi), guest.register(Register::Rsi))
        else {
            self.shortfall.unreadable += 1;
            return;
        };
        let words = (0..WORDS).map_while(|word| guest.memory(text.wrapping_add(8 * word)));
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).take_while(|b| *b != 0).collect();
        // As long as the kernel keeps it: the last byte of sixteen is a zero.
        let kept = bytes.get(..15).unwrap_or(&bytes);
        let place = self.names.place(String::from_utf8_lossy(kept).into_owned());
        self.tasks.get(task).process = place;
        for state in &mut self.vcpus {
            if state.task == Some(task) {
                state.process = place;
            }
        }
    }
}

/// The number of a system call from what `rax` holds; nothing if no kernel has so many.
pub(super) fn syscall(rax: u64, compat: bool) -> Option<u16> {
    // The kernel looks at the lower half only.
    let number = u16::try_from(rax & 0xffff_ffff).ok().filter(|number| *number < COMPAT)?;
    Some(if compat { COMPAT + number } else { number })
}
