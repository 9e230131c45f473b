//! Names in directories, and leftovers of earlier names in their blocks.

use crate::{Secret, checksum};
use fscost_ondisk::ext::directory::{index_end, records, tail};
use fscost_ondisk::ext::superblock::Superblock;

/// Strips a block of a directory.
pub fn block(block: &mut [u8], superblock: &Superblock, secret: &mut Secret) {
    let has_checksums = superblock.has_checksums();
    // Hashes of names stay, because they determine the order of the tree.
    if let Some(used) = index_end(block) {
        // An index block consists of entries, free space for more entries, and a checksum. The free
        // space contains leftovers from before the block was an index.
        let limit = block.len() - block.len() % 8 - if has_checksums { 8 } else { 0 };
        secret.bytes(&mut block[used.min(limit)..limit]);
        return;
    }
    let tail = tail(block).filter(|_| has_checksums);
    let old = block.to_vec();
    let end = tail.unwrap_or(block.len());
    if !entries(&mut block[..end], superblock, secret) {
        secret.sectors(block);
        return;
    }
    if tail.is_some() {
        checksum::update(block, end + 8, &old, ..end);
    }
}

/// Strips the directory entries that fill `bytes`. False if `bytes` contains no valid entries.
pub fn entries(bytes: &mut [u8], superblock: &Superblock, secret: &mut Secret) -> bool {
    let records = records(bytes, superblock.has_file_types());
    // An entry without an inode was deleted or never used.
    let places = records.map(|record| {
        let record = record?;
        let name_bytes = match record.inode {
            0 => 0,
            _ => record.name.len(),
        };
        Some((record.name_at, record.name_at + name_bytes, record.end))
    });
    let Some(places) = places.collect::<Option<Vec<_>>>() else {
        return false;
    };
    for (name_at, name_end, end) in places {
        secret.name(&mut bytes[name_at..name_end]);
        secret.bytes(&mut bytes[name_end..end]);
    }
    true
}
