//! The states of a seed are the same ones in the same order in each version: findings name states
//! by their numbers.
#![allow(missing_docs, clippy::unwrap_used)]

use fscost_crash::{Contents, Enumeration, Model, Requests};
use fscost_recording::{DiskInfo, Event, Header, Op, Recording, Stripped, Writer};

const UNIT: u64 = 4096;

/// Writes of one unit each, to places that repeat, with a flush now and then.
fn recorded(path: &std::path::Path) -> Recording {
    let disk = DiskInfo {
        name: "main".to_owned(),
        size_bytes: 1 << 20,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    let header = Header {
        begin_unix_ns: 0,
        stripped: Stripped::No,
        disks: vec![disk],
    };
    let mut writer = Writer::create(path, &header).unwrap();
    for number in 0..600 {
        // Longer and longer queues: 2 units to more than 128.
        let is_flush = [3, 9, 24, 45, 200].contains(&number);
        let op = match number % 7 {
            _ if is_flush => Op::Flush,
            6 => Op::Discard,
            _ => Op::Write,
        };
        if op == Op::Write {
            writer.space()[..UNIT as usize].fill(number as u8 % 5);
        }
        let place = match op {
            Op::Flush => 0,
            _ => number * 7 % 80 * UNIT,
        };
        let event = Event {
            submit_ns: 10 * number,
            complete_ns: 10 * number + 5,
            offset: place,
            length: if is_flush { 0 } else { UNIT },
            content_offset: 0,
            disk: 0,
            op,
            fua: number % 50 == 7,
        };
        writer.append(event).unwrap();
    }
    writer.finish().unwrap();
    Recording::open(path).unwrap()
}

/// A digest of all states that are found (FNV-1a), and how many were tried and different.
fn enumerated(model: Model, most: usize) -> (u64, u64, usize) {
    let folder = tempfile::tempdir().unwrap();
    let recording = recorded(&folder.path().join("recording"));
    let requests = Requests::read(&recording, &[]).unwrap();
    let contents = Contents::read(&recording).unwrap();
    let mut states = Enumeration::new(64 << 20);
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for seed in [1, 2] {
        for at_ns in requests.cuts(0, 10_000, 20) {
            let cut = requests.cut(at_ns, UNIT, false);
            let found = states.add(&contents, &cut, model, most, seed);
            for (number, choice) in found.unwrap() {
                number.to_le_bytes().into_iter().for_each(&mut add);
                choice.how.bytes().for_each(&mut add);
                let places = choice.kept.iter().flat_map(|place| place.to_le_bytes());
                places.for_each(&mut add);
            }
        }
    }
    (digest, states.tried(), states.different())
}

#[test]
fn a_seed_has_the_same_states_in_the_same_order() {
    let found = [
        (Model::Reorder, 24),
        (Model::Reorder, 1500),
        (Model::InOrder, 3000),
    ]
    .map(|(model, most)| enumerated(model, most));
    let known = [
        (16_746_572_574_745_274_718, 960, 523),
        (3_011_864_166_426_878_849, 54_536, 31_646),
        (11_977_699_337_557_819_205, 6358, 637),
    ];
    assert_eq!(found, known);
}
