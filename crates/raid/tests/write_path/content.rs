//! Members with content: whatever an array writes, its members hold what the address map says.

use crate::BLOCK;
use fscost_raid::{
    Array, Geometry, Level, Load, Map, MemberRequest, Operation, Rmw, Role, WritePath,
};
use proptest::prelude::*;

/// The product in GF(2^8) of RAID 6 (polynomial 0x11d).
fn times_two(value: u8) -> u8 {
    value << 1 ^ if value & 0x80 == 0 { 0 } else { 0x1d }
}

/// Members with content, a byte for each sector.
struct Members {
    map: Map,
    sectors: Vec<Vec<u8>>,
}

impl Members {
    /// Does what the request says, with what the array should hold.
    fn write(&mut self, request: &MemberRequest, array: &[u8]) {
        for sector in request.offset / 512..(request.offset + request.bytes) / 512 {
            self.sectors[request.member][sector as usize] =
                self.expected(request.member, sector, array);
        }
    }

    /// Returns the expected content of a member's sector if the array holds `array`.
    fn expected(&self, member: usize, sector: u64, array: &[u8]) -> u8 {
        let data = |member: usize| match self.map.piece(member, sector * 512).role {
            Role::Data { array_offset, .. } => {
                Some((array_offset, array[(array_offset / 512) as usize]))
            }
            _ => None,
        };
        let mut row: Vec<(u64, u8)> = (0..self.sectors.len()).filter_map(data).collect();
        row.sort_unstable();
        match self.map.piece(member, sector * 512).role {
            Role::Data { .. } => data(member).unwrap().1,
            Role::Parity => row.iter().fold(0, |parity, (_, value)| parity ^ value),
            Role::Syndrome => row
                .iter()
                .rev()
                .fold(0, |q, (_, value)| times_two(q) ^ value),
            Role::Unused => 0,
        }
    }
}

fn shapes() -> impl Strategy<Value = Geometry> {
    let levels = prop_oneof![
        Just((Level::Linear, 0, 2)),
        Just((Level::Raid0, 2, 2)),
        Just((Level::Raid1, 0, 2)),
        Just((Level::Raid4, 0, 3)),
        (0_u32..6).prop_map(|layout| (Level::Raid5, layout, 3)),
        prop_oneof![0_u32..6, 8_u32..11, 16_u32..21].prop_map(|layout| (Level::Raid6, layout, 4)),
        prop_oneof![Just(0x102_u32), Just(0x201), Just(0x10201)].prop_map(|layout| (
            Level::Raid10,
            layout,
            4
        )),
    ];
    (levels, 0_usize..4, 1_u64..4).prop_map(|((level, layout, least), more, chunk)| Geometry {
        level,
        layout,
        chunk_bytes: chunk * BLOCK,
        member_bytes: vec![12 * BLOCK; least + more],
    })
}

proptest! {
    /// After each batch every sector of every member holds what the array's content says, parity
    /// included; and each
    /// byte is written once for each copy.
    #[test]
    fn members_reconstruct_the_array(
        geometry in shapes(),
        cached_stripes in 1_usize..20,
        rmw in prop_oneof![Just(Rmw::Never), Just(Rmw::WhenFewerReads), Just(Rmw::WhenNoMoreReads)],
        writes in prop::collection::vec((any::<u32>(), 1_u64..40, any::<u8>(), any::<bool>()), 1..40),
    ) {
        let Ok(mut array) = Array::new(&geometry, WritePath { rmw, cached_stripes }) else { return Ok(()) };
        let mut content = vec![0_u8; (array.size_bytes() / 512) as usize];
        let sectors = geometry.member_bytes.iter().map(|bytes| vec![0; (bytes / 512) as usize]).collect();
        let mut members = Members { map: Map::new(&geometry).unwrap(), sectors };
        let mut out = Vec::new();
        for (place, length, value, ends) in writes {
            let first = u64::from(place) % content.len() as u64;
            let length = length.min(content.len() as u64 - first);
            array.write(first * 512, length * 512, &mut out).unwrap();
            content[first as usize..(first + length) as usize].fill(value);
            if !ends {
                continue;
            }
            array.settle(&mut out);
            for request in out.drain(..) {
                if request.operation == Operation::Write {
                    members.write(&request, &content);
                }
            }
            for member in 0..members.sectors.len() {
                for sector in 0..members.sectors[member].len() {
                    let expected = members.expected(member, sector as u64, &content);
                    prop_assert_eq!(members.sectors[member][sector], expected, "member {} sector \
                        {}", member, sector);
                }
            }
        }
    }

    /// Whole blocks, each written once, cost their own bytes once besides what is redundant; and no
    /// more rows are
    /// read than written.
    #[test]
    fn data_is_conserved(geometry in shapes(), blocks in prop::collection::btree_set(0_u64..24, 1..24)) {
        let Ok(mut array) = Array::new(&geometry, WritePath::default()) else { return Ok(()) };
        let mut out = Vec::new();
        let mut bytes = 0;
        for block in blocks {
            if (block + 1) * BLOCK <= array.size_bytes() {
                array.write(block * BLOCK, BLOCK, &mut out).unwrap();
                bytes += BLOCK;
            }
        }
        array.settle(&mut out);
        let mut load = Load::default();
        for request in &out {
            load.add(request);
        }
        prop_assert_eq!(load.write_bytes - load.redundant_write_bytes, bytes);
    }
}
