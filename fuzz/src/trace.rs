//! Traces of other tools: one target for each format.

use crate::bounded;
use fscost_traces::{Format, Kind, Place, Trace};
use std::path::Path;

/// The input is a trace of Alibaba.
pub fn trace_alibaba(input: &[u8]) {
    trace(Format::Alibaba, input);
}

/// The input is text of blkparse.
pub fn trace_blkparse(input: &[u8]) {
    trace(Format::Blkparse, input);
}

/// The input is a binary file of blktrace.
pub fn trace_blktrace(input: &[u8]) {
    trace(Format::Blktrace, input);
}

/// The input is a log of dm-log-writes, read as a trace.
pub fn trace_dm_log_writes(input: &[u8]) {
    trace(Format::DmLogWrites, input);
}

/// The input is an iolog of fio.
pub fn trace_fio(input: &[u8]) {
    trace(Format::Fio, input);
}

/// The input is a trace of MSR Cambridge.
pub fn trace_msr(input: &[u8]) {
    trace(Format::Msr, input);
}

/// The input is a trace of SYSTOR '17.
pub fn trace_systor17(input: &[u8]) {
    trace(Format::Systor17, input);
}

/// The input is a trace of Tencent.
pub fn trace_tencent(input: &[u8]) {
    trace(Format::Tencent, input);
}

fn trace(format: Format, input: &[u8]) {
    bounded(|folder| {
        let path = folder.join("trace");
        std::fs::write(&path, input).expect("space for the input");
        read_all(&path, Some(format), input);
        read_all(&path, None, input);
    });
}

/// Requests of disks that have a name, whose ends fit 64 bits; then the end, or one error at a
/// place in the input.
fn read_all(path: &Path, format: Option<Format>, input: &[u8]) {
    let Ok(mut trace) = Trace::open(path, format) else {
        return;
    };
    let error = loop {
        match trace.next_request() {
            Ok(Some(request)) => {
                let end = request.offset_bytes.checked_add(request.length_bytes);
                assert!(end.is_some(), "{request:?}");
                assert!(trace.disks().len() > request.disk as usize, "{request:?}");
                let has_length = request.length_bytes > 0;
                assert_eq!(has_length, request.kind != Kind::Flush, "{request:?}");
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(
        matches!(trace.next_request(), Ok(None)),
        "more after the end"
    );
    let is_compressed = [&b"\x1f\x8b"[..], b"\x28\xb5", b"\xfd7", b"BZ"]
        .iter()
        .any(|magic| input.starts_with(magic));
    match error.map(|error| error.place) {
        Some(Place::Line(number)) if !is_compressed => {
            let lines = input.split(|&byte| byte == b'\n').count() as u64;
            assert!((1..=lines).contains(&number), "line {number} of {lines}");
        }
        Some(Place::Byte(at)) if !is_compressed => {
            assert!(at <= input.len() as u64, "byte {at}");
        }
        _ => {}
    }
}
