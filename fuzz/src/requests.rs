//! Requests of an input as a recording, which the models of devices and arrays replay.

use crate::bounded;
use arbitrary::{Arbitrary, Unstructured};
use fscost_latency::Model;
use fscost_raid::{
    Array, Geometry, Level, Map, MemberRequest, Operation, Role, Superblock, WritePath,
};
use fscost_recording::{DiskInfo, Event, Header, Mark, Op, Recording, SECTOR_BYTES, Writer};
use fscost_replay::{Requests, Waits};
use fscost_ssd::{
    Association, Collection, LogBlocks, Mapping, Options, PageMapOptions, Repeat, Separation, Spec,
    Timing,
};
use fscost_wear::{OnArray, Wanted};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Bytes of each disk: enough for several erase blocks and chunks, and replayed at once.
const DISK_BYTES: u64 = 1 << 20;
const MOST_REQUESTS: usize = 200;
/// A device is filled before it is timed: larger ones take most of an execution.
const MOST_MEMBER_SECTORS: u16 = 2048;
/// Most doublings from the disk to the device, exclusive: a device of a thousand times the disk
/// takes seconds to fill.
const LARGEST_SHIFT: u8 = 6;
const MEASURED: &str = "work";

#[derive(Debug, Clone, Copy, Arbitrary)]
struct Asked {
    gap_ns: u16,
    took_ns: u32,
    op: u8,
    sector: u16,
    sectors: u8,
    disk: bool,
    fua: bool,
}

#[derive(Debug, Arbitrary)]
struct Shape {
    level: u8,
    layout: u16,
    chunk_sectors: u8,
    members: u8,
    sectors: [u16; 4],
    cached_stripes: u8,
}

#[derive(Debug, Arbitrary)]
struct Drive {
    spare: u8,
    unit: u8,
    page: u8,
    block: u8,
    mapping: u8,
    open: u8,
    streams: u8,
    gap: u8,
    buffer: u16,
    is_protected: bool,
    fill: u8,
}

/// Replays requests on default models of two disks, in each way of waiting. No interval may end
/// before it begins.
pub fn replay(input: &[u8]) {
    recorded(&mut Unstructured::new(input), |recording| {
        let requests = Requests::of(recording).expect("what was just written");
        for waits in [Waits::ForFlushes, Waits::ForAll] {
            let intervals = requests.replay(&[Model::default(), Model::default()], waits, 7);
            assert!(
                !intervals.is_empty(),
                "an interval for the time before the first mark"
            );
        }
    });
}

/// Replays requests on an untrusted model of an SSD, alone and as a member of an array.
pub fn wear(input: &[u8]) {
    let mut source = Unstructured::new(input);
    let (Ok(drive), Ok(shape)) = (Drive::arbitrary(&mut source), Shape::arbitrary(&mut source))
    else {
        return;
    };
    let spec = spec(&drive);
    let array = OnArray {
        disk: 0,
        geometry: geometry(&shape),
        options: options(&shape),
        batch_gap_ns: 1000,
    };
    let measured = [MEASURED.to_owned()];
    let timing = Timing {
        read_s: 50e-6,
        program_s: 500e-6,
        erase_s: 3e-3,
        parallel_pages: u32::from(drive.streams % 9),
    };
    recorded(&mut source, |recording| {
        let unit_bytes = spec.unit_bytes_for(DISK_BYTES);
        let wanted = Wanted {
            disk: 0,
            unit_bytes,
            measured: &measured,
        };
        let (workload, _) = fscost_wear::of_recording(recording, None, &wanted).expect("whole");
        let members = fscost_wear::of_array(recording, &array, &spec, &measured);
        for workload in members
            .unwrap_or_default()
            .iter()
            .take(2)
            .chain([&workload])
        {
            let fill = f64::from(drive.fill) / 255.0;
            let options = Options {
                fill,
                max_rounds: 2,
                by_tag: drive.fill & 1 == 1,
                repeat: match drive.fill & 2 {
                    0 => Repeat::Exact,
                    _ => Repeat::Varied,
                },
                seed: u64::from(drive.streams),
            };
            let Ok(done) = fscost_ssd::replay(&spec, workload, &options, &AtomicBool::new(false))
            else {
                continue;
            };
            assert_eq!(done.erases.len(), done.scaled.geometry.blocks as usize);
            let erases: u64 = done.erases.iter().map(|&each| u64::from(each)).sum();
            assert!(
                erases >= done.counted.erases,
                "{erases} of {:?}",
                done.counted
            );
            assert!(done.counted.levelled_units <= done.counted.copied_units);
            assert!(done.mapped_units <= done.scaled.geometry.physical_units());
        }
        for on in [None, Some(&array)] {
            let _ = fscost_wear::times(recording, &spec, timing, on);
        }
    });
}

