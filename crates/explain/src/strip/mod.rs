//! Takes the contents of files out of a recording, so that it can be shared: `docs/sharing.md` says
//! what is left.
//!
//! The rows of the explanation say what each written byte is. What is data, unused or not
//! understood becomes digests; metadata is parsed for
//! what is private in it. What cannot be parsed is taken for data: nothing stays because it was not
//! understood.

mod btrfs;
mod checksum;
mod ext;
mod mark;
mod names;
mod secret;
mod xfs;

use crate::{Explained, Row, SortedRows, Structure, explain_streamed};
use fscost_recording::{
    End, Error, Event, Header, Instant, Mark, Op, Output, Recording, Result, Stripped, Summary,
    Writer,
};
use secret::Secret;
use std::iter::Peekable;

/// What becomes of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Each becomes another of the same length, the same one everywhere.
    #[default]
    Replace,
    /// As before, but short extensions stay.
    Extensions,
    /// They stay.
    Keep,
}

/// zstd's level for what is written: it is written once, to be sent.
const LEVEL: i32 = 9;

/// Write `recording` without the contents of files to an empty file. Digests and names depend on
/// the `key`, which nobody may keep: with it, contents
/// could be guessed.
pub fn strip(recording: &Recording, out: Output, names: Names, key: &[u8; 32]) -> Result<Summary> {
    let explained = explain_streamed(recording, |_| Ok(()))?;
    refuse(&explained)?;
    let mut secret = Secret::new(key, names);
    if let Some(hash) = explained
        .families
        .iter()
        .flatten()
        .find_map(|family| names::hash_of(family))
    {
        secret.keep_hash(hash);
    }
    let mut families = btrfs::detect(recording)?;
    families.extend(ext::detect(recording)?);
    for disk in 0..recording.header().disks.len() as u16 {
        families.extend(xfs::detect(recording, disk)?);
    }
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
        Ok(true)
    })?;
    match recording.end() {
        End::Finished => writer.finish(),
        End::Cut { .. } | End::Corrupt { .. } => writer.cut(),
    }
}

/// Of a file system whose metadata cannot be told from what is private in it, nothing would be left
/// that can be explained.
fn refuse(explained: &Explained<SortedRows>) -> Result<()> {
    if explained.is_array {
        return Err(Error::invalid(
            "a recording of an md array cannot be stripped yet",
        ));
    }
    let cannot_be = |family: &&&str| !matches!(**family, "ext" | "xfs" | "btrfs");
    match explained.families.iter().flatten().find(cannot_be) {
        Some(family) => Err(Error::invalid(format!(
            "a recording of {family} cannot be stripped yet; those of ext, xfs and btrfs can"
        ))),
        None => Ok(()),
    }
}

/// A part of a write that is of one structure.
struct Part {
    /// The write's event.
    event: u64,
    /// Where in the write it begins.
    within: usize,
    /// What it is.
    structure_of_row: Structure,
    /// What it is, or what a journal's copy is of.
    structure: Structure,
    /// Byte offset on the disk.
    offset: u64,
}

/// Knows what is private in the metadata of one file system.
trait Family {
    /// Whether this disk is (part of) the file system.
    fn owns(&self, disk: u16) -> bool;

    /// Whether it must see all writes before the first is stripped.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// A request to one of its disks, before anything is stripped.
    fn read_ahead(&mut self, _number: u64, _event: &Event, _content: &[u8], _secret: &mut Secret) {}

    /// That was the last.
    fn end_of_reading(&mut self, _secret: &mut Secret) {}

    /// Take what is private out of a part of a write.
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
    /// Those from the present event on.
    rows: Peekable<R>,
    number: u64,
    content: Vec<u8>,
}

impl<R: Iterator<Item = Result<Row>>> Stripper<R> {
    /// The content of the next event without what is private.
    fn event(&mut self, event: &Event, content: &[u8]) -> Result<&[u8]> {
        self.content.clear();
        self.content.extend_from_slice(content);
        let number = self.number;
        self.number += 1;
        let mut family = self.families.iter_mut().find(|f| f.owns(event.disk));
        let mut done = 0;
        // An error is no row: it is of this event as well as of any other.
        while let Some(row) = self
            .rows
            .next_if(|row| !row.as_ref().is_ok_and(|r| r.event > number))
        {
            let row = row?;
            let Some(within) = row.offset.checked_sub(event.offset) else {
                continue;
            };
            // Rows cover a write without gaps or overlap. What they did not cover would be data. A
            // write-zeroes has no content.
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

/// A disk as mkfs left it.
fn formatted(recording: &Recording, disk: u16, offset: u64, bytes: &mut [u8]) -> Result<()> {
    let mut image = match recording.image_at(disk, &Instant::Mark("mount".into())) {
        Ok(image) => image,
        Err(_) => recording.image_at(disk, &Instant::End)?,
    };
    if offset + bytes.len() as u64 <= image.size_bytes() {
        image.read_at(offset, bytes)?;
    }
    Ok(())
}

/// Whether these bytes say nothing.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
