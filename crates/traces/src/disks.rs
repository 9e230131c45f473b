//! Names of the disks of a trace, numbered in the order in which they appear.

use crate::error::Problem;
use std::collections::HashMap;

/// Far above any published trace (Tencent's has 5,584 volumes), and little memory.
const MAX_DISKS: usize = 1 << 16;
/// The longest file name of a fio iolog is 256 bytes (fio's `read_iolog`), of Linux 4096.
const MAX_NAME_BYTES: usize = 4096;
const MAX_NAMES_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Disks {
    names: Vec<String>,
    by_key: HashMap<Box<[u8]>, u32>,
    names_bytes: usize,
    /// The disk of the last request: most requests are of the same disk as the one before.
    last_name: Vec<u8>,
    last: u32,
}

impl Disks {
    /// The number of the disk with this name.
    pub(crate) fn number(&mut self, name: &[u8]) -> Result<u32, Problem> {
        if !name.is_empty() && *self.last_name == *name {
            return Ok(self.last);
        }
        let number = match self.by_key.get(name) {
            Some(&number) => number,
            None => self.add(name)?,
        };
        // Copied without an allocation.
        self.last_name.clear();
        self.last_name.extend_from_slice(name);
        self.last = number;
        Ok(number)
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
        self.by_key.insert(name.into(), number);
        Ok(number)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}
