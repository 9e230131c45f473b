//! A job's part of a recording, for benches/live.py: `cut RECORDING OUT BEGIN_NS END_NS` writes a
//! recording of the requests that were submitted before the end, with a mark `run` at the begin and
//! `end` at the end. What came before the job determines what the device holds. Contents become
//! zeros.
#![allow(clippy::unwrap_used, missing_docs)]

use fscost_recording::{Mark, Op, Recording, Writer};
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let recording = Recording::open(Path::new(&arguments[0])).unwrap();
    let mut writer = Writer::create(Path::new(&arguments[1]), recording.header()).unwrap();
    let begin_ns: u64 = arguments[2].parse().unwrap();
    let end_ns: u64 = arguments[3].parse().unwrap();
    let mark = |name: &str| Mark {
        name: name.into(),
        detail: serde_json::Value::Null,
    };
    let mut has_begun = false;
    recording
        .for_each_frame(false, |_, frame| {
            for event in &frame.events {
                if event.op == Op::Mark || event.submit_ns >= end_ns {
                    continue;
                }
                if !has_begun && event.submit_ns >= begin_ns {
                    has_begun = true;
                    writer.mark(&mark("run"), begin_ns)?;
                }
                writer.append(*event)?;
            }
            Ok(true)
        })
        .unwrap();
    writer.mark(&mark("end"), end_ns).unwrap();
    writer.finish().unwrap();
}
