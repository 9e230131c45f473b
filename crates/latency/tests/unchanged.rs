//! Every completion of long streams of requests, as a digest: a faster model gives the same ones.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::model;
use fscost_latency::{Completion, Device, Op, Request};

const DISK: &str = "model = 'hard-disk'\ncapacity_bytes = 1000204886016\nrpm = 7200\nheads = 4\n\
    zones = 30\nouter_track_bytes = 1300000\ninner_track_bytes = 621880\nhead_switch_us = 1480\n\
    track_seek_us = 1000\nfull_seek_us = 15060\nwrite_settle_us = 1000\nqueue_depth = 32\n\
    command_us = 100\ninterface_bytes_per_s = 300000000\nread_segments = 16\n\
    read_segment_bytes = 1048576\nread_ahead_bytes = 1048576\nwrite_cache_bytes = 16777216";
const CARD: &str = "model = 'flash'\nchannels = 2\ndies_per_channel = 3\nqueue_depth = 8\n\
    open_units = 2\nunit_bytes = 4194304\nunit_close_us = 40000\nout_of_order_us = 700\n\
    buffer_bytes = 65536\nqueued_flush = true\ninterface_bytes_per_s = 90000000\ncommand_us = 8\n\
    read_us = 11\nwrite_us = 5\nflush_us = 300\ndiscard_us = 9\nchannel_bytes_per_s = 70000000\n\
    page_bytes = 16384\npage_read_us = 60\nprogram_bytes = 49152\nprogram_us = 700\n\
    block_bytes = 262144\nerase_us = 3000";

/// FNV-1a of the completions: 20,000 requests near each other or far away, with `gap_ns` between
/// them at most, all kinds among them.
fn digest(text: &str, capacity_bytes: u64, gap_ns: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(gap_ns);
    let mut device = Device::new(&model(text), capacity_bytes, 7);
    let (mut now_ns, mut sector, mut done) = (0, 0, Vec::new());
    for id in 0..20_000 {
        now_ns += random.u64(0..=gap_ns);
        let most_sectors = 1 << random.u32(0..9);
        let length_bytes = random.u64(1..=most_sectors) * 512;
        sector = match random.u8(0..4) {
            0 => random.u64(0..capacity_bytes / 512),
            _ => sector + length_bytes / 512,
        };
        let op = match random.u8(0..100) {
            0 => Op::Flush,
            1 => Op::Discard,
            2 => Op::WriteZeroes,
            drawn if drawn % 2 == 0 => Op::Read,
            _ => Op::Write,
        };
        let is_flush = op == Op::Flush;
        let request = Request {
            id,
            op,
            offset_bytes: if is_flush { 0 } else { sector * 512 },
            length_bytes: if is_flush { 0 } else { length_bytes },
            fua: op == Op::Write && random.u8(0..20) == 0,
        };
        device.submit(now_ns, request);
        device.advance(now_ns, &mut done);
    }
    while let Some(next_ns) = device.next_ns() {
        device.advance(next_ns, &mut done);
    }
    assert_eq!(done.len(), 20_000);
    let words = done
        .iter()
        .flat_map(|&Completion { id, at_ns }| [id, at_ns]);
    words.fold(0xcbf2_9ce4_8422_2325, |digest: u64, word| {
        (digest ^ word).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn completions_are_those_of_november_2026() {
    let found = [
        digest(DISK, 64 << 30, 1),
        digest(DISK, 1 << 40, 2_000_000),
        digest(DISK, 1 << 30, 30_000_000),
        digest(CARD, 32 << 30, 1),
        digest(CARD, 1 << 30, 500_000),
    ];
    let expected = [
        16_332_294_687_906_093_966,
        1_706_407_513_474_655_481,
        2_498_994_458_372_401_213,
        17_669_217_246_239_604_312,
        3_995_837_051_255_554_021,
    ];
    assert_eq!(found, expected);
}
