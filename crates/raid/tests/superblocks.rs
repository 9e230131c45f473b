//! Superblocks are read from disks that anybody may have written: none may stop the reader.
#![allow(clippy::unwrap_used, missing_docs)]

use fscost_raid::{Area, Geometry, Map, PLACES, Superblock};
use proptest::prelude::*;

const DISK_BYTES: u64 = 1 << 30;
const AT: u64 = 4096;

/// Sets the checksum of a superblock.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let roles = u32::from_le_bytes(bytes[220..224].try_into().unwrap()) as usize;
    let end = (256 + roles.min(1920) * 2).min(4096);
    bytes[216..220].fill(0);
    let words = bytes[..end].chunks(4).map(|word| {
        let mut whole = [0; 4];
        whole[..word.len()].copy_from_slice(word);
        u64::from(u32::from_le_bytes(whole))
    });
    let sum: u64 = words.sum();
    let checksum = (sum as u32).wrapping_add((sum >> 32) as u32);
    bytes[216..220].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// A RAID 1 of two members with a bitmap and a list of bad blocks, this being the second.
fn superblock() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let fields: [(usize, u64, usize); 14] = [
        (0, 0xa92b_4efc, 4),
        (4, 1, 4),
        (8, 1 | 8, 4),
        (72, 1, 4),
        (80, 2_000_000, 8),
        (92, 2, 4),
        (96, 8, 4),
        (128, 2048, 8),
        (136, 2_000_000, 8),
        (144, 8, 8),
        (160, 1, 4),
        (186, 8, 2),
        (188, 16, 4),
        (220, 2, 4),
    ];
    for (at, value, length) in fields {
        bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
    }
    bytes[258] = 1;
    sealed(bytes)
}

#[test]
fn a_member_has_areas() {
    let found = Superblock::parse(&superblock(), AT, DISK_BYTES).unwrap();
    assert_eq!((found.role, found.members), (1, 2));
    let area = |at| found.areas.area(at);
    assert_eq!(area(0), (Area::Unused, AT));
    assert_eq!(area(AT), (Area::Superblock, 4096));
    assert_eq!(area(8192), (Area::Bitmap, 4096));
    assert_eq!(area(12288), (Area::BadBlocks, 4096));
    assert_eq!(area(16384).0, Area::Unused);
    let (begin, end) = (1 << 20, (1 << 20) + 2_000_000 * 512);
    assert_eq!(area(begin), (Area::Data { offset: 0 }, end - begin));
    assert_eq!(
        area(end - 1),
        (
            Area::Data {
                offset: end - begin - 1
            },
            1
        )
    );
    assert_eq!(area(end).0, Area::Unused);
}

#[test]
fn what_is_no_members_superblock_is_none() {
    let parse = |bytes: Vec<u8>| Superblock::parse(&bytes, AT, DISK_BYTES);
    let changed = |at: usize, value: u8| {
        let mut bytes = superblock();
        bytes[at] = value;
        bytes
    };
    assert!(parse(superblock()).is_some());
    assert!(parse(changed(80, 1)).is_none(), "a wrong checksum");
    assert!(parse(sealed(changed(0, 0))).is_none(), "no magic");
    assert!(
        parse(sealed(changed(144, 16))).is_none(),
        "of another place"
    );
    assert!(parse(sealed(changed(160, 2))).is_none(), "no role");
    assert!(parse(sealed(changed(72, 2))).is_none(), "no such level");
    let mut spare = superblock();
    spare[258..260].fill(0xff);
    assert!(parse(sealed(spare)).is_none());
    assert!(Superblock::parse(&superblock()[..4095], AT, DISK_BYTES).is_none());
}

proptest! {
    #[test]
    fn no_bytes_stop_the_reader(
        changes in prop::collection::vec((0_usize..512, any::<u8>()), 0..12),
        place in 0_usize..3,
        disk_bytes in any::<u64>(),
        probes in prop::collection::vec(any::<u64>(), 8),
    ) {
        let mut bytes = superblock();
        for (at, value) in changes {
            bytes[at] = value;
        }
        let at = PLACES[place](disk_bytes).unwrap_or(AT);
        bytes[144..152].copy_from_slice(&(at / 512).to_le_bytes());
        let Some(found) = Superblock::parse(&sealed(bytes), at, disk_bytes) else { return Ok(()) };
        for &probe in &probes {
            prop_assert!(found.areas.area(probe).1 > 0);
        }
        let geometry = Superblock::geometry(&vec![&found; found.members.min(600)]);
        let Some(map) = geometry.as_ref().and_then(Map::new) else { return Ok(()) };
        let Geometry { member_bytes, .. } = geometry.unwrap();
        for &probe in &probes {
            let member = probe as usize % member_bytes.len();
            prop_assert!(map.piece(member, probe).length > 0);
            let (places, length) = map.places(probe);
            prop_assert_eq!(places.is_empty(), length == 0);
            map.parity_places(probe);
        }
    }
}
