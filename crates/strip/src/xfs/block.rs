//! Metadata blocks, identified by magic numbers. All bytes outside a block's used parts are
//! leftovers.

use super::forks;
use crate::{Secret, checksum};
use fscost_ondisk::bytes::is_zero;
use fscost_ondisk::xfs::block::{self, Kind, REMOTE_AT};
use fscost_ondisk::xfs::directory::{self, Record, TAG_BYTES};
use fscost_ondisk::xfs::inode::{self, CORE_BYTES, Core, Format};
use fscost_ondisk::xfs::superblock::{Geometry, LABEL};
use fscost_ondisk::xfs::xattr;

/// Minimum length of a metadata block.
const LEAST_BYTES: usize = 128;

/// Strips a block. False if it is not a known kind of metadata.
pub fn strip(block: &mut [u8], geometry: &Geometry, secret: &mut Secret) -> bool {
    if is_zero(block) {
        return true;
    }
    let (old, inode_bytes) = (block.to_vec(), geometry.inode_bytes as usize);
    let checksum_at = if block.len() < LEAST_BYTES {
        return false;
    } else if block::begins_inode(block) && block.len() >= inode_bytes {
        let (slot, rest) = block.split_at_mut(inode_bytes);
        secret.bytes(rest);
        inode(slot, secret);
        inode::CHECKSUM_AT
    } else {
        let Some((kind, checksum_at)) = block::by_magic(block) else {
            return false;
        };
        known(kind, block, secret);
        checksum_at
    };
    checksum::update(block, checksum_at, &old, ..);
    true
}

fn known(kind: Kind, block: &mut [u8], secret: &mut Secret) {
    match kind {
        Kind::Superblock | Kind::SuperblockBackup => secret.path(&mut block[LABEL]),
        Kind::Directory => names(block, secret),
        Kind::XattrLeaf => {
            let (end, attributes) = xattr::leaf(block);
            let attributes = attributes.into_iter();
            let kept = attributes.map(|attribute| attribute.at..attribute.value.start);
            secret.all_but(block, std::iter::once(0..end).chain(kept));
        }
        Kind::XattrValue => secret.bytes(&mut block[REMOTE_AT..]),
        Kind::Symlink => {
            let target = block::target(block);
            secret.bytes(&mut block[target.end..]);
            secret.path(&mut block[target]);
        }
        _ => {
            for unused in block::unused(kind, block) {
                secret.bytes(&mut block[unused]);
            }
        }
    }
}

/// Strips entries and free space of a directory's data. In a single-block directory, hashes of
/// names follow the data.
fn names(block: &mut [u8], secret: &mut Secret) {
    let (mut done, end) = directory::bounds(block);
    let places = directory::records(block).map(|record| match record {
        // A file-type byte follows the name.
        Record::Name(name) => {
            let name_end = name.name_at + name.name.len();
            (name.name_at..name_end, name_end + 1, name.end)
        }
        Record::Free { at, end } => (at..at, at, end),
    });
    for (name, rest, end) in places.collect::<Vec<_>>() {
        secret.name(&mut block[name]);
        secret.bytes(&mut block[rest..end - TAG_BYTES]);
        done = end;
    }
    secret.bytes(&mut block[done..end]);
}

/// Strips an inode. The core contains only numbers, and describes the format of the forks.
fn inode(slot: &mut [u8], secret: &mut Secret) {
    let core = Core::on_disk(slot).filter(|core| core.mode != 0);
    let space = &mut slot[CORE_BYTES..];
    let Some(core) = core else {
        return secret.bytes(space); // what was there before
    };
    let (data, attributes) = space.split_at_mut(core.data_fork_bytes(space.len()));
    match core.data_format {
        Format::Local => forks::local(data, &core, Some(core.size), secret),
        format => forks::mapped(data, format, core.data_extents, secret),
    }
    match core.xattr_format {
        Format::Local => forks::attributes(attributes, secret),
        format => forks::mapped(attributes, format, core.xattr_extents.into(), secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;

    #[test]
    fn free_space_keeps_its_length_and_tag_however_short() {
        // A name, leftovers of another name, and eight bytes that contain neither.
        let mut block = vec![0; 128];
        block[..4].copy_from_slice(b"XDD3");
        block[64..76].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 200, 3, b'a', b'b', b'c']);
        block[78..80].copy_from_slice(&[0, 64]);
        block[80..84].copy_from_slice(&[0xff, 0xff, 0, 40]);
        block[90..94].copy_from_slice(b"past");
        block[118..120].copy_from_slice(&[0, 80]);
        block[120..128].copy_from_slice(&[0xff, 0xff, 0, 8, 0, 0, 0, 120]);
        let old = block.clone();
        names(&mut block, &mut Secret::new(&[7; 32], Names::Keep));
        assert_eq!(block[..84], old[..84]);
        assert!(!block.windows(4).any(|four| four == b"past"));
        assert_eq!(
            (&block[118..124], &block[126..]),
            (&old[118..124], &old[126..])
        );
    }
}
