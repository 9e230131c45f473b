//! The formats, and how to write a request in each.

use fscost_traces::{Format, Kind, Request};
use std::fmt::Write as _;

/// A way to write a trace, and what it can say.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    pub format: Format,
    pub kinds: &'static [Kind],
    pub time_unit_ns: u64,
    pub unit_bytes: u64,
    pub max_length_units: u64,
    pub has_fua: bool,
    pub header: &'static str,
    /// The line, or the record, of a request: its number, and the time of the one before.
    pub record: fn(&Request, u64, u64) -> Vec<u8>,
    pub disk_name: fn(u32) -> String,
}

const ALL: &[Kind] = &[
    Kind::Read,
    Kind::Write,
    Kind::Discard,
    Kind::Zero,
    Kind::Flush,
];
const NO_ZERO: &[Kind] = &[Kind::Read, Kind::Write, Kind::Discard, Kind::Flush];
const CSV: &[Kind] = &[Kind::Read, Kind::Write];
const LOGGED: &[Kind] = &[Kind::Write, Kind::Discard, Kind::Flush];

pub const SPELLINGS: [Spelling; 15] = [
    Spelling {
        format: Format::Blkparse,
        kinds: ALL,
        has_fua: true,
        unit_bytes: 512,
        record: blkparse_line,
        disk_name: |disk| format!("8,{disk}"),
        ..TEXT
    },
    blktrace(ALL, blktrace_record::<8, true>),
    blktrace(ALL, blktrace_record::<8, false>),
    blktrace(NO_ZERO, blktrace_record::<7, true>),
    Spelling {
        format: Format::Msr,
        time_unit_ns: 100,
        record: |each, _, _| {
            let (time, word) = (each.time_ns / 100, word_of(each, "Read", "Write"));
            let (disk, offset, length) = (each.disk, each.offset_bytes, each.length_bytes);
            format!("{time},host,{disk},{word},{offset},{length},77\n").into()
        },
        disk_name: |disk| format!("host_{disk}"),
        ..TEXT
    },
    Spelling {
        format: Format::Fio,
        kinds: NO_ZERO,
        time_unit_ns: 1000,
        header: "fio version 2 iolog\n",
        record: |each, _, before_ns| {
            let wait_us = (each.time_ns - before_ns) / 1000;
            let file = file_of(each.disk);
            let wait = format!("{file} wait {wait_us} 0\n");
            format!("{wait}{file} {}\n", fio_action(each)).into()
        },
        disk_name: file_of,
        ..TEXT
    },
    Spelling {
        format: Format::Fio,
        kinds: NO_ZERO,
        time_unit_ns: 1000,
        header: "fio version 3 iolog\n",
        record: |each, _, _| {
            let (time, file) = (each.time_ns / 1000, file_of(each.disk));
            format!("{time} {file} {}\n", fio_action(each)).into()
        },
        disk_name: file_of,
        ..TEXT
    },
    Spelling {
        format: Format::Systor17,
        header: "Timestamp,Response,IOType,LUN,Offset,Size\n",
        record: |each, number, _| {
            let (time, word) = (seconds(each.time_ns), word_of(each, "R", "W"));
            let response = if number % 2 == 0 { "0.000806000" } else { "" };
            let (disk, offset, length) = (each.disk, each.offset_bytes, each.length_bytes);
            format!("{time},{response},{word},{disk},{offset},{length}\n").into()
        },
        ..TEXT
    },
    Spelling {
        format: Format::Alibaba,
        time_unit_ns: 1000,
        record: |each, _, _| {
            let (time, word) = (each.time_ns / 1000, word_of(each, "R", "W"));
            let (disk, offset, length) = (each.disk, each.offset_bytes, each.length_bytes);
            format!("{disk},{word},{offset},{length},{time}\n").into()
        },
        ..TEXT
    },
    Spelling {
        format: Format::Tencent,
        time_unit_ns: 1_000_000_000,
        unit_bytes: 512,
        record: |each, _, _| {
            let (time, word) = (each.time_ns / 1_000_000_000, word_of(each, "0", "1"));
            let (offset, length) = (each.offset_bytes / 512, each.length_bytes / 512);
            format!("{time},{offset},{length},{word},{}\r\n", each.disk).into()
        },
        ..TEXT
    },
    Spelling {
        format: Format::Spc,
        unit_bytes: 512,
        record: |each, number, _| {
            let word = if number % 2 == 0 {
                word_of(each, "r", "w")
            } else {
                word_of(each, "R", "W")
            };
            let (block, time) = (each.offset_bytes / 512, seconds(each.time_ns));
            format!(
                "{},{block},{},{word},{time}\n",
                each.disk, each.length_bytes
            )
            .into()
        },
        ..TEXT
    },
    Spelling {
        format: Format::Fiu,
        unit_bytes: 512,
        record: |each, number, _| {
            let (time, word) = (each.time_ns, word_of(each, "R", "W"));
            let (block, count) = (each.offset_bytes / 512, each.length_bytes / 512);
            format!(
                "{time} {number} kworker {block} {count} {word} 6 {} 56f11b71\n",
                each.disk
            )
            .into()
        },
        disk_name: |disk| format!("6,{disk}"),
        ..TEXT
    },
    Spelling {
        format: Format::Disksim,
        unit_bytes: 512,
        record: |each, _, _| {
            let time = format!(
                "{}.{:06}",
                each.time_ns / 1_000_000,
                each.time_ns % 1_000_000
            );
            let (block, count) = (each.offset_bytes / 512, each.length_bytes / 512);
            format!(
                "{time}\t{} {block:8} {count} {}\n",
                each.disk,
                word_of(each, "1", "0")
            )
            .into()
        },
        ..TEXT
    },
    Spelling {
        format: Format::Mqsim,
        unit_bytes: 512,
        record: |each, _, _| {
            let (block, count) = (each.offset_bytes / 512, each.length_bytes / 512);
            let word = word_of(each, "1", "0");
            format!("{} {} {block} {count} {word}\n", each.time_ns, each.disk).into()
        },
        ..TEXT
    },
    Spelling {
        format: Format::DmLogWrites,
        kinds: LOGGED,
        unit_bytes: 512,
        max_length_units: 16,
        has_fua: true,
        record: log_entry,
        disk_name: |_| "log".into(),
        ..TEXT
    },
];

