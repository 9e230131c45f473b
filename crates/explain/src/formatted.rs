//! The disks as mkfs left them, on which file systems are detected.

use crate::array::Shape;
use fscost_recording::{ExtentMap, Image, Op, Recording, Result};

/// Disks of a recording at the mark `mount`, or at the end if there is no such mark. The md arrays
/// that they form follow as additional disks.
pub struct FormattedDisks<'a> {
    recording: &'a Recording,
    maps: Vec<ExtentMap>,
    pub(crate) arrays: Vec<Shape>,
}

impl<'a> FormattedDisks<'a> {
    /// Reads the recording up to the mark `mount`.
    pub fn new(recording: &'a Recording) -> Result<FormattedDisks<'a>> {
        let mut formatted = FormattedDisks {
            recording,
            maps: maps(recording)?,
            arrays: Vec::new(),
        };
        let images = (0..formatted.count()).map(|disk| formatted.image(disk));
        formatted.arrays = Shape::find(images.collect::<Result<_>>()?)?;
        for number in 0..formatted.arrays.len() {
            let map = formatted.arrays[number].assemble(&formatted.maps);
            formatted.maps.push(map);
        }
        Ok(formatted)
    }

    /// Returns the number of disks, arrays included.
    pub fn count(&self) -> u16 {
        self.maps.len() as u16
    }

    /// Returns the recording.
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Returns the image of one disk.
    pub fn image(&self, disk: u16) -> Result<Image<'a>> {
        let array = self.arrays.iter().find(|array| array.disk == disk);
        let recorded = self.recording.header().disks.get(usize::from(disk));
        let size_bytes = match (array, recorded) {
            (Some(array), _) => array.map.size_bytes(),
            (None, recorded) => recorded.map_or(0, |disk| disk.size_bytes),
        };
        let map = self.maps.get(usize::from(disk)).cloned();
        self.recording
            .assembled(disk, size_bytes, map.unwrap_or_default())
    }

    /// Returns the image of an array before its first write.
    pub fn empty(&self, array: &Shape) -> Result<Image<'a>> {
        let size_bytes = array.map.size_bytes();
        self.recording
            .assembled(array.disk, size_bytes, ExtentMap::default())
    }

    /// Iterates over all disks except `disk`: the candidates for its external journal.
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
