//! Mappings of an inode and its nodes: extent trees and blocks of pointers.

use super::{
    inode::Inode,
    layout::{Content, Kind},
    superblock::Superblock,
};
use crate::bytes::{le16, le32};

/// Maximum depth of a tree of nodes, of either kind.
pub const MAX_DEPTH: u16 = 5;

/// Blocks that an inode or a node claims as in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The first block.
    pub start: u64,
    /// Number of blocks.
    pub length: u64,
    /// Purpose of the blocks.
    pub kind: Kind,
    /// File block number of the first block, or of the first block that it maps. In a block of
    /// pointers, it counts from the first file block that the block of pointers maps.
    pub first: u64,
}

impl Claim {
    fn of_block(start: u64, kind: Kind, first: u64) -> Claim {
        Claim {
            start,
            length: 1,
            kind,
            first,
        }
    }

    /// Returns the part of the claim from block `start` to block `end`; `None` if it is empty.
    fn part(&self, start: u64, end: u64) -> Option<Claim> {
        let length = end.checked_sub(start).filter(|&length| length > 0)?;
        let first = self.first.saturating_add(start - self.start);
        Some(Claim {
            start,
            length,
            first,
            ..*self
        })
    }

    fn is_inside(&self, superblock: &Superblock) -> bool {
        let end = self.start.checked_add(self.length);
        self.start > superblock.first_data_block
            && self.length > 0
            && end.is_some_and(|end| end <= superblock.blocks)
    }
}

/// Magic number at the start of an extent node.
pub const EXTENT_MAGIC: u16 = 0xF30A;
/// Maximum length of a written extent. A longer extent is unwritten, and its length is the excess.
const EXTENT_MAX_LENGTH: u16 = 32768;

/// Claims of the inode itself.
pub fn of_inode(inode: Inode<'_>, number: u32, superblock: &Superblock) -> Vec<Claim> {
    let mut claims = Vec::new();
    if inode.maps_blocks() {
        let content = inode.content(number, superblock);
        if inode.has_extents() {
            claims = of_extents(inode.block(), content, superblock);
        } else {
            let direct = inode.block().get(..48).unwrap_or_default();
            claims = of_pointers(direct, 0, content, superblock);
            let mut first = 12;
            for level in 1..=3u8 {
                let start = u64::from(le32(inode.block(), 44 + 4 * usize::from(level)));
                claims.push(Claim::of_block(
                    start,
                    Kind::Pointers(level, content),
                    first,
                ));
                first += mapped_by_pointer(level, superblock);
            }
        }
    }
    claims.push(Claim::of_block(inode.xattr_block(), Kind::Xattr, 0));
    claims.retain(|claim| claim.is_inside(superblock));
    claims
}

/// Claims of a node; empty if the block is not a node.
pub fn of_node(kind: Kind, block: &[u8], superblock: &Superblock) -> Vec<Claim> {
    match kind {
        Kind::Extents(content) => of_extents(block, content, superblock),
        Kind::Pointers(level, content) => {
            of_pointers(block, level.saturating_sub(1), content, superblock)
        }
        _ => Vec::new(),
    }
}

/// Returns whether a block may be a node of this kind, judging by its form. For pointers, only
/// their bounds can be checked.
pub fn is_form_of(kind: Kind, block: &[u8], superblock: &Superblock) -> bool {
    match kind {
        Kind::Extents(_) => is_extents(block),
        Kind::Pointers(..) => are_pointers(block, superblock),
        _ => false,
    }
}

/// Returns whether a block has the form of a node: of extents, or of pointers. A node without
/// entries does not count.
pub fn looks_like_node(block: &[u8], superblock: &Superblock) -> bool {
    (is_extents(block) && le16(block, 2) > 0)
        || (are_pointers(block, superblock) && block.iter().any(|&byte| byte != 0))
}

/// Returns the end of the entries in an extent node, and the end of the space for entries. In a
/// block, the checksum follows that space.
pub fn extents_end(node: &[u8]) -> Option<(usize, usize)> {
    let end = |count: u16| (12 + 12 * usize::from(count)).min(node.len());
    is_extents(node).then(|| (end(le16(node, 2)), end(le16(node, 4))))
}

fn is_extents(node: &[u8]) -> bool {
    le16(node, 0) == EXTENT_MAGIC && le16(node, 2) <= le16(node, 4) && le16(node, 6) <= MAX_DEPTH
}

fn are_pointers(block: &[u8], superblock: &Superblock) -> bool {
    let bounds = superblock.first_data_block + 1..superblock.blocks;
    let mut pointers = block.chunks_exact(4).map(|p| u64::from(le32(p, 0)));
    pointers.all(|pointer| pointer == 0 || bounds.contains(&pointer))
}

