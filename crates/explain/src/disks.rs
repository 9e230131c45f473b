//! Content of the disks at the current event.

use fscost_recording::{Event, Image, Recording, Result};

/// The disks of a recording at the current event. Reads see every write before it, but not the
/// current write.
pub struct Disks<'a> {
    images: Vec<Image<'a>>,
}

impl<'a> Disks<'a> {
    /// Returns all disks, empty.
    pub fn new(recording: &'a Recording) -> Result<Disks<'a>> {
        let disks = 0..recording.header().disks.len() as u16;
        let images = disks
            .map(|disk| recording.image_at(disk, &fscost_recording::Instant::Events(0)))
            .collect::<Result<_>>()?;
        Ok(Disks { images })
    }

    /// Returns all disks with the events that had completed by `at_ns`, except those in `lost`
    /// (event numbers, ascending).
    pub fn at(recording: &'a Recording, at_ns: u64, lost: &[u64]) -> Result<Disks<'a>> {
        let mut disks = Disks::new(recording)?;
        let mut number = 0;
        recording.for_each_frame(true, |frame_number, frame| {
            for event in &frame.events {
                if event.complete_ns > at_ns {
                    return Ok(false);
                }
                if lost.binary_search(&number).is_err() {
                    disks.apply(frame_number as u32, event);
                }
                number += 1;
            }
            Ok(true)
        })?;
        Ok(disks)
    }

    /// Reads `into.len()` bytes of `disk` at `offset`. Bytes past the end of the disk read as
    /// zeros.
    pub fn read(&mut self, disk: u16, offset: u64, into: &mut [u8]) -> Result<()> {
        into.fill(0);
        let Some(image) = self.images.get_mut(usize::from(disk)) else {
            return Ok(());
        };
        let available = image
            .size_bytes()
            .saturating_sub(offset)
            .min(into.len() as u64) as usize;
        image.read_at(offset.min(image.size_bytes()), &mut into[..available])
    }

    /// Adds a disk: an array of the others.
    pub(super) fn add(&mut self, image: Image<'a>) {
        self.images.push(image);
    }

    /// Returns the size of `disk`, or 0 if there is no such disk.
    pub fn size_bytes(&self, disk: u16) -> u64 {
        self.images
            .get(usize::from(disk))
            .map_or(0, Image::size_bytes)
    }

    /// Returns the number of disks.
    pub fn count(&self) -> u16 {
        self.images.len() as u16
    }

    pub(super) fn apply(&mut self, frame: u32, event: &Event) {
        if let Some(image) = self.images.get_mut(usize::from(event.disk)) {
            image.apply(frame, event);
        }
    }
}

/// Reads bytes of an image. Returns None if they are not all within it.
pub(crate) fn read_bytes<const N: usize>(
    image: &mut Image<'_>,
    offset: u64,
) -> Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    if offset.saturating_add(N as u64) > image.size_bytes() {
        return Ok(None);
    }
    image.read_at(offset, &mut bytes)?;
    Ok(Some(bytes))
}
