//! Numbers in metadata: what lies past its end is 0, so that no content can make a reader fail.

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .unwrap_or([0; N])
}

/// A little-endian number of 16 bits.
pub fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(take(bytes, at))
}

/// A little-endian number of 32 bits.
pub fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(take(bytes, at))
}

/// A little-endian number of 64 bits.
pub fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(take(bytes, at))
}
