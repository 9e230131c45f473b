//! The address maps: against tables drawn elsewhere, and against themselves for every level and
//! layout.
#![allow(clippy::unwrap_used, missing_docs)]

use fscost_raid::{Geometry, Level, Map, Place, Role};
use proptest::prelude::*;

const KIB: u64 = 1 << 10;

fn map(level: Level, layout: u32, members: &[u64]) -> Map {
    let geometry = Geometry {
        level,
        layout,
        chunk_bytes: 64 * KIB,
        member_bytes: members.to_vec(),
    };
    Map::new(&geometry).unwrap()
}

/// One line for each row of chunks, one letter or number for each member: the chunk's number, P, Q
/// or -.
fn drawn(map: &Map, members: usize, rows: u64) -> Vec<String> {
    let cell = |member, row| match map.piece(member, row * 64 * KIB).role {
        Role::Data { array_offset, .. } => (array_offset / (64 * KIB)).to_string(),
        Role::Parity => "P".into(),
        Role::Syndrome => "Q".into(),
        Role::Unused => "-".into(),
    };
    let row = |row| {
        let cells: Vec<String> = (0..members).map(|member| cell(member, row)).collect();
        cells.join(" ")
    };
    (0..rows).map(row).collect()
}

/// The tables of Wikipedia's "Non-standard RAID levels" and of the SNIA's DDF for RAID 5 on four
/// members.
#[test]
fn raid5_layouts_are_those_of_the_tables() {
    let sizes = [1024 * KIB; 4];
    let of = |layout| drawn(&map(Level::Raid5, layout, &sizes), 4, 4);
    assert_eq!(of(0), ["0 1 2 P", "3 4 P 5", "6 P 7 8", "P 9 10 11"]);
    assert_eq!(of(1), ["P 0 1 2", "3 P 4 5", "6 7 P 8", "9 10 11 P"]);
    assert_eq!(of(2), ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11"]);
    assert_eq!(of(3), ["P 0 1 2", "5 P 3 4", "7 8 P 6", "9 10 11 P"]);
    assert_eq!(of(4), ["P 0 1 2", "P 3 4 5", "P 6 7 8", "P 9 10 11"]);
    assert_eq!(of(5), ["0 1 2 P", "3 4 5 P", "6 7 8 P", "9 10 11 P"]);
    let raid4 = drawn(&map(Level::Raid4, 0, &sizes), 4, 2);
    assert_eq!(raid4, ["0 1 2 P", "3 4 5 P"]);
}

#[test]
fn raid6_layouts_put_q_behind_p_before_it_or_last() {
    let sizes = [1024 * KIB; 4];
    let of = |layout| drawn(&map(Level::Raid6, layout, &sizes), 4, 4);
    assert_eq!(of(0), ["Q 0 1 P", "2 3 P Q", "4 P Q 5", "P Q 6 7"]);
    assert_eq!(of(2), ["Q 0 1 P", "2 3 P Q", "5 P Q 4", "P Q 6 7"]);
    assert_eq!(of(3), ["P Q 0 1", "3 P Q 2", "4 5 P Q", "Q 6 7 P"]);
    assert_eq!(of(10), ["0 1 Q P", "3 Q P 2", "Q P 4 5", "P 6 7 Q"]);
    assert_eq!(of(18), ["0 1 P Q", "3 P 2 Q", "P 4 5 Q", "6 7 P Q"]);
}

/// The examples of md(4), section RAID10.
#[test]
fn raid10_copies_are_near_far_or_offset() {
    let of = |layout, members: usize, rows| {
        drawn(
            &map(Level::Raid10, layout, &vec![1024 * KIB; members]),
            members,
            rows,
        )
    };
    assert_eq!(of(0x102, 4, 2), ["0 0 1 1", "2 2 3 3"]);
    assert_eq!(of(0x102, 3, 3), ["0 0 1", "1 2 2", "3 3 4"]);
    assert_eq!(
        of(0x10201, 4, 4),
        ["0 1 2 3", "3 0 1 2", "4 5 6 7", "7 4 5 6"]
    );
    let far = of(0x201, 4, 16);
    assert_eq!((far[0].as_str(), far[8].as_str()), ("0 1 2 3", "3 0 1 2"));
    assert_eq!(
        (far[7].as_str(), far[15].as_str()),
        ("28 29 30 31", "31 28 29 30")
    );
    // Two near and two far copies: each chunk is on all four members.
    let both = of(0x202, 4, 16);
    assert_eq!((both[0].as_str(), both[8].as_str()), ("0 0 1 1", "1 1 0 0"));
}

#[test]
fn raid0_of_different_sizes_has_zones_and_the_layout_says_how_chunks_are_dealt() {
    let sizes = [64 * KIB, 192 * KIB, 192 * KIB];
    // Zone 1 begins with chunk 3: by its number in the array, or as the zone's first.
    let original = drawn(&map(Level::Raid0, 1, &sizes), 3, 3);
    assert_eq!(original, ["0 1 2", "- 4 3", "- 6 5"]);
    let by_zone = drawn(&map(Level::Raid0, 2, &sizes), 3, 3);
    assert_eq!(by_zone, ["0 1 2", "- 3 4", "- 5 6"]);
    let linear = drawn(&map(Level::Linear, 0, &sizes), 3, 3);
    assert_eq!(linear, ["0 1 4", "- 2 5", "- 3 6"]);
}

/// `linear_conf()` rounds each member down to whole chunks.
#[test]
fn linear_uses_whole_chunks_of_each_member() {
    let sizes = [100 * KIB, 32 * KIB, 191 * KIB];
    let linear = map(Level::Linear, 0, &sizes);
    assert_eq!(linear.size_bytes(), 3 * 64 * KIB);
    assert_eq!(drawn(&linear, 3, 3), ["0 - 1", "- - 2", "- - -"]);
    let (places, length) = linear.places(64 * KIB);
    let second = Place {
        member: 2,
        offset: 0,
    };
    assert_eq!((places.as_slice(), length), (&[second][..], 128 * KIB));
}

#[test]
fn shapes_that_make_no_sense_have_no_map() {
    let of = |level, layout, chunk_bytes, member_bytes: &[u64]| {
        Map::new(&Geometry {
            level,
            layout,
            chunk_bytes,
            member_bytes: member_bytes.to_vec(),
        })
    };
    let two = [1 << 20; 2];
    assert!(of(Level::Raid0, 0, 0, &two).is_none(), "no chunk");
    assert!(
        of(Level::Raid0, 0, 1000, &two).is_none(),
        "no whole sectors"
    );
    assert!(
        of(Level::Raid0, 0, 4096, &[1 << 20, 2 << 20]).is_none(),
        "two zones, no layout"
    );
    assert!(of(Level::Raid5, 7, 4096, &two).is_none(), "no such layout");
    assert!(of(Level::Raid6, 2, 4096, &two).is_none(), "too few");
    assert!(
        of(Level::Raid10, 0x303, 4096, &two).is_none(),
        "more copies than members"
    );
    assert!(of(Level::Raid10, 0, 4096, &two).is_none());
    assert!(
        of(Level::Raid1, 0, 0, &[u64::MAX; 2]).is_none(),
        "too large"
    );
    assert!(of(Level::Raid1, 0, 0, &[]).is_none());
    assert!(
        of(Level::Raid1, 0, 0, &[0, 0]).is_none(),
        "nothing to mirror"
    );
}

fn geometries() -> impl Strategy<Value = Geometry> {
    let layouts = prop_oneof![
        Just((Level::Linear, 0)),
        prop_oneof![Just(1_u32), Just(2)].prop_map(|layout| (Level::Raid0, layout)),
        Just((Level::Raid1, 0)),
        Just((Level::Raid4, 0)),
        (0_u32..6).prop_map(|layout| (Level::Raid5, layout)),
        prop_oneof![0_u32..6, 8_u32..11, 16_u32..21].prop_map(|layout| (Level::Raid6, layout)),
        (1_u32..4, 1_u32..4, 0_u32..2, 0_u32..3).prop_map(|(near, far, offset, sets)| {
            (Level::Raid10, near | far << 8 | offset << 16 | sets << 17)
        }),
    ];
    let sizes = prop::collection::vec(1_u64..40, 1..8);
    (layouts, 1_u64..9, sizes).prop_map(|((level, layout), chunk, sizes)| Geometry {
        level,
        layout,
        chunk_bytes: chunk * 512,
        member_bytes: sizes.iter().map(|sectors| sectors * 1536).collect(),
    })
}

proptest! {
    /// Every byte of the array is at each of its places, every byte of a member that is data has
    /// that place, and no two bytes share one.
    #[test]
    fn both_directions_agree(geometry in geometries()) {
        let Some(map) = Map::new(&geometry) else { return Ok(()) };
        let mut seen = std::collections::HashSet::new();
        let mut array_offset = 0;
        while array_offset < map.size_bytes() {
            let (places, length) = map.places(array_offset);
            prop_assert_eq!(places.len(), map.copies());
            prop_assert!(length > 0 && array_offset + length <= map.size_bytes());
            for (copy, &Place { member, offset }) in places.iter().enumerate() {
                prop_assert!(offset + length <= geometry.member_bytes[member], "past the \
                    member's end");
                for (at, within) in [(offset, 0), (offset + length - 1, length - 1)] {
                    let role = Role::Data { array_offset: array_offset + within, copy: copy as u8 };
                    prop_assert_eq!(map.piece(member, at).role, role);
                }
                for sector in offset / 512..(offset + length) / 512 {
                    prop_assert!(seen.insert((member, sector)), "used twice");
                }
            }
            for Place { member, offset } in map.parity_places(array_offset) {
                prop_assert!(matches!(map.piece(member, offset).role, Role::Parity | Role::Syndrome));
            }
            array_offset += length;
        }
        for (member, &bytes) in geometry.member_bytes.iter().enumerate() {
            let mut offset = 0;
            while offset < bytes {
                let piece = map.piece(member, offset);
                prop_assert!(piece.length > 0);
                if let Role::Data { array_offset, copy } = piece.role {
                    let (places, _) = map.places(array_offset);
                    prop_assert_eq!(places[usize::from(copy)], Place { member, offset });
                }
                offset += piece.length;
            }
        }
    }
}
