//! Invariants for any model and any requests.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::model;
use fscost_latency::{Completion, Device, Model, Op, Request};
use proptest::prelude::*;
use std::collections::HashMap;

const CAPACITY: u64 = 64 << 20;

fn models() -> impl Strategy<Value = Model> {
    let constant = (0..200u32, 0..200u32).prop_map(|(read, write)| {
        model(&format!(
            "model = 'constant'\nread_us = {read}\nwrite_us = {write}\nflush_us = 9"
        ))
    });
    let cache = prop_oneof![Just(0u64), 4096..300_000u64];
    let disk = (1..4u32, 1..4u32, 1..33u32, 0..4u32, cache.clone()).prop_map(
        |(heads, zones, depth, segments, cache)| {
            model(&format!(
                "model = 'hard-disk'\ncapacity_bytes = {CAPACITY}\nrpm = 7200\nheads = {heads}\n\
                 zones = {zones}\nouter_track_bytes = 1000003\ninner_track_bytes = 512000\n\
                 head_switch_us = 800\ntrack_seek_us = 1000\nfull_seek_us = 15000\n\
                 write_settle_us = 900\nqueue_depth = {depth}\ncommand_us = 30\n\
                 interface_bytes_per_s = 300000000\nread_segments = {segments}\n\
                 read_segment_bytes = 262144\nread_ahead_bytes = 262144\n\
                 write_cache_bytes = {cache}"
            ))
        },
    );
    let flags = (any::<bool>(), any::<bool>());
    let flash = (1..5u32, 1..5u32, 1..65u32, 0..4u32, cache, flags).prop_map(
        |(channels, dies, depth, units, buffer, (queued, protected))| {
            model(&format!(
                "model = 'flash'\nchannels = {channels}\ndies_per_channel = {dies}\n\
                 queue_depth = {depth}\nopen_units = {units}\nunit_bytes = 1048576\n\
                 unit_close_us = 40000\nout_of_order_us = 700\nbuffer_bytes = {buffer}\n\
                 queued_flush = {queued}\npower_loss_protection = {protected}\n\
                 interface_bytes_per_s = 300000000\ncommand_us = 8\nread_us = 11\nwrite_us = 5\n\
                 flush_us = 300\ndiscard_us = 9\nchannel_bytes_per_s = 200000000\n\
                 page_bytes = 16384\npage_read_us = 60\nprogram_bytes = 32768\nprogram_us = 700\n\
                 block_bytes = 262144\nerase_us = 3000"
            ))
        },
    );
    prop_oneof![1 => constant, 4 => disk, 4 => flash]
}

fn requests() -> impl Strategy<Value = Vec<(u64, Request)>> {
    let op = prop_oneof![
        4 => Just(Op::Read),
        6 => Just(Op::Write),
        1 => Just(Op::Discard),
        1 => Just(Op::WriteZeroes),
        2 => Just(Op::Flush),
    ];
    let place = prop_oneof![
        (0..CAPACITY + 8192).boxed(),
        (0..64u64).prop_map(|at| at * 4096).boxed(),
        any::<u64>().boxed(),
    ];
    let length = prop_oneof![4 => 0..70_000u64, 1 => any::<u64>()];
    let gap_ns = prop_oneof![3 => Just(0u64), 3 => 0..300_000u64, 1 => 0..200_000_000u64];
    prop::collection::vec((gap_ns, op, place, length, any::<bool>()), 1..120).prop_map(|drawn| {
        let mut now_ns = 0;
        let each = drawn.into_iter().enumerate();
        each.map(|(id, (gap_ns, op, offset_bytes, length_bytes, fua))| {
            now_ns += gap_ns;
            let id = id as u64;
            let request = Request {
                id,
                op,
                offset_bytes,
                length_bytes,
                fua,
            };
            (now_ns, request)
        })
        .collect()
    })
}

/// Runs all; `is_eager` calls `advance` as often as `next_ns` says, else only at the end.
fn run(device: &mut Device, requests: &[(u64, Request)], is_eager: bool) -> Vec<Completion> {
    let mut done = Vec::new();
    for &(now_ns, request) in requests {
        while let Some(next_ns) = device
            .next_ns()
            .filter(|&at_ns| is_eager && at_ns <= now_ns)
        {
            device.advance(next_ns, &mut done);
        }
        device.submit(now_ns, request);
    }
    let mut now_ns = requests.last().unwrap().0;
    while let Some(next_ns) = device.next_ns() {
        now_ns = now_ns.max(next_ns);
        device.advance(now_ns, &mut done);
        assert!(done.iter().all(|each| each.at_ns <= now_ns));
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn each_request_completes_once_after_its_submission_and_in_order(
        model in models(), requests in requests(), seed in any::<u64>(),
    ) {
        let done = run(&mut Device::new(&model, CAPACITY, seed), &requests, true);
        prop_assert_eq!(done.len(), requests.len());
        prop_assert!(done.is_sorted_by_key(|each| each.at_ns));
        let submitted: HashMap<u64, u64> =
            requests.iter().map(|(at_ns, request)| (request.id, *at_ns)).collect();
        let mut seen = std::collections::HashSet::new();
        for each in &done {
            prop_assert!(seen.insert(each.id));
            prop_assert!(each.at_ns >= submitted[&each.id]);
        }
    }

    #[test]
    fn times_depend_on_the_seed_and_the_requests_only(
        model in models(), requests in requests(), seed in any::<u64>(),
    ) {
        let eager = run(&mut Device::new(&model, CAPACITY, seed), &requests, true);
        let lazy = run(&mut Device::new(&model, CAPACITY, seed), &requests, false);
        prop_assert_eq!(eager, lazy);
    }

    /// Nothing is moved for free: the interface of 300 MB/s moves every byte that is read or
    /// written, but for reads that it moves while the medium is read.
    #[test]
    fn writes_are_moved_by_the_interface(
        model in models(), requests in requests(), seed in any::<u64>(),
    ) {
        prop_assume!(!format!("{model:?}").contains("Constant("));
        let writes: Vec<_> =
            requests.into_iter().filter(|(_, request)| request.op == Op::Write).collect();
        prop_assume!(!writes.is_empty());
        let done = run(&mut Device::new(&model, CAPACITY, seed), &writes, true);
        let bytes: u64 = writes
            .iter()
            .map(|(_, request)| {
                let offset = request.offset_bytes.min(CAPACITY);
                request.length_bytes.min(CAPACITY - offset)
            })
            .sum();
        let span_ns = done.last().unwrap().at_ns - writes[0].0;
        prop_assert!(u128::from(span_ns) * 300_000_000 >= u128::from(bytes) * 1_000_000_000);
    }
}
