//! Random traces, written in each format and read back; then damaged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod spellings;

use common::{File, read};
use fscost_traces::{Format, Kind, Place, Request, Trace};
use proptest::{collection::vec, prelude::*, sample::select};
use spellings::{SPELLINGS, Spelling};

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
