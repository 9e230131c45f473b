//! Digests of the contents of a recording.

use crate::digest::short;
use fscost_recording::{Location, Op, Recording, Result, SECTOR_BYTES};

/// Digests of the contents of all recorded sectors, to compare images without reading them.
#[derive(Debug)]
pub struct Contents {
    /// Of each frame, the digest of each sector of its content; 0 if it is zero.
    frames: Vec<Vec<u128>>,
}

impl Contents {
    /// Reads the content of all writes once.
    pub fn read(recording: &Recording) -> Result<Contents> {
        let mut frames = vec![Vec::new(); recording.frames().len()];
        recording.for_each_frame(true, |index, frame| {
            for event in frame.events.iter().filter(|event| event.op == Op::Write) {
                let content = frame.content_of(event);
                let first = place(event.content_offset);
                for (number, sector) in content.chunks(SECTOR_BYTES as usize).enumerate() {
                    if sector.iter().any(|&byte| byte != 0) {
                        let sectors: &mut Vec<u128> = &mut frames[index];
                        if sectors.len() <= first + number {
                            sectors.resize(first + number + 1, 0);
                        }
                        sectors[first + number] = short(sector);
                    }
                }
            }
            Ok(true)
        })?;
        Ok(Contents { frames })
    }

    /// Returns what a sector with this content adds to the digest; 0 if it is zero.
    pub(crate) fn added(&self, at: Sector, location: Location) -> u128 {
        let frame = self.frames.get(location.frame as usize);
        let content = frame.and_then(|frame| frame.get(place(location.content_offset)));
        match content.copied().unwrap_or_default() {
            0 => 0,
            content => placed(at, content),
        }
    }
}

/// Place of a sector in the content of its frame, which consists of whole sectors.
fn place(content_offset: u32) -> usize {
    (u64::from(content_offset) / SECTOR_BYTES) as usize
}

/// Digest of a content at its place. The content is a digest already, so that two multiplications
/// are enough; the place is mixed first (splitmix64), so that the sums of several do not depend on
/// the sums of their places.
fn placed(at: Sector, content: u128) -> u128 {
    let (low, high) = (content as u64, (content >> 64) as u64);
    let first = mixed(at.number ^ u64::from(at.disk) << 48);
    let second = mixed(first);
    let fold = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    let (one, other) = (low ^ first, high ^ second);
    let (third, fourth) = (low.rotate_left(32) ^ second, high.rotate_left(32) ^ first);
    u128::from(fold(one, other)) | u128::from(fold(third, fourth)) << 64
}

fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sector {
    pub(crate) disk: u16,
    pub(crate) number: u64,
}
