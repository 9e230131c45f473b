//! Traces of other tools, with one target for each format.

use crate::bounded;
use fscost_traces::{Format, Kind, Place, Trace, summaries};
use std::path::Path;

/// Reads the input as an Alibaba trace.
pub fn trace_alibaba(input: &[u8]) {
    trace(Format::Alibaba, input);
}

/// Reads the input as blkparse text.
pub fn trace_blkparse(input: &[u8]) {
    trace(Format::Blkparse, input);
}

/// Reads the input as a binary blktrace file.
pub fn trace_blktrace(input: &[u8]) {
    trace(Format::Blktrace, input);
}

/// Reads the input as a trace in the form of a dm-log-writes log.
pub fn trace_dm_log_writes(input: &[u8]) {
    trace(Format::DmLogWrites, input);
}

/// Reads the input as a fio iolog.
pub fn trace_fio(input: &[u8]) {
    trace(Format::Fio, input);
}

/// Reads the input as an MSR Cambridge trace.
pub fn trace_msr(input: &[u8]) {
    trace(Format::Msr, input);
}

/// Reads the input in each of the formats that have no target of their own.
pub fn trace_others(input: &[u8]) {
    for format in [Format::Spc, Format::Fiu, Format::Disksim, Format::Mqsim] {
        trace(format, input);
    }
}

/// Reads the input as a SYSTOR '17 trace.
pub fn trace_systor17(input: &[u8]) {
    trace(Format::Systor17, input);
}

/// Reads the input as a Tencent trace.
pub fn trace_tencent(input: &[u8]) {
    trace(Format::Tencent, input);
}

fn trace(format: Format, input: &[u8]) {
    bounded(|folder| {
        let path = folder.join("trace");
        std::fs::write(&path, input).expect("space for the input");
        read_all(&path, Some(format), input);
        read_all(&path, None, input);
        if let Ok(mut trace) = Trace::open(&path, Some(format)) {
            let _ = summaries(&mut trace);
        }
    });
}

/// Reads all requests. Each must refer to a named disk, and its end must fit in 64 bits. The trace
/// must end, or fail once at a position within the input.
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