/// Reads the input as a member's superblock, with its checksum mended, and as the shape of an array
/// with requests. Each byte of an array must be found at each of its places.
pub fn raid(input: &[u8]) {
    if let Some((0xfe, superblock)) = input.split_first() {
        return member(superblock);
    }
    let mut source = Unstructured::new(input);
    let Ok(shape) = Shape::arbitrary(&mut source) else {
        return;
    };
    let geometry = geometry(&shape);
    if let Some(map) = Map::new(&geometry) {
        round(&map, &geometry);
    }
    let Ok(mut array) = Array::new(&geometry, options(&shape)) else {
        return;
    };
    let mut out = Vec::<MemberRequest>::new();
    while let Ok(asked) = Asked::arbitrary(&mut source)
        && !source.is_empty()
        && out.len() < 10_000
    {
        let (offset, bytes) = range(&asked);
        let fits = offset + bytes <= array.size_bytes();
        let done = match op(asked.op) {
            Op::Read => array.read(offset, bytes, &mut out),
            Op::Discard | Op::Punch => array.discard(offset, bytes, &mut out),
            Op::Flush => {
                array.flush(&mut out);
                continue;
            }
            _ => array.write(offset, bytes, &mut out),
        };
        assert_eq!(
            done.is_ok(),
            fits,
            "{offset} + {bytes} of {}",
            array.size_bytes()
        );
    }
    array.settle(&mut out);
    for request in out {
        let size = geometry.member_bytes[request.member];
        assert!(
            request.offset + request.bytes <= size,
            "{request:?} of {size}"
        );
        assert!(
            request.bytes > 0 || request.operation == Operation::Flush,
            "{request:?}"
        );
    }
}

/// Reads a superblock at each place it may have.
fn member(input: &[u8]) {
    let mut bytes = input.to_vec();
    bytes.resize(Superblock::BYTES, 0);
    bytes[..8].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
    // The table of roles must fit, or there is no checksum.
    bytes[222..224].fill(0);
    bytes[221] &= 3;
    for place in fscost_raid::PLACES {
        let at = place(1 << 30).expect("a large disk");
        bytes[144..152].copy_from_slice(&(at / SECTOR_BYTES).to_le_bytes());
        let sum = checksum(&bytes);
        bytes[216..220].copy_from_slice(&sum.to_le_bytes());
        let Some(found) = Superblock::parse(&bytes, at, 1 << 30) else {
            continue;
        };
        let members = vec![&found; found.members.min(8)];
        if let Some(geometry) = Superblock::geometry(&members)
            && let Some(map) = Map::new(&geometry)
        {
            round(&map, &geometry);
        }
    }
}

/// The checksum of `calc_sb_1_csum()` (drivers/md/md.c), of a table of whole words.
fn checksum(bytes: &[u8]) -> u32 {
    let length = 256 + 2 * usize::from(u16::from_le_bytes([bytes[220], bytes[221]]));
    let words = bytes[..length]
        .chunks(4)
        .enumerate()
        .filter(|(word, _)| *word != 216 / 4);
    let sum: u64 = words
        .map(|(_, word)| {
            word.iter()
                .rev()
                .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        })
        .sum();
    (sum as u32).wrapping_add((sum >> 32) as u32)
}

/// Checks the map at the beginning of the array, in its middle, and at its end.
fn round(map: &Map, geometry: &Geometry) {
    let size = map.size_bytes();
    let mut offset = 0;
    for _ in 0..16 {
        for offset in [offset, size / 2 + offset, size.saturating_sub(offset + 1)] {
            let (places, length) = map.places(offset);
            assert_eq!(offset < size, length > 0);
            for (copy, place) in places.iter().enumerate() {
                assert!(
                    place.offset < geometry.member_bytes[place.member],
                    "{place:?}"
                );
                let piece = map.piece(place.member, place.offset);
                assert!(piece.length > 0);
                let copy = copy as u8;
                assert_eq!(
                    piece.role,
                    Role::Data {
                        array_offset: offset,
                        copy
                    }
                );
            }
            assert!(map.parity_places(offset).len() <= 2);
        }
        offset += map.places(offset).1;
    }
}

