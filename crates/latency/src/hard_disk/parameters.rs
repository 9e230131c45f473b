//! Parameters of a hard disk.

use crate::{Error, fields::Fields, request::LARGEST_BYTES};

/// Parameters of a hard disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HardDisk {
    pub(super) mechanics: Mechanics,
    pub(super) electronics: Electronics,
}

/// Mechanical parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mechanics {
    pub(super) capacity_bytes: u64,
    pub(super) revolution_ns: u64,
    pub(super) heads: u32,
    pub(super) zones: u32,
    outer_track_bytes: u64,
    inner_track_bytes: u64,
    pub(super) head_switch_ns: u64,
    pub(super) track_seek_ns: u64,
    pub(super) full_seek_ns: u64,
    pub(super) write_settle_ns: u64,
}

/// Parameters of queue, buffer and interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Electronics {
    pub(super) queue_depth: u32,
    pub(super) command_ns: u64,
    pub(super) interface_bytes_per_s: u64,
    pub(super) read_segments: u32,
    pub(super) read_segment_bytes: u64,
    pub(super) read_ahead_bytes: u64,
    pub(super) write_cache_bytes: u64,
}

impl HardDisk {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<HardDisk, Error> {
        let model = HardDisk {
            mechanics: Mechanics::read(fields)?,
            electronics: Electronics::read(fields)?,
        };
        model.check(fields)?;
        Ok(model)
    }

    fn check(&self, fields: &Fields<'_>) -> Result<(), Error> {
        let (mechanics, electronics) = (&self.mechanics, &self.electronics);
        // The time to read the largest device from end to end must fit in nanoseconds.
        let tracks = u128::from(LARGEST_BYTES / mechanics.inner_track_bytes);
        let track_ns = mechanics.revolution_ns + mechanics.head_switch_ns + mechanics.track_seek_ns;
        for (is_wrong, name, what) in [
            (
                mechanics.inner_track_bytes > mechanics.outer_track_bytes,
                "inner_track_bytes",
                "is more than outer_track_bytes; the outer tracks are the longer ones",
            ),
            (
                tracks * u128::from(track_ns) >= 1 << 61,
                "inner_track_bytes",
                "is too small: at this rotation and seek time, reading the largest disk would take \
                 too long to represent; give the bytes of one track",
            ),
            (
                mechanics.outer_track_bytes > 1 << 30,
                "outer_track_bytes",
                "is more than 1 GiB; give the bytes of one track",
            ),
            (
                mechanics.full_seek_ns < mechanics.track_seek_ns,
                "full_seek_us",
                "is less than track_seek_us; give the time over all cylinders",
            ),
            (
                electronics.read_ahead_bytes > electronics.read_segment_bytes,
                "read_ahead_bytes",
                "is more than read_segment_bytes; read-ahead must fit one segment of the buffer",
            ),
        ] {
            if is_wrong {
                return Err(fields.wrong(name, what));
            }
        }
        Ok(())
    }
}

impl Mechanics {
    fn read(fields: &mut Fields<'_>) -> Result<Mechanics, Error> {
        let rpm = "revolutions per minute";
        Ok(Mechanics {
            capacity_bytes: fields.bytes(
                "capacity_bytes",
                None,
                1 << 20,
                "size of the drive; a smaller recorded disk lies at its outer edge",
            )?,
            revolution_ns: (60e9 / fields.number("rpm", None, 100.0..=1e5, rpm)?).round() as u64,
            heads: fields.count("heads", 1, 1..=64, "heads, i.e. tracks in a cylinder")?,
            zones: fields.count(
                "zones",
                1,
                1..=256,
                "zones; all have the same number of cylinders, and each has tracks of one length",
            )?,
            outer_track_bytes: fields.bytes(
                "outer_track_bytes",
                None,
                512,
                "bytes of a track of the outermost zone",
            )?,
            inner_track_bytes: fields.bytes(
                "inner_track_bytes",
                None,
                512,
                "bytes of a track of the innermost zone; lengths fall evenly from zone to zone",
            )?,
            head_switch_ns: fields.optional_us(
                "head_switch_us",
                "microseconds to change the head within a cylinder",
            )?,
            track_seek_ns: fields
                .us("track_seek_us", "microseconds to move to the next cylinder")?,
            full_seek_ns: fields.us(
                "full_seek_us",
                "microseconds to cross all cylinders; grows with the square root of the distance",
            )?,
            write_settle_ns: fields.optional_us(
                "write_settle_us",
                "extra microseconds of a seek for a write, except to the next cylinder",
            )?,
        })
    }

    /// Returns the track length of a zone, counted from the outermost.
    pub(super) fn track_bytes(&self, zone: u64) -> u64 {
        let steps = u64::from(self.zones.max(2) - 1);
        self.outer_track_bytes - (self.outer_track_bytes - self.inner_track_bytes) * zone / steps
    }
}

impl Electronics {
    fn read(fields: &mut Fields<'_>) -> Result<Electronics, Error> {
        Ok(Electronics {
            queue_depth: fields.count(
                "queue_depth",
                1,
                1..=1024,
                "commands that the drive accepts and reorders (NCQ: 32)",
            )?,
            command_ns: fields.optional_us(
                "command_us",
                "microseconds that the controller needs for a command",
            )?,
            interface_bytes_per_s: fields.bytes(
                "interface_bytes_per_s",
                None,
                100_000,
                "bytes that the interface moves in a second",
            )?,
            read_segments: fields.count(
                "read_segments",
                0,
                0..=1024,
                "number of ranges of earlier reads that the buffer keeps",
            )?,
            read_segment_bytes: fields.bytes(
                "read_segment_bytes",
                Some(1 << 20),
                512,
                "bytes of the largest range that the buffer keeps of earlier reads",
            )?,
            read_ahead_bytes: fields.optional_bytes(
                "read_ahead_bytes",
                "bytes that an idle drive reads ahead after a read",
            )?,
            write_cache_bytes: fields.optional_bytes(
                "write_cache_bytes",
                "bytes of writes that complete before they are on the medium; 0: no write cache",
            )?,
        })
    }
}
