//! Causes of writes to leaves, derived from fingerprints of their items.

use crate::bytes::fingerprint;
use crate::{Cause, Causes};
use fscost_ondisk::reiserfs::{Kind, items};
use std::collections::HashMap;

/// Fingerprints of all leaves.
#[derive(Debug, Default)]
pub struct Leaves(HashMap<u64, Parts>);

/// Fingerprints of a leaf's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Parts {
    stat: u32,
    pointers: u32,
    data: u32,
    names: u32,
}

impl Leaves {
    /// Returns why a leaf was written, from its differences from the last known version.
    pub fn causes(&mut self, block: u64, content: &[u8]) -> Causes {
        let mut now = Parts::default();
        for item in items(content) {
            let field = match item.kind {
                Kind::Stat => &mut now.stat,
                Kind::Indirect => &mut now.pointers,
                Kind::Direct => &mut now.data,
                Kind::Directory => &mut now.names,
            };
            *field = field.rotate_left(1) ^ fingerprint([item.body]) ^ item.object;
        }
        let before = self.0.insert(block, now).unwrap_or_default();
        let found = Causes::of([
            (now.pointers != before.pointers, Cause::SizeOrExtents),
            (now.data != before.data, Cause::Data),
            (now.names != before.names, Cause::DirectoryEntries),
        ]);
        found.or(match now.stat == before.stat {
            // Times, size and link count are all in one item.
            false => Cause::Accounting,
            true => Cause::Unchanged,
        })
    }
}
