//! Numbers in a block. Bytes past its end read as 0, so that no content can make a reader fail;
//! [`checked`] distinguishes the end from a zero.

/// `N` bytes at `at`, if they are there.
#[inline]
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A little-endian number of 16 bits.
#[inline]
pub fn le16(bytes: &[u8], at: usize) -> u16 {
    checked::le16(bytes, at).unwrap_or(0)
}

/// A little-endian number of 32 bits.
#[inline]
pub fn le32(bytes: &[u8], at: usize) -> u32 {
    checked::le32(bytes, at).unwrap_or(0)
}

/// A little-endian number of 64 bits.
#[inline]
pub fn le64(bytes: &[u8], at: usize) -> u64 {
    checked::le64(bytes, at).unwrap_or(0)
}

/// A big-endian number of 16 bits.
#[inline]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    checked::be16(bytes, at).unwrap_or(0)
}

/// A big-endian number of 32 bits.
#[inline]
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    checked::be32(bytes, at).unwrap_or(0)
}

/// One byte.
#[inline]
pub fn byte(bytes: &[u8], at: usize) -> u8 {
    checked::byte(bytes, at).unwrap_or(0)
}

/// Bytes `from..to`, clipped to the bytes that exist.
#[inline]
pub fn part(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    let to = to.min(bytes.len());
    bytes.get(from.min(to)..to).unwrap_or_default()
}

/// Units of text in UTF-16, little-endian.
pub fn utf16(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.chunks(2).map(|unit| le16(unit, 0))
}

/// UUID: the 16 bytes at `at`.
pub fn uuid(bytes: &[u8], at: usize) -> [u8; 16] {
    array(bytes, at).unwrap_or_default()
}

/// Returns whether all bytes are 0.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// Fingerprint of content, to detect whether it is unchanged.
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    parts.into_iter().fold(0, crc32c::crc32c_append)
}

/// Numbers that may be missing: `None` past the end.
pub mod checked {
    use super::array;

    /// One byte.
    #[inline]
    pub fn byte(bytes: &[u8], at: usize) -> Option<u8> {
        bytes.get(at).copied()
    }

    /// A little-endian number of 16 bits.
    #[inline]
    pub fn le16(bytes: &[u8], at: usize) -> Option<u16> {
        array(bytes, at).map(u16::from_le_bytes)
    }

    /// A little-endian number of 32 bits.
    #[inline]
    pub fn le32(bytes: &[u8], at: usize) -> Option<u32> {
        array(bytes, at).map(u32::from_le_bytes)
    }

    /// A little-endian number of 64 bits.
    #[inline]
    pub fn le64(bytes: &[u8], at: usize) -> Option<u64> {
        array(bytes, at).map(u64::from_le_bytes)
    }

    /// A big-endian number of 16 bits.
    #[inline]
    pub fn be16(bytes: &[u8], at: usize) -> Option<u16> {
        array(bytes, at).map(u16::from_be_bytes)
    }

    /// A big-endian number of 32 bits.
    #[inline]
    pub fn be32(bytes: &[u8], at: usize) -> Option<u32> {
        array(bytes, at).map(u32::from_be_bytes)
    }

    /// A big-endian number of 64 bits.
    #[inline]
    pub fn be64(bytes: &[u8], at: usize) -> Option<u64> {
        array(bytes, at).map(u64::from_be_bytes)
    }
}
