//! What members receive: against closed forms here, and in `content` against members whose content
//! is computed from the address map.
#![allow(clippy::unwrap_used, missing_docs)]

mod content;

use fscost_raid::{
    Array, Error, Geometry, Level, Load, Method, Operation, Queues, Rmw, Row, WritePath,
};

const KIB: u64 = 1 << 10;
const BLOCK: u64 = 4 * KIB;
const LEFT_SYMMETRIC: u32 = 2;
const TWO_NEAR: u32 = 0x102;

fn geometry(level: Level, layout: u32, members: usize, chunk: u64) -> Geometry {
    Geometry {
        level,
        layout,
        chunk_bytes: chunk,
        member_bytes: vec![4096 * KIB; members],
    }
}

/// Cache of a single stripe: no row finds its blocks up to date.
const COLD: WritePath = WritePath {
    rmw: Rmw::WhenFewerReads,
    cached_stripes: 1,
};

fn array(level: Level, layout: u32, members: usize, options: WritePath) -> Array {
    Array::new(&geometry(level, layout, members, 64 * KIB), options).unwrap()
}

/// Returns the load of each member for these writes, each a batch of its own.
fn loads(array: &mut Array, writes: impl IntoIterator<Item = (u64, u64)>) -> Vec<Load> {
    let mut loads = vec![Load::default(); array.members()];
    let mut out = Vec::new();
    for (offset, bytes) in writes {
        array.write(offset, bytes, &mut out).unwrap();
        array.settle(&mut out);
        for request in out.drain(..) {
            loads[request.member].add(&request);
        }
    }
    loads
}

fn sum(loads: &[Load], of: fn(&Load) -> u64) -> u64 {
    loads.iter().map(of).sum()
}

#[test]
fn closed_form_full_rows_cost_n_over_data_members_and_read_nothing() {
    for (level, parities) in [(Level::Raid4, 1), (Level::Raid5, 1), (Level::Raid6, 2)] {
        for members in 3 + parities..9 {
            let mut array = array(level, LEFT_SYMMETRIC, members, WritePath::default());
            let data = (members - parities) as u64;
            let bytes = 64 * KIB * data * 16;
            let loads = loads(&mut array, [(0, bytes)]);
            assert_eq!(
                sum(&loads, |load| load.write_bytes) * data,
                bytes * members as u64
            );
            assert_eq!(
                sum(&loads, |load| load.preread_bytes),
                0,
                "{level:?} on {members}"
            );
            assert_eq!(array.rows().full, 16 * 16);
        }
    }
}

#[test]
fn closed_form_one_block_is_two_writes_and_the_cheaper_reads() {
    // Members, reads: reconstructing reads n - 2 blocks, modifying 2; a tie is reconstructed.
    for (members, reads, modified) in [(3, 1, 0), (4, 2, 0), (5, 2, 1), (8, 2, 1)] {
        let mut array = array(Level::Raid5, LEFT_SYMMETRIC, members, COLD);
        let loads = loads(&mut array, [(0, BLOCK)]);
        let of = |of| sum(&loads, of);
        assert_eq!(
            (of(|load| load.preread_bytes), of(|load| load.write_bytes)),
            (reads * BLOCK, 2 * BLOCK)
        );
        assert_eq!(
            array.rows().read_modify_write,
            modified,
            "{members} members"
        );
    }
}

/// facts/ftl.md §3.7: of n - 1 data blocks, w change. Both ways write w + 1 blocks.
#[test]
fn closed_form_modifying_reads_w_plus_1_and_reconstructing_n_minus_1_minus_w() {
    for members in 3..=8_u64 {
        for changed in 1..members {
            let new = (1 << changed) - 1;
            let row = Row {
                data: (1 << (members - 1)) - 1,
                parity: 1 << (members - 1),
                new,
                overwritten: new,
                up_to_date: 0,
            };
            let (modify, reconstruct) = (changed + 1, members - 1 - changed);
            let least = match modify < reconstruct {
                true => (Method::ReadModifyWrite, modify),
                false => (Method::Reconstruct, reconstruct),
            };
            let counted = |rmw| {
                let (method, reads) = row.method(rmw);
                (method, u64::from(reads.count_ones()))
            };
            assert_eq!(counted(Rmw::WhenFewerReads), least);
            assert_eq!(counted(Rmw::Never), (Method::Reconstruct, reconstruct));
            if modify == reconstruct {
                assert_eq!(
                    counted(Rmw::WhenNoMoreReads),
                    (Method::ReadModifyWrite, modify)
                );
            }
        }
    }
}

