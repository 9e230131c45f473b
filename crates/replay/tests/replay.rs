//! Replays of recordings whose times can be said beforehand.
#![allow(missing_docs, clippy::unwrap_used)]

use fscost_latency::{Completion, Device, Model, Request};
use fscost_recording::{DiskInfo, Event, Header, Mark, Op, Recording, Stripped, Writer};
use fscost_replay::{Histogram, IntervalTimes, Requests, Waits};
use proptest::prelude::*;

const SIZE: u64 = 1 << 30;
const US: u64 = 1000;

/// Entry of a recording, in the order of completion.
#[derive(Debug, Clone)]
enum Entry {
    Request(Event),
    Mark(u64, &'static str),
    /// A mark of an emulated guest, with the microseconds of its clock.
    Guest(u64, &'static str, u64),
}

fn count(latencies: &Histogram) -> u64 {
    latencies.buckets().map(|(_, _, count)| count).sum()
}

fn request(disk: u16, op: Op, submit_us: u64, complete_us: u64) -> Entry {
    Entry::Request(Event {
        submit_ns: submit_us * US,
        complete_ns: complete_us * US,
        offset: 0,
        length: if op == Op::Flush { 0 } else { 4096 },
        content_offset: 0,
        disk,
        op,
        fua: false,
    })
}

fn recorded(disks: usize, entries: &[Entry]) -> Requests {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let disks = (0..disks).map(|at| DiskInfo {
        name: format!("d{at}"),
        size_bytes: SIZE,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    });
    let header = Header {
        begin_unix_ns: 0,
        stripped: Stripped::No,
        disks: disks.collect(),
    };
    let mut writer = Writer::create(&path, &header).unwrap();
    for entry in entries {
        match entry {
            Entry::Request(event) => {
                writer.space()[..event.length as usize].fill(1);
                writer.append(*event).unwrap();
            }
            Entry::Mark(us, name) => {
                let mark = Mark {
                    name: (*name).to_owned(),
                    detail: serde_json::Value::Null,
                };
                writer.mark(&mark, us * US).unwrap();
            }
            Entry::Guest(us, name, virtual_us) => {
                let mark = Mark {
                    name: (*name).to_owned(),
                    detail: serde_json::json!({ "virtual_ns": virtual_us * US }),
                };
                writer.mark(&mark, us * US).unwrap();
            }
        }
    }
    writer.finish().unwrap();
    Requests::of(&Recording::open(&path).unwrap()).unwrap()
}

fn model(text: &str) -> Model {
    Model::parse("test.toml", &format!("[latency]\n{text}")).unwrap()
}

fn constant() -> Model {
    model("model = 'constant'\nread_us = 50\nwrite_us = 100\nfua_us = 300\nflush_us = 1000")
}

fn replay(requests: &Requests, waits: Waits) -> Vec<IntervalTimes> {
    let models = vec![constant(); 2];
    requests.replay(&models, waits, 1)
}

fn total_us(found: &[IntervalTimes]) -> u64 {
    found.iter().map(|each| each.modelled_ns).sum::<u64>() / US
}

#[test]
fn the_time_between_requests_is_kept() {
    let writes = [
        request(0, Op::Write, 0, 10),
        request(0, Op::Write, 1000, 1010),
        request(0, Op::Write, 2000, 2010),
        Entry::Mark(2100, "end"),
    ];
    let requests = recorded(1, &writes);
    // Three writes of 100, 990 before the second and the third, 90 before the mark.
    assert_eq!(
        total_us(&replay(&requests, Waits::ForAll)),
        300 + 2 * 990 + 90
    );
    // Nothing waits for a write but the mark.
    assert_eq!(
        total_us(&replay(&requests, Waits::ForFlushes)),
        2 * 990 + 100 + 90
    );
    // On ram, what is left is the time between requests.
    let ram = requests.replay(&[], Waits::ForAll, 1);
    assert_eq!(total_us(&ram), 2 * 990 + 90);
}

#[test]
fn think_time_follows_the_clock_of_an_emulated_guest_in_each_interval() {
    let entries = [
        request(0, Op::Write, 5, 10),
        Entry::Guest(20, "slow", 1000),
        request(0, Op::Write, 120, 130),
        request(0, Op::Write, 320, 340),
        request(0, Op::Write, 330, 350),
        Entry::Guest(450, "fast", 1039),
        request(0, Op::Write, 500, 550),
        Entry::Guest(550, "end", 1239),
    ];
    let requests = recorded(1, &entries);
    assert!(requests.has_time());
    let found = replay(&requests, Waits::ForAll);
    let us = |of: fn(&IntervalTimes) -> u64| found.iter().map(|each| of(each) / US).collect();
    // The guest's time, whatever the emulation took.
    let recorded_us: Vec<u64> = us(|each| each.recorded_ns);
    assert_eq!(recorded_us, [0, 39, 200]);
    // A tenth of 100, 190 and 100 without a request; the second and third write of 100 overlap, as
    // they did. Then four times 50, and a write.
    let modelled_us: Vec<u64> = us(|each| each.modelled_ns);
    assert_eq!(modelled_us, [100, 10 + 100 + 19 + 100 + 10, 300]);
    // Nothing but the marks waits for the writes.
    let least = replay(&requests, Waits::ForFlushes);
    assert_eq!(least[1].modelled_ns / US, 10 + 19 + 100 + 10);
}

#[test]
fn a_recording_whose_times_are_of_no_clock_has_no_time() {
    let write = || request(0, Op::Write, 1, 2);
    let all = [
        Entry::Guest(0, "one", 5),
        write(),
        Entry::Guest(9, "end", 6),
    ];
    assert!(recorded(1, &all).has_time());
    assert!(!recorded(1, &[Entry::Mark(0, "one"), write(), Entry::Mark(9, "end")]).has_time());
    // A log of dm-log-writes has no times at all.
    assert!(recorded(1, &[Entry::Mark(0, "one"), request(0, Op::Write, 7, 7)]).has_time());
    // A cell that failed, a recording cut off, and a clock that went backwards.
    assert!(
        !recorded(
            1,
            &[Entry::Guest(0, "one", 5), write(), Entry::Mark(9, "failed")]
        )
        .has_time()
    );
    assert!(!recorded(1, &[Entry::Guest(0, "one", 5), write()]).has_time());
    assert!(
        !recorded(
            1,
            &[
                Entry::Guest(0, "one", 5),
                write(),
                Entry::Guest(9, "end", 4)
            ]
        )
        .has_time()
    );
}

#[test]
fn a_flush_waits_for_writes_and_what_follows_waits_for_the_flush() {
    let requests = recorded(
        1,
        &[
            request(0, Op::Write, 0, 1),
            request(0, Op::Write, 2, 3),
            request(0, Op::Flush, 4, 5),
            request(0, Op::Write, 6, 7),
            request(0, Op::Read, 8, 9),
            Entry::Mark(9, "end"),
        ],
    );
    // The second write is submitted at 1 and completes at 101; the flush follows 1 later and
    // completes at 1102; the last two are submitted at 1103 and 1104.
    let found = replay(&requests, Waits::ForFlushes);
    assert_eq!(total_us(&found), 1203);
    let latencies = &found[0].disks[0].latencies;
    assert_eq!(latencies.each_ref().map(count), [1, 3, 1, 0]);
    assert_eq!(latencies[2].max_ns(), 1000 * US);
    // Each waits for the one before: 100, 100, 1000, 100, 50, and four times 1 between them.
    assert_eq!(total_us(&replay(&requests, Waits::ForAll)), 1354);
}

#[test]
fn requests_of_several_disks_wait_for_each_other_and_intervals_are_apart() {
    let requests = recorded(
        2,
        &[
            Entry::Mark(0, "one"),
            request(1, Op::Flush, 10, 11),
            request(0, Op::Write, 12, 13),
            Entry::Mark(20, "two"),
            request(0, Op::Read, 21, 30),
            request(1, Op::Read, 22, 30),
            Entry::Mark(30, "end"),
        ],
    );
    for (waits, apart) in [(Waits::ForFlushes, 0), (Waits::ForAll, 1)] {
        let found = replay(&requests, waits);
        let names: Vec<&str> = found.iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["before", "one", "two"]);
        // 10, the flush, 1, the write, 7; then 1, and two reads side by side, 1 apart.
        let modelled: Vec<u64> = found.iter().map(|each| each.modelled_ns / US).collect();
        assert_eq!(modelled, [0, 10 + 1000 + 1 + 100 + 7, 1 + apart + 50]);
        let recorded: Vec<u64> = found.iter().map(|each| each.recorded_ns / US).collect();
        assert_eq!(recorded, [0, 20, 10]);
        let busy: Vec<_> = found[1]
            .disks
            .iter()
            .map(|disk| disk.busy_ns / US)
            .collect();
        assert_eq!(busy, [100, 1000]);
    }
}

#[test]
fn a_recording_that_was_cut_ends_with_its_last_completion() {
    let requests = recorded(1, &[request(0, Op::Write, 5, 6)]);
    let found = replay(&requests, Waits::ForFlushes);
    assert_eq!((found.len(), total_us(&found)), (1, 105));
    assert_eq!(found[0].recorded_ns, 6 * US);
    assert!(replay(&recorded(1, &[]), Waits::ForAll).is_empty());
}

fn models() -> impl Strategy<Value = Model> {
    prop_oneof![
        Just(constant()),
        Just(model(
            "model = 'hard-disk'\ncapacity_bytes = 1073741824\nrpm = 7200\nheads = 2\n\
             outer_track_bytes = 1000000\ninner_track_bytes = 600000\nzones = 3\n\
             track_seek_us = 1000\nfull_seek_us = 15000\nqueue_depth = 8\n\
             interface_bytes_per_s = 300000000\nread_segments = 4\n\
             read_segment_bytes = 262144\nread_ahead_bytes = 262144\nwrite_cache_bytes = 65536"
        )),
        Just(model(
            "model = 'flash'\nchannels = 2\nqueue_depth = 8\nbuffer_bytes = 131072\n\
             interface_bytes_per_s = 300000000\ncommand_us = 8\nchannel_bytes_per_s = 200000000\n\
             page_bytes = 16384\npage_read_us = 60\nprogram_bytes = 32768\nprogram_us = 700"
        )),
    ]
}

fn ops() -> impl Strategy<Value = Vec<(Op, u64, u64, bool)>> {
    let op = prop_oneof![3 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Flush)];
    let each = (op, 0..SIZE / 4096 - 16, 1..16u64, any::<bool>());
    prop::collection::vec(each, 1..80)
}

