//! What is durable and what is pending at an instant, in recordings where that can be said
//! beforehand.
#![allow(missing_docs, clippy::unwrap_used)]

mod made;

use fscost_crash::Requests;
use fscost_recording::{Op, Recording};
use made::*;

#[test]
fn volatile_is_what_no_completed_flush_covers() {
    let kind = |op, entry| Entry { op, ..entry };
    let forced = Entry {
        fua: true,
        ..write(2, 3, 31, 40)
    };
    let entries = [
        write(0, 1, 1, 10),
        // Completes after the flush was submitted: the flush does not cover it.
        write(1, 2, 2, 20),
        flush(15, 30),
        forced,
        kind(Op::Read, write(3, 0, 41, 45)),
        kind(Op::Discard, write(4, 0, 41, 46)),
        kind(Op::WriteZeroes, write(5, 0, 41, 50)),
        // Not completed yet at 60.
        flush(49, 70),
        write(6, 4, 55, 80),
        write(7, 5, 90, 95),
    ];
    let (_folder, recording) = recorded(&entries);
    let requests = Requests::read(&recording, &[]).unwrap();
    let cases: [(u64, &[u64]); 7] = [
        (9, &[]),
        (29, &[0, 1]),
        (30, &[1]),
        (60, &[1, 6]),
        (70, &[6]),
        (94, &[6, 8]),
        (95, &[6, 8, 9]),
    ];
    for (at_ns, volatile) in cases {
        assert_eq!(requests.volatile(at_ns), volatile, "at {at_ns}");
    }
}

#[test]
fn a_flush_does_not_cover_what_its_disk_had_not_replied_to() {
    let entries = [
        write(0, 1, 0, 10),
        write(1, 2, 5, 12),
        flush(20, 21),
        write(2, 3, 30, 31),
    ];
    let volatile = |recording: &Recording, at_ns| {
        let requests = Requests::read(recording, &[]).unwrap();
        requests.volatile(at_ns)
    };
    let (_folder, recording) = recorded(&entries);
    assert_eq!(pending_events(&recording, 40), [3]);
    assert_eq!(volatile(&recording, 40), [3]);
    // The second write was logged before the flush was submitted, and completed after that. The
    // flush takes until 60, and the last write has no reply.
    let (_folder, recording) = replied(&entries, &[(1, 25), (0, 15), (2, 60)]);
    assert_eq!(pending_events(&recording, 59), [0, 1, 3]);
    assert_eq!(pending_events(&recording, 60), [1, 3]);
    assert_eq!(volatile(&recording, 24), [0]);
    assert_eq!(volatile(&recording, 70), [1, 3]);
}

#[test]
fn a_flush_makes_durable_what_had_completed_when_it_was_submitted() {
    let entries = [
        write(0, 1, 0, 10),
        write(1, 2, 5, 25), // completed after the flush was submitted
        flush(20, 30),
        write(2, 3, 40, 50),
    ];
    let (_folder, recording) = recorded(&entries);
    assert_eq!(
        pending_events(&recording, 29),
        [0, 1],
        "the flush has not ended"
    );
    assert_eq!(pending_events(&recording, 30), [1]);
    assert_eq!(pending_events(&recording, 39), [1]);
    assert_eq!(
        pending_events(&recording, 40),
        [1, 3],
        "submitted, not yet completed"
    );
    assert_eq!(bytes(&recording, 50, 0, &[], 3), [1, 0, 0]);
    assert_eq!(bytes(&recording, 50, 0, &[1], 3), [1, 0, 3]);
}

#[test]
fn a_later_flush_may_end_before_an_earlier_one() {
    let (_folder, recording) = recorded(&[write(0, 1, 0, 10), flush(25, 30), flush(20, 90)]);
    assert_eq!(pending_events(&recording, 30), [0; 0]);
}

#[test]
fn fua_is_durable_by_itself_and_alone() {
    let mut sure = write(1, 2, 5, 20);
    sure.fua = true;
    let (_folder, recording) = recorded(&[write(0, 1, 0, 10), sure]);
    assert_eq!(pending_events(&recording, 19), [0, 1]);
    assert_eq!(pending_events(&recording, 20), [0]);
}

#[test]
fn a_flush_does_not_cross_disks() {
    let mut other = write(0, 7, 0, 11);
    other.disk = 1;
    let (_folder, recording) = recorded(&[write(0, 1, 0, 10), other, flush(20, 30)]);
    assert_eq!(pending_events(&recording, 30), [1]);
    assert_eq!(bytes(&recording, 30, 1, &[], 1), [0]);
    assert_eq!(bytes(&recording, 30, 1, &[0], 1), [7]);
}

#[test]
fn a_request_is_cut_into_atomic_units() {
    let mut long = write(1, 9, 0, 10);
    long.units = 3;
    let (_folder, recording) = recorded(&[long]);
    let requests = Requests::read(&recording, &[]).unwrap();
    assert_eq!(requests.cut(10, UNIT, false).pending.len(), 3);
    assert_eq!(requests.cut(10, 512, false).pending.len(), 24);
    assert_eq!(bytes(&recording, 10, 0, &[1], 4), [0, 0, 9, 0]);
}

#[test]
fn a_pending_discard_may_be_kept_or_lost() {
    let mut discard = write(0, 0, 40, 50);
    discard.op = Op::Discard;
    let (_folder, recording) = recorded(&[write(0, 5, 0, 10), flush(20, 30), discard]);
    assert_eq!(bytes(&recording, 50, 0, &[], 1), [5]);
    assert_eq!(bytes(&recording, 50, 0, &[0], 1), [0]);
}

#[test]
fn a_protected_device_loses_requests_in_flight_alone() {
    let (_folder, recording) = recorded(&[write(0, 1, 0, 10), write(1, 2, 5, 20)]);
    let requests = Requests::read(&recording, &[]).unwrap();
    let pending = requests.cut(15, UNIT, true).pending;
    assert_eq!(
        pending.iter().map(|unit| unit.event).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn without_a_flush_its_writes_stay_pending() {
    let (_folder, recording) = recorded(&[write(0, 1, 0, 10), flush(20, 30)]);
    let all = Requests::read(&recording, &[]).unwrap();
    let fewer = Requests::read(&recording, &[1]).unwrap();
    assert_eq!(all.cut(50, UNIT, false).pending.len(), 0);
    assert_eq!(fewer.cut(50, UNIT, false).pending.len(), 1);
}
