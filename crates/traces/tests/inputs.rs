//! Files that are compressed, damaged, or no traces at all.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::{File, data, error_of, gunzip, read};
use fscost_traces::{ErrorKind, Format, Place, Trace};
use std::io::Write as _;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Compresses with xz(1), for a real file of another implementation.
fn xz(bytes: &[u8], options: &[&str]) -> Vec<u8> {
    let file = File::new(bytes);
    let output = std::process::Command::new("xz")
        .args(options)
        .arg("--stdout")
        .arg(file.path())
        .output()
        .expect("xz is installed");
    assert!(output.status.success());
    output.stdout
}

#[test]
fn compressed_files_are_read_as_they_are() {
    let plain = gunzip(&data("loop.blkparse.gz"));
    let (wanted, _) = read(&File::new(&plain).path(), None).unwrap();
    assert!(wanted.len() > 200);
    let compressed = [
        gzip(&plain),
        zstd::encode_all(&plain[..], 3).unwrap(),
        bzip2(&plain),
        xz(&plain, &["-9"]),
    ];
    for (number, bytes) in compressed.iter().enumerate() {
        let (requests, _) = read(&File::new(bytes).path(), None).unwrap();
        assert_eq!(requests, wanted, "{number}");
        // Parts that were compressed one by one are one text.
        let two = File::new([&bytes[..], &bytes[..]].concat());
        assert_eq!(
            read(&two.path(), None).unwrap().0.len(),
            2 * wanted.len(),
            "{number}"
        );
        let cut = File::new(&bytes[..bytes.len() * 2 / 3]);
        let error = read(&cut.path(), None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{number}: {error}");
        assert!(
            error.to_string().contains("damaged or cut off"),
            "{number}: {error}"
        );
    }
}

#[test]
fn files_that_are_no_traces_are_refused_with_a_reason() {
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    let cases: [(&[u8], &str); 7] = [
        (b"", "the file is empty"),
        (&gzip(b""), "the file is empty"),
        (b"PK\x03\x04rest", "a zip archive; extract the trace first"),
        (
            &gzip(&tar),
            "a tar archive; extract the trace first (tar -xf)",
        ),
        (b"\n\n \n", "the content matches none of the formats"),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0",
            "the content matches none of the formats",
        ),
        (&[0; 4096], "the content matches none of the formats"),
    ];
    for (bytes, cause) in cases {
        let error = error_of(bytes, None);
        assert!(error.starts_with(&format!("trace: {cause}")), "{error}");
    }
}

#[test]
fn directories_fifos_and_missing_files_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    for path in [folder.path(), &fifo] {
        let error = Trace::open(path, None).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Format);
        assert!(
            error
                .to_string()
                .ends_with("a trace is read from a regular file"),
            "{error}"
        );
    }
    let missing = Trace::open(&folder.path().join("missing"), None)
        .err()
        .unwrap();
    assert_eq!(missing.kind, ErrorKind::Io);
    assert!(missing.to_string().contains("No such file"), "{missing}");
}

#[test]
fn an_endless_line_is_refused_in_bounded_memory() {
    // 1 GiB of one byte is 1 MB of gzip, and a line of 1 GiB.
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..1024 {
        out.write_all(&[b'7'; 1 << 20]).unwrap();
    }
    let bytes = out.finish().unwrap();
    let error = error_of(&bytes, Some(Format::Tencent));
    assert!(
        error.starts_with("trace: line 1: the line is longer than 65536 bytes"),
        "{error}"
    );
    let error = error_of(&bytes, None);
    assert!(
        error.starts_with("trace: the content matches none"),
        "{error}"
    );
}

#[test]
fn an_xz_file_that_wants_a_gigabyte_is_refused() {
    let file = File::new(xz(b"0,R,1,2,3\n", &["--lzma2=dict=1GiB"]));
    let error = read(&file.path(), None).unwrap_err();
    assert!(error.to_string().contains("mem_limit"), "{error}");
}

#[test]
fn damaged_binary_traces_are_reported_with_their_byte() {
    let whole = gunzip(&data("loop.bin.gz"));
    let second = 48 + u64::from(u16::from_le_bytes([whole[46], whole[47]]));
    let mut cut = whole.clone();
    cut.truncate(second as usize + 20);
    let error = read(&File::new(&cut).path(), None).unwrap_err();
    assert_eq!(error.place, Place::Byte(second));
    assert!(
        error
            .to_string()
            .ends_with("the record that begins here is cut off"),
        "{error}"
    );
    let mut damaged = whole.clone();
    damaged[second as usize] = 9;
    let error = read(&File::new(&damaged).path(), None).unwrap_err();
    assert_eq!(error.place, Place::Byte(second));
    assert!(
        error
            .to_string()
            .ends_with("a record of version 9; versions 7 and 8 can be read")
    );
    damaged[second as usize + 3] = 0;
    let error = read(&File::new(&damaged).path(), None).unwrap_err();
    assert!(
        error.to_string().contains("no record begins here"),
        "{error}"
    );
}
