//! Records of the MFT: a header and attributes (fs/ntfs3/ntfs.h).

use crate::bytes::{byte, le16, le32, le64, part};
use crate::track::fingerprints::{Fingerprints, of};

const SECTOR: usize = 512;
pub const STANDARD: u32 = 0x10;
pub const LIST: u32 = 0x20;
pub const NAME: u32 = 0x30;
pub const DATA: u32 = 0x80;
pub const INDEX_ROOT: u32 = 0x90;
pub const INDEX: u32 = 0xa0;
pub const BITMAP: u32 = 0xb0;
pub const REPARSE: u32 = 0xc0;
const END: u32 = u32::MAX;
/// A name for MS-DOS, beside the one that people see (`FILE_NAME_DOS`).
const DOS: u8 = 2;

/// One record, its sectors made right.
pub struct Record {
    bytes: Vec<u8>,
}

/// An attribute.
pub struct Attribute<'b> {
    /// `STANDARD` and so on.
    pub kind: u32,
    bytes: &'b [u8],
}

impl Record {
    /// The record in these bytes: the end of each sector has a number instead of what belongs there
    /// (`ntfs_fix_post_read`).
    pub fn parse(content: &[u8]) -> Option<Record> {
        if !content.starts_with(b"FILE") {
            return None;
        }
        let mut bytes = content.to_vec();
        let at = usize::from(le16(content, 4));
        for (number, sector) in bytes.chunks_exact_mut(SECTOR).enumerate() {
            let fixed = part(content, at + 2 + 2 * number, at + 4 + 2 * number);
            if let (Some(end), 2) = (sector.last_chunk_mut::<2>(), fixed.len()) {
                end.copy_from_slice(fixed);
            }
        }
        Some(Record { bytes })
    }

    /// The record that this one, of this number, goes on with, or itself.
    pub fn base(&self, number: u64) -> u64 {
        match reference(&self.bytes, 32) {
            0 => number,
            base => base,
        }
    }

    /// Changes with the file that has this number.
    pub fn sequence(&self) -> u16 {
        le16(&self.bytes, 16)
    }

    pub fn is_in_use(&self) -> bool {
        le16(&self.bytes, 22) & 1 != 0
    }

    /// Its attributes, in order.
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'_>> {
        let mut at = usize::from(le16(&self.bytes, 20));
        std::iter::from_fn(move || {
            let (kind, length) = (le32(&self.bytes, at), le32(&self.bytes, at + 4) as usize);
            if kind == END || length < 16 || at + length > self.bytes.len() {
                return None;
            }
            let bytes = &self.bytes[at..at + length];
            at += length;
            Some(Attribute { kind, bytes })
        })
    }

    /// What can be compared with another version.
    pub fn fingerprints(&self) -> Fingerprints {
        let mut found = Fingerprints {
            attributes: of(&self.bytes, &[(16, 20), (22, 24)]),
            ..Fingerprints::default()
        };
        for attribute in self.attributes() {
            let value = attribute.value();
            let (field, ranges): (&mut u32, &[(usize, usize)]) = match attribute.kind {
                STANDARD => {
                    found.times ^= of(value, &[(0, 24)]);
                    found.atime ^= of(value, &[(24, 32)]);
                    (&mut found.attributes, &[(32, usize::MAX)])
                }
                // Times and sizes of the file are in it, too.
                NAME => (&mut found.names, &[(0, 8), (64, usize::MAX)]),
                INDEX_ROOT | INDEX | BITMAP => (&mut found.names, &[(0, usize::MAX)]),
                DATA if attribute.is_resident() => (&mut found.data, &[(0, usize::MAX)]),
                DATA | LIST => (&mut found.map, &[(0, usize::MAX)]),
                _ => (&mut found.attributes, &[(0, usize::MAX)]),
            };
            *field = field.rotate_left(1) ^ of(value, ranges);
        }
        found
    }
}

impl<'b> Attribute<'b> {
    pub fn is_resident(&self) -> bool {
        byte(self.bytes, 8) == 0
    }

    /// Of one that is not resident, the first of its clusters that it tells of.
    pub fn first(&self) -> u64 {
        le64(self.bytes, 16)
    }

