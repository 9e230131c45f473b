//! Speed of the replay, for benches/replay.py: `replay_speed RECORDING REQUESTS MODEL.toml…` makes
//! a recording if there is none, and replays it on each model. Prints a line of JSON for each.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use fscost_latency::Model;
use fscost_recording::{DiskInfo, Event, Header, Mark, Op, Recording, Stripped, Writer};
use fscost_replay::{Requests, Waits};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;

const DISK_BYTES: u64 = 64 << 30;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(&arguments[0]);
    let count: u64 = arguments[1].parse().unwrap();
    if !path.exists() {
        record(path, count);
    }
    for file in &arguments[2..] {
        let model = Model::parse(file, &std::fs::read_to_string(file).unwrap()).unwrap();
        for (name, waits) in [("flushes", Waits::ForFlushes), ("all", Waits::ForAll)] {
            let begin_s = cpu_s();
            let recording = Recording::open(path).unwrap();
            let requests = Requests::of(&recording).unwrap();
            let read_s = cpu_s() - begin_s;
            let found = requests.replay(std::slice::from_ref(&model), waits, 1);
            let replay_s = cpu_s() - begin_s - read_s;
            let modelled_s = found.iter().map(|each| each.modelled_ns).sum::<u64>() as f64 / 1e9;
            let frames = recording.frames().iter();
            let requests: u32 = frames.map(|frame| frame.event_count).sum();
            println!(
                "{{\"model\": \"{file}\", \"waits\": \"{name}\", \"requests\": {requests}, \
                 \"read_s\": {read_s}, \"replay_s\": {replay_s}, \"modelled_s\": {modelled_s}}}"
            );
        }
    }
}

/// Processor time of this thread, the only one: others may use the machine.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Half reads, half writes, mostly near the request before; a flush after each hundredth.
fn record(path: &Path, count: u64) {
    let mut random = fastrand::Rng::with_seed(1);
    let header = Header {
        // Zero would mean that the requests have no times.
        begin_unix_ns: 1,
        stripped: Stripped::No,
        disks: vec![DiskInfo {
            name: "main".into(),
            size_bytes: DISK_BYTES,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        }],
    };
    let mut writer = Writer::create(path, &header).unwrap();
    let (mut now_ns, mut sector) = (0, 0);
    for at in 0..count {
        now_ns += random.u64(500..5000);
        sector = if random.u8(0..4) == 0 {
            random.u64(0..DISK_BYTES / 512 - 8)
        } else {
            (sector + 8) % (DISK_BYTES / 512 - 8)
        };
        let (op, length) = match at % 100 {
            99 => (Op::Flush, 0),
            each if each % 2 == 0 => (Op::Read, 4096),
            _ => (Op::Write, 512),
        };
        writer.space()[..512].fill(at as u8);
        let event = Event {
            submit_ns: now_ns,
            complete_ns: now_ns + 400,
            offset: if op == Op::Flush { 0 } else { sector * 512 },
            length,
            content_offset: 0,
            disk: 0,
            op,
            fua: false,
        };
        writer.append(event).unwrap();
    }
    let mark = Mark {
        name: "end".into(),
        detail: serde_json::Value::Null,
    };
    writer.mark(&mark, now_ns + 1000).unwrap();
    writer.finish().unwrap();
}
