//! Names of the disks of a trace, numbered in order of appearance.

use crate::error::Problem;
use std::{collections::HashMap, sync::Arc};

/// Maximum number of disks. It is far above any published trace (Tencent's has 5,584 volumes) and
/// takes little memory.
const MAX_DISKS: usize = 1 << 16;
/// Maximum length of a name. A file name in a fio iolog has at most 256 bytes (fio's `read_iolog`),
/// a Linux path at most 4096.
const MAX_NAME_BYTES: usize = 4096;
const MAX_NAMES_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct Disks {
    names: Vec<String>,
    keys: Vec<Arc<[u8]>>,
    by_key: HashMap<Arc<[u8]>, u32>,
    names_bytes: usize,
    /// Cache of disks by a cheap hash of their names: most requests are to a recently seen disk.
    /// Deliberately colliding names only bypass the cache, because `by_key` has a hash with a
    /// random key.
    recent: Box<[u32]>,
}

/// Number of index bits of the cache, enough for the disks of any published trace.
const RECENT_BITS: u32 = 13;

impl Default for Disks {
    fn default() -> Disks {
        Disks {
            names: Vec::new(),
            keys: Vec::new(),
            by_key: HashMap::new(),
            names_bytes: 0,
            recent: vec![0; 1 << RECENT_BITS].into_boxed_slice(),
        }
    }
}

impl Disks {
    /// Returns the number of the disk with this name.
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u32, Problem> {
        if let Some(number) = self.known(name) {
            return Ok(number);
        }
        let number = self.add(name)?;
        self.recent[place(name)] = number;
        Ok(number)
    }

    /// Returns the number of the disk with this name; `None` if it has not appeared.
    pub(crate) fn known(&mut self, name: &[u8]) -> Option<u32> {
        let place = place(name);
        let recent = self.recent[place];
        if self
            .keys
            .get(recent as usize)
            .is_some_and(|key| **key == *name)
        {
            return Some(recent);
        }
        let number = self.by_key.get(name).copied()?;
        self.recent[place] = number;
        Some(number)
    }

    fn add(&mut self, name: &[u8]) -> Result<u32, Problem> {
        self.names_bytes += name.len();
        if self.names.len() == MAX_DISKS || self.names_bytes > MAX_NAMES_BYTES {
            return Err("the trace has more than 65536 disks, or their names are too long".into());
        }
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err("the disk's name is empty or longer than 4096 bytes".into());
        }
        let number = self.names.len() as u32;
        self.names.push(String::from_utf8_lossy(name).into_owned());
        let key: Arc<[u8]> = name.into();
        self.keys.push(Arc::clone(&key));
        self.by_key.insert(key, number);
        Ok(number)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// Returns the cache index of a name: Fibonacci hashing (Knuth, The Art of Computer Programming 3,
/// 6.4) of its last 8 bytes, which differ most.
fn place(name: &[u8]) -> usize {
    let mut last = name.len() as u64;
    for &byte in name.iter().rev().take(8) {
        last = last << 8 ^ u64::from(byte);
    }
    (last.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS)) as usize
}