/// Claims of an extent tree node: Linux `fs/ext4/ext4_extents.h`.
fn of_extents(node: &[u8], content: Content, superblock: &Superblock) -> Vec<Claim> {
    if !is_extents(node) {
        return Vec::new();
    }
    let (count, depth) = (le16(node, 2), le16(node, 6));
    let entries = node.chunks_exact(12).skip(1).take(usize::from(count));
    let claims = entries.map(|entry| match depth {
        0 => extent(entry, content),
        _ => {
            let start = u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4));
            Claim::of_block(start, Kind::Extents(content), le32(entry, 0).into())
        }
    });
    claims.filter(|claim| claim.is_inside(superblock)).collect()
}

/// Claim of a single extent, if it lies inside the file system.
pub fn of_extent(entry: &[u8], content: Content, superblock: &Superblock) -> Option<Claim> {
    Some(extent(entry, content)).filter(|claim| claim.is_inside(superblock))
}

fn extent(entry: &[u8], content: Content) -> Claim {
    let length = le16(entry, 4);
    let excess = length.saturating_sub(EXTENT_MAX_LENGTH);
    let length = if excess > 0 { excess } else { length };
    Claim {
        start: u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8)),
        length: u64::from(length),
        kind: Kind::Content(content),
        first: u64::from(le32(entry, 0)),
    }
}

/// Claims of pointers to blocks `level` levels above the content. Pointers have no magic number: if
/// one points outside the file system, all are rejected.
fn of_pointers(
    pointers: &[u8],
    level: u8,
    content: Content,
    superblock: &Superblock,
) -> Vec<Claim> {
    let kind = match level {
        0 => Kind::Content(content),
        _ => Kind::Pointers(level, content),
    };
    let mut claims: Vec<Claim> = Vec::new();
    let step = mapped_by_pointer(level, superblock);
    for (index, pointer) in pointers.chunks_exact(4).enumerate() {
        let (start, first) = (u64::from(le32(pointer, 0)), index as u64 * step);
        if start == 0 {
            continue;
        }
        match claims.last_mut() {
            _ if start <= superblock.first_data_block || start >= superblock.blocks => {
                return Vec::new();
            }
            Some(last)
                if level == 0
                    && last.start + last.length == start
                    && last.first + last.length == first =>
            {
                last.length += 1;
            }
            _ => claims.push(Claim::of_block(start, kind, first)),
        }
    }
    claims
}

/// Number of content blocks that a pointer to a block of `level` maps.
fn mapped_by_pointer(level: u8, superblock: &Superblock) -> u64 {
    u64::from(superblock.block_bytes / 4).pow(u32::from(level.min(3)))
}

/// Returns the parts of the claims that only `old` contains, and those that only `new` contains.
/// A block that is mapped for the same purpose by both is in neither, even if an extent has grown.
pub fn differences(mut old: Vec<Claim>, mut new: Vec<Claim>) -> (Vec<Claim>, Vec<Claim>) {
    old.sort_unstable_by_key(by_kind);
    new.sort_unstable_by_key(by_kind);
    (without(&old, &new), without(&new, &old))
}

fn by_kind(claim: &Claim) -> (Kind, u64) {
    (claim.kind, claim.start)
}

/// Returns the parts of the claims in `list` that no claim in `other` covers; both are sorted.
fn without(list: &[Claim], other: &[Claim]) -> Vec<Claim> {
    let mut other = other.iter().peekable();
    let mut found = Vec::new();
    // Where the claims of `other` seen so far end. Blocks before it are covered or found.
    let mut covered = None;
    for claim in list {
        let end = claim.start + claim.length;
        let of_kind = covered.filter(|&(kind, _)| kind == claim.kind);
        let mut at = of_kind.map_or(claim.start, |(_, to)| claim.start.max(to));
        while let Some(each) = other.next_if(|each| by_kind(each) < (claim.kind, end)) {
            if each.kind == claim.kind {
                found.extend(claim.part(at, each.start));
                at = at.max(each.start + each.length);
                covered = Some((claim.kind, at));
            }
        }
        found.extend(claim.part(at, end));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prop_assert_eq};
    use std::collections::BTreeSet;

    proptest::proptest! {
        #[test]
        fn differences_are_the_blocks_that_only_one_list_has(
            old in vec((0_u64..30, 1_u64..5, 0_u8..2), 0..10),
            new in vec((0_u64..30, 1_u64..5, 0_u8..2), 0..10),
        ) {
            let kind = |level| Kind::Pointers(level, Content::Data);
            let claims = |list: &[(u64, u64, u8)]| -> Vec<Claim> {
                let of = |&(start, length, level)| {
                    Claim { start, length, kind: kind(level), first: start + 100 }
                };
                list.iter().map(of).collect()
            };
            let blocks = |list: &[Claim]| -> BTreeSet<(Kind, u64, u64)> {
                let of = |c: &Claim| {
                    let Claim { start, length, kind, first } = *c;
                    (0..length).map(move |at| (kind, start + at, first + at))
                };
                list.iter().flat_map(of).collect()
            };
            let (old, new) = (claims(&old), claims(&new));
            let (of_old, of_new) = (blocks(&old), blocks(&new));
            let (gone, come) = differences(old, new);
            prop_assert_eq!(blocks(&gone), &of_old - &of_new);
            prop_assert_eq!(blocks(&come), &of_new - &of_old);
        }
    }
}