fn geometry(shape: &Shape) -> Geometry {
    let numbers = [-1, 0, 1, 4, 5, 6, 10];
    let level = numbers[usize::from(shape.level) % numbers.len()];
    let members = usize::from(shape.members % 24);
    let sectors = shape.sectors.iter().cycle().take(members);
    Geometry {
        level: Level::from_number(level).expect("a level of md"),
        layout: u32::from(shape.layout),
        chunk_bytes: u64::from(shape.chunk_sectors) * SECTOR_BYTES,
        member_bytes: sectors
            .map(|&each| u64::from(each % MOST_MEMBER_SECTORS) * SECTOR_BYTES)
            .collect(),
    }
}

fn options(shape: &Shape) -> WritePath {
    let cached_stripes = usize::from(shape.cached_stripes);
    WritePath {
        cached_stripes,
        ..WritePath::default()
    }
}

fn spec(drive: &Drive) -> Spec {
    let page = PageMapOptions {
        collection: [
            Collection::Greedy,
            Collection::Fifo,
            Collection::Random,
            Collection::Choices(u32::from(drive.open)),
        ][usize::from(drive.mapping >> 2) % 4],
        separation: [Separation::Mixed, Separation::Collected][usize::from(drive.mapping >> 4) % 2],
        streams: drive.streams,
        reserved_blocks: u32::from(drive.open),
        levelling_gap: (drive.gap < 128).then_some(u32::from(drive.gap)),
        seed: 7,
    };
    let association = [Association::Block, Association::Full][usize::from(drive.mapping >> 2) % 2];
    Spec {
        capacity_bytes: DISK_BYTES << (drive.gap % LARGEST_SHIFT),
        // At most 0.89: fuller devices take long to fill.
        spare: f64::from(drive.spare) / 288.0,
        unit_bytes: 512 << (drive.unit % 8),
        page_bytes: 512 << (drive.page % 10),
        block_bytes: 4096 << (drive.block % 10),
        mapping: match drive.mapping % 3 {
            0 => Mapping::Page(page),
            1 => Mapping::Block {
                open_blocks: u32::from(drive.open),
            },
            _ => Mapping::Log(LogBlocks {
                association,
                log_blocks: u32::from(drive.open),
            }),
        },
        buffer_bytes: u64::from(drive.buffer) * 512,
        is_power_loss_protected: drive.is_protected,
    }
}

fn range(asked: &Asked) -> (u64, u64) {
    let offset = u64::from(asked.sector) * SECTOR_BYTES % DISK_BYTES;
    let bytes = (u64::from(asked.sectors) + 1) * SECTOR_BYTES;
    (offset, bytes.min(DISK_BYTES - offset))
}

fn op(number: u8) -> Op {
    [
        Op::Read,
        Op::Write,
        Op::Flush,
        Op::Discard,
        Op::WriteZeroes,
        Op::Punch,
    ][usize::from(number) % 6]
}

/// Writes the requests as a recording of two disks with a measured interval.
fn recorded(source: &mut Unstructured<'_>, check: impl FnOnce(&Recording)) {
    let mut asked = Vec::new();
    while !source.is_empty() && asked.len() < MOST_REQUESTS {
        asked.extend(Asked::arbitrary(source));
    }
    bounded(|folder| {
        let path = folder.join("requests");
        write(&path, &asked);
        check(&Recording::open(&path).expect("what was just written"));
    });
}

fn write(path: &Path, asked: &[Asked]) {
    let mut writer = Writer::create(path, &header()).expect("space for a recording");
    let mark = |name: &str| Mark {
        name: name.to_owned(),
        detail: serde_json::Value::Null,
    };
    let mut now_ns = 0;
    for (number, each) in asked.iter().enumerate() {
        if number == asked.len() / 2 {
            writer.mark(&mark(MEASURED), now_ns).expect("a mark");
        }
        now_ns += u64::from(each.gap_ns);
        let op = op(each.op);
        let (offset, length) = if op == Op::Flush { (0, 0) } else { range(each) };
        if op == Op::Write {
            writer.space()[..length as usize].fill(7);
        }
        let event = Event {
            submit_ns: now_ns,
            complete_ns: now_ns + u64::from(each.took_ns),
            offset,
            length,
            content_offset: 0,
            disk: each.disk.into(),
            op,
            fua: each.fua && op == Op::Write,
        };
        writer.append(event).expect("a request within the disk");
    }
    writer.mark(&mark("end"), now_ns).expect("a mark");
    writer.finish().expect("space for a recording");
}

pub(crate) fn header() -> Header {
    let disk = |name: &str| DiskInfo {
        name: name.to_owned(),
        size_bytes: DISK_BYTES,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    Header {
        begin_unix_ns: 0,
        disks: vec![disk("main"), disk("journal")],
        ..Header::default()
    }
}
