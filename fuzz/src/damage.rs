//! What can go wrong with a recording, as an input describes it. Numbers are taken modulo what
//! there is, so that every input means something.

use crate::seed::{Entry, Seed};
use arbitrary::Arbitrary;
use fscost_recording::{MAX_REQUEST_BYTES, Op, SECTOR_BYTES};

const SECTOR: usize = SECTOR_BYTES as usize;
/// Enough to break several things that belong together; an input of any length stays quick.
const MOST: usize = 64;

/// A seed, and what is done to it, in order.
#[derive(Debug)]
pub struct Damage {
    pub seed: u8,
    pub mutations: Vec<Mutation>,
}

impl<'a> Arbitrary<'a> for Damage {
    fn arbitrary(from: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let seed = u8::arbitrary(from)?;
        // One after the other to the end: bytes added to an input leave the meaning of those before
        // them.
        let mut mutations = Vec::new();
        while !from.is_empty() && mutations.len() < MOST {
            mutations.push(Mutation::arbitrary(from)?);
        }
        Ok(Damage { seed, mutations })
    }
}

/// One thing that goes wrong.
#[derive(Debug, Arbitrary)]
pub enum Mutation {
    /// A number in what was written is another.
    Number {
        place: Place,
        width: Width,
        big_endian: bool,
        value: Value,
    },
    /// Some bytes of what was written are others.
    Bytes {
        place: Place,
        bytes: [u8; 8],
        repeated: u8,
    },
    /// A sector holds what another should.
    Copy { from: Place, to: Place, sectors: u8 },
    /// Requests are missing.
    Drop { event: u16, count: u8 },
    /// A request is made again later.
    Again { event: u16, later: u16 },
    /// Two requests change places.
    Swap { event: u16, other: u16 },
    /// A write ends early.
    Shorten { event: u16, sectors: u16 },
    /// A request goes elsewhere.
    Move { event: u16, sectors: i16 },
    /// A request goes to another disk.
    Disk { event: u16, disk: u8 },
    /// A request clears its range.
    Clear { event: u16, op: Clears },
    /// The recording ends before.
    End { event: u16 },
}

/// A byte of what was written.
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
    /// That much more than it was.
    Add(i8),
    Small(u8),
    /// One bit.
    Power(u8),
    /// One less than a power of two.
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
    /// Do it.
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
            } => {
                let bytes = bytes.repeat(usize::from(repeated % 8) + 1);
                if let Some(field) = place.find(entries, bytes.len()) {
                    let length = field.len();
                    field.copy_from_slice(&bytes[..length]);
                }
            }
            Mutation::Copy { from, to, sectors } => {
                let bytes = (usize::from(sectors % 8) + 1) * SECTOR;
                let [from, to] = [from, to].map(|place| Place { byte: 0, ..place });
                let source = from.find(entries, bytes).map(|source| source.to_vec());
                if let (Some(source), Some(target)) = (source, to.find(entries, bytes)) {
                    let length = source.len().min(target.len());
                    target[..length].copy_from_slice(&source[..length]);
                }
            }
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
    /// Up to so many bytes here. Writes with content alone are counted.
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
}

/// Change a number of 1 to 8 bytes.
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
