//! Requests of several disks that work in parallel: the recorded disks, or the members of an array
//! that a recorded disk stands for.

use crate::refused;
use fscost_raid::{Array, Geometry, MemberRequest, Operation, RowCounts, WritePath};
use fscost_recording::{Event, MarkReader, Op, Recording, Result};

/// Largest part of a request that an array serves at once: 64 times what md sends to a member.
/// Zeroes for a terabyte become hundreds of millions of the members' requests.
const PART_BYTES: u64 = 64 * (1280 << 10);

/// A recorded disk that stands for an array device.
#[derive(Debug, Clone)]
pub struct OnArray {
    /// Index of the disk.
    pub disk: u16,
    /// Shape of the array. It must be at least as large as the disk.
    pub geometry: Geometry,
    /// Settings of md.
    pub options: WritePath,
    /// Maximum time between consecutive writes that gather in the stripe cache.
    pub batch_gap_ns: u64,
}

/// The next event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An interval with this name begins.
    Interval(String),
    /// A member receives a request.
    Request(MemberRequest, Times),
}

/// Times of the event for which members receive requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// When it was submitted.
    pub submit_ns: u64,
    /// When it was completed.
    pub complete_ns: u64,
    /// True if a recorded disk must have programmed it by then (FUA). An array is flushed instead.
    pub is_durable: bool,
}

/// Calls `each` with the requests of every recorded disk (its index is the member's), or with those
/// that the members of an array would have received, and with the beginnings of intervals. Returns
/// the number of array rows written by each method.
pub fn for_each_request(
    recording: &Recording,
    array: Option<&OnArray>,
    mut each: impl FnMut(Next) -> Result<()>,
) -> Result<RowCounts> {
    let made = array.map(|on| Array::new(&on.geometry, on.options));
    let made = made.transpose().map_err(refused)?;
    let mut walk = Walk {
        array: made.zip(array),
        last_ns: 0,
        out: Vec::new(),
        times: Times {
            submit_ns: 0,
            complete_ns: 0,
            is_durable: false,
        },
    };
    let mut marks = MarkReader::default();
    recording.for_each_frame(false, |_, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                walk.settle();
                walk.hand_out(&mut each)?;
                each(Next::Interval(marks.mark_of(frame, event)?.name))?;
            } else {
                let most_bytes = walk.array.as_ref().map_or(u64::MAX, |_| PART_BYTES);
                for part in parts(*event, most_bytes) {
                    walk.add(&part)?;
                    walk.hand_out(&mut each)?;
                }
            }
        }
        Ok(true)
    })?;
    walk.settle();
    walk.hand_out(&mut each)?;
    let rows = walk.array.map(|(array, _)| array.rows());
    Ok(rows.unwrap_or_default())
}

/// Divides a request to an array, so that few of the members' requests are in memory at once.
fn parts(event: Event, most_bytes: u64) -> impl Iterator<Item = Event> {
    let step = usize::try_from(most_bytes).unwrap_or(usize::MAX);
    let begins = (0..event.length.max(1)).step_by(step);
    begins.map(move |at| Event {
        offset: event.offset + at,
        length: most_bytes.min(event.length - at),
        fua: event.fua && event.length - at <= most_bytes,
        ..event
    })
}

struct Walk<'a> {
    array: Option<(Array, &'a OnArray)>,
    last_ns: u64,
    out: Vec<MemberRequest>,
    times: Times,
}

impl Walk<'_> {
    fn settle(&mut self) {
        if let Some((array, _)) = &mut self.array {
            array.settle(&mut self.out);
        }
    }

    fn hand_out(&mut self, each: &mut impl FnMut(Next) -> Result<()>) -> Result<()> {
        self.out
            .drain(..)
            .try_for_each(|request| each(Next::Request(request, self.times)))
    }

    fn add(&mut self, event: &Event) -> Result<()> {
        self.times = Times {
            submit_ns: event.submit_ns,
            complete_ns: event.complete_ns,
            is_durable: event.fua && self.array.is_none(),
        };
        let Some((array, on)) = &mut self.array else {
            self.out.push(of_disk(event));
            return Ok(());
        };
        if event.disk != on.disk {
            return Ok(());
        }
        if event.submit_ns.saturating_sub(self.last_ns) > on.batch_gap_ns {
            array.settle(&mut self.out);
        }
        // Events come in order of completion.
        self.last_ns = self.last_ns.max(event.submit_ns);
        let (offset, length, out) = (event.offset, event.length, &mut self.out);
        let made = match event.op {
            Op::Read => array.read(offset, length, out),
            Op::Write | Op::WriteZeroes => array.write(offset, length, out),
            Op::Discard | Op::Punch => array.discard(offset, length, out),
            Op::Flush | Op::Mark => Ok(()),
        };
        if event.op == Op::Flush || event.fua {
            array.flush(out);
        }
        made.map_err(refused)
    }
}

fn of_disk(event: &Event) -> MemberRequest {
    MemberRequest {
        member: usize::from(event.disk),
        operation: match event.op {
            Op::Read => Operation::Read,
            Op::Write | Op::WriteZeroes => Operation::Write,
            Op::Discard | Op::Punch => Operation::Discard,
            Op::Flush | Op::Mark => Operation::Flush,
        },
        offset: event.offset,
        bytes: event.length,
        redundant_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: Op, length: u64) -> Event {
        Event {
            submit_ns: 0,
            complete_ns: 0,
            offset: 512,
            length,
            content_offset: 0,
            disk: 0,
            op,
            fua: op == Op::WriteZeroes,
        }
    }

    #[test]
    fn a_large_request_is_divided_without_a_gap_and_is_durable_at_its_end() {
        let zeroes = request(Op::WriteZeroes, 3 * PART_BYTES + 512);
        let found: Vec<_> = parts(zeroes, PART_BYTES).collect();
        assert_eq!(found.len(), 4);
        let mut end = zeroes.offset;
        for (number, part) in found.iter().enumerate() {
            assert_eq!(part.offset, end);
            assert_eq!(part.fua, number == 3);
            end += part.length;
        }
        assert_eq!(end, zeroes.offset + zeroes.length);
    }

    #[test]
    fn small_requests_and_flushes_stay_whole() {
        let flush = request(Op::Flush, 0);
        let whole = request(Op::Discard, 3 * PART_BYTES);
        assert_eq!(parts(flush, PART_BYTES).collect::<Vec<_>>(), [flush]);
        assert_eq!(parts(whole, u64::MAX).collect::<Vec<_>>(), [whole]);
    }
}