#[test]
fn closed_form_small_writes_spread_2_over_n_to_each_member_of_raid5() {
    for members in [3, 4, 5, 7] {
        // `members` rows of chunks: the parity visits each member once.
        let blocks = (members as u64 - 1) * 16 * members as u64;
        let mut array = array(Level::Raid5, LEFT_SYMMETRIC, members, COLD);
        let loads = loads(&mut array, (0..blocks).map(|block| (block * BLOCK, BLOCK)));
        for load in loads {
            assert_eq!(load.write_bytes * members as u64, 2 * blocks * BLOCK);
        }
    }
}

#[test]
fn closed_form_raid4_parity_receives_half_of_all_small_writes() {
    let mut array = array(Level::Raid4, 0, 5, COLD);
    let loads = loads(&mut array, (0..640).map(|block| (block * BLOCK, BLOCK)));
    assert_eq!(
        loads[4].write_bytes * 2,
        sum(&loads, |load| load.write_bytes)
    );
    assert_eq!(loads[4].redundant_write_bytes, loads[4].write_bytes);
}

/// Cached blocks are not read again: a second block of a row of five members reads no more.
#[test]
fn blocks_in_the_cache_are_not_read_again_until_another_row_takes_their_place() {
    let rows = |cached_stripes| {
        let options = WritePath {
            cached_stripes,
            ..COLD
        };
        array(Level::Raid5, LEFT_SYMMETRIC, 5, options)
    };
    let read = |array: &mut Array, writes: &[(u64, u64)]| -> u64 {
        sum(&loads(array, writes.iter().copied()), |load| {
            load.preread_bytes
        }) / BLOCK
    };
    // Blocks of row 0, and of the first row of the next stripe of chunks.
    let (first, second, other) = ((0, BLOCK), (64 * KIB, BLOCK), (256 * KIB, BLOCK));
    let mut raid5 = rows(1);
    assert_eq!(
        read(&mut raid5, &[first]),
        2,
        "its old content and the parity"
    );
    assert_eq!(
        read(&mut raid5, &[first]),
        0,
        "read before, and written since"
    );
    assert_eq!(read(&mut raid5, &[second]), 1, "the parity is known");
    assert_eq!(read(&mut raid5, &[other]), 2, "takes the only entry");
    assert_eq!(read(&mut raid5, &[first]), 2, "forgotten");
    // With two entries the row that was used longest ago is forgotten.
    let mut raid5 = rows(2);
    let third = (512 * KIB, BLOCK);
    assert_eq!(read(&mut raid5, &[first, other, first, third]), 6);
    assert_eq!(read(&mut raid5, &[first]), 0, "used after the other row");
    assert_eq!(read(&mut raid5, &[other]), 2);
    // What was written is known too: on three members the first write reads the other block only.
    let mut three = array(Level::Raid5, LEFT_SYMMETRIC, 3, COLD);
    assert_eq!(read(&mut three, &[first]), 1);
    assert_eq!(read(&mut three, &[second]), 0);
    // Reconstruction reads what is missing: with three of four data blocks known, the fourth.
    let of = |up_to_date| Row {
        data: 0b1111,
        parity: 0b1_0000,
        new: 0b1,
        overwritten: 0b1,
        up_to_date,
    };
    assert_eq!(of(0b110).method(Rmw::Never), (Method::Reconstruct, 0b1000));
    assert_eq!(
        of(0b1_1111).method(Rmw::WhenNoMoreReads),
        (Method::Reconstruct, 0)
    );
}

