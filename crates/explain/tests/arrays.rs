//! md arrays: a recording of one disk, split into members as md does, has the same explanation as
//! the disk.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/conserved.rs"]
mod conserved;

use conserved::assert_conserved;
use fscost_explain::{Explained, Row, Structure, explain};
use fscost_raid::{Geometry, Level, Map, Place, Role};
use fscost_recording::{DiskInfo, Event, Header, Mark, Op, Recording, Stripped, Writer};
use proptest::prelude::*;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
};

const DATA_OFFSET: u64 = 1 << 20;
const SECTOR: u64 = 512;
const BITMAP_AT: u64 = 8192;

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ext");
    let files = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    found.retain(|file| file.extension().is_some_and(|e| e == "fscost"));
    found.sort();
    found
}

/// Builds a member's superblock as `mdadm --create` writes it: version 1.2 with a bitmap.
fn superblock(geometry: &Geometry, role: usize) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let level: i32 = match geometry.level {
        Level::Linear => -1,
        Level::Raid0 => 0,
        Level::Raid1 => 1,
        Level::Raid4 => 4,
        Level::Raid5 => 5,
        Level::Raid6 => 6,
        Level::Raid10 => 10,
    };
    let sectors = geometry.member_bytes[role] / SECTOR;
    let count = geometry.member_bytes.len();
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &0xa92b_4efc_u32.to_le_bytes());
    put(4, &1_u32.to_le_bytes());
    put(8, &1_u32.to_le_bytes());
    put(16, &[7; 16]);
    put(72, &level.to_le_bytes());
    put(76, &geometry.layout.to_le_bytes());
    put(80, &sectors.to_le_bytes());
    put(88, &((geometry.chunk_bytes / SECTOR) as u32).to_le_bytes());
    put(92, &(count as u32).to_le_bytes());
    put(96, &8_i32.to_le_bytes());
    put(128, &(DATA_OFFSET / SECTOR).to_le_bytes());
    put(136, &sectors.to_le_bytes());
    put(144, &8_u64.to_le_bytes());
    put(160, &(role as u32).to_le_bytes());
    put(220, &(count as u32).to_le_bytes());
    for member in 0..count {
        put(256 + 2 * member, &(member as u16).to_le_bytes());
    }
    let words = bytes[..256 + 2 * count].chunks(4).map(|word| {
        let mut padded = [0; 4];
        padded[..word.len()].copy_from_slice(word);
        u64::from(u32::from_le_bytes(padded))
    });
    let sum: u64 = words.sum();
    let checksum = (sum as u32).wrapping_add((sum >> 32) as u32);
    bytes[216..220].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Splits a disk's requests into those of an array's members.
struct Splitter {
    map: Map,
    writer: Writer,
    /// Content of the array, from which parity is computed.
    content: Vec<u8>,
    /// Number of the disk's event for each event of the members.
    origin: Vec<u64>,
    /// Events that wrote data of files.
    of_files: HashSet<u64>,
    /// The newest of them.
    newest: Option<Event>,
    /// Bytes that md wrote again to one mirror alone.
    repaired: u64,
}

impl Splitter {
    fn append(&mut self, origin: u64, event: Event, content: &[u8]) {
        self.writer.space()[..content.len()].copy_from_slice(content);
        self.writer.append(event).unwrap();
        self.origin.push(origin);
    }

    /// Writes each member's superblock and bitmap, which no event of the disk corresponds to.
    fn metadata(&mut self, geometry: &Geometry) {
        let of_md = |disk, offset, length| Event {
            submit_ns: 0,
            complete_ns: 0,
            offset,
            length,
            content_offset: 0,
            disk,
            op: Op::Write,
            fua: false,
        };
        for role in 0..geometry.member_bytes.len() {
            let content = superblock(geometry, role);
            self.append(u64::MAX, of_md(role as u16, 4096, 4096), &content);
            self.append(u64::MAX, of_md(role as u16, BITMAP_AT, 4096), &content);
        }
    }

