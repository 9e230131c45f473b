//! Directory entries: 32 bytes each; several entries form one name.

use super::layout::Kind;
use crate::bytes::{byte, le16, le32, le64, part, utf16};

/// Bytes of one entry.
pub const ENTRY: usize = 32;
/// Maximum number of entries per file: 21 in FAT (20 for the name, one for the file), 19 in exFAT.
pub const MOST: usize = 21;

/// Content of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Bytes of a file.
    Data,
    /// Directory entries.
    Directory,
    /// Bitmap of the clusters in use.
    Bitmap,
    /// Table of lower-case and upper-case letters, which never changes.
    Letters,
}

impl Content {
    fn of_attributes(attributes: u8) -> Content {
        match attributes & 0x10 {
            0 => Content::Data,
            _ => Content::Directory,
        }
    }
}

/// Target of a name.
pub struct Named {
    /// First cluster.
    pub cluster: u64,
    /// Length in bytes if the clusters are contiguous; otherwise the chain is in the table.
    /// Clusters that were never written do not count.
    pub contiguous: Option<u64>,
    /// Length of the chain in bytes, if the entry has it (exFAT).
    pub chained: Option<u64>,
    /// Content of the clusters.
    pub content: Content,
    /// Byte offset of the entry that has the cluster.
    pub at: usize,
    /// Name; `None` for anything but a file or directory, or if only the end of the name is
    /// visible.
    pub name: Option<String>,
}

/// Returns the files, directories and tables named in a part of a directory. The first `before`
/// bytes are context: a FAT name may begin there, but not end.
pub fn named(entries: &[u8], before: usize, kind: Kind) -> Vec<Named> {
    match kind {
        Kind::ExFat => named_ex_fat(entries),
        _ => named_fat(entries, before / ENTRY),
    }
}

fn named_fat(entries: &[u8], before: usize) -> Vec<Named> {
    let mut named = Vec::new();
    // The parts of a long name precede its short entry, the last part first.
    let mut long: Vec<u16> = Vec::new();
    // The number of the previous part (parts count down), and the checksum of the short name, which
    // is the same in all parts of a name.
    let mut head = (0, 0);
    let mut is_cut = false;
    let mut is_behind_none = true;
    for (number, entry) in entries.chunks_exact(ENTRY).enumerate() {
        let (first, attributes) = (entry[0], entry[11]);
        if first == 0 || first == 0xe5 {
            long.clear();
            (is_cut, is_behind_none) = (false, true);
            continue;
        }
        if attributes & 0x3f == 0x0f {
            // If the blocks of a name are written one by one, some of its parts may follow parts of
            // an older name.
            let part_of_it = (first & 0x3f, entry[13]);
            is_cut = first & 0x40 == 0 && (is_cut || (part_of_it.0 + 1, part_of_it.1) != head);
            head = part_of_it;
            if first & 0x40 != 0 {
                long.clear();
            }
            let parts = [(1, 11), (14, 26), (28, 32)].into_iter();
            let units = parts.flat_map(|(from, to)| utf16(part(entry, from, to)));
            long.splice(0..0, units.take_while(|&unit| unit != 0));
            is_behind_none = false;
            continue;
        }
        is_cut |= !long.is_empty() && head != (1, checksum(entry));
        // The long name of this entry may not be written yet, in the block before.
        is_cut |= std::mem::take(&mut is_behind_none) && part(entry, 0, 8).contains(&b'~');
        let name = match long.is_empty() {
            true => short_name(entry),
            false => String::from_utf16_lossy(&long),
        };
        long.clear();
        let name = (!std::mem::take(&mut is_cut)).then_some(name);
        let cluster = u64::from(le16(entry, 20)) << 16 | u64::from(le16(entry, 26));
        // Labels, `.` and `..` have no content of their own.
        if number >= before && attributes & 0x08 == 0 && first != b'.' {
            named.push(Named {
                cluster,
                at: number * ENTRY,
                contiguous: None,
                chained: None,
                content: Content::of_attributes(attributes),
                name,
            });
        }
    }
    named
}

/// Checksum of a short name (`fat_checksum`).
fn checksum(entry: &[u8]) -> u8 {
    let name = part(entry, 0, 11).iter();
    name.fold(0, |sum: u8, &byte| sum.rotate_right(1).wrapping_add(byte))
}