#[test]
fn requests_of_members_are_at_most_as_large_as_disks_take() {
    let options = WritePath {
        cached_stripes: 4096,
        ..COLD
    };
    let mut raid5 = array(Level::Raid5, LEFT_SYMMETRIC, 3, options);
    let mut out = Vec::new();
    raid5.write(0, 6144 * KIB, &mut out).unwrap();
    raid5.settle(&mut out);
    let written: u64 = out.iter().map(|request| request.bytes).sum();
    assert_eq!(written, 3 * 3072 * KIB);
    assert_eq!(
        out.iter().map(|request| request.bytes).max(),
        Some(1280 * KIB)
    );
}

/// "One member does all the work": a rewritten block keeps one member of RAID 0 busy, and two of
/// RAID 5 equally.
#[test]
fn closed_form_one_hot_block_loads_one_member_of_raid0_and_two_of_raid5() {
    let hot = || (0..100).map(|_| (0, BLOCK));
    let written = |loads: Vec<Load>| -> Vec<u64> {
        loads.iter().map(|load| load.write_bytes / BLOCK).collect()
    };
    let mut raid0 = array(Level::Raid0, 2, 3, WritePath::default());
    assert_eq!(written(loads(&mut raid0, hot())), [100, 0, 0]);
    let mut raid5 = array(Level::Raid5, LEFT_SYMMETRIC, 3, WritePath::default());
    assert_eq!(written(loads(&mut raid5, hot())), [100, 0, 100]);
    assert_eq!(
        raid5.rows().cached,
        99,
        "the cache holds the row after its first write"
    );
}

#[test]
fn closed_form_mirrors_write_each_copy_and_read_one() {
    for (level, layout, members, copies) in [
        (Level::Raid1, 0, 3, 3),
        (Level::Raid10, TWO_NEAR, 4, 2),
        (Level::Raid10, 0x201, 3, 2),
    ] {
        let mut array = array(level, layout, members, WritePath::default());
        let written = loads(&mut array, [(0, 1024 * KIB)]);
        assert_eq!(sum(&written, |load| load.write_bytes), copies * 1024 * KIB);
        assert_eq!(
            sum(&written, |load| load.redundant_write_bytes),
            (copies - 1) * 1024 * KIB
        );
        let mut out = Vec::new();
        array.read(0, 1024 * KIB, &mut out).unwrap();
        assert_eq!(
            out.iter().map(|request| request.bytes).sum::<u64>(),
            1024 * KIB
        );
    }
}

#[test]
fn part_of_a_block_reads_the_rest_of_it() {
    let mut array = array(Level::Raid5, LEFT_SYMMETRIC, 3, COLD);
    let loads = loads(&mut array, [(512, 1024)]);
    assert_eq!(
        sum(&loads, |load| load.write_bytes),
        2 * BLOCK,
        "blocks are written whole"
    );
    // Old data and old parity to modify, or both data blocks to reconstruct: a tie.
    assert_eq!(sum(&loads, |load| load.preread_bytes), 2 * BLOCK);
    assert_eq!(array.rows().reconstruct, 1);
}

#[test]
fn what_arrives_in_one_batch_fills_rows_together() {
    let mut array = array(Level::Raid5, LEFT_SYMMETRIC, 3, COLD);
    let mut together = Array::new(
        &geometry(Level::Raid5, LEFT_SYMMETRIC, 3, 64 * KIB),
        WritePath::default(),
    )
    .unwrap();
    let halves = [(0, 64 * KIB), (64 * KIB, 64 * KIB)];
    let apart = loads(&mut array, halves);
    let mut out = Vec::new();
    for (offset, bytes) in halves {
        together.write(offset, bytes, &mut out).unwrap();
    }
    assert!(out.is_empty(), "nothing is written before the batch ends");
    together.settle(&mut out);
    assert_eq!(
        out.iter()
            .map(|request| (request.member, request.bytes))
            .collect::<Vec<_>>(),
        [(0, 64 * KIB), (1, 64 * KIB), (2, 64 * KIB)]
    );
    assert_eq!(sum(&apart, |load| load.write_bytes), 256 * KIB);
}

