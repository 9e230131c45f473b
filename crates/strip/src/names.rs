//! Replacement of names by others of the same length. Within one recording, equal names always get
//! the same replacement.

use std::collections::{HashMap, HashSet};

/// Longest extension to keep. A longer one reveals more about a file than its type.
const MOST_EXTENSION_BYTES: usize = 5;
/// Attempts to find an unused name. If all possible names of one or two bytes are in use, two names
/// get the same replacement.
const TRIES: u32 = 200;
/// Names that occur in every file system.
const KEPT: [&[u8]; 3] = [b".", b"..", b"lost+found"];

/// The replaced names of one recording.
pub struct Replaced {
    key: [u8; 32],
    keeps_extensions: bool,
    known: HashMap<Box<[u8]>, Box<[u8]>>,
    used: HashSet<Box<[u8]>>,
}

impl Replaced {
    /// Creates an empty set of replacements.
    pub fn new(key: &[u8; 32], keeps_extensions: bool) -> Replaced {
        Replaced {
            key: blake3::derive_key("fscost recording strip: names", key),
            keeps_extensions,
            known: HashMap::new(),
            used: HashSet::new(),
        }
    }

    /// Overwrites a name with its replacement.
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
        other
    }

    /// Returns the number of bytes to keep at the end of a name.
    fn extension_bytes(&self, name: &[u8]) -> usize {
        // A dot at the beginning marks a hidden file, so it begins no extension either.
        let dot = name.iter().rposition(|&byte| byte == b'.').unwrap_or(0);
        let extension = name.get(dot + 1..).unwrap_or_default();
        let is_kind = (1..=MOST_EXTENSION_BYTES).contains(&extension.len())
            && extension.iter().all(u8::is_ascii_alphanumeric);
        match self.keeps_extensions && dot > 0 && is_kind {
            true => name.len() - dot,
            false => 0,
        }
    }
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
        // There are more names than letters: each replacement still terminates.
        for number in 0x80..=0xFF_u8 {
            names.replace(&mut [number]);
        }
    }
}
