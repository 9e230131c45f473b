//! The disk that a choice of pending units leaves.

use crate::Cut;
use fscost_recording::{
    ExtentMap, Image, Location, Recording, Result, clear, overwrite_sparse, set_size, write_sparse,
};
use std::{collections::BTreeMap, fs::File};

/// Most bytes of content that are kept in memory.
const MEMORY_BYTES: u64 = 64 << 20;

/// The content of a small recording, so that no state needs to unpack it again.
#[derive(Debug)]
pub struct Memory {
    /// Sizes of the disks.
    sizes_bytes: Vec<u64>,
    frames: Vec<Vec<u8>>,
}

impl Memory {
    /// Reads the content of all writes; `None` if it takes more than `MEMORY_BYTES`.
    pub fn read(recording: &Recording) -> Result<Option<Memory>> {
        let sizes = recording.frames().iter();
        if sizes
            .map(|frame| u64::from(frame.content_bytes))
            .sum::<u64>()
            > MEMORY_BYTES
        {
            return Ok(None);
        }
        let mut frames = vec![Vec::new(); recording.frames().len()];
        recording.for_each_frame(true, |index, frame| {
            frames[index] = frame.content().to_vec();
            Ok(true)
        })?;
        let disks = recording.header().disks.iter();
        Ok(Some(Memory {
            sizes_bytes: disks.map(|disk| disk.size_bytes).collect(),
            frames,
        }))
    }

    /// Writes `disk` after a cut that kept these pending units to `out`, in place of what that file
    /// holds: its pages are used again, which takes less time than new ones.
    pub fn export(&self, cut: &Cut<'_>, disk: u16, kept: &[u32], out: &File) -> Result<()> {
        let size_bytes = self.sizes_bytes.get(usize::from(disk));
        let size_bytes = size_bytes.copied().unwrap_or_default();
        let is_empty = out.metadata().is_ok_and(|about| about.len() == 0);
        set_size(out, size_bytes)?;
        for segment in map(cut, disk, kept).segments(0, size_bytes) {
            let Some(location) = segment.location else {
                if !is_empty {
                    clear(out, segment.offset, segment.length)?;
                }
                continue;
            };
            let begin = location.content_offset as usize;
            let content = self.frames.get(location.frame as usize);
            let part = content.and_then(|all| all.get(begin..begin + segment.length as usize));
            let write = match is_empty {
                true => write_sparse,
                false => overwrite_sparse,
            };
            write(out, part.unwrap_or_default(), segment.offset)?;
        }
        Ok(())
    }
}

/// Returns the map of `disk` after a cut that kept these pending units (places in
/// [`Cut::pending`], in order).
pub(crate) fn map(cut: &Cut<'_>, disk: u16, kept: &[u32]) -> ExtentMap {
    let mut units: BTreeMap<u32, Vec<(u64, u64, bool)>> = BTreeMap::new();
    for (place, unit) in cut.pending.iter().enumerate() {
        let is_kept = kept.binary_search(&(place as u32)).is_ok();
        let found = units.entry(unit.change).or_default();
        found.push((unit.offset, unit.length, is_kept));
    }
    let mut map = ExtentMap::default();
    for (place, change) in cut.requests.changes.iter().enumerate() {
        if change.event.disk != disk {
            continue;
        }
        let pending = units.get(&(place as u32));
        if cut.is_kept(change, pending.is_some()) {
            map.apply(change.frame, &change.event);
            continue;
        }
        for &(offset, length, _) in pending.into_iter().flatten().filter(|unit| unit.2) {
            if change.event.op.clears() {
                map.clear(offset, length);
                continue;
            }
            let location = Location {
                frame: change.frame,
                content_offset: change.event.content_offset + (offset - change.event.offset) as u32,
            };
            map.write(offset, length, location);
        }
    }
    map
}

/// Returns `disk` after a cut that kept these pending units.
pub fn image<'r>(
    recording: &'r Recording,
    cut: &Cut<'_>,
    disk: u16,
    kept: &[u32],
) -> Result<Image<'r>> {
    let size_bytes = recording
        .header()
        .disks
        .get(usize::from(disk))
        .map_or(0, |disk| disk.size_bytes);
    recording.assembled(disk, size_bytes, map(cut, disk, kept))
}
