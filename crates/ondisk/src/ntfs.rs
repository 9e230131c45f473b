//! NTFS (fs/ntfs3/ntfs.h): records of the MFT, each a header and attributes.

use crate::bytes::{byte, le16, le32, le64, part, utf16};
use crate::fingerprints::{Fingerprints, of};

const SECTOR: usize = 512;
/// Times and flags.
const STANDARD: u32 = 0x10;
/// Attribute list: attributes stored in other records.
pub const LIST: u32 = 0x20;
/// A name.
const NAME: u32 = 0x30;
/// Data.
pub const DATA: u32 = 0x80;
/// The root of a directory's tree.
pub const INDEX_ROOT: u32 = 0x90;
/// Nodes of a directory's tree.
pub const INDEX: u32 = 0xa0;
/// Bitmap of the nodes, or of the records, in use.
pub const BITMAP: u32 = 0xb0;
/// Reparse point: the target of a link.
pub const REPARSE: u32 = 0xc0;
const END: u32 = u32::MAX;
/// Name for MS-DOS, stored beside the name that people see (`FILE_NAME_DOS`).
const DOS: u8 = 2;

/// Sizes and offsets, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    /// Size of a cluster.
    pub cluster_bytes: u64,
    /// Size of a record of the MFT.
    pub record_bytes: u64,
    /// Start of the MFT.
    pub mft: u64,
    /// End of the file system.
    pub end: u64,
}

impl Geometry {
    /// Parses the first sector of a disk of `disk_bytes` bytes.
    pub fn parse(sector: &[u8], disk_bytes: u64) -> Option<Geometry> {
        let sector_bytes = u64::from(le16(sector, 11));
        let is_one = sector.get(3..11) == Some(b"NTFS    ")
            && matches!(sector_bytes, 512 | 1024 | 2048 | 4096);
        // Values above 0x80 are powers of two (`true_sectors_per_clst`).
        let per_cluster = match byte(sector, 13) {
            small @ 1..=0x80 => u64::from(small),
            log @ 0xf0.. => 1 << (256 - u32::from(log)),
            _ => return None,
        };
        let cluster_bytes = sector_bytes * per_cluster;
        // A negative number is a power of two as well.
        let record_bytes = match byte(sector, 64) {
            log @ 0xf0..=0xf7 => 1 << (256 - u32::from(log)),
            clusters @ 1..=64 => cluster_bytes * u64::from(clusters),
            _ => return None,
        };
        let end = le64(sector, 40).checked_mul(sector_bytes)?;
        let mft = le64(sector, 48).checked_mul(cluster_bytes)?;
        let is_one = is_one && mft < end && end <= disk_bytes && record_bytes <= 65536;
        is_one.then_some(Geometry {
            cluster_bytes,
            record_bytes,
            mft,
            end,
        })
    }
}

/// One record, after the ends of its sectors have been restored.
pub struct Record {
    bytes: Vec<u8>,
}

/// An attribute.
pub struct Attribute<'b> {
    /// Type: `STANDARD` and so on.
    pub kind: u32,
    bytes: &'b [u8],
}

impl Record {
    /// Parses a record and restores its sector ends. On disk, a number replaces the last bytes of
    /// each sector (`ntfs_fix_post_read`).
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

    /// Returns the number of the base record that this record, number `number`, continues; its own
    /// number if it is a base record.
    pub fn base(&self, number: u64) -> u64 {
        match reference(&self.bytes, 32) {
            0 => number,
            base => base,
        }
    }

    /// Sequence number; it changes when another file gets this record number.
    pub fn sequence(&self) -> u16 {
        le16(&self.bytes, 16)
    }

    /// Returns whether a file uses the record.
    pub fn is_in_use(&self) -> bool {
        le16(&self.bytes, 22) & 1 != 0
    }

    /// Attributes of the record, in order.
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

    /// Fingerprints for comparison with another version.
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
                // The value also contains times and sizes of the file.
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
    /// Returns whether the attribute holds the value itself.
    pub fn is_resident(&self) -> bool {
        byte(self.bytes, 8) == 0
    }

    /// First cluster that a non-resident attribute describes.
    pub fn first(&self) -> u64 {
        le64(self.bytes, 16)
    }

    /// Value of a resident attribute; sizes and runs of a non-resident one.
    pub fn value(&self) -> &'b [u8] {
        match self.is_resident() {
            true => {
                let (at, bytes) = (le16(self.bytes, 20).into(), le32(self.bytes, 16) as usize);
                part(self.bytes, at, bytes.saturating_add(at))
            }
            false => part(self.bytes, 16, usize::MAX),
        }
    }

    /// Directory, and the name in it that the attribute gives its record.
    pub fn name(&self) -> Option<(u64, String)> {
        let value = self.value();
        let length = 2 * usize::from(byte(value, 64));
        let units: Vec<_> = utf16(part(value, 66, 66 + length)).collect();
        let is_name = self.kind == NAME && self.is_resident() && byte(value, 65) != DOS;
        is_name.then(|| (reference(value, 0), String::from_utf16_lossy(&units)))
    }

    /// Cluster runs of a non-resident attribute, as first cluster and count; holes are left out
    /// (`run_unpack`).
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
            at = offset_at + offset_bytes;
            cluster = cluster.wrapping_add(signed(part(self.bytes, offset_at, at)));
            if let (Ok(cluster), Ok(count)) = (u64::try_from(cluster), u64::try_from(count))
                && offset_bytes > 0
            {
                runs.push((cluster, count));
            }
        }
        runs
    }
}

/// Record number of a reference, without its upper 16 bits: they are the sequence number.
fn reference(bytes: &[u8], at: usize) -> u64 {
    le64(bytes, at) & 0xffff_ffff_ffff
}

/// Signed little-endian number of up to 8 bytes; the highest bit is the sign.
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

    /// Builds a record with one attribute of this kind. `attribute` follows its kind and length.
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
        // The record number; the upper 16 bits count how often it was used.
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
