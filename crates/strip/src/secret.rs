//! Digests: equal bytes have equal digests, which reveal nothing about the bytes without the key.

use crate::Names;
use crate::names::Replaced;
use fscost_ondisk::bytes::is_zero;
use fscost_recording::SECTOR_BYTES;
use std::ops::Range;

/// Length of a digest: 128 bits, so that no two sectors have the same one by chance.
const DIGEST_BYTES: usize = 16;

/// The key, and the names replaced with it.
pub struct Secret {
    key: [u8; 32],
    names: Option<Replaced>,
}

impl Secret {
    /// Creates the secret of one recording.
    pub fn new(key: &[u8; 32], names: Names) -> Secret {
        let keeps_extensions = names == Names::Extensions;
        Secret {
            key: *key,
            names: (names != Names::Keep).then(|| Replaced::new(key, keeps_extensions)),
        }
    }

    /// Replaces each sector by its digest, repeated to fill the sector. Zeros stay.
    pub fn sectors(&self, bytes: &mut [u8]) {
        for sector in bytes.chunks_mut(SECTOR_BYTES as usize) {
            if sector.len() < SECTOR_BYTES as usize {
                self.bytes(sector);
            } else if !is_zero(sector) {
                let digest = blake3::keyed_hash(&self.key, sector);
                for place in sector.chunks_exact_mut(DIGEST_BYTES) {
                    place.copy_from_slice(&digest.as_bytes()[..DIGEST_BYTES]);
                }
            }
        }
    }

    /// Replaces bytes within metadata by their digest, which contains no zero byte. Zeros stay.
    pub fn bytes(&self, bytes: &mut [u8]) {
        if is_zero(bytes) {
            return;
        }
        let digest = blake3::keyed_hash(&self.key, bytes);
        for (place, byte) in bytes.iter_mut().zip(digest.as_bytes().iter().cycle()) {
            *place = byte % 255 + 1;
        }
    }

    /// Replaces all bytes except the `kept` ranges, like [`bytes`](Self::bytes). The ranges are in
    /// order. Untrusted ranges may overlap or lie outside; such parts are ignored.
    pub fn all_but(&self, bytes: &mut [u8], kept: impl IntoIterator<Item = Range<usize>>) {
        let mut done = 0;
        for place in kept {
            let start = place.start.clamp(done, bytes.len());
            self.bytes(&mut bytes[done..start]);
            done = place.end.clamp(start, bytes.len());
        }
        self.bytes(&mut bytes[done..]);
    }

    /// Returns a digest of a number that reveals something about contents.
    pub fn number(&self, number: u32) -> u32 {
        let mut bytes = number.to_le_bytes();
        let digest = blake3::keyed_hash(&self.key, &bytes);
        bytes.copy_from_slice(&digest.as_bytes()[..4]);
        u32::from_le_bytes(bytes)
    }

    /// Replaces a name by another of the same length.
    pub fn name(&mut self, name: &mut [u8]) {
        if let Some(names) = &mut self.names {
            names.replace(name);
        }
    }

    /// Replaces the names in a path. Bytes from the first zero byte on are not part of the path.
    pub fn path(&mut self, bytes: &mut [u8]) {
        let end = bytes.iter().position(|&byte| byte == 0);
        let (path, rest) = bytes.split_at_mut(end.unwrap_or(bytes.len()));
        for name in path.split_mut(|&byte| byte == b'/') {
            self.name(name);
        }
        self.bytes(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_stay_equal_or_different_and_zeros_stay() {
        let secret = Secret::new(&[7; 32], Names::Keep);
        let mut bytes = [vec![0; 512], vec![1; 512], vec![2; 512], vec![1; 512]].concat();
        secret.sectors(&mut bytes);
        let sectors: Vec<_> = bytes.chunks(512).collect();
        assert_eq!(sectors[0], [0; 512]);
        assert!(sectors[1] != [1; 512] && sectors[1] != sectors[2]);
        assert_eq!(sectors[1], sectors[3]);
        assert_eq!(sectors[1][..16], sectors[1][496..]);
        let mut other = [1; 512];
        Secret::new(&[8; 32], Names::Keep).sectors(&mut other);
        assert_ne!(other, *sectors[1]);
    }

    #[test]
    fn bytes_within_metadata_are_never_zero() {
        let secret = Secret::new(&[7; 32], Names::Keep);
        let mut bytes = [0; 100];
        secret.bytes(&mut bytes);
        assert_eq!(bytes, [0; 100]);
        bytes[99] = 1;
        secret.bytes(&mut bytes);
        assert!(!bytes.contains(&0));
    }

    #[test]
    fn all_but_some_places_become_digests() {
        let secret = Secret::new(&[7; 32], Names::Keep);
        let mut bytes = *b"0123456789";
        secret.all_but(&mut bytes, [0..2, 4..6, 5..7, 9..20]);
        let kept = [0, 1, 4, 5, 6, 9].map(|at| bytes[at]);
        assert_eq!(kept, *b"014569");
        assert!(!bytes.windows(2).any(|two| two == b"23" || two == b"78"));
        secret.all_but(&mut bytes, std::iter::once(30..40));
        assert!(!bytes.starts_with(b"01"));
    }

    #[test]
    fn the_names_of_a_path_are_those_of_directories() {
        let mut secret = Secret::new(&[7; 32], Names::Replace);
        let (mut path, mut name) = (*b"../some-directory/file\0old", *b"some-directory");
        secret.path(&mut path);
        secret.name(&mut name);
        assert_eq!((&path[..3], &path[3..17]), (&b"../"[..], &name[..]));
        assert_eq!(path[17], b'/');
        assert!(!path.windows(4).any(|w| w == b"file") && !path.ends_with(b"old"));
    }
}
