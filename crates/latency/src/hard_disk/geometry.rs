//! Tracks, zones and the seek curve of a hard disk.
//!
//! Tracks are skewed by exactly the time of a head switch or a track-to-track seek, as drives are
//! (for instance Fujitsu MAS3735 product manual, 3.2: "the first logical data block in each track
//! is shifted by the number of sectors corresponding to the switching time"). So one function
//! describes place and angle: the instant at which a drive that reads from byte 0 on, without a
//! stop, begins to read a byte. Its remainder by a revolution is that byte's angle.

use super::parameters::Mechanics;
use crate::divisor::Divisor;

/// Cylinders of equal track length.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_byte: u64,
    first_cylinder: u64,
    /// When a drive that reads all from byte 0 begins to read this zone.
    first_ns: u64,
    track_bytes: u64,
    by_track_bytes: Divisor,
}

#[derive(Debug, Clone)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    by_heads: Divisor,
    revolution_ns: u64,
    head_switch_ns: u64,
    track_seek_ns: u64,
    /// Nanoseconds of a seek over `d` cylinders, beyond a track-to-track seek, ÷ √(d − 1).
    seek_ns_per_root: f64,
}

impl Geometry {
    /// Geometry of a disk of at least `capacity_bytes`: a larger one than the model's has more
    /// cylinders in each zone.
    pub(super) fn new(model: &Mechanics, capacity_bytes: u64) -> Geometry {
        let capacity_bytes = capacity_bytes.max(model.capacity_bytes);
        let (count, heads) = (u64::from(model.zones), u64::from(model.heads));
        let lengths: Vec<u64> = (0..count).map(|zone| model.track_bytes(zone)).collect();
        let cylinder_of_each: u64 = lengths.iter().map(|length| length * heads).sum();
        let zone_cylinders = capacity_bytes.div_ceil(cylinder_of_each).max(1);
        let mut next = Zone {
            first_byte: 0,
            first_cylinder: 0,
            first_ns: 0,
            track_bytes: 0,
            by_track_bytes: Divisor::new(1),
        };
        let revolution_ns = model.revolution_ns;
        let cylinder_ns =
            heads * revolution_ns + (heads - 1) * model.head_switch_ns + model.track_seek_ns;
        let mut zones = Vec::with_capacity(lengths.len());
        for track_bytes in lengths {
            next.track_bytes = track_bytes;
            next.by_track_bytes = Divisor::new(track_bytes);
            zones.push(next);
            next.first_byte += zone_cylinders * heads * track_bytes;
            next.first_cylinder += zone_cylinders;
            next.first_ns += zone_cylinders * cylinder_ns;
        }
        let cylinders = zone_cylinders * count;
        let longest = cylinders.saturating_sub(2).max(1) as f64;
        Geometry {
            zones,
            heads,
            by_heads: Divisor::new(heads),
            revolution_ns,
            head_switch_ns: model.head_switch_ns,
            track_seek_ns: model.track_seek_ns,
            seek_ns_per_root: (model.full_seek_ns.saturating_sub(model.track_seek_ns)) as f64
                / longest.sqrt(),
        }
    }

    fn zone(&self, byte: u64) -> &Zone {
        let after = self.zones.partition_point(|zone| zone.first_byte <= byte);
        &self.zones[after.saturating_sub(1)]
    }

    /// Cylinder of a byte, and the instant at which a drive that reads all from byte 0 begins to
    /// read the byte.
    pub(super) fn place(&self, byte: u64) -> Place {
        let zone = self.zone(byte);
        let within = byte - zone.first_byte;
        let (track, rest) = zone.by_track_bytes.divide(within);
        let (cylinder, head) = self.by_heads.divide(track);
        let ns = track * self.revolution_ns
            + (track - cylinder) * self.head_switch_ns
            + cylinder * self.track_seek_ns
            + zone.by_track_bytes.quotient(rest * self.revolution_ns);
        Place {
            cylinder: zone.first_cylinder + cylinder,
            head,
            reading_ns: zone.first_ns + ns,
        }
    }

    /// Nanoseconds to read a range without a stop, switches between its tracks included, the one
    /// after it not.
    pub(super) fn transfer_ns(&self, byte: u64, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        let last = byte + length - 1;
        let zone = self.zone(last);
        let on_track = zone.by_track_bytes.remainder(last - zone.first_byte);
        let track_ns = self.place(last - on_track).reading_ns;
        let rest_ns = zone
            .by_track_bytes
            .quotient((on_track + 1) * self.revolution_ns);
        track_ns + rest_ns - self.place(byte).reading_ns
    }

    /// First byte that a drive has not read `ns` after it began to read at `byte` without a stop,
    /// but at most `end`.
    pub(super) fn reached(&self, byte: u64, ns: u64, end: u64) -> u64 {
        let wanted = self.place(byte).reading_ns + ns;
        let after = self.zones.partition_point(|zone| zone.first_ns <= wanted);
        let zone = &self.zones[after.saturating_sub(1)];
        let within = wanted - zone.first_ns;
        let track_ns = self.revolution_ns + self.head_switch_ns;
        let cylinder_ns = self.heads * track_ns - self.head_switch_ns + self.track_seek_ns;
        let (cylinder, rest) = (within / cylinder_ns, within % cylinder_ns);
        let head = (rest / track_ns).min(self.heads - 1);
        let on_track = (rest - head * track_ns).min(self.revolution_ns);
        let track = cylinder * self.heads + head;
        let bytes = track * zone.track_bytes + on_track * zone.track_bytes / self.revolution_ns;
        (zone.first_byte + bytes).clamp(byte, end.max(byte))
    }

    /// Nanoseconds to move over one or more cylinders, settling included.
    pub(super) fn seek_ns(&self, cylinders: u64) -> u64 {
        let further = cylinders.saturating_sub(1) as f64;
        self.track_seek_ns + (self.seek_ns_per_root * further.sqrt()) as u64
    }
}

/// Where a byte lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) cylinder: u64,
    pub(super) head: u64,
    pub(super) reading_ns: u64,
}
