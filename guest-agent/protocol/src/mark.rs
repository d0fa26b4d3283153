//! Marks: instructions that do nothing, by which a guest tells the counting plugin where a window
//! begins and ends.
//!
//! A mark is the seven-byte NOP `0f 1f 80` whose displacement is the magic `6b 64 75` and the kind.
//! The plugin spots it when it translates the block that holds it; everywhere else it is a NOP.
//! The window's number is in `rdi` when the mark is executed. The task that executes
//! [`Mark::Begin`] and every task descended from it are the *own tasks* of the window.

/// The opcode and the addressing byte of a NOP with a four-byte displacement.
pub const MARK_OPCODE: [u8; 3] = [0x0f, 0x1f, 0x80];

/// The first three bytes of the displacement.
pub const MARK_MAGIC: [u8; 3] = *b"kdu";

/// Length of a mark in bytes.
pub const MARK_LENGTH: usize = 7;

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Counting starts with the instruction behind the mark.
    Begin,
    /// Counting ended with the instruction before the mark.
    End,
}

impl Mark {
    /// The instruction, to be placed with `.byte` in an `asm!` block.
    pub const fn bytes(self) -> [u8; MARK_LENGTH] {
        let [o0, o1, o2] = MARK_OPCODE;
        let [m0, m1, m2] = MARK_MAGIC;
        let kind = match self {
            Self::Begin => 1,
            Self::End => 2,
        };
        [o0, o1, o2, m0, m1, m2, kind]
    }

    /// Which mark these bytes of one whole instruction are, if they are one.
    pub fn read(instruction: &[u8]) -> Option<Self> {
        [Self::Begin, Self::End].into_iter().find(|mark| mark.bytes() == instruction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_back_and_nothing_else_is() {
        for mark in [Mark::Begin, Mark::End] {
            assert_eq!(Mark::read(&mark.bytes()), Some(mark));
        }
        assert_eq!(Mark::read(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None, "the compiler's own padding");
        assert_eq!(Mark::read(&[0x0f, 0x1f, 0x80, b'k', b'd', b'u', 3]), None);
        assert_eq!(Mark::read(&Mark::Begin.bytes()[..6]), None);
    }
}
