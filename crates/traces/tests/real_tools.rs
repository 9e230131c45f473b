//! Files that real tools and a real kernel made: see `data/README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{File, data, gunzip, read, totals};
use fscost_traces::{Format, Kind, Request, Trace};

/// Bytes of a record and its payload, and its CPU (`struct blk_io_trace`).
fn records(bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut rest = bytes;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let cpu = u32::from_le_bytes(rest[40..44].try_into().unwrap());
        let length = 48 + usize::from(u16::from_le_bytes(rest[46..48].try_into().unwrap()));
        let (record, after) = rest.split_at(length);
        records.push((cpu, record));
        rest = after;
    }
    records
}

/// blkparse prints times since the first event.
fn since_first(requests: &[Request]) -> Vec<Request> {
    let first = requests[0].time_ns;
    let moved = requests.iter().map(|request| Request {
        time_ns: request.time_ns - first,
        ..*request
    });
    moved.collect()
}

#[test]
fn blktrace_agrees_with_the_counters_of_the_kernel() {
    let (requests, disks) = read(&data("loop.bin.gz"), None).unwrap();
    assert_eq!(disks, ["7,1"]);
    assert_eq!(totals(&requests, Kind::Read), (147, 3822 * 512));
    assert_eq!(totals(&requests, Kind::Discard), (11, 255_408 * 512));
    assert_eq!(totals(&requests, Kind::Flush), (27, 0));
    assert_eq!(totals(&requests, Kind::Write).1, 19_294 * 512);
}

#[test]
fn blkparse_prints_the_requests_of_the_binary_file() {
    let (binary, _) = read(&data("loop.bin.gz"), None).unwrap();
    let (text, disks) = read(&data("loop.blkparse.gz"), None).unwrap();
    assert_eq!(disks, ["7,1"]);
    assert_eq!(since_first(&text), since_first(&binary));
}

#[test]
fn queued_and_completed_requests_alone_count_as_the_kernel_counts_them() {
    let text = String::from_utf8(gunzip(&data("loop.blkparse.gz"))).unwrap();
    let binary = gunzip(&data("loop.bin.gz"));
    for (letter, action) in [("Q", 1), ("C", 8)] {
        let is_wanted = |line: &&str| line.split_whitespace().nth(5) == Some(letter);
        let lines: Vec<&str> = text.lines().filter(is_wanted).collect();
        let of_action =
            |record: &&[u8]| u16::from_le_bytes(record[28..30].try_into().unwrap()) == action;
        let of_binary: Vec<&[u8]> = records(&binary)
            .into_iter()
            .map(|(_, record)| record)
            .filter(of_action)
            .collect();
        let (text, _) = read(&File::new(lines.join("\n")).path(), None).unwrap();
        let (binary, _) = read(&File::new(of_binary.concat()).path(), None).unwrap();
        assert_eq!(since_first(&text), since_first(&binary), "{letter}");
        assert_eq!(totals(&text, Kind::Write).1, 19_294 * 512, "{letter}");
        assert_eq!(totals(&text, Kind::Discard).1, 255_408 * 512, "{letter}");
    }
}

#[test]
fn files_of_all_cpus_are_one_trace() {
    let whole = gunzip(&data("loop.bin.gz"));
    let folder = tempfile::tempdir().unwrap();
    for wanted in [0, 1] {
        let of_cpu = records(&whole)
            .into_iter()
            .filter(|(cpu, _)| *cpu == wanted);
        let bytes: Vec<u8> = of_cpu.flat_map(|(_, record)| record.to_vec()).collect();
        std::fs::write(folder.path().join(format!("loop.blktrace.{wanted}")), bytes).unwrap();
        std::fs::write(folder.path().join(format!("other.blktrace.{wanted}")), "x").unwrap();
    }
    let (merged, _) = read(&data("loop.bin.gz"), None).unwrap();
    for cpu in [0, 1] {
        let path = folder.path().join(format!("loop.blktrace.{cpu}"));
        let (requests, _) = read(&path, None).unwrap();
        assert_eq!(requests, merged);
    }
}

#[test]
fn a_big_endian_trace_is_the_same_trace() {
    let whole = gunzip(&data("loop.bin.gz"));
    let mut swapped = Vec::new();
    for (_, record) in records(&whole) {
        let mut at = 0;
        for length in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
            swapped.extend(record[at..at + length].iter().rev());
            at += length;
        }
        swapped.extend(&record[48..]);
    }
    let (requests, _) = read(&File::new(&swapped).path(), None).unwrap();
    assert_eq!(requests, read(&data("loop.bin.gz"), None).unwrap().0);
}

#[test]
fn fio_iologs_have_the_totals_that_fio_reported() {
    for (name, last_ns) in [
        ("fio-v3.iolog", 42_031_000),
        ("fio-v2.iolog", 145 * 250_000),
    ] {
        let mut trace = Trace::open(&data(name), None).unwrap();
        assert_eq!(trace.format(), Format::Fio);
        let requests: Vec<Request> = trace.by_ref().collect::<Result<_, _>>().unwrap();
        assert_eq!(trace.disks(), ["/dev/one"]);
        assert_eq!(totals(&requests, Kind::Read), (60, 548_864), "{name}");
        assert_eq!(totals(&requests, Kind::Write), (65, 499_712), "{name}");
        assert_eq!(totals(&requests, Kind::Flush), (21, 0), "{name}");
        assert_eq!(requests.last().unwrap().time_ns, last_ns, "{name}");
    }
    let (requests, disks) = read(&data("fio-v3-trim.iolog"), None).unwrap();
    assert_eq!(disks, ["/dev/two"]);
    assert_eq!(totals(&requests, Kind::Discard), (112, 1_048_576));
    assert_eq!(requests.len(), 112);
}