#[test]
fn sectors_that_wait_are_written_before_they_change_again() {
    let mut raid5 = array(Level::Raid5, LEFT_SYMMETRIC, 3, WritePath::default());
    let mut out = Vec::new();
    for _ in 0..3 {
        raid5.write(0, BLOCK, &mut out).unwrap();
    }
    raid5.settle(&mut out);
    let written = out
        .iter()
        .filter(|request| request.operation == Operation::Write);
    assert_eq!(
        written.map(|request| request.bytes).sum::<u64>(),
        3 * 2 * BLOCK
    );
}

#[test]
fn a_full_cache_writes_full_rows_and_keeps_the_others_waiting() {
    let options = WritePath {
        cached_stripes: 17,
        ..WritePath::default()
    };
    let mut raid5 = array(Level::Raid5, LEFT_SYMMETRIC, 3, options);
    let mut out = Vec::new();
    // Half of a row, 16 whole rows, and one stripe more than the cache holds.
    for (offset, bytes) in [(128 * KIB, BLOCK), (0, 128 * KIB), (256 * KIB, BLOCK)] {
        raid5.write(offset, bytes, &mut out).unwrap();
    }
    assert_eq!(raid5.rows().full, 16);
    raid5.write(192 * KIB, BLOCK, &mut out).unwrap();
    raid5.settle(&mut out);
    assert_eq!((raid5.rows().full, raid5.rows().reconstruct), (17, 1));
}

#[test]
fn discards_pass_unless_there_is_parity_and_flushes_reach_every_member() {
    let mut out = Vec::new();
    let mut raid0 = array(Level::Raid0, 2, 3, WritePath::default());
    raid0.discard(0, 192 * KIB, &mut out).unwrap();
    assert_eq!(
        out.iter().map(|request| request.bytes).sum::<u64>(),
        192 * KIB
    );
    let mut raid5 = array(Level::Raid5, LEFT_SYMMETRIC, 3, WritePath::default());
    out.clear();
    raid5.discard(0, 192 * KIB, &mut out).unwrap();
    assert!(out.is_empty());
    raid5.write(0, BLOCK, &mut out).unwrap();
    raid5.flush(&mut out);
    let kinds: Vec<Operation> = out.iter().map(|request| request.operation).collect();
    use Operation::{Flush, Preread, Write};
    assert_eq!(kinds, [Preread, Write, Write, Flush, Flush, Flush]);
}

#[test]
fn requests_beyond_the_end_and_shapes_without_a_write_path_are_refused() {
    let mut raid0 = array(Level::Raid0, 2, 3, WritePath::default());
    let end = raid0.size_bytes();
    let refused = raid0.write(end - 512, 1024, &mut Vec::new()).unwrap_err();
    assert_eq!(
        refused,
        Error::BeyondEnd {
            end: end + 512,
            array_bytes: end
        }
    );
    assert!(raid0.read(u64::MAX, u64::MAX, &mut Vec::new()).is_err());
    let of = |level, members, chunk| {
        Array::new(&geometry(level, LEFT_SYMMETRIC, members, chunk), COLD).unwrap_err()
    };
    assert_eq!(of(Level::Raid5, 3, 512), Error::Chunk { chunk_bytes: 512 });
    assert_eq!(
        of(Level::Raid5, 65, 4096),
        Error::TooManyMembers { members: 65 }
    );
    assert_eq!(of(Level::Raid6, 2, 4096), Error::Shape);
}

#[test]
fn closed_form_queues_wait_for_reads_and_flushes_and_never_for_writes() {
    let mut queues = Queues::new(3);
    queues.submit(0, 1.0);
    queues.submit(1, 4.0);
    assert_eq!(queues.now_s(), 0.0);
    queues.wait_for_all();
    assert_eq!(queues.now_s(), 4.0, "side by side");
    for _ in 0..3 {
        let served_s = queues.submit(0, 1.0);
        queues.wait_until(served_s);
    }
    assert_eq!(queues.submit(2, 2.0), 9.0);
    assert_eq!(queues.now_s(), 7.0, "one after the other");
    queues.wait_until(4.0);
    assert_eq!(queues.now_s(), 7.0, "member 2 is waited for by nobody");
    queues.wait_for_all();
    assert_eq!(
        (queues.now_s(), queues.busy_s()),
        (9.0, &[4.0, 4.0, 2.0][..])
    );
}