    /// What a resident one holds; of others, their sizes and runs.
    pub fn value(&self) -> &'b [u8] {
        match self.is_resident() {
            true => {
                let at = usize::from(le16(self.bytes, 20));
                part(
                    self.bytes,
                    at,
                    at.saturating_add(le32(self.bytes, 16) as usize),
                )
            }
            false => part(self.bytes, 16, usize::MAX),
        }
    }

    /// The directory and the name that it gives its record.
    pub fn name(&self) -> Option<(u64, String)> {
        let value = self.value();
        let length = 2 * usize::from(byte(value, 64));
        let units: Vec<u16> = part(value, 66, 66 + length)
            .chunks(2)
            .map(|unit| le16(unit, 0))
            .collect();
        let is_name = self.kind == NAME && self.is_resident() && byte(value, 65) != DOS;
        is_name.then(|| (reference(value, 0), String::from_utf16_lossy(&units)))
    }

    /// Clusters of one that is not resident, as first and count; holes are left out (`run_unpack`).
    pub fn runs(&self) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        if self.is_resident() {
            return runs;
        }
        let mut at = usize::from(le16(self.bytes, 32));
        let mut cluster = 0i64;
        while byte(self.bytes, at) != 0 {
            let sizes = byte(self.bytes, at);
            let (count_bytes, offset_bytes) = (usize::from(sizes & 15), usize::from(sizes >> 4));
            if count_bytes > 8 || offset_bytes > 8 {
                break;
            }
            let count = signed(part(self.bytes, at + 1, at + 1 + count_bytes));
            let offset_at = at + 1 + count_bytes;
            cluster = cluster.wrapping_add(signed(part(
                self.bytes,
                offset_at,
                offset_at + offset_bytes,
            )));
            at = offset_at + offset_bytes;
            if let (Ok(cluster), Ok(count)) = (u64::try_from(cluster), u64::try_from(count))
                && offset_bytes > 0
            {
                runs.push((cluster, count));
            }
        }
        runs
    }
}

/// A record's number: the upper 16 bits are its sequence number.
fn reference(bytes: &[u8], at: usize) -> u64 {
    le64(bytes, at) & 0xffff_ffff_ffff
}

/// A little-endian number of up to 8 bytes; the highest bit is its sign.
fn signed(bytes: &[u8]) -> i64 {
    let mut all = match bytes.last() {
        Some(last) if last & 0x80 != 0 => [0xff; 8],
        _ => [0; 8],
    };
    all[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with one attribute, of this kind, and what is behind its kind and length.
    fn record(kind: u32, attribute: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        bytes[..4].copy_from_slice(b"FILE");
        (bytes[4], bytes[20]) = (0x30, 0x38);
        let length = 8 + attribute.len();
        bytes[0x38..0x3c].copy_from_slice(&kind.to_le_bytes());
        bytes[0x3c] = length as u8;
        bytes[0x40..][..attribute.len()].copy_from_slice(attribute);
        bytes[0x38 + length..][..4].copy_from_slice(&END.to_le_bytes());
        bytes
    }

    #[test]
    fn the_ends_of_sectors_are_put_back() {
        let mut bytes = record(DATA, &[0; 16]);
        (bytes[0x30], bytes[510], bytes[511], bytes[1023]) = (7, 7, 0, 0);
        bytes[0x32..0x36].copy_from_slice(b"abcd");
        let record = Record::parse(&bytes).unwrap();
        assert_eq!(record.bytes[510..512], *b"ab");
        assert_eq!(record.bytes[1022..], *b"cd");
    }

    #[test]
    fn a_record_may_go_on_with_another() {
        let mut bytes = record(DATA, &[0; 16]);
        assert_eq!(Record::parse(&bytes).unwrap().base(40), 40);
        // The number, and in the upper 16 bits how often it was used.
        (bytes[32], bytes[38]) = (30, 5);
        assert_eq!(Record::parse(&bytes).unwrap().base(40), 30);
    }

    #[test]
    fn a_name_for_dos_is_none() {
        let name = |space| {
            let mut value = vec![0; 16 + 66 + 2];
            (value[8], value[12]) = (68, 24);
            (value[16], value[16 + 64], value[16 + 65], value[16 + 66]) = (5, 1, space, b'x');
            let record = Record::parse(&record(NAME, &value)).unwrap();
            record.attributes().next().and_then(|found| found.name())
        };
        assert_eq!(name(1), Some((5, "x".to_owned())));
        assert_eq!(name(DOS), None);
    }

    #[test]
    fn runs_go_back_and_leave_holes_out() {
        let mut attribute = vec![0; 56];
        (attribute[0], attribute[24]) = (1, 0x40);
        // 16 clusters from 0x1234, 3 of a hole, 2 from 0x1234 - 4.
        attribute.extend([0x21, 0x10, 0x34, 0x12, 0x01, 0x03, 0x11, 0x02, 0xfc, 0]);
        let record = Record::parse(&record(DATA, &attribute)).unwrap();
        let runs = record.attributes().next().unwrap().runs();
        assert_eq!(runs, [(0x1234, 16), (0x1230, 2)]);
    }
}
