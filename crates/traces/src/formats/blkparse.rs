//! Text of blkparse(1) in its default format, `%D %2c %8s %5T.%9t %5p %2a %3d ` followed, for
//! events with sectors, by `sector + count`: device, CPU, sequence, seconds and nanoseconds, pid,
//! action, RWBS.
//!
//! Source: blkparse(1), and `process_default` and `fill_rwbs` of blkparse's `blkparse_fmt.c`.
//! Sectors have 512 bytes.

use super::{
    Text,
    csv::{integer_of, seconds_of, shown},
};
use crate::{
    device_events::{Action, Counter, Event, Operation},
    error::Problem,
    number::integer,
    request::{Kind, Output},
};

const SECTOR_BYTES: u64 = 512;

/// Lines that blkparse prints around the events: its inputs, and the summary after the last event.
const OTHER_LINES: [&[u8]; 7] = [
    b"CPU",
    b"Total",
    b"Throughput",
    b"Events",
    b"Skips",
    b"Trace started",
    b"Device:",
];

#[derive(Debug)]
pub(crate) struct Blkparse {
    counter: Counter,
    /// True after the first line of the summary. From then on, every line that is not an event
    /// belongs to it.
    is_in_summary: bool,
}

impl Blkparse {
    pub(crate) fn new(action: Action) -> Blkparse {
        Blkparse {
            counter: Counter::new(action),
            is_in_summary: false,
        }
    }
}

impl Text for Blkparse {
    fn line(&mut self, line: &[u8], out: &mut Output) -> Result<(), Problem> {
        let mut words = Words(line);
        let device = words.next();
        if !is_device(device) {
            return self.other_line(line, device);
        }
        let (_cpu, _sequence, time, _pid) =
            (words.next(), words.next(), words.next(), words.next());
        let word = words.next();
        let Some(action) = action_of(word) else {
            return if is_action(word) {
                Ok(())
            } else {
                Err(format!("the action is {}, not one or two letters", shown(word)).into())
            };
        };
        if !self.counter.needs(action) {
            return Ok(());
        }
        let time_ns = seconds_of("the time", time)?;
        let operation = operation(words.next())?;
        let (sector, sectors) = match sectors(words)? {
            Some(place) => place,
            None if operation.has_preflush => (0, 0),
            None => return Ok(()),
        };
        let length_bytes = sectors.checked_mul(SECTOR_BYTES);
        let event = Event {
            action,
            is_failed: action == Action::Complete && is_failed(words),
            operation,
            time_ns,
            sector,
            length_bytes: length_bytes.ok_or("the request ends beyond 2^64 bytes")?,
        };
        self.counter.take(device, &event, out)
    }
}

impl Blkparse {
    fn other_line(&mut self, line: &[u8], first: &[u8]) -> Result<(), Problem> {
        let is_known = OTHER_LINES.iter().any(|begin| line.starts_with(begin));
        self.is_in_summary |= is_known;
        if self.is_in_summary || first.is_empty() || line.starts_with(b"Input file ") {
            return Ok(());
        }
        let wanted = "not a line of blkparse's default output, which begins with major,minor";
        Err(format!("{} is {wanted}", shown(line)).into())
    }
}

/// Returns the action of a line, used to choose the action to count.
pub(crate) fn action_of_line(line: &[u8]) -> Option<Action> {
    let mut words = Words(line);
    if !is_device(words.next()) {
        return None;
    }
    for _ in 0..4 {
        words.next();
    }
    action_of(words.next())
}

/// True for `major,minor`.
pub(super) fn is_device(word: &[u8]) -> bool {
    let Some(comma) = memchr::memchr(b',', word) else {
        return false;
    };
    integer(&word[..comma]).is_some() && integer(&word[comma + 1..]).is_some()
}

/// Returns the action of a word. Of the queueing events, only blkparse's `Q` counts; `M`, `F`
/// (merges), `G`, `I`, `A` and others refer to the same request.
fn action_of(word: &[u8]) -> Option<Action> {
    match word {
        b"Q" => Some(Action::Queue),
        b"D" => Some(Action::Issue),
        b"C" => Some(Action::Complete),
        b"R" => Some(Action::Requeue),
        _ => None,
    }
}

/// True for one letter, or `UT`.
fn is_action(word: &[u8]) -> bool {
    matches!(word.len(), 1 | 2) && word.iter().all(u8::is_ascii_alphabetic)
}

/// Parses an RWBS field: `F` (flush before), then `D`, `W`, `WZ`, `R`, `N` or, for zones, `Z` and a
/// letter; then `F` (FUA), `A`, `S`, `M`.
fn operation(rwbs: &[u8]) -> Result<Operation, Problem> {
    if rwbs.is_empty() || !rwbs.iter().all(u8::is_ascii_uppercase) {
        return Err(format!("RWBS is {}, not letters", shown(rwbs)).into());
    }
    let (has_preflush, rest) = match rwbs.strip_prefix(b"F") {
        Some(rest) => (true, rest),
        None => (false, rwbs),
    };
    let (kind, rest) = match rest {
        [b'D', rest @ ..] => (Some(Kind::Discard), rest),
        [b'W', b'Z', rest @ ..] => (Some(Kind::Zero), rest),
        // Zone append.
        [b'Z', b'A', rest @ ..] | [b'W', rest @ ..] => (Some(Kind::Write), rest),
        [b'R', rest @ ..] => (Some(Kind::Read), rest),
        _ => (None, &[][..]),
    };
    Ok(Operation {
        kind,
        has_preflush,
        is_fua: rest.contains(&b'F'),
    })
}

/// Parses `sector + count`. `None` if the line has another form: flushes without data, and requests
/// of SCSI commands, which have a size but no sector.
fn sectors(mut words: Words<'_>) -> Result<Option<(u64, u64)>, Problem> {
    let (sector, plus, count) = (words.next(), words.next(), words.next());
    if plus != b"+" {
        return Ok(None);
    }
    let sector = integer_of("the sector", sector)?;
    Ok(Some((sector, integer_of("the count of sectors", count)?)))
}

/// True for a completion with an error, which is in brackets at the end.
fn is_failed(words: Words<'_>) -> bool {
    let Words(rest) = words;
    let last = memchr::memrchr(b'[', rest).map_or(&[][..], |at| &rest[at..]);
    !last.is_empty() && last.trim_ascii_end() != b"[0]"
}

/// Iterator over words separated by spaces; empty words after the last one.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a [u8] {
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
        let end = self.0.iter().position(|&byte| byte == b' ');
        let (word, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        word
    }
}
