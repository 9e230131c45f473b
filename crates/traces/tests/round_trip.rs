//! Random traces, written in each format and read back; then damaged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{File, read};
use fscost_traces::{Format, Kind, Place, Request, Trace};
use proptest::{collection::vec, prelude::*, sample::select};
use std::fmt::Write as _;

/// A way to write a trace, and what it can say.
#[derive(Debug, Clone, Copy)]
struct Spelling {
    format: Format,
    kinds: &'static [Kind],
    time_unit_ns: u64,
    unit_bytes: u64,
    max_length_units: u64,
    has_fua: bool,
    header: &'static str,
    /// The line, or the record, of a request: its number, and the time of the one before.
    record: fn(&Request, u64, u64) -> Vec<u8>,
    disk_name: fn(u32) -> String,
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

const SPELLINGS: [Spelling; 15] = [
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

impl Spelling {
    /// Requests that it can say, with the disks in the order of their first requests.
    fn requests(self) -> impl Strategy<Value = Vec<Request>> {
        let times = prop_oneof![0..1000u64, 0..1u64 << 40, any::<u64>()];
        let one = (
            times,
            0..4u32,
            select(self.kinds),
            any::<bool>(),
            any::<(u64, u64)>(),
            0..64u32,
        );
        vec(one, 1..40).prop_map(move |drawn| {
            let mut disks: Vec<u32> = Vec::new();
            let mut found = Vec::new();
            let mut time_ns = 0;
            for (number, (time, disk, kind, fua, (offset, length), shift)) in
                drawn.into_iter().enumerate()
            {
                if !disks.contains(&disk) && self.format != Format::DmLogWrites {
                    disks.push(disk);
                }
                let place = disks.iter().position(|&each| each == disk).unwrap_or(0);
                // Of version 2 of fio, times only rise.
                let is_summed = self.header.contains("version 2");
                time_ns = if is_summed {
                    time_ns + time % (1 << 50)
                } else {
                    time
                };
                let length =
                    (length >> shift) % self.max_length_units % (u64::MAX / self.unit_bytes / 2);
                let length = length + 1;
                let offset = (offset >> shift) % ((u64::MAX / self.unit_bytes) - length);
                let (offset, length) = if kind == Kind::Flush {
                    (0, 0)
                } else {
                    (offset, length)
                };
                let is_numbered = self.format == Format::DmLogWrites;
                found.push(Request {
                    time_ns: if is_numbered {
                        number as u64
                    } else {
                        time_ns / self.time_unit_ns * self.time_unit_ns
                    },
                    disk: place as u32,
                    kind,
                    fua: fua && kind == Kind::Write && self.has_fua,
                    offset_bytes: offset * self.unit_bytes,
                    length_bytes: length * self.unit_bytes,
                });
            }
            found
        })
    }

    /// The beginning of the file, and its lines or records.
    fn spell(self, requests: &[Request]) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut before_ns = 0;
        let records = requests.iter().enumerate().map(|(number, each)| {
            let record = (self.record)(each, number as u64, before_ns);
            before_ns = each.time_ns;
            record
        });
        let records: Vec<_> = records.collect();
        let mut begin = self.header.as_bytes().to_vec();
        if self.format == Format::DmLogWrites {
            for word in [0x6a_7366_7773_6872, 1, records.len() as u64, 512] {
                begin.extend(u64::to_le_bytes(word));
            }
            begin.resize(512, 0);
        }
        (begin, records)
    }

    fn is_text(self) -> bool {
        !matches!(self.format, Format::Blktrace | Format::DmLogWrites)
    }
}

fn any_trace() -> impl Strategy<Value = (Spelling, Vec<Request>)> {
    select(&SPELLINGS[..]).prop_flat_map(|spelling| (Just(spelling), spelling.requests()))
}

fn file_with((begin, records): &(Vec<u8>, Vec<Vec<u8>>)) -> File {
    File::new([&begin[..], &records.concat()].concat())
}

/// The requests before the error.
fn read_to_error(file: &File, format: Format) -> (Vec<Request>, Option<fscost_traces::Error>) {
    let mut trace = match Trace::open(&file.path(), Some(format)) {
        Ok(trace) => trace,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut requests = Vec::new();
    loop {
        match trace.next_request() {
            Ok(Some(request)) => requests.push(request),
            Ok(None) => return (requests, None),
            Err(error) => {
                assert!(
                    trace.next_request().unwrap().is_none(),
                    "more after an error"
                );
                return (requests, Some(error));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        // Four of five spellings are text, and a test of records draws those again.
        max_global_rejects: 1 << 16,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_was_written_is_read((spelling, requests) in any_trace(), is_named: bool) {
        let file = file_with(&spelling.spell(&requests));
        let (found, disks) = read(&file.path(), is_named.then_some(spelling.format)).unwrap();
        prop_assert_eq!(found, requests.clone());
        let count = 1 + requests.iter().map(|each| each.disk).max().unwrap();
        let wanted: Vec<_> = (0..count).map(spelling.disk_name).collect();
        prop_assert_eq!(disks, wanted);
    }

    #[test]
    fn a_damaged_line_ends_the_trace_with_its_number(
        (spelling, requests) in any_trace(),
        place: prop::sample::Index,
        damage in 0..4usize,
    ) {
        prop_assume!(spelling.is_text());
        let (begin, mut records) = spelling.spell(&requests);
        let place = place.index(records.len());
        let record = String::from_utf8(records[place].clone()).unwrap();
        let kept = record[..record.trim_end().len()].rfind('\n').map_or(0, |at| at + 1);
        let (before, line) = record.split_at(kept);
        let damaged = match damage {
            0 => "\0".to_owned() + line,
            1 => line.trim().split_inclusive([' ', ',']).next().unwrap().to_owned() + "\n",
            2 => line.trim_start().replacen(|byte: char| byte.is_ascii_digit(), "-", 1),
            _ => "nonsense\n".to_owned(),
        };
        // An iolog's file may have any name.
        prop_assume!(!(damage % 2 == 0 && spelling.header.contains("version 2")));
        records[place] = [before, &damaged].concat().into();
        let file = file_with(&(begin.clone(), records.clone()));
        let (found, error) = read_to_error(&file, spelling.format);
        let error = error.expect("an error");
        let lines_before = [&begin[..], &records[..place].concat(), before.as_bytes()].concat();
        let number = 1 + lines_before.iter().filter(|&&byte| byte == b'\n').count() as u64;
        prop_assert_eq!(error.place, Place::Line(number), "{} for {:?}", error, damaged);
        prop_assert_eq!(&found[..], &requests[..place]);
    }

    #[test]
    fn a_cut_record_ends_the_trace_after_those_before(
        (spelling, requests) in any_trace(),
        place: prop::sample::Index,
        cut: prop::sample::Index,
    ) {
        prop_assume!(!spelling.is_text());
        let place = place.index(requests.len());
        let (begin, mut records) = spelling.spell(&requests[..=place]);
        let at = (begin.len() + records[..place].concat().len()) as u64;
        let length = 1 + cut.index(records[place].len() - 1);
        records[place].truncate(length);
        let (found, error) = read_to_error(&file_with(&(begin, records)), spelling.format);
        let error = error.expect("an error");
        if spelling.format == Format::Blktrace {
            prop_assert_eq!(error.place, Place::Byte(at));
        } else {
            // The first check of a log is whether its entries can fit.
            let text = error.to_string();
            prop_assert!(text.contains("truncated") || text.contains("do not fit"), "{}", text);
            prop_assume!(text.contains("truncated"));
        }
        prop_assert_eq!(&found[..], &requests[..place]);
    }

    #[test]
    fn any_bytes_are_requests_or_an_error(
        (spelling, requests) in any_trace(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..8),
        other in select(&Format::ALL[..]),
    ) {
        let (begin, records) = spelling.spell(&requests);
        let mut bytes = [begin, records.concat()].concat();
        for (place, byte, change) in changes {
            let place = place.index(bytes.len());
            match change {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => bytes.truncate(place + 1),
            }
        }
        let file = File::new(&bytes);
        for format in [spelling.format, other] {
            let (found, _) = read_to_error(&file, format);
            for each in found {
                prop_assert!(each.offset_bytes.checked_add(each.length_bytes).is_some());
            }
        }
        let _ = read(&file.path(), None);
    }
}
