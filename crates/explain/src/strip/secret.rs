//! Digests: equal bytes give equal digests, and nobody can tell the bytes who has not the key.

use super::{
    Names, is_zero,
    names::{Hash, Replaced},
};
use fscost_recording::SECTOR_BYTES;

/// Bytes of a digest: 128 bits, so that no two sectors have the same by chance.
const DIGEST_BYTES: usize = 16;

/// The key, and the names that were replaced with it.
pub struct Secret {
    key: [u8; 32],
    names: Option<Replaced>,
}

impl Secret {
    /// Of one recording.
    pub fn new(key: &[u8; 32], names: Names) -> Secret {
        let keeps_extensions = names == Names::Extensions;
        Secret {
            key: *key,
            names: (names != Names::Keep).then(|| Replaced::new(key, keeps_extensions)),
        }
    }

    /// Each sector becomes its digest, again and again; zeros stay.
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

    /// Bytes within metadata become their digest, none of them zero; zeros stay.
    pub fn bytes(&self, bytes: &mut [u8]) {
        if is_zero(bytes) {
            return;
        }
        let digest = blake3::keyed_hash(&self.key, bytes);
        for (place, byte) in bytes.iter_mut().zip(digest.as_bytes().iter().cycle()) {
            *place = byte % 255 + 1;
        }
    }

    /// A digest of a number that says something about contents.
    pub fn number(&self, number: u32) -> u32 {
        let mut bytes = number.to_le_bytes();
        let digest = blake3::keyed_hash(&self.key, &bytes);
        bytes.copy_from_slice(&digest.as_bytes()[..4]);
        u32::from_le_bytes(bytes)
    }

    /// Other names have this hash, too.
    pub fn keep_hash(&mut self, hash: Hash) {
        if let Some(names) = &mut self.names {
            names.keep_hash(hash);
        }
    }

    /// A name becomes another of the same length.
    pub fn name(&mut self, name: &mut [u8]) {
        if let Some(names) = &mut self.names {
            names.replace(name);
        }
    }

    /// The names in a path are replaced; what follows a zero byte is no part of it.
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