const TEXT: Spelling = Spelling {
    format: Format::Msr,
    kinds: CSV,
    time_unit_ns: 1,
    unit_bytes: 1,
    max_length_units: u64::MAX,
    has_fua: false,
    header: "",
    record: |_, _, _| Vec::new(),
    disk_name: |disk| disk.to_string(),
};

const fn blktrace(kinds: &'static [Kind], record: fn(&Request, u64, u64) -> Vec<u8>) -> Spelling {
    Spelling {
        format: Format::Blktrace,
        kinds,
        unit_bytes: 512,
        max_length_units: u32::MAX as u64 / 512,
        has_fua: true,
        record,
        disk_name: |disk| format!("8,{disk}"),
        ..TEXT
    }
}

fn word_of(each: &Request, read: &'static str, write: &'static str) -> &'static str {
    if each.kind == Kind::Read { read } else { write }
}

fn seconds(time_ns: u64) -> String {
    format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000)
}

fn file_of(disk: u32) -> String {
    format!("/mnt/file{disk}")
}

fn fio_action(each: &Request) -> String {
    let action = match each.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Discard => "trim",
        _ => "datasync",
    };
    format!("{action} {} {}", each.offset_bytes, each.length_bytes)
}

fn blkparse_line(each: &Request, number: u64, _: u64) -> Vec<u8> {
    let mut rwbs = match each.kind {
        Kind::Read => "R",
        Kind::Write => "W",
        Kind::Discard => "D",
        Kind::Zero => "WZ",
        Kind::Flush => "FN",
    }
    .to_owned();
    rwbs.push_str(if each.fua { "F" } else { "" });
    let (disk, time) = (each.disk, seconds(each.time_ns));
    let mut line = format!(
        "  8,{disk:<4} 3 {number:8} {time:>14} {:5}  D {rwbs:>3} ",
        697
    );
    if each.kind != Kind::Flush {
        let (sector, count) = (each.offset_bytes / 512, each.length_bytes / 512);
        write!(line, "{sector} + {count} ").unwrap();
    }
    (line + "[kworker/1:1]\n").into()
}

/// `struct blk_io_trace` (7) or `blk_io_trace2` (8), with a payload.
fn blktrace_record<const VERSION: u32, const LITTLE: bool>(
    each: &Request,
    number: u64,
    _: u64,
) -> Vec<u8> {
    fn put<const LITTLE: bool>(record: &mut Vec<u8>, value: u64, bytes: usize) {
        if LITTLE {
            record.extend(&value.to_le_bytes()[..bytes]);
        } else {
            record.extend(&value.to_be_bytes()[8 - bytes..]);
        }
    }
    let categories = match each.kind {
        Kind::Read => 1,
        Kind::Write => 1 << 1,
        Kind::Discard => 1 << 13 | 1 << 1,
        Kind::Zero => 1 << 22 | 1 << 1,
        Kind::Flush => 1 << 2,
    } | if each.fua { 1 << 15 } else { 0 };
    let (action, payload) = (7 | categories << 16, number % 3);
    let mut fields = vec![
        (u64::from(0x6561_7400 | VERSION), 4),
        (number, 4),
        (each.time_ns, 8),
        (each.offset_bytes / 512, 8),
        (each.length_bytes, 4),
    ];
    let (pid, device, cpu) = ((697, 4), (u64::from(8 << 20 | each.disk), 4), (3, 4));
    if VERSION == 8 {
        fields.extend([
            pid,
            (action, 8),
            device,
            cpu,
            (0, 2),
            (payload, 2),
            (0, 8),
            (0, 4),
        ]);
    } else {
        fields.extend([(action, 4), pid, device, cpu, (0, 2), (payload, 2)]);
    }
    let mut record = Vec::new();
    for (value, bytes) in fields {
        put::<LITTLE>(&mut record, value, bytes);
    }
    record.resize(if VERSION == 8 { 64 } else { 48 }, 0);
    record.extend(vec![b'p'; payload as usize]);
    record
}

fn log_entry(each: &Request, _: u64, _: u64) -> Vec<u8> {
    let flags = match each.kind {
        Kind::Flush => 1,
        Kind::Discard => 4,
        _ if each.fua => 2,
        _ => 0,
    };
    let mut entry = Vec::new();
    for word in [each.offset_bytes / 512, each.length_bytes / 512, flags, 0] {
        entry.extend(u64::to_le_bytes(word));
    }
    let data = if each.kind == Kind::Write {
        each.length_bytes
    } else {
        0
    };
    entry.resize(512 + data as usize, b'd');
    entry[32..512].fill(0);
    entry
}
