//! Which of the holes that were punched were zeroes being written.
//!
//! A loop device sends the same request for a discard and for a write-zeroes that may unmap
//! (docs/recording-format.md), and no file system writes
//! others: `blkdev_issue_zeroout` may unmap unless it is told not to. The kernel counts the one as
//! discarded and the other as written, so
//! its counters in the marks tell for each interval how many bytes were zeroes. Only where there
//! were both must the family say which were which.

use fscost_recording::{Event, Op, Recording, Result, Totals};
use serde_json::Value;

/// Tells them apart, one after the other in the order of the recording.
pub struct Zeroes {
    /// For each interval and disk.
    shares: Vec<Vec<Share>>,
    /// Bytes taken for zeroes, in each interval.
    bytes: Vec<u64>,
}

/// How much of what was punched was zeroes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// The kernel's counters are not there, or cannot be right.
    Untold,
    /// All of it.
    All,
    /// So many bytes are left.
    Left(u64),
}

impl Zeroes {
    /// What the kernel counted in each interval, less what is recorded as written there.
    pub fn new(recording: &Recording) -> Result<Zeroes> {
        let disks = &recording.header().disks;
        let mut totals = vec![Totals::default(); disks.len()];
        let mut before = vec![Some(0); disks.len()];
        let mut shares = Vec::new();
        recording.for_each_frame(false, |_, frame| {
            for event in &frame.events {
                if event.op == Op::Mark {
                    let detail = frame.mark_of(event)?.detail;
                    let now: Vec<_> = disks
                        .iter()
                        .map(|disk| written_bytes(&detail, &disk.name))
                        .collect();
                    let of_each = totals.iter().zip(before.iter().zip(&now));
                    shares.push(of_each.map(|(t, (b, n))| share(t, *b, *n)).collect());
                    before = now;
                    totals.fill(Totals::default());
                } else if let Some(totals) = totals.get_mut(usize::from(event.disk)) {
                    totals.add(event);
                }
            }
            Ok(true)
        })?;
        shares.push(vec![Share::Untold; disks.len()]);
        Ok(Zeroes {
            bytes: vec![0; shares.len()],
            shares,
        })
    }

    /// Whether a hole punched in this interval (0 before the first mark) was zeroes; `is_in_use`
    /// says whether its place held something that no discard touches.
    pub fn are(
        &mut self,
        interval: usize,
        event: &Event,
        is_in_use: impl FnOnce() -> bool,
    ) -> bool {
        let share = self
            .shares
            .get_mut(interval)
            .and_then(|of_disks| of_disks.get_mut(usize::from(event.disk)));
        let found = match share {
            None => false,
            Some(Share::All) => true,
            Some(Share::Untold) => is_in_use(),
            Some(Share::Left(left)) => {
                let found = event.length <= *left && is_in_use();
                *left -= if found { event.length } else { 0 };
                found
            }
        };
        if found && let Some(bytes) = self.bytes.get_mut(interval) {
            *bytes = bytes.saturating_add(event.length);
        }
        found
    }

    /// The bytes that were taken for zeroes in each interval, the one before the first mark
    /// included.
    pub fn into_bytes(self) -> Vec<u64> {
        self.bytes
    }
}

fn written_bytes(detail: &Value, disk: &str) -> Option<u64> {
    detail
        .get("kernel")?
        .get(disk)?
        .get("write_bytes")?
        .as_u64()
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
        // Less written than recorded, or more than was punched.
        assert_eq!(counted(1024), Share::Untold);
        assert_eq!(counted(1536 + 8704), Share::Untold);
        assert_eq!(share(&recorded, Some(9), Some(8)), Share::Untold);
        assert_eq!(share(&recorded, None, Some(8)), Share::Untold);
        assert_eq!(share(&recorded, Some(9), None), Share::Untold);
    }

    #[test]
    fn no_more_is_taken_than_the_kernel_counted() {
        let shares = vec![
            vec![Share::Left(6144)],
            vec![Share::All],
            vec![Share::Untold],
        ];
        let bytes = vec![0; 3];
        let mut zeroes = Zeroes { shares, bytes };
        let event = Event {
            submit_ns: 0,
            complete_ns: 0,
            offset: 0,
            length: 4096,
            content_offset: 0,
            disk: 0,
            op: Op::Punch,
            fua: false,
        };
        assert!(!zeroes.are(0, &event, || false));
        assert!(zeroes.are(0, &event, || true));
        assert!(!zeroes.are(0, &event, || true));
        assert!(zeroes.are(1, &event, || false));
        assert!(zeroes.are(2, &event, || true));
        assert!(!zeroes.are(2, &event, || false));
        assert!(!zeroes.are(3, &event, || true));
        assert!(!zeroes.are(0, &Event { disk: 1, ..event }, || true));
        assert_eq!(zeroes.into_bytes(), [4096, 4096, 4096]);
    }
}
