//! What can be compared of an inode with its version before: why it was written.

use crate::bytes::part;
use crate::{Cause, Causes};

/// Of each part of an inode; parts that it does not have are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fingerprints {
    /// The access time.
    pub atime: u32,
    /// Other times.
    pub times: u32,
    /// Size, and where its blocks are.
    pub map: u32,
    /// Data that is in it.
    pub data: u32,
    /// Names that are in it.
    pub names: u32,
    /// Mode, owner, links, flags, extended attributes.
    pub attributes: u32,
}

impl Fingerprints {
    /// Why this was written over `before`.
    pub fn causes(&self, before: &Fingerprints) -> Causes {
        let differs = [
            (self.map != before.map, Cause::SizeOrMap),
            (self.data != before.data, Cause::Data),
            (self.names != before.names, Cause::Names),
            (self.attributes != before.attributes, Cause::LinksOrMode),
        ];
        let more = differs.into_iter().filter(|&(differs, _)| differs);
        let causes = more.fold(Causes::NONE, |causes, (_, cause)| causes.with(cause));
        if !causes.is_empty() {
            return causes;
        }
        // Times change with whatever else does.
        Causes::one(if self.times != before.times {
            Cause::Times
        } else if self.atime != before.atime {
            Cause::Atime
        } else {
            Cause::Unchanged
        })
    }
}

/// Of these ranges of bytes.
pub fn of(bytes: &[u8], ranges: &[(usize, usize)]) -> u32 {
    let parts = ranges.iter().map(|&(from, to)| part(bytes, from, to));
    parts.fold(0, crc32c::crc32c_append)
}
