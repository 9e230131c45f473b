//! Nodes: inodes, and blocks with addresses of data or numbers of other nodes (`struct f2fs_node`).

use super::BLOCK;
use crate::bytes::{byte, le16, le32, le64, part};
use crate::fingerprints::{self, Fingerprints};
pub use crate::mode::Kind;

const FOOTER: usize = 4072;
/// Start of an inode's addresses. They end at `ADDRESSES_END`; the numbers of five nodes follow.
const ADDRESSES: usize = 360;
const ADDRESSES_END: usize = 4052;
/// Number of node numbers in an indirect node (`NIDS_PER_BLOCK`).
const NUMBERS: u32 = 1018;
/// Offsets of the indirect nodes that an inode points to. Below the double-indirect node, each
/// indirect node precedes the direct nodes that it points to.
const INDIRECT: u32 = 3;
const SECOND_INDIRECT: u32 = 4 + NUMBERS;
const DOUBLE_INDIRECT: u32 = 5 + 2 * NUMBERS;
/// Offset stored in a node of attributes (`XATTR_NODE_OFFSET`).
const XATTR: u32 = u32::MAX >> 3;

/// A node block.
pub struct Node<'b> {
    /// Node number.
    pub number: u32,
    /// Inode that the node belongs to.
    pub inode: u32,
    /// Version of the previous checkpoint.
    pub version: u64,
    /// Position among the inode's nodes.
    place: u32,
    block: &'b [u8],
}

impl<'b> Node<'b> {
    /// Parses the node in a block, judging by its footer alone.
    pub fn parse(block: &'b [u8]) -> Option<Node<'b>> {
        let node = Node {
            number: le32(block, FOOTER),
            inode: le32(block, FOOTER + 4),
            place: le32(block, FOOTER + 8) >> 3,
            version: le64(block, FOOTER + 12),
            block,
        };
        let is_one = block.len() as u64 == BLOCK
            && node.number != 0
            && node.inode != 0
            && (node.place == 0) == (node.number == node.inode);
        is_one.then_some(node)
    }

    /// Returns whether the node is the inode itself.
    pub fn is_inode(&self) -> bool {
        self.number == self.inode
    }

    /// Returns whether an fsync wrote this node for an inode that has no name in any checkpoint
    /// (`FSYNC_BIT_SHIFT`, `DENT_BIT_SHIFT`).
    pub fn is_named_by_fsync(&self) -> bool {
        le32(self.block, FOOTER + 8) & 0x6 == 0x6
    }

    /// Directory and name that the inode was created with. After a rename, both may be outdated.
    pub fn name(&self) -> (u64, &'b [u8]) {
        let length = (le32(self.block, 88) as usize).min(255);
        let name = part(self.block, 92, 92 + length);
        (le32(self.block, 84).into(), name)
    }

    /// The inode's ctime in seconds and nanoseconds.
    pub fn changed(&self) -> (u64, u32) {
        (le64(self.block, 40), le32(self.block, 60))
    }

    /// Kind of the inode's data.
    pub fn kind(&self) -> Kind {
        Kind::of_mode(le16(self.block, 0).into())
    }

    /// Start of the inode's addresses. Newer attributes come before them (`F2FS_EXTRA_ATTR`).
    fn begin(&self) -> usize {
        match byte(self.block, 3) & 0x20 {
            0 => ADDRESSES,
            _ => ADDRESSES + usize::from(le16(self.block, ADDRESSES)),
        }
    }

    /// End of the inode's addresses. Extended attributes come after them.
    fn end(&self, flexible: bool) -> usize {
        let inline = byte(self.block, 3);
        let words = match (flexible && inline & 0x20 != 0, inline & 0x05 != 0) {
            (true, _) => usize::from(le16(self.block, ADDRESSES + 2)),
            (false, true) => 50,
            (false, false) => 0,
        };
        ADDRESSES_END.saturating_sub(words.saturating_mul(4))
    }

    /// Addresses, or inline content in their place.
    fn body(&self, flexible: bool) -> &'b [u8] {
        part(self.block, self.begin(), self.end(flexible))
    }

    /// Returns whether the inode holds data or names in place of addresses.
    fn is_inline(&self) -> bool {
        byte(self.block, 3) & 0x06 != 0
    }

    /// Returns whether a file's inode holds its data.
    pub fn has_data(&self) -> bool {
        byte(self.block, 3) & 0x02 != 0 && le64(self.block, 16) > 0 && self.kind() == Kind::Other
    }