/// Short name: eight characters and three, padded with spaces. Lower case where a bit says so
/// (`vfat`'s shortname=mixed).
fn short_name(entry: &[u8]) -> String {
    let text = |from, to, small: bool| {
        let text = String::from_utf8_lossy(part(entry, from, to));
        let text = text.trim_end();
        if small {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    };
    let case = byte(entry, 12);
    let (name, extension) = (text(0, 8, case & 0x08 != 0), text(8, 11, case & 0x10 != 0));
    match extension.is_empty() {
        true => name,
        false => format!("{name}.{extension}"),
    }
}

fn named_ex_fat(entries: &[u8]) -> Vec<Named> {
    let mut named = Vec::new();
    let mut content = None;
    let mut entries = entries.chunks_exact(ENTRY).enumerate().peekable();
    while let Some((number, entry)) = entries.next() {
        let of = |content, contiguous| Named {
            cluster: u64::from(le32(entry, 20)),
            contiguous,
            chained: None,
            content,
            at: number * ENTRY,
            name: None,
        };
        let bytes = Some(le64(entry, 24));
        match entry[0] {
            0x81 => named.push(of(Content::Bitmap, bytes)),
            0x82 => named.push(of(Content::Letters, bytes)),
            0x85 => {
                content = Some(Content::of_attributes(byte(entry, 4)));
                continue;
            }
            0xc0 if content.is_some() => {
                let mut units: Vec<u16> = Vec::new();
                while let Some((_, more)) = entries.next_if(|(_, more)| more[0] == 0xc1) {
                    units.extend(utf16(&more[2..]));
                }
                let length = usize::from(entry[3]);
                let name = units.get(..length).map(String::from_utf16_lossy);
                // The clusters of a file beyond its valid length hold what others left there.
                let bytes = match content {
                    Some(Content::Data) => bytes.min(Some(le64(entry, 8))),
                    _ => bytes,
                };
                // NoFatChain
                let is_contiguous = entry[1] & 0x02 != 0;
                named.push(Named {
                    name,
                    chained: bytes.filter(|_| !is_contiguous),
                    ..of(
                        content.unwrap_or(Content::Data),
                        bytes.filter(|_| is_contiguous),
                    )
                });
            }
            _ => {}
        }
        content = None;
    }
    named
}

/// Returns whether these bytes can be directory entries: a file may have reused the clusters.
pub fn are_entries(bytes: &[u8], kind: Kind) -> bool {
    let mut entries = bytes.chunks_exact(ENTRY).take_while(|entry| entry[0] != 0);
    match kind {
        // The highest bit is set for entries in use.
        Kind::ExFat => entries.all(|entry| {
            let kind = entry[0] & 0x7f;
            matches!(kind, 1..=3 | 5 | 0x20..=0x22 | 0x40..=0x41 | 0x60..=0x61)
        }),
        _ => entries.all(|entry| {
            let is_long = entry[11] & 0x3f == 0x0f && le16(entry, 26) == 0;
            entry[11] & 0xc0 == 0 && (is_long || entry[1..11].iter().all(|&byte| byte >= 0x20))
        }),
    }
}

/// Returns whether these bytes begin a FAT directory in this cluster: its first entry, `.`, names
/// its own cluster.
pub fn names_itself(bytes: &[u8], cluster: u64, kind: Kind) -> bool {
    let high = match kind {
        Kind::ExFat => return false,
        Kind::Fat32 => u64::from(le16(bytes, 20)) << 16,
        Kind::Fat12 | Kind::Fat16 => 0,
    };
    bytes.starts_with(b".          ")
        && byte(bytes, 11) & 0x10 != 0
        && high | u64::from(le16(bytes, 26)) == cluster
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_and_its_cluster() {
        let mut entry = [0; ENTRY];
        entry[..11].copy_from_slice(b"NAME    TXT");
        (entry[20], entry[26]) = (1, 9);
        for (case, name) in [(0, "NAME.TXT"), (8, "name.TXT"), (16, "NAME.txt")] {
            entry[12] = case;
            let [named] = &named(&entry, 0, Kind::Fat32)[..] else {
                panic!("{name}")
            };
            assert_eq!(named.cluster, 1 << 16 | 9);
            assert_eq!(named.name.as_deref(), Some(name));
        }
    }

    #[test]
    fn a_long_name_of_which_the_begin_is_not_in_sight_is_none() {
        let mut long = [0xff; ENTRY];
        (long[0], long[1], long[2], long[3], long[4], long[11]) = (0x41, b'x', 0, 0, 0, 0x0f);
        let mut short = [0; ENTRY];
        short[..11].copy_from_slice(b"X~1     TXT");
        short[26] = 9;
        long[13] = checksum(&short);
        let names = |entries: &[[u8; ENTRY]], before| {
            let named = named(&entries.concat(), before * ENTRY, Kind::Fat32);
            named
                .into_iter()
                .map(|n| (n.cluster, n.name))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[long, short], 1), [(9, Some("x".to_owned()))]);
        assert_eq!(names(&[short], 0), [(9, None)]);
        let mut alone = short;
        alone[1] = b'-';
        assert_eq!(names(&[alone], 0), [(9, Some("X-1.TXT".to_owned()))]);
        let deleted = [0xe5; ENTRY];
        assert_eq!(names(&[deleted, short], 0), [(9, None)]);
        let both = [
            (9, Some("X-1.TXT".to_owned())),
            (9, Some("X~1.TXT".to_owned())),
        ];
        assert_eq!(names(&[alone, short], 0), both);
        // A long name may precede the visible part.
        assert!(names(&[short], 1).is_empty());
        let mut second = long;
        (second[0], long[0]) = (0x42, 1);
        assert_eq!(names(&[long, short], 1), [(9, None)]);
        assert_eq!(
            names(&[second, long, short], 2),
            [(9, Some("xx".to_owned()))]
        );
        // This part belongs to an older name.
        second[13] ^= 1;
        assert_eq!(names(&[second, long, short], 2), [(9, None)]);
        (second[13], second[0]) = (long[13], 0x43);
        assert_eq!(names(&[second, long, short], 2), [(9, None)]);
        long[13] ^= 1;
        long[0] = 0x41;
        assert_eq!(names(&[long, short], 1), [(9, None)]);
    }

    #[test]
    fn the_first_cluster_of_a_directory_names_itself() {
        let mut entry = [0; ENTRY];
        entry[..11].copy_from_slice(b".          ");
        (entry[11], entry[20], entry[26]) = (0x10, 1, 9);
        assert!(names_itself(&entry, 0x10009, Kind::Fat32));
        assert!(names_itself(&entry, 9, Kind::Fat16));
        assert!(!names_itself(&entry, 9, Kind::Fat32));
        assert!(!names_itself(&entry, 0x10009, Kind::ExFat));
        entry[1] = b'.';
        assert!(!names_itself(&entry, 9, Kind::Fat16));
        assert!(!names_itself(&[], 0, Kind::Fat16));
    }

    #[test]
    fn clusters_of_an_ex_fat_file_beyond_its_valid_length_are_left_out() {
        let lengths = |attributes: u8, flags: u8| {
            let mut entries = [0; 3 * ENTRY];
            (entries[0], entries[4]) = (0x85, attributes);
            let stream = &mut entries[ENTRY..];
            (stream[0], stream[1], stream[3]) = (0xc0, flags, 1);
            stream[8..16].copy_from_slice(&5000_u64.to_le_bytes());
            stream[20..24].copy_from_slice(&9_u32.to_le_bytes());
            stream[24..32].copy_from_slice(&8192_u64.to_le_bytes());
            (entries[2 * ENTRY], entries[2 * ENTRY + 2]) = (0xc1, b'a');
            let named = named(&entries, 0, Kind::ExFat);
            let found = named.iter().map(|n| (n.cluster, n.contiguous, n.chained));
            found.collect::<Vec<_>>()
        };
        let (file, directory) = (0x20, 0x10);
        assert_eq!(lengths(file, 3), [(9, Some(5000), None)]);
        assert_eq!(lengths(file, 1), [(9, None, Some(5000))]);
        assert_eq!(lengths(directory, 3), [(9, Some(8192), None)]);
    }
}
