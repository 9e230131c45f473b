//! The states of many cuts, each image once.

use crate::{
    Choice, Contents, Cut, Identities, Model, base::Base, choose::each_choice, identity::ByDigest,
};
use std::{collections::hash_map::Entry, fmt};

/// States of several cuts, each image once: at the last cut that may leave it. The same image may
/// be allowed at one cut, and lack at a later one what a call has made durable since. Their digests
/// take 32 bytes each; images and contents are never held.
#[derive(Debug)]
pub struct Enumeration {
    seen: ByDigest<Known>,
    base: Base,
    cuts: u64,
    tried: u64,
    bytes: usize,
    most_bytes: usize,
}

/// A state that was found.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Number of its cut.
    cut: u64,
    /// Its own number, and how many units it keeps.
    number: u32,
    units: u32,
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
            seen: ByDigest::default(),
            base: Base::default(),
            cuts: 0,
            tried: 0,
            bytes: 0,
            most_bytes,
        }
    }

    /// Returns at most `most` states of a cut, with their numbers. One with the number of an
    /// earlier cut's state has its image, and takes its place. Cuts are of the same requests, and
    /// come in order of time.
    pub fn add(
        &mut self,
        contents: &Contents,
        cut: &Cut<'_>,
        model: Model,
        most: usize,
        seed: u64,
    ) -> Result<Vec<(u32, Choice)>, TooMany> {
        let identities = Identities::after(&mut self.base, contents, cut);
        let mut found = Vec::new();
        self.cuts += 1;
        each_choice(cut, model, most, seed, |how, kept| {
            self.tried += 1;
            let number = self.seen.len() as u32;
            let known = match self.seen.entry(identities.of_kept(kept)) {
                Entry::Occupied(known) if known.get().cut == self.cuts => return true,
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    self.bytes += size_of::<(u128, Known)>() + size_of::<Choice>();
                    place.insert(Known {
                        cut: 0,
                        number,
                        units: 0,
                    })
                }
            };
            let kept = kept.places();
            self.bytes -= size_of::<u32>() * known.units as usize;
            self.bytes += size_of_val(&kept[..]);
            (known.cut, known.units) = (self.cuts, kept.len() as u32);
            found.push((known.number, Choice { how, kept }));
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