    fn mark(&mut self, origin: u64, name: &str, at_ns: u64) {
        let mark = Mark {
            name: name.into(),
            detail: serde_json::Value::Null,
        };
        self.writer.mark(&mark, at_ns).unwrap();
        self.origin.push(origin);
    }

    fn on(&mut self, origin: u64, place: Place, event: Event, content: &[u8]) {
        let event = Event {
            disk: place.member as u16,
            offset: DATA_OFFSET + place.offset,
            ..event
        };
        self.append(origin, event, content);
    }

    /// Adds the members' requests for a data request, the last copy first.
    fn data(&mut self, origin: u64, event: Event, content: &[u8]) {
        let zeroes = vec![0; event.length as usize];
        let new = if event.op == Op::Write {
            content
        } else {
            &zeroes
        };
        self.content[event.offset as usize..][..new.len()].copy_from_slice(new);
        let mut at = 0;
        while at < event.length {
            let (places, length) = self.map.places(event.offset + at);
            let length = length.min(event.length - at);
            let part = content
                .get(at as usize..(at + length) as usize)
                .unwrap_or_default();
            for place in places.into_iter().rev() {
                self.on(origin, place, Event { length, ..event }, part);
            }
            if event.op != Op::Discard {
                self.parity(origin, event, event.offset + at, length);
            }
            at += length;
        }
        if self.of_files.contains(&origin) {
            self.newest = Some(event);
        }
    }

    /// Writes the first part of the newest data again, to its last mirror alone.
    fn repair(&mut self) {
        let Some(event) = self.newest.take().filter(|_| self.map.copies() > 1) else {
            return;
        };
        let (places, length) = self.map.places(event.offset);
        let length = length.min(event.length);
        let content = self.content[event.offset as usize..][..length as usize].to_vec();
        if let Some(place) = places.into_iter().next_back() {
            self.repaired += length;
            self.on(u64::MAX, place, Event { length, ..event }, &content);
        }
    }

    fn parity(&mut self, origin: u64, event: Event, array_offset: u64, length: u64) {
        for place in self.map.parity_places(array_offset) {
            let content = self.xor(place.offset, length);
            let event = Event {
                op: Op::Write,
                length,
                ..event
            };
            self.on(origin, place, event, &content);
        }
    }

    /// Computes the XOR of all data at this offset of the members.
    fn xor(&self, offset: u64, length: u64) -> Vec<u8> {
        let mut sum = vec![0; length as usize];
        for member in 0..8 {
            if let Role::Data { array_offset, .. } = self.map.piece(member, offset).role {
                let data = &self.content[array_offset as usize..][..length as usize];
                sum.iter_mut()
                    .zip(data)
                    .for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        sum
    }
}

/// Converts the recording `path` of one disk into one of an array of this shape. Also returns the
/// origin of its events, and the bytes of repairs.
fn split(path: &Path, plain: &Explained, geometry: &Geometry, to: &Path) -> (Map, Vec<u64>, u64) {
    let recording = Recording::open(path).unwrap();
    let map = Map::new(geometry).unwrap();
    assert!(map.size_bytes() >= recording.header().disks[0].size_bytes);
    let member = |(role, bytes): (usize, &u64)| DiskInfo {
        name: format!("m{role}"),
        size_bytes: DATA_OFFSET + bytes,
        ..recording.header().disks[0].clone()
    };
    let header = Header {
        disks: geometry
            .member_bytes
            .iter()
            .enumerate()
            .map(member)
            .collect(),
        ..recording.header().clone()
    };
    let mut splitter = Splitter {
        writer: Writer::create(to, &header).unwrap(),
        content: vec![0; map.size_bytes() as usize],
        map,
        origin: Vec::new(),
        of_files: plain
            .rows
            .iter()
            .filter(|row| row.structure == Structure::FileData)
            .map(|row| row.event)
            .collect(),
        newest: None,
        repaired: 0,
    };
    splitter.metadata(geometry);
    // A punched hole is zeros or a discard; the disk's explanation tells which.
    let written: HashSet<u64> = plain.rows.iter().map(|row| row.event).collect();
    let mut number = 0;
    let walk = recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            let content = frame.content_of(event);
            match event.op {
                Op::Mark => {
                    let name = frame.mark_of(event)?.name;
                    splitter.mark(number, &name, event.complete_ns);
                }
                Op::Flush => {
                    splitter.repair();
                    for disk in 0..geometry.member_bytes.len() as u16 {
                        splitter.append(number, Event { disk, ..*event }, &[]);
                    }
                }
                Op::Read => {}
                Op::Punch => {
                    let op = match written.contains(&number) {
                        true => Op::WriteZeroes,
                        false => Op::Discard,
                    };
                    splitter.data(number, Event { op, ..*event }, &[]);
                }
                Op::Write | Op::Discard | Op::WriteZeroes => {
                    splitter.data(number, *event, content);
                }
            }
            number += 1;
        }
        Ok(true)
    });
    walk.unwrap();
    splitter.writer.finish().unwrap();
    (splitter.map, splitter.origin, splitter.repaired)
}

