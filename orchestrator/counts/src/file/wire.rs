//! Numbers and records as bytes.

/// Appends numbers to a payload.
#[derive(Debug, Default)]
pub(super) struct Payload(pub Vec<u8>);

impl Payload {
    pub fn number(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.0.push(low & 0x7f);
            }
            self.0.push(low | 0x80);
        }
    }

    pub fn size(&mut self, value: usize) {
        self.number(value as u64);
    }

    pub fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// The whole record with tag, length and checksum.
    pub fn seal(self, tag: u8, into: &mut Vec<u8>) {
        let start = into.len();
        into.push(tag);
        // A payload of 4 GiB cannot come about: the reader's own bound is far below.
        into.extend_from_slice(&u32::try_from(self.0.len()).unwrap_or(u32::MAX).to_le_bytes());
        into.extend_from_slice(&self.0);
        let sum = crc32c::crc32c(&into[start..]);
        into.extend_from_slice(&sum.to_le_bytes());
    }
}

/// Takes numbers from a payload; `None` where it ends early or a number is too large.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    /// How many items follow, each of at least one byte: more cannot be there.
    pub fn length(&mut self) -> Option<usize> {
        self.size().filter(|length| *length <= self.0.len())
    }

    pub fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}
