//! Checksums of changed bytes. A CRC is linear: the effect of a change on it depends on the change
//! alone, not on the seed or the other covered bytes. A correct checksum therefore stays correct,
//! and a wrong one stays wrong.

use std::slice::SliceIndex;

/// Returns the difference between the CRC-32C values of `old` and `new`, which must have the same
/// length.
pub fn change(old: &[u8], new: &[u8]) -> u32 {
    if old == new {
        return 0;
    }
    let difference: Vec<u8> = old.iter().zip(new).map(|(old, new)| old ^ new).collect();
    // The crate inverts the value before and after: with an inverted seed of zero, it returns the
    // plain CRC.
    !crc32c::crc32c_append(u32::MAX, &difference)
}

/// Applies a change to the little-endian checksum at `at`.
pub fn apply(bytes: &mut [u8], at: usize, change: u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = (u32::from_le_bytes(*place) ^ change).to_le_bytes();
    }
}

/// Corrects the checksum at `at` after the `covered` bytes have changed from those of `old`.
pub fn update(
    bytes: &mut [u8],
    at: usize,
    old: &[u8],
    covered: impl SliceIndex<[u8], Output = [u8]> + Clone,
) {
    let change = change(&old[covered.clone()], &bytes[covered]);
    apply(bytes, at, change);
}

/// Applies a change to the lower or upper 16 bits of a checksum, like [`apply`].
pub fn apply_half(bytes: &mut [u8], at: usize, half: u16) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = (u16::from_le_bytes(*place) ^ half).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_the_change_is_what_the_whole_gives() {
        let (old, new) = ([7; 900], [9; 900]);
        for seed in [0, 1, 0xFFFF_FFFF, 0x1234_5678] {
            let of = |bytes: &[u8]| crc32c::crc32c_append(seed, bytes);
            assert_eq!(of(&old) ^ change(&old, &new), of(&new));
        }
        assert_eq!(change(&old, &old), 0);
    }
}
