//! What an inode and the nodes below it map: extent trees, and blocks of pointers.

use super::{
    inode::Inode,
    space::{Content, Kind, Mapper, Use},
    superblock::Superblock,
};
use crate::bytes::{le16, le32};

/// Nodes below each other, of either kind.
pub const MAX_DEPTH: u16 = 5;

/// Blocks that an inode or a node says are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The first block.
    pub start: u64,
    /// Blocks.
    pub length: u64,
    /// What for.
    pub kind: Kind,
    /// Which block of the file the first is (or maps first), counted from the first that a node of
    /// pointers maps.
    pub first: u64,
}

impl Claim {
    /// The use of the blocks, if this maps them.
    pub fn used(&self, mapper: Mapper) -> Use {
        Use {
            kind: self.kind,
            inode: mapper.inode,
            node: mapper.node,
        }
    }
}

const EXTENT_MAGIC: u16 = 0xF30A;
/// An extent longer than this is unwritten, and its length is what it is longer by.
const EXTENT_MAX_LENGTH: u16 = 32768;

/// What an inode claims itself.
pub fn of_inode(inode: Inode<'_>, number: u32, superblock: &Superblock) -> Vec<Claim> {
    let mut claims = Vec::new();
    if inode.maps_blocks() {
        let content = inode.content(number, superblock);
        if inode.has_extents() {
            claims = of_extents(inode.block(), content, superblock);
        } else {
            claims = of_pointers(
                inode.block().get(..48).unwrap_or_default(),
                0,
                content,
                superblock,
            );
            let mut first = 12;
            for level in 1..=3u8 {
                let start = u64::from(le32(inode.block(), 44 + 4 * usize::from(level)));
                let kind = Kind::Pointers(level, content);
                push(
                    &mut claims,
                    Claim {
                        start,
                        length: 1,
                        kind,
                        first,
                    },
                    superblock,
                );
                first += mapped_by_pointer(level, superblock);
            }
        }
    }
    let xattr = Claim {
        start: inode.xattr_block(),
        length: 1,
        kind: Kind::Xattr,
        first: 0,
    };
    if inode.is_directory() || inode.maps_blocks() || xattr.start > 0 {
        push(&mut claims, xattr, superblock);
    }
    claims
}

/// What a node claims; nothing if it is not one.
pub fn of_node(kind: Kind, block: &[u8], superblock: &Superblock) -> Vec<Claim> {
    match kind {
        Kind::Extents(content) => of_extents(block, content, superblock),
        Kind::Pointers(level, content) => {
            of_pointers(block, level.saturating_sub(1), content, superblock)
        }
        _ => Vec::new(),
    }
}

/// Whether a block may be a node of this kind, for all that its form tells; pointers have none but
/// their bounds.
pub fn is_form_of(kind: Kind, block: &[u8], superblock: &Superblock) -> bool {
    match kind {
        Kind::Extents(_) => is_extents(block),
        Kind::Pointers(..) => are_pointers(block, superblock),
        _ => false,
    }
}

/// Whether a block is a node, by its form: of extents, or of pointers of which there is one at
/// least.
pub fn looks_like_node(block: &[u8], superblock: &Superblock) -> bool {
    (is_extents(block) && le16(block, 2) > 0)
        || (are_pointers(block, superblock) && block.iter().any(|&byte| byte != 0))
}

fn is_extents(node: &[u8]) -> bool {
    le16(node, 0) == EXTENT_MAGIC && le16(node, 2) <= le16(node, 4) && le16(node, 6) <= MAX_DEPTH
}

fn are_pointers(block: &[u8], superblock: &Superblock) -> bool {
    let bounds = superblock.first_data_block + 1..superblock.blocks;
    let mut pointers = block.chunks_exact(4).map(|p| u64::from(le32(p, 0)));
    pointers.all(|pointer| pointer == 0 || bounds.contains(&pointer))
}

/// A node of an extent tree: Linux `fs/ext4/ext4_extents.h`.
fn of_extents(node: &[u8], content: Content, superblock: &Superblock) -> Vec<Claim> {
    let mut claims = Vec::new();
    if !is_extents(node) {
        return claims;
    }
    let (entries, depth) = (le16(node, 2), le16(node, 6));
    for entry in node.chunks_exact(12).skip(1).take(usize::from(entries)) {
        let first = u64::from(le32(entry, 0));
        let claim = if depth > 0 {
            let start = u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4));
            Claim {
                start,
                length: 1,
                kind: Kind::Extents(content),
                first,
            }
        } else {
            extent(entry, content)
        };
        push(&mut claims, claim, superblock);
    }
    claims
}

/// An extent by itself, if it lies inside the file system.
pub fn of_extent(entry: &[u8], content: Content, superblock: &Superblock) -> Option<Claim> {
    let mut claims = Vec::new();
    push(&mut claims, extent(entry, content), superblock);
    claims.pop()
}

fn extent(entry: &[u8], content: Content) -> Claim {
    let length = le16(entry, 4);
    let length = if length > EXTENT_MAX_LENGTH {
        length - EXTENT_MAX_LENGTH
    } else {
        length
    };
    Claim {
        start: u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8)),
        length: u64::from(length),
        kind: Kind::Content(content),
        first: u64::from(le32(entry, 0)),
    }
}

/// Pointers to blocks `level` above the content. They have no magic number: if one points outside,
/// none is believed.
fn of_pointers(
    pointers: &[u8],
    level: u8,
    content: Content,
    superblock: &Superblock,
) -> Vec<Claim> {
    let kind = if level == 0 {
        Kind::Content(content)
    } else {
        Kind::Pointers(level, content)
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
            _ => claims.push(Claim {
                start,
                length: 1,
                kind,
                first,
            }),
        }
    }
    claims
}

/// How many blocks of content a pointer to a block of `level` maps.
fn mapped_by_pointer(level: u8, superblock: &Superblock) -> u64 {
    u64::from(superblock.block_bytes / 4).pow(u32::from(level.min(3)))
}

fn push(claims: &mut Vec<Claim>, claim: Claim, superblock: &Superblock) {
    let inside = claim.start > superblock.first_data_block
        && claim.length > 0
        && claim
            .start
            .checked_add(claim.length)
            .is_some_and(|end| end <= superblock.blocks);
    if inside {
        claims.push(claim);
    }
}

/// What `old` has and `new` has not, and the other way round.
pub fn differences(mut old: Vec<Claim>, mut new: Vec<Claim>) -> (Vec<Claim>, Vec<Claim>) {
    old.sort_unstable();
    new.sort_unstable();
    let gone = old
        .iter()
        .filter(|c| new.binary_search(c).is_err())
        .copied()
        .collect();
    let come = new
        .iter()
        .filter(|c| old.binary_search(c).is_err())
        .copied()
        .collect();
    (gone, come)
}
