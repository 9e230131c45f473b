//! The disks as mkfs left them, where file systems are looked for.

use crate::array::Shape;
use fscost_recording::{ExtentMap, Image, Op, Recording, Result};

/// Each disk of a recording at the mark `mount`, or at the end where there is no such mark; behind
/// them, as disks of their own, the md arrays that they form.
pub struct FormattedDisks<'a> {
    recording: &'a Recording,
    maps: Vec<ExtentMap>,
    arrays: Vec<Shape>,
}

impl<'a> FormattedDisks<'a> {
    /// Read the recording up to that mark.
    pub fn new(recording: &'a Recording) -> Result<FormattedDisks<'a>> {
        let mut formatted = FormattedDisks {
            recording,
            maps: maps(recording)?,
            arrays: Vec::new(),
        };
        formatted.arrays = Shape::find(&formatted)?;
        for number in 0..formatted.arrays.len() {
            let map = formatted.arrays[number].assemble(&formatted.maps);
            formatted.maps.push(map);
        }
        Ok(formatted)
    }

    /// How many disks there are, arrays included.
    pub fn count(&self) -> u16 {
        self.maps.len() as u16
    }

    /// The arrays.
    pub fn arrays(&self) -> &[Shape] {
        &self.arrays
    }

    /// The recording.
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// One disk.
    pub fn image(&self, disk: u16) -> Result<Image<'a>> {
        let array = self.arrays.iter().find(|array| array.disk() == disk);
        let recorded = self.recording.header().disks.get(usize::from(disk));
        let size_bytes = match (array, recorded) {
            (Some(array), _) => array.size_bytes(),
            (None, recorded) => recorded.map_or(0, |disk| disk.size_bytes),
        };
        let map = self.maps.get(usize::from(disk)).cloned();
        self.recording
            .assembled(disk, size_bytes, map.unwrap_or_default())
    }

    /// An array before anything was written to it.
    pub fn empty(&self, array: &Shape) -> Result<Image<'a>> {
        let (disk, size_bytes) = (array.disk(), array.size_bytes());
        self.recording
            .assembled(disk, size_bytes, ExtentMap::default())
    }

    /// The disks but `disk`, one after the other: candidates for its external journal.
    pub fn others(&self, disk: u16) -> impl Iterator<Item = Result<(u16, Image<'a>)>> {
        let others = (0..self.count()).filter(move |&other| other != disk);
        others.map(|other| Ok((other, self.image(other)?)))
    }
}

fn maps(recording: &Recording) -> Result<Vec<ExtentMap>> {
    let mut maps = vec![ExtentMap::default(); recording.header().disks.len()];
    recording.for_each_frame(false, |index, frame| {
        for event in &frame.events {
            if event.op == Op::Mark && frame.mark_of(event)?.name == "mount" {
                return Ok(false);
            }
            if let Some(map) = maps.get_mut(usize::from(event.disk)) {
                map.apply(index as u32, event);
            }
        }
        Ok(true)
    })?;
    Ok(maps)
}
