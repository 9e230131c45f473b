//! Compress a recording that is kept. Not done while recording: it would take the CPU from the workload.

use crate::{End, Error, ErrorKind, Op, Recording, Result, Summary, Writer};
use std::path::Path;

/// Write a finished recording's events and content, compressed at zstd's `level`, to a new file.
pub fn pack(recording: &Recording, out: &Path, level: i32) -> Result<Summary> {
    if *recording.end() != End::Finished {
        return Err(Error::new(
            ErrorKind::Invalid,
            "a cut or damaged recording stays as it is",
        )
        .in_file(recording.path()));
    }
    let mut writer = Writer::create_compressed(out, recording.header(), level)?;
    recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            if event.op == Op::Mark {
                writer.mark(&frame.mark_of(event)?, event.complete_ns)?;
                continue;
            }
            let content = frame.content_of(event);
            writer.space()[..content.len()].copy_from_slice(content);
            writer.append(*event)?;
        }
        Ok(true)
    })?;
    writer.finish()
}
