//! Explains a recording and prints the cost as one line of JSON, for `benches/classify.py`:
//! `classify RECORDING`.

#![allow(clippy::unwrap_used)]

use fscost_explain::Table;
use fscost_recording::{Op, Recording};
use rustix::time::{ClockId, clock_gettime};
use std::{path::Path, time::Instant};

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let begin = Instant::now();
    let recording = Recording::open(Path::new(&path)).unwrap();
    let opened_s = cpu_s(ClockId::ThreadCPUTime);
    let table = Table::new(&recording).unwrap();
    // Other threads decompress the frames.
    let classifier_cpu_s = cpu_s(ClockId::ThreadCPUTime) - opened_s;
    let whole_cpu_s = cpu_s(ClockId::ProcessCPUTime);
    let wall_s = begin.elapsed().as_secs_f64();
    let (mut rows, mut explained_bytes) = (0u64, 0u64);
    for row in table.explained.rows.iter() {
        rows += 1;
        explained_bytes += row.unwrap().length;
    }
    let rows_cpu_s = cpu_s(ClockId::ProcessCPUTime) - whole_cpu_s;
    let (mut requests, mut content_bytes, mut written_bytes) = (0u64, 0u64, 0u64);
    let walk = recording.for_each_frame(false, |_, frame| {
        for event in frame.events.iter().filter(|e| e.op != Op::Mark) {
            requests += 1;
            let content = event.op == Op::Write;
            content_bytes += if content { event.length } else { 0 };
            let written = content || event.op == Op::WriteZeroes;
            written_bytes += if written { event.length } else { 0 };
        }
        Ok(true)
    });
    walk.unwrap();
    assert_eq!(
        explained_bytes, written_bytes,
        "not every byte is explained"
    );
    let families = &table.explained.families;
    let family = families.iter().flatten().next().unwrap_or(&"none");
    println!(
        "{{\"family\": \"{family}\", \"requests\": {requests}, \
         \"content_bytes\": {content_bytes}, \"rows\": {rows}, \
         \"paths\": {}, \"wall_s\": {wall_s}, \
         \"classifier_cpu_s\": {classifier_cpu_s}, \"whole_cpu_s\": {whole_cpu_s}, \
         \"rows_cpu_s\": {rows_cpu_s}, \"peak_bytes\": {}}}",
        table.explained.paths.texts().len(),
        peak_bytes()
    );
}

fn cpu_s(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}
