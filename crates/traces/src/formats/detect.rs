//! Detection of a format by the first bytes of a file.

use super::{
    Format, Text as _, alibaba::Alibaba, blkparse, blktrace, csv::fields, fio, msr::Msr,
    systor17::Systor17, tencent::Tencent, words::words,
};
use crate::{
    error::Problem,
    lines::without_mark,
    number::{integer, milliseconds_ns},
};

/// Bytes used for detection: more than the longest line that is accepted.
pub(crate) const HEAD_BYTES: usize = 1 << 17;

/// Returns the format of a file that begins with `head`, or the reason why it has none.
pub(crate) fn detect(head: &[u8]) -> Result<Format, Problem> {
    if let Some(refused) = refused(head) {
        return Err(refused.into());
    }
    if fscost_recording::dm_log_writes::is_log(head) {
        return Ok(Format::DmLogWrites);
    }
    if blktrace::is_blktrace(head) {
        return Ok(Format::Blktrace);
    }
    let lines = without_mark(head)
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii);
    // blkparse may list its inputs first.
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"Input file "));
    let first = lines.next().unwrap_or_default();
    of_header(first).or_else(|| of_line(first)).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
        let names = names.join(", ");
        format!(
            "the content matches none of the formats {names}; if it is one, name it with --format"
        )
        .into()
    })
}

/// Recognises files that are not traces, and returns the remedy.
fn refused(head: &[u8]) -> Option<&'static str> {
    if head.is_empty() {
        Some("the file is empty")
    } else if head.starts_with(b"PK\x03\x04") {
        Some("a zip archive; extract the trace first")
    } else if head.starts_with(b"7z\xbc\xaf\x27\x1c") {
        Some("a 7z archive; extract the trace first")
    } else if head.get(257..262) == Some(b"ustar") {
        Some("a tar archive; extract the trace first (tar -xf)")
    } else {
        None
    }
}

fn of_header(line: &[u8]) -> Option<Format> {
    if line == fio::VERSION_2 || line == fio::VERSION_3 {
        return Some(Format::Fio);
    }
    let headers = [
        (Msr::HEADER, Format::Msr),
        (Systor17::HEADER, Format::Systor17),
        (Alibaba::HEADER, Format::Alibaba),
        (Tencent::HEADER, Format::Tencent),
    ];
    let is_named = |(header, _): &(&str, _)| line.eq_ignore_ascii_case(header.as_bytes());
    headers.into_iter().find(is_named).map(|(_, format)| format)
}

fn of_line(line: &[u8]) -> Option<Format> {
    if let Ok([_, _, _, kind, ..]) = fields::<7>(line) {
        return matches!(kind, b"Read" | b"Write").then_some(Format::Msr);
    }
    if let Ok([_, _, kind, ..]) = fields::<6>(line) {
        return matches!(kind, b"R" | b"W" | b"").then_some(Format::Systor17);
    }
    if let Ok(five) = fields::<5>(line) {
        if matches!(five[1], b"R" | b"W") {
            return Some(Format::Alibaba);
        }
        if matches!(five[3], b"R" | b"W" | b"r" | b"w") {
            return Some(Format::Spc);
        }
        let are_numbers = five.iter().all(|field| integer(field).is_some());
        return (are_numbers && matches!(five[3], b"0" | b"1")).then_some(Format::Tencent);
    }
    if let Ok([time, .., kind]) = words::<5>(line)
        && matches!(kind, b"0" | b"1")
    {
        return match integer(time) {
            Some(_) => Some(Format::Mqsim),
            None => milliseconds_ns(time).map(|_| Format::Disksim),
        };
    }
    if let Ok([_, _, _, _, _, kind, ..]) = words::<9>(line)
        && matches!(kind, b"R" | b"W")
    {
        return Some(Format::Fiu);
    }
    let first = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    blkparse::is_device(first).then_some(Format::Blkparse)
}
