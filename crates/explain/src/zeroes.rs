//! Detection of punched holes that were writes of zeroes.
//!
//! A loop device sends the same request for a discard and for a write-zeroes that may unmap
//! (docs/recording-format.md). File systems send only that kind of write-zeroes, because
//! `blkdev_issue_zeroout` unmaps unless its flags forbid it. The kernel counts a discard as
//! discarded and a write-zeroes as written, so its counters in the marks give the bytes of zeroes
//! in each interval. If an interval has both, the family decides.

use fscost_recording::{DiskInfo, Event, Frame, Mark, Op, Recording, Result, Totals};
use serde_json::Value;

/// Classifier of punched holes, called for each in the order of the recording.
pub struct Zeroes<'a> {
    recording: &'a Recording,
    /// First frame of the interval: a mark is the last event of its frame.
    first_frame: usize,
    /// The kernel's counter of each disk at the mark that begins the interval.
    before: Vec<Option<u64>>,
    /// Share of each disk. It stays empty until a hole is punched in the interval: most intervals
    /// have none, and the share requires reading ahead to the mark that ends it.
    shares: Vec<Share>,
    /// Bytes classified as zeroes, in each interval so far. The first is the interval before the
    /// first mark.
    pub bytes: Vec<u64>,
}

/// Share of punched holes that were writes of zeroes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// The kernel's counters are missing or cannot be right.
    Untold,
    /// Every punched byte of the interval was zeroes.
    All,
    /// This many bytes of zeroes are left.
    Left(u64),
}

