//! What superblocks say of people and machines.

use super::{Shape, checksum};
use crate::strip::Secret;

/// Where the checksum of superblock and MMP block is, and what it covers ends.
const CHECKSUM_AT: usize = 0x3FC;

/// The label, the path of the last mount, mount options. The UUID stays: it is a random number that
/// mkfs made for this disk, and the seed of all checksums.
pub fn strip(bytes: &mut [u8], shape: &Shape, secret: &mut Secret) {
    let old = bytes.to_vec();
    secret.path(&mut bytes[0x78..0x88]);
    secret.path(&mut bytes[0x88..0xC8]);
    secret.path(&mut bytes[0x200..0x240]);
    seal(&old, bytes, shape);
}

/// The node and the device that use the file system.
pub fn mmp(bytes: &mut [u8], shape: &Shape, secret: &mut Secret) {
    let old = bytes.to_vec();
    secret.path(&mut bytes[0x10..0x50]);
    secret.path(&mut bytes[0x50..0x70]);
    secret.bytes(&mut bytes[CHECKSUM_AT + 4..]);
    seal(&old, bytes, shape);
}

fn seal(old: &[u8], new: &mut [u8], shape: &Shape) {
    if shape.has_checksums {
        let change = checksum::change(&old[..CHECKSUM_AT], &new[..CHECKSUM_AT]);
        checksum::apply(new, CHECKSUM_AT, change);
    }
}