    /// Names in a directory's inode, without the reserved word before them
    /// (`DEF_INLINE_RESERVED_SIZE`).
    pub fn inline_directory(&self, flexible: bool) -> Option<&'b [u8]> {
        let is_there = byte(self.block, 3) & 0x04 != 0;
        self.body(flexible).get(4..).filter(|_| is_there)
    }

    /// Addresses of data blocks, in order. A value of 0, or one beyond any disk, means no block.
    pub fn addresses(&self, flexible: bool) -> impl Iterator<Item = u64> + use<'b> {
        let addresses = match self.place {
            0 if self.is_inline() => &[],
            0 => self.body(flexible),
            XATTR => &[],
            place if has_numbers(place) => &[],
            _ => part(self.block, 0, FOOTER),
        };
        let words = addresses.chunks_exact(4);
        words.map(|word| le32(word, 0).into())
    }

    /// Generation; it changes when another inode gets this number. 0 if the node is not an inode.
    pub fn generation(&self) -> u32 {
        match self.is_inode() {
            true => le32(self.block, 68),
            false => 0,
        }
    }

    /// Fingerprints for comparison with another version.
    pub fn fingerprints(&self, flexible: bool) -> Fingerprints {
        let of = |ranges: &[(usize, usize)]| fingerprints::of(self.block, ranges);
        let all = of(&[(0, FOOTER)]);
        if self.place == XATTR {
            return Fingerprints {
                attributes: all,
                ..Fingerprints::default()
            };
        }
        if !self.is_inode() {
            return Fingerprints {
                map: all,
                ..Fingerprints::default()
            };
        }
        let (begin, end) = (self.begin(), self.end(flexible));
        let body = (begin, end);
        let inline = byte(self.block, 3);
        let has_data = inline & 0x02 != 0;
        let has_names = inline & 0x04 != 0;
        let if_there = |is_there: bool| if is_there { body } else { (0, 0) };
        let addresses = if_there(!self.is_inline());
        Fingerprints {
            atime: of(&[(32, 40), (56, 60)]),
            times: of(&[(40, 56), (60, 68)]),
            map: of(&[(16, 32), (ADDRESSES_END, FOOTER), addresses]),
            data: of(&[if_there(has_data)]),
            names: of(&[(72, 76), (84, 348), if_there(has_names)]),
            attributes: of(&[(0, 3), (4, 16), (76, 84), (end, ADDRESSES_END)]),
        }
    }
}

/// Returns whether a node holds numbers of other nodes (`IS_DNODE`).
fn has_numbers(place: u32) -> bool {
    let below = place.checked_sub(DOUBLE_INDIRECT + 1);
    matches!(place, INDIRECT | SECOND_INDIRECT | DOUBLE_INDIRECT)
        || below.is_some_and(|below| below.is_multiple_of(NUMBERS + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_attributes_and_inline_names_are_no_addresses() {
        let mut block = [0; BLOCK as usize];
        (block[FOOTER], block[FOOTER + 4]) = (8, 8);
        block[ADDRESSES..ADDRESSES + 4].copy_from_slice(&36u32.to_le_bytes());
        block[ADDRESSES + 36] = 77;
        let first = |block: &[u8]| Node::parse(block).unwrap().addresses(false).next();
        assert_eq!(first(&block), Some(36));
        block[3] = 0x20;
        assert_eq!(first(&block), Some(77));
        let has_names = |block: &[u8]| {
            let node = Node::parse(block).unwrap();
            node.inline_directory(false).map(<[u8]>::len)
        };
        assert_eq!(has_names(&block), None);
        block[3] = 0x24;
        assert_eq!(first(&block), None);
        // The inode reserves the words that attributes outside of a node need
        // (`F2FS_INLINE_XATTR_ADDRS`), and one in front.
        assert_eq!(has_names(&block), Some(4 * (923 - 9 - 50 - 1)));
    }

    #[test]
    fn only_nodes_of_addresses_have_addresses_of_data() {
        for (place, has) in [
            (1, true),
            (2, true),
            (3, false),
            (4, true),
            (4 + NUMBERS, false),
            (5 + NUMBERS, true),
            (5 + 2 * NUMBERS, false),
            (6 + 2 * NUMBERS, false),
            (7 + 2 * NUMBERS, true),
            (7 + 3 * NUMBERS, false),
            (XATTR, false),
        ] {
            let mut block = [0; BLOCK as usize];
            block[..4].copy_from_slice(&77u32.to_le_bytes());
            block[FOOTER] = 9;
            block[FOOTER + 4] = 8;
            block[FOOTER + 8..FOOTER + 12].copy_from_slice(&(place << 3).to_le_bytes());
            let node = Node::parse(&block).unwrap();
            assert_eq!(node.addresses(true).next() == Some(77), has, "{place}");
        }
    }
}
