//! Entries of directories: 32 bytes each; several of them make one name.

use super::layout::Kind;
use crate::bytes::{byte, le16, le32, le64, part};
use crate::{Cause, Causes, Structure};

/// One entry.
pub const ENTRY: usize = 32;
/// Entries of the longest name, with what it is the name of (20 of FAT's, 19 of exFAT's).
pub const MOST: usize = 21;

/// What a name stands for.
pub struct Named {
    /// Where it begins.
    pub cluster: u64,
    /// Its bytes where all its clusters follow each other; else the table tells.
    pub contiguous: Option<u64>,
    /// What its clusters are.
    pub structure: Structure,
    /// None of what is no file, and where only the end of a name is in sight.
    pub name: Option<String>,
}

/// What is named in a part of a directory, behind so many bytes in which a name of FAT may begin,
/// but not end.
pub fn named(entries: &[u8], before: usize, kind: Kind) -> Vec<Named> {
    match kind {
        Kind::ExFat => named_ex_fat(entries),
        _ => named_fat(entries, before / ENTRY),
    }
}

fn named_fat(entries: &[u8], before: usize) -> Vec<Named> {
    let mut named = Vec::new();
    // Parts of a long name come before it, the last one first.
    let mut long: Vec<u16> = Vec::new();
    // The number of the part before, counted down, and the checksum of the short name that all of
    // one name have.
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
            // Of a name whose blocks come one by one, some may be there, behind what another one
            // left.
            let part_of_it = (first & 0x3f, entry[13]);
            is_cut = first & 0x40 == 0 && (is_cut || (part_of_it.0 + 1, part_of_it.1) != head);
            head = part_of_it;
            if first & 0x40 != 0 {
                long.clear();
            }
            let units = [(1, 11), (14, 26), (28, 32)];
            let units = units
                .iter()
                .flat_map(|&(from, to)| part(entry, from, to).chunks(2));
            let units = units
                .map(|unit| le16(unit, 0))
                .take_while(|&unit| unit != 0);
            long.splice(0..0, units);
            is_behind_none = false;
            continue;
        }
        is_cut |= !long.is_empty() && head != (1, checksum(entry));
        // The long name that this stands for may be on its way still, to the block before.
        is_cut |= std::mem::take(&mut is_behind_none) && part(entry, 0, 8).contains(&b'~');
        let name = match long.is_empty() {
            true => short_name(entry),
            false => String::from_utf16_lossy(&long),
        };
        long.clear();
        let name = (!std::mem::take(&mut is_cut)).then_some(name);
        let cluster = u64::from(le16(entry, 20)) << 16 | u64::from(le16(entry, 26));
        // Labels, and `.` and `..`, are nothing of their own.
        if number >= before && attributes & 0x08 == 0 && first != b'.' {
            named.push(Named {
                cluster,
                contiguous: None,
                structure: match attributes & 0x10 {
                    0 => Structure::FileData,
                    _ => Structure::Directory,
                },
                name,
            });
        }
    }
    named
}

/// Of a short name (`fat_checksum`).
fn checksum(entry: &[u8]) -> u8 {
    let name = part(entry, 0, 11).iter();
    name.fold(0, |sum: u8, &byte| sum.rotate_right(1).wrapping_add(byte))
}

