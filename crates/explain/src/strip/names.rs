//! Names become others of the same length: the same name always the same other one, within one
//! recording.
//!
//! btrfs and xfs find names by a hash, which stands in keys and indexes in its order. Both hashes
//! are linear, so that another name with the same
//! hash can be computed: indexes stay right.

use std::collections::{HashMap, HashSet};

/// A hash of names of which only this is asked: bits that are flipped in a name flip bits of the
/// hash, whatever the other bits are.
pub type Hash = fn(&[u8]) -> u32;

/// How a family's file systems find names.
pub fn hash_of(family: &str) -> Option<Hash> {
    match family {
        "btrfs" => Some(crc32c::crc32c), // `btrfs_name_hash` but for its seed
        "xfs" => Some(rotated),
        _ => None,
    }
}

/// `xfs_da_hashname`: four bytes at once are the same as one after the other.
fn rotated(name: &[u8]) -> u32 {
    let add = |hash: u32, &byte: &u8| hash.rotate_left(7) ^ u32::from(byte);
    name.iter().fold(0, add)
}

/// Other names are made of the 32 characters from here: `@`, capital letters, and five more.
const FIRST: u8 = b'@';
const BITS: u32 = 5;
/// So many characters are chosen for the hash's sake: xfs needs nine to reach all its bits.
const MOST_CHOSEN: usize = 12;
/// A longer extension says more of a file than what kind it is of.
const MOST_EXTENSION_BYTES: usize = 5;
/// There may be as many names of one or two bytes as there can be: then two become one.
const TRIES: u32 = 200;
/// Names that every file system has.
const KEPT: [&[u8]; 3] = [b".", b"..", b"lost+found"];

/// The names of one recording.
pub struct Replaced {
    key: [u8; 32],
    keeps_extensions: bool,
    hash: Option<Hash>,
    known: HashMap<Box<[u8]>, Box<[u8]>>,
    used: HashSet<Box<[u8]>>,
}

impl Replaced {
    /// None yet.
    pub fn new(key: &[u8; 32], keeps_extensions: bool) -> Replaced {
        Replaced {
            key: blake3::derive_key("fscost recording strip: names", key),
            keeps_extensions,
            hash: None,
            known: HashMap::new(),
            used: HashSet::new(),
        }
    }

    /// From now on other names have the same hash, if they are long enough.
    pub fn keep_hash(&mut self, hash: Hash) {
        self.hash = Some(hash);
    }

    /// Put its other name in place of a name.
    pub fn replace(&mut self, name: &mut [u8]) {
        if name.is_empty() || KEPT.contains(&&*name) {
            return;
        }
        if let Some(known) = self.known.get(&*name) {
            name.copy_from_slice(known);
            return;
        }
        let tries = (0..TRIES).map(|number| self.other(name, number));
        let mut tries = tries.skip_while(|other| self.used.contains(&**other));
        let other = tries.next().unwrap_or_else(|| self.other(name, 0));
        self.used.insert(other.clone());
        self.known.insert((&*name).into(), other.clone());
        name.copy_from_slice(&other);
    }

    fn other(&self, name: &[u8], number: u32) -> Box<[u8]> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&number.to_le_bytes()).update(name);
        let mut random = vec![0; name.len()];
        hasher.finalize_xof().fill(&mut random);
        let own = name.len() - self.extension_bytes(name);
        let mut other = Box::<[u8]>::from(name);
        for (place, random) in other[..own].iter_mut().zip(random) {
            *place = b'A' + random % 26;
        }
        if let Some(hash) = self.hash {
            reach(hash, hash(name), &mut other, own);
        }
        other
    }

    /// Bytes at the end of a name that stay.
    fn extension_bytes(&self, name: &[u8]) -> usize {
        let dot = name.iter().rposition(|&byte| byte == b'.');
        let Some((dot, extension)) = dot
            .filter(|&dot| dot > 0)
            .map(|dot| (dot, &name[dot + 1..]))
        else {
            return 0;
        };
        let is_kind = (1..=MOST_EXTENSION_BYTES).contains(&extension.len())
            && extension.iter().all(u8::is_ascii_alphanumeric);
        if self.keeps_extensions && is_kind {
            name.len() - dot
        } else {
            0
        }
    }
}