/// Explanation of each sector, by event, place in the array and copy.
type Said = BTreeMap<(u64, u64, u8), String>;

fn say(said: &mut Said, explained: &Explained, row: &Row, event: u64, place: u64, copy: u8) {
    for at in (0..row.length).step_by(SECTOR as usize) {
        let path = row.path.map(|path| explained.paths.text(path).to_owned());
        let home = row.home_offset.map(|home| home + at);
        let text = format!(
            "{} {:?} {home:?} {} {} {path:?} {:?}",
            row.structure.name(),
            row.home,
            row.causes,
            row.inode,
            row.transaction
        );
        assert!(
            said.insert((event, place + at, copy), text).is_none(),
            "{row:?}"
        );
    }
}

fn of_disk(plain: &Explained, copies: usize) -> Said {
    let mut said = Said::new();
    for row in &plain.rows {
        for copy in 0..copies {
            say(&mut said, plain, row, row.event, row.offset, copy as u8);
        }
    }
    said
}

/// Returns the rows of data; rows of md are counted by structure.
fn of_members(explained: &Explained, map: &Map, origin: &[u64]) -> (Said, HashMap<Structure, u64>) {
    let (mut said, mut others) = (Said::new(), HashMap::new());
    for row in &explained.rows {
        let inside = row.offset.checked_sub(DATA_OFFSET);
        match inside.map(|offset| map.piece(row.disk.into(), offset).role) {
            Some(Role::Data { array_offset, copy }) => {
                assert_eq!(row.copy, copy, "{row:?}");
                let event = origin[row.event as usize];
                let is_repair = row.structure == Structure::MdResync;
                assert_eq!(is_repair, event == u64::MAX, "{row:?}");
                if is_repair {
                    *others.entry(row.structure).or_insert(0) += row.length;
                    continue;
                }
                say(&mut said, explained, row, event, array_offset, copy);
            }
            role => {
                let is_parity = matches!(role, Some(Role::Parity | Role::Syndrome));
                assert_eq!(row.structure == Structure::Parity, is_parity, "{row:?}");
                *others.entry(row.structure).or_insert(0) += row.length;
            }
        }
    }
    (said, others)
}

fn compare(path: &Path, geometry: &Geometry) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("array.fscost");
    let plain = explain(&Recording::open(path).unwrap()).unwrap();
    let (map, origin, repaired) = split(path, &plain, geometry, &to);
    let recording = Recording::open(&to).unwrap();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let members = geometry.member_bytes.len();
    assert_eq!(explained.families, vec![Some("ext"); members]);
    let (said, others) = of_members(&explained, &map, &origin);
    let wanted = of_disk(&plain, map.copies());
    let wrong = wanted
        .iter()
        .filter(|(key, text)| said.get(key) != Some(text));
    let wrong: Vec<_> = wrong
        .map(|(key, text)| (key, text, said.get(key)))
        .collect();
    assert!(
        wrong.is_empty() && said.len() == wanted.len(),
        "{}: {geometry:?}: {} of {} sectors differ, {} said: {:#?}",
        path.display(),
        wrong.len(),
        wanted.len(),
        said.len(),
        &wrong[..wrong.len().min(5)]
    );
    let of_each = 4096 * members as u64;
    assert_eq!(others.get(&Structure::MdSuperblock), Some(&of_each));
    assert_eq!(others.get(&Structure::MdBitmap), Some(&of_each));
    let resync = others.get(&Structure::MdResync).copied();
    assert_eq!(resync.unwrap_or_default(), repaired);
}