/// Eight characters and three, padded with spaces; shown in small letters where a bit says so
/// (`vfat`'s shortname=mixed).
fn short_name(entry: &[u8]) -> String {
    let text = |from, to, small: bool| {
        let text = String::from_utf8_lossy(part(entry, from, to))
            .trim_end()
            .to_owned();
        if small { text.to_lowercase() } else { text }
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
    let mut structure = None;
    let mut entries = entries.chunks_exact(ENTRY).peekable();
    while let Some(entry) = entries.next() {
        let of = |structure, contiguous| Named {
            cluster: u64::from(le32(entry, 20)),
            contiguous,
            structure,
            name: None,
        };
        let bytes = Some(le64(entry, 24));
        match entry[0] {
            0x81 => named.push(of(Structure::BlockBitmap, bytes)),
            // The table of small and capital letters never changes.
            0x82 => named.push(of(Structure::Superblock, bytes)),
            0x85 => {
                structure = Some(match le16(entry, 4) & 0x10 {
                    0 => Structure::FileData,
                    _ => Structure::Directory,
                });
                continue;
            }
            0xc0 if structure.is_some() => {
                let mut units: Vec<u16> = Vec::new();
                while let Some(more) = entries.next_if(|more| more[0] == 0xc1) {
                    units.extend(more[2..].chunks(2).map(|unit| le16(unit, 0)));
                }
                let length = usize::from(entry[3]);
                let name = units.get(..length).map(String::from_utf16_lossy);
                // NoFatChain
                let bytes = bytes.filter(|_| entry[1] & 0x02 != 0);
                named.push(Named {
                    name,
                    ..of(structure.unwrap_or(Structure::FileData), bytes)
                });
            }
            _ => {}
        }
        structure = None;
    }
    named
}

/// Whether these can be entries of a directory: its clusters may be a file's by now.
pub fn are_entries(bytes: &[u8], kind: Kind) -> bool {
    let mut entries = bytes.chunks_exact(ENTRY).take_while(|entry| entry[0] != 0);
    match kind {
        // The highest bit says that it is in use.
        Kind::ExFat => entries.all(|entry| {
            let known = [
                0x01, 0x02, 0x03, 0x05, 0x20, 0x21, 0x22, 0x40, 0x41, 0x60, 0x61,
            ];
            known.contains(&(entry[0] & 0x7f))
        }),
        _ => entries.all(|entry| {
            let is_long = entry[11] & 0x3f == 0x0f && le16(entry, 26) == 0;
            entry[11] & 0xc0 == 0 && (is_long || entry[1..11].iter().all(|&byte| byte >= 0x20))
        }),
    }
}

/// Why a part of a directory was written over another.
pub fn causes(before: &[u8], after: &[u8], kind: Kind) -> Causes {
    let mut causes = Causes::NONE;
    let (mut times, mut atime) = (false, false);
    for (before, after) in before.chunks(ENTRY).zip(after.chunks(ENTRY)) {
        let differs = |from, to| part(before, from, to) != part(after, from, to);
        if before == after {
            continue;
        }
        let is_same_kind = byte(before, 0) == byte(after, 0);
        let cause = match (kind, byte(after, 0)) {
            (Kind::ExFat, 0x85) if is_same_kind => {
                times |= differs(8, 16) || differs(20, 22);
                atime |= differs(16, 20);
                differs(4, 6).then_some(Cause::LinksOrMode)
            }
            // The hash of the name is of the name.
            (Kind::ExFat, 0xc0) if is_same_kind && !differs(2, 6) => Some(Cause::SizeOrMap),
            (Kind::ExFat, _) => Some(Cause::Names),
            _ if differs(0, 11) || byte(after, 11) & 0x3f == 0x0f => Some(Cause::Names),
            _ => {
                times |= differs(13, 18) || differs(22, 26);
                atime |= differs(18, 20);
                let moved = differs(20, 22) || differs(26, 32);
                moved.then_some(Cause::SizeOrMap)
            }
        };
        causes = cause.map_or(causes, |cause| causes.with(cause));
    }
    match (causes.is_empty(), times, atime) {
        (false, ..) => causes,
        (true, true, _) => Causes::one(Cause::Times),
        (true, false, true) => Causes::one(Cause::Atime),
        (true, false, false) => Causes::one(Cause::Unchanged),
    }
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
    fn what_changed_in_an_entry_is_the_cause() {
        let mut before = [0; ENTRY];
        before[..11].copy_from_slice(b"NAME    TXT");
        let why = |at: usize| {
            let mut after = before;
            after[at] = b'A';
            causes(&before, &after, Kind::Fat32).only()
        };
        for (at, cause) in [
            (0, Cause::Names),
            (22, Cause::Times),
            (18, Cause::Atime),
            (28, Cause::SizeOrMap),
        ] {
            assert_eq!(why(at), Some(cause), "{at}");
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
        // Its long name may be in front of what is in sight.
        assert!(names(&[short], 1).is_empty());
        let mut second = long;
        (second[0], long[0]) = (0x42, 1);
        assert_eq!(names(&[long, short], 1), [(9, None)]);
        assert_eq!(
            names(&[second, long, short], 2),
            [(9, Some("xx".to_owned()))]
        );
        // A part of a name that was there before.
        second[13] ^= 1;
        assert_eq!(names(&[second, long, short], 2), [(9, None)]);
        (second[13], second[0]) = (long[13], 0x43);
        assert_eq!(names(&[second, long, short], 2), [(9, None)]);
        long[13] ^= 1;
        long[0] = 0x41;
        assert_eq!(names(&[long, short], 1), [(9, None)]);
    }
}
