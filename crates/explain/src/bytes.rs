//! Numbers in a block: what lies past its end is 0, so that no content can make a reader fail.

/// `N` bytes at `at`.
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

/// A big-endian number of 16 bits (journals).
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(take(bytes, at))
}

/// A big-endian number of 32 bits (journals).
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(take(bytes, at))
}

/// One byte.
pub fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Bytes `from..to`, as far as there are any.
pub fn part(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    let to = to.min(bytes.len());
    bytes.get(from.min(to)..to).unwrap_or_default()
}

/// 16 bytes at `at`, of a UUID.
pub fn uuid(bytes: &[u8], at: usize) -> [u8; 16] {
    take(bytes, at)
}