fn shapes() -> impl Strategy<Value = Geometry> {
    let levels = prop_oneof![
        Just((Level::Linear, 0)),
        Just((Level::Raid0, 2)),
        Just((Level::Raid1, 0)),
        Just((Level::Raid4, 0)),
        (0_u32..6).prop_map(|layout| (Level::Raid5, layout)),
        (0_u32..6).prop_map(|layout| (Level::Raid6, layout)),
        prop_oneof![Just(0x102_u32), Just(0x201), Just(0x10201)].prop_map(|l| (Level::Raid10, l)),
    ];
    (levels, 4_usize..6, 2_u64..7, 0_u64..3).prop_map(|((level, layout), members, chunk, more)| {
        let chunk_bytes = 1024 << chunk;
        // The first member is larger in the layouts for which this matters.
        let bytes = |role| (8 << 20) + if role == 0 { more * chunk_bytes } else { 0 };
        Geometry {
            level,
            layout,
            chunk_bytes,
            member_bytes: (0..members).map(bytes).collect(),
        }
    })
}

#[test]
fn zeroes_with_more_parts_than_any_request_are_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("array.fscost");
    // Requests are shorter than 4 GiB, and chunks have at least 4 KiB.
    let geometry = Geometry {
        level: Level::Raid0,
        layout: 2,
        chunk_bytes: SECTOR,
        member_bytes: vec![1 << 40; 2],
    };
    let disk = |role| DiskInfo {
        name: format!("m{role}"),
        size_bytes: DATA_OFFSET + (1 << 40),
        logical_block_bytes: 512,
        physical_block_bytes: 512,
    };
    let header = Header {
        begin_unix_ns: 0,
        disks: (0..2).map(disk).collect(),
        stripped: Stripped::No,
    };
    let mut splitter = Splitter {
        writer: Writer::create(&to, &header).unwrap(),
        content: Vec::new(),
        map: Map::new(&geometry).unwrap(),
        origin: Vec::new(),
        of_files: HashSet::new(),
        newest: None,
        repaired: 0,
    };
    splitter.metadata(&geometry);
    splitter.mark(0, "mount", 1);
    let endless = 1 << 40;
    let events = [
        (Op::Discard, endless),
        (Op::WriteZeroes, endless),
        (Op::WriteZeroes, 3 * SECTOR),
    ];
    for (op, length) in events {
        let event = Event {
            submit_ns: 2,
            complete_ns: 2,
            offset: DATA_OFFSET,
            length,
            content_offset: 0,
            disk: 0,
            op,
            fua: false,
        };
        splitter.append(0, event, &[]);
    }
    splitter.writer.finish().unwrap();
    let recording = Recording::open(&to).unwrap();
    let explained = explain(&recording).unwrap();
    assert_conserved(&recording, &explained);
    let rows = explained
        .rows
        .iter()
        .filter(|row| row.offset >= DATA_OFFSET);
    let rows: Vec<_> = rows.map(|row| (row.length, row.structure)).collect();
    let expected = [endless, 3 * SECTOR].map(|length| (length, Structure::Unknown));
    assert_eq!(rows, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_array_is_explained_like_a_disk(geometry in shapes(), number in 0_usize..64) {
        let recordings = recordings();
        compare(&recordings[number % recordings.len()], &geometry);
    }
}
