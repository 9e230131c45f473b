//! Compression of a recording to keep. Content is not compressed while recording, because that
//! would take CPU time from the workload.

use crate::{End, Error, Frame, Op, Output, Recording, Result, Summary, Writer};

/// Writes a finished recording again, with compressed content, frame by frame. An analysis that
/// reads the recording passes its frames on, so that nothing is read twice.
pub struct Packer {
    writer: Writer,
}

impl Packer {
    /// Begins a compressed copy at zstd's `level` in an empty file.
    pub fn new(recording: &Recording, out: Output, level: i32) -> Result<Packer> {
        if *recording.end() != End::Finished {
            let error = Error::invalid("a truncated or damaged recording cannot be compressed");
            return Err(error.in_file(recording.path()));
        }
        let writer = Writer::fill_compressed(out, recording.header(), level)?;
        Ok(Packer { writer })
    }

    /// Adds the next frame of the recording. Unpacks content that is still packed.
    pub fn add(&mut self, frame: &mut Frame) -> Result<()> {
        for number in 0..frame.events.len() {
            let event = frame.events[number];
            frame.unpack(&event)?;
            if event.op == Op::Mark {
                let mark = frame.mark_of(&event)?;
                self.writer.mark(&mark, event.complete_ns)?;
                continue;
            }
            let content = frame.content_of(&event);
            self.writer.space()[..content.len()].copy_from_slice(content);
            self.writer.append(event)?;
        }
        frame
            .replies
            .iter()
            .try_for_each(|&reply| self.writer.reply(reply))
    }

    /// Stores the rest and the end of the copy.
    pub fn finish(self) -> Result<Summary> {
        self.writer.finish()
    }
}
