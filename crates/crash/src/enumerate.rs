//! The states of many cuts, each image once.

use crate::{
    Choice, Contents, Cut, Identities, Model, base::Base, choose::each_choice, identity::Digests,
};
use std::fmt;

/// States of several cuts, without those whose image equals that of an earlier one. Their digests
/// take 16 bytes each; images and contents are never held.
#[derive(Debug)]
pub struct Enumeration {
    seen: Digests,
    base: Base,
    tried: u64,
    bytes: usize,
    most_bytes: usize,
}

/// The states take more memory than they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    /// The limit.
    pub most_bytes: usize,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.most_bytes >> 20;
        write!(f, "the states take more than {mib} MiB of memory")
    }
}

impl std::error::Error for TooMany {}

impl Enumeration {
    /// Begins without states. `most_bytes` limits the memory that all of them take, with the
    /// choices that [`add`](Self::add) returns.
    pub fn new(most_bytes: usize) -> Enumeration {
        Enumeration {
            seen: Digests::default(),
            base: Base::default(),
            tried: 0,
            bytes: 0,
            most_bytes,
        }
    }

    /// Returns the new states among at most `most` of a cut. All cuts are of the same requests. A
    /// cut later than the last one costs less than an earlier one.
    pub fn add(
        &mut self,
        contents: &Contents,
        cut: &Cut<'_>,
        model: Model,
        most: usize,
        seed: u64,
    ) -> Result<Vec<Choice>, TooMany> {
        let identities = Identities::after(&mut self.base, contents, cut);
        let mut found = Vec::new();
        each_choice(cut, model, most, seed, |how, kept| {
            self.tried += 1;
            if self.seen.insert(identities.of_kept(kept)) {
                let kept = kept.places();
                self.bytes += size_of::<u128>() + size_of::<Choice>() + size_of_val(&kept[..]);
                found.push(Choice { how, kept });
            }
            self.bytes <= self.most_bytes
        });
        if self.bytes > self.most_bytes {
            return Err(TooMany {
                most_bytes: self.most_bytes,
            });
        }
        Ok(found)
    }

    /// States before those with equal images were left out.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// States with different images.
    pub fn different(&self) -> usize {
        self.seen.len()
    }
}
