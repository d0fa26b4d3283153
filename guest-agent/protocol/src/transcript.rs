use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The end marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct End {
    /// The plan's nonce, so that a kernel which prints an end marker of its own proves nothing.
    pub nonce: String,
    /// Lines before this one.
    pub lines: u64,
    /// Sample lines among them.
    pub samples: u64,
    /// SHA-256, lower-case hex, over all lines before this one, each with its newline.
    pub sha256: String,
}

/// Counts and hashes lines on both sides of the wire.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    hash: Sha256,
    lines: u64,
    samples: u64,
}

/// How an end marker differs from the lines that came before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TranscriptError {
    /// Not the nonce of this boot's plan.
    Nonce,
    /// Lines or samples are missing or doubled.
    Count {
        /// What the marker says: lines, samples.
        said: (u64, u64),
        /// What arrived.
        seen: (u64, u64),
    },
    /// A line arrived changed or in another order.
    Checksum,
}

impl Transcript {
    /// Takes one line, without its newline.
    pub fn add(&mut self, line: &str, is_sample: bool) {
        self.hash.update(line.as_bytes());
        self.hash.update(b"\n");
        self.lines += 1;
        self.samples += u64::from(is_sample);
    }

    /// The marker that fits the lines so far.
    pub fn end(&self, nonce: &str) -> End {
        let digest = self.hash.clone().finalize();
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        End { nonce: nonce.to_owned(), lines: self.lines, samples: self.samples, sha256 }
    }

    /// Whether `end` proves that all lines arrived.
    ///
    /// # Errors
    ///
    /// The first of nonce, count and checksum that does not fit.
    pub fn check(&self, end: &End, nonce: &str) -> Result<(), TranscriptError> {
        if end.nonce != nonce {
            return Err(TranscriptError::Nonce);
        }
        let (said, seen) = ((end.lines, end.samples), (self.lines, self.samples));
        if said != seen {
            return Err(TranscriptError::Count { said, seen });
        }
        if *end != self.end(nonce) {
            return Err(TranscriptError::Checksum);
        }
        Ok(())
    }
}
