//! Recordings in which metadata and log were damaged: any answer, in time, that covers every write.

use crate::conserved::assert_conserved;
use crate::recorded::Cell;
use fscost_explain::{explain, recovery};
use fscost_recording::{Event, Op, Recording, Writer};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::path::Path;

/// A copy in which `damage` changes what requests wrote.
fn damaged(
    recording: &Recording,
    to: &Path,
    mut damage: impl FnMut(usize, &mut [u8]),
) -> Recording {
    let mut writer = Writer::create(to, recording.header()).unwrap();
    let mut number = 0;
    let walk = recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                writer.mark(&frame.mark_of(event)?, event.complete_ns)?;
                continue;
            }
            let mut content = frame.content_of(event).to_vec();
            if event.op == Op::Write {
                damage(number, &mut content);
                number += 1;
            }
            writer.space()[..content.len()].copy_from_slice(&content);
            writer.append(Event {
                content_offset: 0,
                ..*event
            })?;
        }
        Ok(true)
    });
    walk.unwrap();
    writer.finish().unwrap();
    Recording::open(to).unwrap()
}

#[test]
fn damage_is_survived() {
    let steps = [
        (
            "create",
            "mkdir d; for n in $(seq 40); do echo $n >d/f$n; done; for n in $(seq 300); do : \
            >d/some-name-$n; done",
        ),
        (
            "remove",
            "rm d/f1*; for n in $(seq 60); do dd if=/dev/zero of=d/holes bs=4k count=1 seek=$((n \
            * 2)) status=none; done",
        ),
    ];
    let Some(cell) = Cell::record("xfs -m rmapbt=1", &steps) else {
        return;
    };
    let recording = cell.recording();
    let mut runner = TestRunner::new(Config::with_cases(60));
    // Sector of the write, byte in the sector, what is put there: numbers that count, and any.
    let value = prop_oneof![Just(0xff), Just(0), Just(0x80), any::<u8>()];
    let spot = (
        any::<prop::sample::Index>(),
        0..512_usize,
        value,
        1..9_usize,
    );
    let spots = prop::collection::vec(spot, 1..4);
    let seed = (prop::collection::vec(spots, 1..8), 0..5_usize);
    let outcome = runner.run(&seed, |(spots, skip)| {
        let _ = std::fs::remove_file(cell.spare());
        let copy = damaged(&recording, &cell.spare(), |number, content| {
            if number % 5 < skip || content.len() < 512 {
                return;
            }
            for (sector, at, value, length) in &spots[number % spots.len()] {
                let at = sector.index(content.len() / 512) * 512 + at;
                let end = (at + length).min(content.len());
                content[at..end].fill(*value);
            }
        });
        assert_conserved(&copy, &explain(&copy).unwrap());
        recovery(&copy, u64::MAX, &[]).unwrap();
        Ok(())
    });
    outcome.unwrap();
}
