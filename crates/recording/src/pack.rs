//! Compression of a recording to keep. Content is not compressed while recording, because that
//! would take CPU time from the workload.

use crate::{End, Error, ErrorKind, Op, Output, Recording, Result, Summary, Writer};

/// Writes a finished recording's events and content to an empty file, compressed at zstd's `level`.
pub fn pack(recording: &Recording, out: Output, level: i32) -> Result<Summary> {
    if *recording.end() != End::Finished {
        return Err(Error::new(
            ErrorKind::Invalid,
            "a truncated or damaged recording cannot be compressed",
        )
        .in_file(recording.path()));
    }
    let mut writer = Writer::fill_compressed(out, recording.header(), level)?;
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
