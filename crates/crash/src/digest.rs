//! Digests that tell sectors and choices apart.

/// Returns a digest of bytes.
pub fn short(bytes: &[u8]) -> u128 {
    let mut short = [0; 16];
    short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    u128::from_le_bytes(short)
}