/// Change the last of the first `own` bytes so that the name has the hash `wanted`, if that can be.
fn reach(hash: Hash, wanted: u32, name: &mut [u8], own: usize) {
    let places = own.saturating_sub(MOST_CHOSEN)..own;
    let mut flipped = name.to_vec();
    let before = hash(name);
    // Rows of a matrix in echelon form: bits of the hash, and the flips in the name that give them.
    let mut rows = [(0u32, 0u64); 32];
    let flips = places
        .clone()
        .flat_map(|at| (0..BITS).map(move |bit| (at, bit)));
    for (number, (at, bit)) in flips.clone().enumerate() {
        flipped[at] ^= 1 << bit;
        let mut row = (hash(&flipped) ^ before, 1u64 << number);
        flipped[at] ^= 1 << bit;
        while row.0 != 0 {
            let place = &mut rows[row.0.ilog2() as usize];
            if place.0 == 0 {
                *place = row;
                break;
            }
            row = (row.0 ^ place.0, row.1 ^ place.1);
        }
    }
    let (mut left, mut chosen) = (before ^ wanted, 0);
    while left != 0 {
        let row = rows[left.ilog2() as usize];
        if row.0 == 0 {
            return; // too short a name
        }
        (left, chosen) = (left ^ row.0, chosen ^ row.1);
    }
    for (number, (at, bit)) in flips.enumerate() {
        if chosen >> number & 1 != 0 {
            name[at] ^= 1 << bit;
        }
    }
    debug_assert!(name[places].iter().all(|byte| byte & !31 == FIRST));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(names: &mut Replaced, name: &str) -> String {
        let mut bytes = name.as_bytes().to_vec();
        names.replace(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn one_name_becomes_one_other_of_the_same_length() {
        let mut names = Replaced::new(&[1; 32], false);
        let other = replaced(&mut names, "secret-plan.doc");
        assert_eq!(other.len(), 15);
        assert!(other.bytes().all(|b| b.is_ascii_uppercase()), "{other}");
        assert_eq!(replaced(&mut names, "secret-plan.doc"), other);
        assert_ne!(replaced(&mut names, "secret-plan.dot"), other);
        let mut of_other_key = Replaced::new(&[2; 32], false);
        assert_ne!(replaced(&mut of_other_key, "secret-plan.doc"), other);
        for kept in [".", "..", "lost+found", ""] {
            assert_eq!(replaced(&mut names, kept), kept);
        }
    }

    #[test]
    fn short_extensions_stay_if_asked() {
        let mut names = Replaced::new(&[1; 32], true);
        let ends = [
            ("report.pdf", ".pdf"),
            ("a.tar.gz", ".gz"),
            ("x.secretplan", ""),
            (".bashrc", ""),
            ("a.b c", ""),
        ];
        for (name, end) in ends {
            let other = replaced(&mut names, name);
            assert_eq!(other.find('.').map_or("", |at| &other[at..]), end, "{name}");
        }
    }

    #[test]
    fn single_letters_stay_apart() {
        let mut names = Replaced::new(&[1; 32], false);
        let others: HashSet<_> = ('a'..='p')
            .map(|c| replaced(&mut names, &c.to_string()))
            .collect();
        assert_eq!(others.len(), 16);
        // There are more than letters: no name waits for ever.
        for number in 0x80..=0xFF_u8 {
            names.replace(&mut [number]);
        }
    }

    #[test]
    fn the_hash_stays() {
        for (hash, enough) in [(crc32c::crc32c as Hash, 8), (rotated, 9)] {
            for keeps_extensions in [false, true] {
                let mut names = Replaced::new(&[3; 32], keeps_extensions);
                names.keep_hash(hash);
                for length in enough..60 {
                    let name = format!("{:x>length$}.txt", "ab");
                    let other = replaced(&mut names, &name);
                    assert_eq!(hash(other.as_bytes()), hash(name.as_bytes()), "{name}");
                    assert!(other != name && !other.contains("xxx"));
                }
            }
        }
    }
}
