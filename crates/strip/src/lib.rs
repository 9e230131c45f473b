//! Removal of file contents from a recording, so that it can be shared. `docs/sharing.md` describes
//! what remains.
//!
//! The rows of the explanation identify each written byte. Data, unused and unknown bytes are
//! replaced by digests; metadata is parsed for private content. Metadata that cannot be parsed is
//! treated as data, so that no bytes remain only because they were not understood.

#![forbid(unsafe_code)]
// Libraries report errors; they never print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod btrfs;
mod checksum;
mod ext;
mod mark;
mod names;
mod secret;
mod xfs;

use fscost_explain::{Explained, FormattedDisks, Row, SortedRows, Structure, explain_streamed};
use fscost_recording::{
    End, Error, Event, Header, Mark, Op, Output, Recording, Result, Stripped, Summary, Writer,
};
use secret::Secret;
use std::iter::Peekable;

/// Treatment of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Each name is replaced by another of the same length, consistently within the recording.
    #[default]
    Replace,
    /// Names are replaced, but short extensions are kept.
    Extensions,
    /// Names are kept.
    Keep,
}

/// zstd level of the output, which is written once to be sent.
const LEVEL: i32 = 9;

/// Writes `recording` without the contents of files to an empty file. Digests and names depend on
/// the `key`, which must not be kept: with it, contents could be guessed.
pub fn strip(recording: &Recording, out: Output, names: Names, key: &[u8; 32]) -> Result<Summary> {
    let explained = explain_streamed(recording, |_| Ok(()))?;
    refuse(&explained)?;
    let mut secret = Secret::new(key, names);
    let formatted = FormattedDisks::new(recording)?;
    let mut families = btrfs::detect(&formatted)?;
    families.extend(ext::detect(&formatted)?);
    families.extend(xfs::detect(&formatted)?);
    read_ahead(recording, &mut families, &mut secret)?;
    let mut stripper = Stripper {
        secret,
        families,
        rows: explained.rows.iter().peekable(),
        number: 0,
        content: Vec::new(),
    };
    let header = Header {
        stripped: match names {
            Names::Replace => Stripped::NamesReplaced,
            Names::Extensions => Stripped::ExtensionsKept,
            Names::Keep => Stripped::NamesKept,
        },
        ..recording.header().clone()
    };
    let mut writer = Writer::fill_compressed(out, &header, LEVEL)?;
    recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            let content = frame.content_of(event);
            if event.op == Op::Mark {
                let mark = mark::strip(Mark::from_bytes(content)?);
                writer.mark(&mark, event.complete_ns)?;
                stripper.number += 1;
                continue;
            }
            let content = stripper.event(event, content)?;
            writer.space()[..content.len()].copy_from_slice(content);
            writer.append(*event)?;
        }
        for reply in &frame.replies {
            writer.reply(*reply)?;
        }
        Ok(true)
    })?;
    match recording.end() {
        End::Finished => writer.finish(),
        End::Cut { .. } | End::Corrupt { .. } => writer.cut(),
    }
}

/// Rejects recordings of file systems whose private data cannot be distinguished from their
/// metadata. Nothing explainable would remain of them.
fn refuse(explained: &Explained<SortedRows>) -> Result<()> {
    if explained.is_array {
        let what = "a recording of an md array cannot be stripped yet";
        return Err(Error::invalid(what));
    }
    let cannot_be = |family: &&&str| !matches!(**family, "ext" | "xfs" | "btrfs");
    match explained.families.iter().flatten().find(cannot_be) {
        Some(family) => Err(Error::invalid(format!(
            "a recording of {family} cannot be stripped yet; ext, xfs and btrfs are supported"
        ))),
        None => Ok(()),
    }
}

/// A part of a write with a single structure.
struct Part {
    /// Number of the write's event.
    event: u64,
    /// Offset within the write.
    within: usize,
    /// Structure of the row.
    structure_of_row: Structure,
    /// Structure of the bytes: that of the row or, for a journal's copy, that of the copied block.
    structure: Structure,
    /// Byte offset on the disk.
    offset: u64,
}

/// Finds private data in the metadata of one file system.
trait Family {
    /// True if this disk is (part of) the file system.
    fn owns(&self, disk: u16) -> bool;

    /// True if all writes must be read before the first one is stripped.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// Reads a request to one of the file system's disks, before anything is stripped.
    fn read_ahead(&mut self, _number: u64, _event: &Event, _content: &[u8], _secret: &mut Secret) {}

    /// Ends the read-ahead: there are no further writes.
    fn end_of_reading(&mut self, _secret: &mut Secret) {}

    /// Removes private content from a part of a write.
    fn strip(&mut self, part: &Part, bytes: &mut [u8], secret: &mut Secret);
}

fn read_ahead(
    recording: &Recording,
    families: &mut [Box<dyn Family>],
    secret: &mut Secret,
) -> Result<()> {
    if !families.iter().any(|family| family.reads_ahead()) {
        return Ok(());
    }
    let mut number = 0;
    recording.for_each_frame(true, |_, frame| {
        for event in &frame.events {
            if let Some(family) = families.iter_mut().find(|f| f.owns(event.disk)) {
                family.read_ahead(number, event, frame.content_of(event), secret);
            }
            number += 1;
        }
        Ok(true)
    })?;
    for family in families {
        family.end_of_reading(secret);
    }
    Ok(())
}

struct Stripper<R: Iterator<Item = Result<Row>>> {
    secret: Secret,
    families: Vec<Box<dyn Family>>,
    /// Rows from the current event on.
    rows: Peekable<R>,
    number: u64,
    content: Vec<u8>,
}

impl<R: Iterator<Item = Result<Row>>> Stripper<R> {
    /// Returns the content of the next event without private data.
    fn event(&mut self, event: &Event, content: &[u8]) -> Result<&[u8]> {
        self.content.clear();
        self.content.extend_from_slice(content);
        let number = self.number;
        self.number += 1;
        let mut family = self.families.iter_mut().find(|f| f.owns(event.disk));
        let mut done = 0;
        // An error has no event number, so it is taken at once.
        while let Some(row) = self
            .rows
            .next_if(|row| !row.as_ref().is_ok_and(|r| r.event > number))
        {
            let row = row?;
            let Some(within) = row.offset.checked_sub(event.offset) else {
                continue;
            };
            // Rows cover a write without gaps or overlap. Uncovered bytes would be treated as data.
            // A write-zeroes has no content.
            let bytes = self.content.get_mut(done..).unwrap_or_default();
            let bytes = bytes.get_mut(..row.length as usize);
            let (Some(family), Some(bytes)) =
                (&mut family, bytes.filter(|_| within == done as u64))
            else {
                continue;
            };
            let part = Part {
                event: number,
                within: done,
                structure_of_row: row.structure,
                structure: row.home.unwrap_or(row.structure),
                offset: row.offset,
            };
            family.strip(&part, bytes, &mut self.secret);
            done += bytes.len();
        }
        self.secret
            .sectors(self.content.get_mut(done..).unwrap_or_default());
        Ok(&self.content)
    }
}

/// Reads bytes of a disk as mkfs left it. Returns zeroes if the range extends beyond its end.
fn read(formatted: &FormattedDisks<'_>, disk: u16, offset: u64, bytes: &mut [u8]) -> Result<()> {
    bytes.fill(0);
    let mut image = formatted.image(disk)?;
    if offset + bytes.len() as u64 <= image.size_bytes() {
        image.read_at(offset, bytes)?;
    }
    Ok(())
}
