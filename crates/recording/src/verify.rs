//! Verification of a whole recording.

use crate::{End, Frame, Op, Recording, Result, Totals};

/// The contents of a recording, and the result of checking them.
#[derive(Debug, Clone)]
pub struct Report {
    /// State of the end according to the frame headers: finished, cut or damaged.
    pub end: End,
    /// Frames with internal damage: the byte where each begins, and a description.
    pub damaged: Vec<String>,
    /// Number of intact events.
    pub events: u64,
    /// Totals of the intact events, per disk.
    pub totals: Vec<Totals>,
    /// Size of the content before compression.
    pub content_bytes: u64,
    /// Size of the content as stored.
    pub content_stored_bytes: u64,
}

impl Report {
    /// True if the recording is finished and undamaged.
    pub fn is_whole(&self) -> bool {
        self.end == End::Finished && self.damaged.is_empty()
    }
}

/// Checks every byte.
pub fn verify(recording: &Recording) -> Result<Report> {
    let mut report = Report {
        end: recording.end().clone(),
        damaged: Vec::new(),
        events: 0,
        totals: vec![Totals::default(); recording.header().disks.len()],
        content_bytes: 0,
        content_stored_bytes: 0,
    };
    let mut frame = Frame::default();
    let (mut last_ns, mut requests, mut newest_reply) = (0, 0, None);
    for (index, info) in recording.frames().iter().enumerate() {
        report.content_bytes += u64::from(info.content_bytes);
        report.content_stored_bytes += u64::from(info.content_stored_bytes);
        let damaged = |what: &str| format!("at byte {}: {what}", info.at_byte);
        if let Err(error) = recording.read_frame(index, true, &mut frame) {
            report.damaged.push(error.to_string());
            continue;
        }
        for event in &frame.events {
            if event.complete_ns < last_ns {
                report.damaged.push(damaged("time runs backwards"));
                break;
            }
            last_ns = event.complete_ns;
            report.events += 1;
            if let Some(totals) = report.totals.get_mut(usize::from(event.disk)) {
                totals.add(event);
            }
        }
        requests += frame.events.iter().filter(|e| e.op != Op::Mark).count() as u64;
        newest_reply = newest_reply.max(frame.replies.iter().map(|reply| reply.request).max());
        if report.damaged.is_empty() && newest_reply.is_some_and(|reply| reply >= requests) {
            report.damaged.push(damaged("a reply to no request"));
        }
        let marks = frame.events.iter().filter(|e| e.op == Op::Mark);
        let errors = marks.filter_map(|e| frame.mark_of(e).err());
        let errors = errors.map(|error| damaged(&error.context));
        report.damaged.extend(errors);
    }
    Ok(report)
}
