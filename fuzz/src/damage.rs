//! Damage to a recording, as described by an input. Numbers are taken modulo the available count,
//! so that every input is valid.

use crate::seed::{Entry, Seed};
use arbitrary::Arbitrary;
use fscost_recording::{MAX_REQUEST_BYTES, Op, SECTOR_BYTES};

const SECTOR: usize = SECTOR_BYTES as usize;
/// Maximum number of mutations. It is enough to break several related things, and keeps long inputs
/// fast.
const MOST: usize = 64;

/// A seed and the mutations applied to it, in order.
#[derive(Debug)]
pub struct Damage {
    pub seed: u8,
    pub mutations: Vec<Mutation>,
}

impl<'a> Arbitrary<'a> for Damage {
    fn arbitrary(from: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let seed = u8::arbitrary(from)?;
        // Mutations are read one after the other until the end, so that appending bytes to an input
        // does not change the meaning of earlier bytes.
        let mut mutations = Vec::new();
        while !from.is_empty() && mutations.len() < MOST {
            mutations.push(Mutation::arbitrary(from)?);
        }
        Ok(Damage { seed, mutations })
    }
}

/// A single mutation.
#[derive(Debug, Arbitrary)]
pub enum Mutation {
    /// Changes a number in the written data.
    Number {
        place: Place,
        width: Width,
        big_endian: bool,
        value: Value,
    },
    /// Overwrites some bytes of the written data.
    Bytes {
        place: Place,
        bytes: [u8; 8],
        repeated: u8,
    },
    /// Copies sectors to another place.
    Copy { from: Place, to: Place, sectors: u8 },
    /// Removes requests.
    Drop { event: u16, count: u8 },
    /// Repeats a request later.
    Again { event: u16, later: u16 },
    /// Swaps two requests.
    Swap { event: u16, other: u16 },
    /// Truncates a write.
    Shorten { event: u16, sectors: u16 },
    /// Moves a request to another offset.
    Move { event: u16, sectors: i16 },
    /// Moves a request to another disk.
    Disk { event: u16, disk: u8 },
    /// Turns a request into one that clears its range.
    Clear { event: u16, op: Clears },
    /// Ends the recording before this event.
    End { event: u16 },
}

/// A byte of the written data.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub struct Place {
    write: u16,
    sector: u16,
    byte: u16,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Width {
    One,
    Two,
    Four,
    Eight,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Value {
    /// Adds to the old value.
    Add(i8),
    Small(u8),
    /// A power of two.
    Power(u8),
    /// A power of two, minus one.
    AllBelow(u8),
    Any(u32),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Clears {
    WriteZeroes,
    Discard,
    Punch,
}

impl Mutation {
    /// Applies the mutation.
    pub fn apply(&self, to: &mut Seed) {
        let entries = &mut to.entries;
        if entries.is_empty() {
            return;
        }
        let count = entries.len();
        let index = |event: u16| usize::from(event) % count;
        match *self {
            Mutation::Number {
                place,
                width,
                big_endian,
                value,
            } => {
                let bytes = [1, 2, 4, 8][width as usize];
                if let Some(field) = place.find(entries, bytes) {
                    change(field, big_endian, value);
                }
            }
            Mutation::Bytes {
                place,
                bytes,
                repeated,
            } => place.overwrite(entries, &bytes.repeat(usize::from(repeated % 8) + 1)),
            Mutation::Copy { from, to, sectors } => from.copy_sectors(entries, to, sectors),
            Mutation::Drop {
                event,
                count: dropped,
            } => {
                let from = index(event);
                entries.drain(from..(from + 1 + usize::from(dropped)).min(count));
            }
            Mutation::Again { event, later } => {
                let from = index(event);
                let at = from + usize::from(later) % (count - from) + 1;
                let again = entries[from].clone();
                entries.insert(at.min(count), again);
            }
            Mutation::Swap { event, other } => entries.swap(index(event), index(other)),
            Mutation::Shorten { event, sectors } => {
                let entry = &mut entries[index(event)];
                let length = u64::from(sectors) * SECTOR_BYTES;
                if length < entry.event.length && entry.event.op != Op::Mark {
                    entry.event.length = length;
                    entry.content.truncate(length as usize);
                }
            }
            Mutation::Move { event, sectors } => {
                let event = &mut entries[index(event)].event;
                event.offset = event
                    .offset
                    .saturating_add_signed(i64::from(sectors) * SECTOR_BYTES as i64);
            }
            Mutation::Disk { event, disk } => {
                entries[index(event)].event.disk = u16::from(disk % 3)
            }
            Mutation::Clear { event, op } => {
                let entry = &mut entries[index(event)];
                if entry.event.op != Op::Mark {
                    entry.event.op = [Op::WriteZeroes, Op::Discard, Op::Punch][op as usize];
                    entry.content.clear();
                }
            }
            Mutation::End { event } => entries.truncate(index(event)),
        }
    }
}

impl Place {
    /// Returns up to `bytes` bytes at this place. Only writes with content are counted.
    fn find(self, entries: &mut [Entry], bytes: usize) -> Option<&mut [u8]> {
        let writes = entries.iter().filter(|e| !e.content.is_empty()).count();
        let number = usize::from(self.write).checked_rem(writes)?;
        let content = &mut entries
            .iter_mut()
            .filter(|e| !e.content.is_empty())
            .nth(number)?
            .content;
        debug_assert!(content.len() <= MAX_REQUEST_BYTES);
        let sectors = content.len() / SECTOR;
        let at = usize::from(self.sector).checked_rem(sectors)? * SECTOR
            + usize::from(self.byte) % SECTOR;
        let end = (at + bytes).min(content.len());
        content.get_mut(at..end)
    }

    /// Overwrites this place with `bytes`, up to the end of the write.
    fn overwrite(self, entries: &mut [Entry], bytes: &[u8]) {
        if let Some(field) = self.find(entries, bytes.len()) {
            let length = field.len();
            field.copy_from_slice(&bytes[..length]);
        }
    }

    /// Copies 1 to 8 sectors from here to `to`, up to the end of either write.
    fn copy_sectors(self, entries: &mut [Entry], to: Place, sectors: u8) {
        let bytes = (usize::from(sectors % 8) + 1) * SECTOR;
        let [from, to] = [self, to].map(|place| Place { byte: 0, ..place });
        if let Some(source) = from.find(entries, bytes).map(|source| source.to_vec()) {
            to.overwrite(entries, &source);
        }
    }
}

/// Changes a number of 1 to 8 bytes.
fn change(field: &mut [u8], big_endian: bool, value: Value) {
    let mut bytes = [0; 8];
    let length = field.len();
    bytes[..length].copy_from_slice(field);
    if big_endian {
        bytes[..length].reverse();
    }
    let before = u64::from_le_bytes(bytes);
    let after = match value {
        Value::Add(more) => before.wrapping_add_signed(i64::from(more)),
        Value::Small(number) => u64::from(number),
        Value::Power(bit) => 1 << (bit % 64),
        Value::AllBelow(bit) => (1 << (bit % 64)) - 1,
        Value::Any(number) => u64::from(number),
    };
    bytes = after.to_le_bytes();
    if big_endian {
        bytes[..length].reverse();
    }
    field.copy_from_slice(&bytes[..length]);
}