impl<'a> Zeroes<'a> {
    /// Creates the state before the first event.
    pub fn new(recording: &'a Recording) -> Zeroes<'a> {
        Zeroes {
            recording,
            first_frame: 0,
            before: vec![Some(0); recording.header().disks.len()],
            shares: Vec::new(),
            bytes: vec![0],
        }
    }

    /// Begins the next interval with this mark, the last event of frame `frame`.
    pub fn mark(&mut self, frame: usize, mark: &Mark) {
        self.first_frame = frame + 1;
        self.before = written_bytes(&mark.detail, &self.recording.header().disks);
        self.shares.clear();
        self.bytes.push(0);
    }

    /// Returns whether a punched hole was a write of zeroes. `is_in_use` tells whether the range
    /// held blocks that are never discarded.
    pub fn are(&mut self, event: &Event, is_in_use: impl FnOnce() -> bool) -> Result<bool> {
        if self.shares.is_empty() {
            self.shares = self.count()?;
        }
        let found = match self.shares.get_mut(usize::from(event.disk)) {
            None => false,
            Some(Share::All) => true,
            Some(Share::Untold) => is_in_use(),
            Some(Share::Left(left)) => {
                let found = event.length <= *left && is_in_use();
                *left -= if found { event.length } else { 0 };
                found
            }
        };
        if found && let Some(bytes) = self.bytes.last_mut() {
            *bytes = bytes.saturating_add(event.length);
        }
        Ok(found)
    }

    /// Compares the bytes that the kernel counted in this interval with the bytes recorded as
    /// written.
    fn count(&self) -> Result<Vec<Share>> {
        let disks = &self.recording.header().disks;
        let mut totals = vec![Totals::default(); disks.len()];
        let mut after = None;
        let mut frame = Frame::default();
        for index in self.first_frame..self.recording.frames().len() {
            self.recording.read_frame(index, false, &mut frame)?;
            for event in &frame.events {
                if event.op == Op::Mark {
                    after = Some(written_bytes(&frame.mark_of(event)?.detail, disks));
                } else if let Some(totals) = totals.get_mut(usize::from(event.disk)) {
                    totals.add(event);
                }
            }
            if after.is_some() {
                break;
            }
        }
        let Some(after) = after else {
            return Ok(vec![Share::Untold; disks.len()]);
        };
        let of_each = totals.iter().zip(self.before.iter().zip(&after));
        Ok(of_each.map(|(t, (b, a))| share(t, *b, *a)).collect())
    }
}

/// Returns the kernel's counter of each disk in a mark's detail.
fn written_bytes(detail: &Value, disks: &[DiskInfo]) -> Vec<Option<u64>> {
    let of = |disk: &DiskInfo| {
        let counters = detail.get("kernel")?.get(&disk.name)?;
        counters.get("write_bytes")?.as_u64()
    };
    disks.iter().map(of).collect()
}

fn share(recorded: &Totals, before: Option<u64>, now: Option<u64>) -> Share {
    let written = recorded.write_bytes.saturating_add(recorded.zero_bytes);
    let zeroes = now
        .zip(before)
        .and_then(|(now, before)| now.checked_sub(before)?.checked_sub(written));
    match zeroes {
        Some(zeroes) if zeroes == recorded.punch_bytes => Share::All,
        Some(zeroes) if zeroes < recorded.punch_bytes => Share::Left(zeroes),
        _ => Share::Untold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fscost_recording::{Header, Stripped, Writer};
    use serde_json::json;
    use std::path::Path;

    fn totals(write_bytes: u64, punch_bytes: u64) -> Totals {
        Totals {
            write_bytes,
            zero_bytes: 512,
            punch_bytes,
            ..Totals::default()
        }
    }

    #[test]
    fn what_the_kernel_counted_more_than_was_recorded_was_zeroes() {
        let recorded = totals(1024, 8192);
        let counted = |bytes: u64| share(&recorded, Some(100), Some(100 + bytes));
        assert_eq!(counted(1536), Share::Left(0));
        assert_eq!(counted(1536 + 4096), Share::Left(4096));
        assert_eq!(counted(1536 + 8192), Share::All);
        // The kernel counted less than was recorded, or more than was punched.
        assert_eq!(counted(1024), Share::Untold);
        assert_eq!(counted(1536 + 8704), Share::Untold);
        assert_eq!(share(&recorded, Some(9), Some(8)), Share::Untold);
        assert_eq!(share(&recorded, None, Some(8)), Share::Untold);
        assert_eq!(share(&recorded, Some(9), None), Share::Untold);
    }

    fn punch(disk: u16) -> Event {
        Event {
            submit_ns: 0,
            complete_ns: 0,
            offset: 0,
            length: 4096,
            content_offset: 0,
            disk,
            op: Op::Punch,
            fua: false,
        }
    }

    /// Writes a recording with two holes, a mark at which the kernel has counted one of them, a
    /// hole, a mark at which it has counted this one too, and a last hole.
    fn write(path: &Path) {
        let disk = DiskInfo {
            name: "main".into(),
            size_bytes: 1 << 20,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        };
        let header = Header {
            begin_unix_ns: 0,
            disks: vec![disk],
            stripped: Stripped::No,
        };
        let mut writer = Writer::create(path, &header).unwrap();
        for (holes, counted) in [(2, Some(4096)), (1, Some(8192)), (1, None)] {
            for _ in 0..holes {
                writer.append(punch(0)).unwrap();
            }
            if let Some(counted) = counted {
                let detail = json!({"kernel": {"main": {"write_bytes": counted}}});
                let name = "a".into();
                writer.mark(&Mark { name, detail }, 0).unwrap();
            }
        }
        writer.finish().unwrap();
    }

    #[test]
    fn no_more_is_taken_than_the_kernel_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        write(&path);
        let recording = Recording::open(&path).unwrap();
        let mut zeroes = Zeroes::new(&recording);
        let mut frame = Frame::default();
        // For each hole: whether the metadata has its blocks in use, and whether it was zeroes.
        let mut holes = [
            [(false, false), (true, true), (true, false)].as_slice(),
            &[(false, true)],
            &[(true, true), (false, false)],
        ]
        .into_iter();
        let mut look = |zeroes: &mut Zeroes<'_>| {
            for &(is_in_use, expected) in holes.next().unwrap() {
                assert_eq!(zeroes.are(&punch(0), || is_in_use).unwrap(), expected);
                assert!(!zeroes.are(&punch(1), || is_in_use).unwrap());
            }
        };
        for index in 0..recording.frames().len() {
            recording.read_frame(index, false, &mut frame).unwrap();
            for event in frame.events.iter().filter(|event| event.op == Op::Mark) {
                look(&mut zeroes);
                zeroes.mark(index, &frame.mark_of(event).unwrap());
            }
        }
        look(&mut zeroes);
        assert_eq!(zeroes.bytes, [4096, 4096, 4096]);
    }
}
