//! Recordings made of a few requests. Each file of tests uses a part of this one.
#![allow(dead_code)]

use fscost_crash::{Requests, image};
use fscost_recording::{DiskInfo, Event, Header, Op, Recording, Reply, Stripped, Writer};

pub const SIZE: u64 = 1 << 20;
pub const UNIT: u64 = 4096;

/// One request: what, on which disk, at which unit, how many units, filled with this byte.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub op: Op,
    pub disk: u16,
    pub unit: u64,
    pub units: u64,
    pub byte: u8,
    pub submit_ns: u64,
    pub complete_ns: u64,
    pub fua: bool,
}

pub fn write(unit: u64, byte: u8, submit_ns: u64, complete_ns: u64) -> Entry {
    Entry {
        op: Op::Write,
        disk: 0,
        unit,
        units: 1,
        byte,
        submit_ns,
        complete_ns,
        fua: false,
    }
}

pub fn flush(submit_ns: u64, complete_ns: u64) -> Entry {
    let op = Op::Flush;
    Entry {
        op,
        units: 0,
        ..write(0, 0, submit_ns, complete_ns)
    }
}

pub fn recorded(entries: &[Entry]) -> (tempfile::TempDir, Recording) {
    replied(entries, &[])
}

/// A recording with replies: a request's number, and when the disk had completed it.
pub fn replied(entries: &[Entry], replies: &[(u64, u64)]) -> (tempfile::TempDir, Recording) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let disk = |name: &str| DiskInfo {
        name: name.to_owned(),
        size_bytes: SIZE,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    let header = Header {
        begin_unix_ns: 0,
        stripped: Stripped::No,
        disks: vec![disk("main"), disk("log")],
    };
    let mut writer = Writer::create(&path, &header).unwrap();
    for entry in entries {
        let length = entry.units * UNIT;
        if entry.op == Op::Write {
            writer.space()[..length as usize].fill(entry.byte);
        }
        writer
            .append(Event {
                submit_ns: entry.submit_ns,
                complete_ns: entry.complete_ns,
                offset: entry.unit * UNIT,
                length,
                content_offset: 0,
                disk: entry.disk,
                op: entry.op,
                fua: entry.fua,
            })
            .unwrap();
    }
    for &(request, complete_ns) in replies {
        let reply = Reply {
            request,
            complete_ns,
            sent_ns: complete_ns,
        };
        writer.reply(reply).unwrap();
    }
    writer.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    (folder, recording)
}

/// The first byte of each of the first units of `disk`.
pub fn bytes(recording: &Recording, at_ns: u64, disk: u16, kept: &[u32], units: u64) -> Vec<u8> {
    let requests = Requests::read(recording, &[]).unwrap();
    let cut = requests.cut(at_ns, UNIT, false);
    let mut found = image(recording, &cut, disk, kept).unwrap();
    (0..units)
        .map(|unit| {
            let mut byte = [0];
            found.read_at(unit * UNIT, &mut byte).unwrap();
            byte[0]
        })
        .collect()
}

pub fn pending_events(recording: &Recording, at_ns: u64) -> Vec<u64> {
    let requests = Requests::read(recording, &[]).unwrap();
    let cut = requests.cut(at_ns, UNIT, false);
    cut.pending.iter().map(|unit| unit.event).collect()
}