/// A program that keeps `depth` requests in flight on the model itself, and what its disk records.
fn live(device: &mut Device, depth: usize, ops: &[(Op, u64, u64, bool)]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let mut recorded = Vec::new();
    let mut done: Vec<Completion> = Vec::new();
    let mut now_ns = 0;
    let mut in_flight = 0;
    let mut ops = ops.iter();
    loop {
        while in_flight < depth
            && let Some(&(op, block, blocks, fua)) = ops.next()
        {
            let is_flush = op == Op::Flush;
            let event = Event {
                submit_ns: now_ns,
                complete_ns: 0,
                offset: if is_flush { 0 } else { block * 4096 },
                length: if is_flush { 0 } else { blocks * 4096 },
                content_offset: 0,
                disk: 0,
                op,
                fua: fua && op == Op::Write,
            };
            device.submit(
                now_ns,
                Request {
                    id: events.len() as u64,
                    op: match op {
                        Op::Read => fscost_latency::Op::Read,
                        Op::Flush => fscost_latency::Op::Flush,
                        _ => fscost_latency::Op::Write,
                    },
                    offset_bytes: event.offset,
                    length_bytes: event.length,
                    fua: event.fua,
                },
            );
            events.push(event);
            in_flight += 1;
            // A recording does not say which of two requests came first in one nanosecond.
            now_ns += 1;
        }
        let Some(next_ns) = device.next_ns() else {
            return recorded;
        };
        now_ns = now_ns.max(next_ns);
        device.advance(now_ns, &mut done);
        for completion in done.drain(..) {
            let event = &mut events[completion.id as usize];
            event.complete_ns = completion.at_ns;
            recorded.push(*event);
            in_flight -= 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The replay reproduces the delays that a model imposed on a running program.
    #[test]
    fn a_recording_made_on_a_model_replays_to_itself(
        model in models(), ops in ops(), depth in 1..9usize, seed in any::<u64>(),
    ) {
        let events = live(&mut Device::new(&model, SIZE, seed), depth, &ops);
        let entries: Vec<Entry> = events.iter().copied().map(Entry::Request).collect();
        let found = recorded(1, &entries).replay(&[model], Waits::ForAll, seed);
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(found[0].modelled_ns, found[0].recorded_ns);
        let sum: u128 = found[0].disks[0].latencies.iter().map(|each| each.sum_ns()).sum();
        let expected: u128 =
            events.iter().map(|each| u128::from(each.complete_ns - each.submit_ns)).sum();
        prop_assert_eq!(sum, expected);
    }

    /// More waiting never makes a device faster that takes constant times.
    #[test]
    fn waiting_for_flushes_only_is_a_lower_bound(ops in ops(), depth in 1..9usize) {
        let source = model("model = 'constant'\nread_us = 7\nwrite_us = 5\nflush_us = 20");
        let events = live(&mut Device::new(&source, SIZE, 1), depth, &ops);
        let entries: Vec<Entry> = events.iter().copied().map(Entry::Request).collect();
        let requests = recorded(1, &entries);
        let least = replay(&requests, Waits::ForFlushes);
        let most = replay(&requests, Waits::ForAll);
        prop_assert!(least[0].modelled_ns <= most[0].modelled_ns);
        prop_assert!(least[0].disks[0].busy_ns <= least[0].modelled_ns);
        let count = |found: &[IntervalTimes]| -> u64 {
            found[0].disks[0].latencies.iter().map(count).sum()
        };
        prop_assert_eq!(count(&least), ops.len() as u64);
        prop_assert_eq!(count(&most), ops.len() as u64);
    }
}
