//! Tracks, zones and the seek curve of a hard disk.
//!
//! Tracks are skewed by exactly the time of a head switch or a track-to-track seek, as in real
//! drives (for instance Fujitsu MAS3735 product manual, 3.2: "the first logical data block in each
//! track is shifted by the number of sectors corresponding to the switching time"). One function
//! therefore describes both place and angle: the instant at which a drive that reads from byte 0 on
//! without stopping begins to read a byte. The remainder of this instant modulo a revolution is the
//! angle of the byte.

use super::parameters::Mechanics;
use crate::divisor::Divisor;

/// Cylinders of equal track length.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_byte: u64,
    /// End of the zone, where the next one begins. No zone follows the last one.
    end_byte: u64,
    first_cylinder: u64,
    /// Instant at which a drive that reads continuously from byte 0 begins to read this zone.
    first_ns: u64,
    track_bytes: u64,
    by_track_bytes: Divisor,
}

#[derive(Debug, Clone)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    /// The zone of each byte whose number is a multiple of 2^`zone_shift`.
    zone_index: Vec<u8>,
    zone_shift: u32,
    heads: u64,
    by_heads: Divisor,
    revolution_ns: u64,
    by_revolution: Divisor,
    head_switch_ns: u64,
    track_seek_ns: u64,
    /// Time to read a track and switch to the next one of its cylinder.
    track_ns: u64,
    by_track_ns: Divisor,
    by_cylinder_ns: Divisor,
    /// Nanoseconds of a seek over `d` cylinders, beyond a track-to-track seek, ÷ √(d − 1).
    seek_ns_per_root: f64,
    roots_per_seek_ns: f64,
}

impl Geometry {
    /// Creates the geometry of a disk of at least `capacity_bytes`. A disk larger than the model's
    /// has more cylinders in each zone.
    pub(super) fn new(model: &Mechanics, capacity_bytes: u64) -> Geometry {
        let capacity_bytes = capacity_bytes.max(model.capacity_bytes);
        let (count, heads) = (u64::from(model.zones), u64::from(model.heads));
        let lengths: Vec<u64> = (0..count).map(|zone| model.track_bytes(zone)).collect();
        let cylinder_of_each: u64 = lengths.iter().map(|length| length * heads).sum();
        let zone_cylinders = capacity_bytes.div_ceil(cylinder_of_each).max(1);
        let revolution_ns = model.revolution_ns;
        let track_ns = revolution_ns + model.head_switch_ns;
        let cylinder_ns = heads * track_ns - model.head_switch_ns + model.track_seek_ns;
        let mut zones = Vec::with_capacity(lengths.len());
        let mut first_byte = 0;
        for (number, track_bytes) in (0..).zip(lengths) {
            let end_byte = first_byte + zone_cylinders * heads * track_bytes;
            zones.push(Zone {
                first_byte,
                end_byte,
                first_cylinder: number * zone_cylinders,
                first_ns: number * zone_cylinders * cylinder_ns,
                track_bytes,
                by_track_bytes: Divisor::new(track_bytes),
            });
            first_byte = end_byte;
        }
        if let Some(last) = zones.last_mut() {
            last.end_byte = u64::MAX;
        }
        let (zone_index, zone_shift) = index(&zones, first_byte);
        let cylinders = zone_cylinders * count;
        let longest = cylinders.saturating_sub(2).max(1) as f64;
        let slope_ns = model.full_seek_ns.saturating_sub(model.track_seek_ns) as f64;
        Geometry {
            zones,
            zone_index,
            zone_shift,
            heads,
            by_heads: Divisor::new(heads),
            revolution_ns,
            by_revolution: Divisor::new(revolution_ns),
            head_switch_ns: model.head_switch_ns,
            track_seek_ns: model.track_seek_ns,
            track_ns,
            by_track_ns: Divisor::new(track_ns),
            by_cylinder_ns: Divisor::new(cylinder_ns),
            seek_ns_per_root: slope_ns / longest.sqrt(),
            roots_per_seek_ns: longest.sqrt() / slope_ns,
        }
    }

    #[inline]
    fn zone(&self, byte: u64) -> &Zone {
        let step = (byte >> self.zone_shift) as usize;
        let mut at = usize::from(self.zone_index[step.min(self.zone_index.len() - 1)]);
        while self.zones[at].end_byte <= byte {
            at += 1;
        }
        &self.zones[at]
    }

    /// Returns the cylinder and head of a byte, and the instant at which a drive that reads
    /// continuously from byte 0 begins to read it.
    #[inline]
    pub(super) fn place(&self, byte: u64) -> Place {
        self.place_after(byte, 0)
    }

    /// Returns the cylinder and head of the byte before `end`, and the instant at which a drive
    /// that reads continuously from byte 0 has read it. The instant excludes a switch to another
    /// track after this byte.
    #[inline]
    pub(super) fn place_before(&self, end: u64) -> Place {
        self.place_after(end.saturating_sub(1), 1)
    }

    /// Returns the place of a byte, at the instant at which `bytes` from there on are read.
    #[inline]
    fn place_after(&self, byte: u64, bytes: u64) -> Place {
        let zone = self.zone(byte);
        let (track, rest) = zone.by_track_bytes.divide(byte - zone.first_byte);
        let (cylinder, head) = self.by_heads.divide(track);
        let track_ns = track * self.revolution_ns
            + (track - cylinder) * self.head_switch_ns
            + cylinder * self.track_seek_ns;
        let on_track_ns = zone
            .by_track_bytes
            .quotient((rest + bytes) * self.revolution_ns);
        Place {
            cylinder: zone.first_cylinder + cylinder,
            head,
            reading_ns: zone.first_ns + track_ns + on_track_ns,
        }
    }

    /// Returns the first byte that a drive has not yet read `ns` after it began to read
    /// continuously at `byte`, but at most `end`.
    #[inline]
    pub(super) fn reached(&self, byte: u64, ns: u64, end: u64) -> u64 {
        if ns == 0 {
            return byte;
        }
        let wanted = self.place(byte).reading_ns + ns;
        let after = self.zones.partition_point(|zone| zone.first_ns <= wanted);
        let zone = &self.zones[after.saturating_sub(1)];
        let (cylinder, rest) = self.by_cylinder_ns.divide(wanted - zone.first_ns);
        let head = self.by_track_ns.quotient(rest).min(self.heads - 1);
        let on_track = (rest - head * self.track_ns).min(self.revolution_ns);
        let track = cylinder * self.heads + head;
        let bytes =
            track * zone.track_bytes + self.by_revolution.quotient(on_track * zone.track_bytes);
        (zone.first_byte + bytes).clamp(byte, end.max(byte))
    }

    /// Returns the nanoseconds needed to move over one or more cylinders, settling included.
    #[inline]
    pub(super) fn seek_ns(&self, cylinders: u64) -> u64 {
        // Processors convert signed integers in one instruction, and the numbers are far below 2⁶³.
        let further = cylinders.saturating_sub(1) as i64 as f64;
        self.track_seek_ns + (self.seek_ns_per_root * further.sqrt()) as i64 as u64
    }

    /// Returns a number of cylinders such that moving over more takes at least `ns`.
    #[inline]
    pub(super) fn within(&self, ns: u64) -> u64 {
        match ns.checked_sub(self.track_seek_ns + 1) {
            None => 0,
            Some(further_ns) => {
                let root = (further_ns + 2) as i64 as f64 * self.roots_per_seek_ns;
                // Compensates the rounding of the float; infinity becomes the largest number.
                (root * root * 1.000_001) as i64 as u64 + 2
            }
        }
    }
}

/// Builds a table of the zone at every multiple of a power of two bytes, and returns it with the
/// exponent of that power. The power is chosen so that the table has one to two thousand entries.
fn index(zones: &[Zone], bytes: u64) -> (Vec<u8>, u32) {
    let shift = (bytes >> 10).max(1).ilog2();
    let zone_of = |step: u64| {
        let after = zones.partition_point(|zone| zone.first_byte <= step << shift);
        // A model has at most 256 zones.
        after.saturating_sub(1) as u8
    };
    ((0..=bytes >> shift).map(zone_of).collect(), shift)
}

/// Location of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) cylinder: u64,
    pub(super) head: u64,
    pub(super) reading_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, model::Kind};
    use proptest::prelude::*;

    fn geometry(zones: u32, heads: u32, capacity_bytes: u64) -> Geometry {
        let text = format!(
            "[latency]\nmodel = 'hard-disk'\ncapacity_bytes = {capacity_bytes}\nrpm = 7200\n\
             heads = {heads}\nzones = {zones}\nouter_track_bytes = 1000003\n\
             inner_track_bytes = 512000\nhead_switch_us = 800\ntrack_seek_us = 1000\n\
             full_seek_us = 15000\ninterface_bytes_per_s = 300000000"
        );
        let Kind::HardDisk(model) = Model::parse("test", &text).unwrap().kind else {
            panic!("not a hard disk");
        };
        Geometry::new(&model.mechanics, 0)
    }

    proptest! {
        #[test]
        fn the_index_finds_the_zone_of_each_byte(
            zones in 1u32..=256, heads in 1u32..8, capacity in 20u32..45, byte in any::<u64>(),
        ) {
            let geometry = geometry(zones, heads, 1 << capacity);
            for byte in [byte >> 20, byte % (1 << capacity), (1 << capacity) - 1] {
                let zones = &geometry.zones;
                let after = zones.partition_point(|zone| zone.first_byte <= byte);
                prop_assert_eq!(geometry.zone(byte).first_byte, zones[after - 1].first_byte);
            }
        }

        #[test]
        fn no_seek_over_more_cylinders_is_shorter(
            zones in 1u32..50, capacity in 25u32..45, ns in 0u64..20_000_000, more in 1u64..1000,
        ) {
            let geometry = geometry(zones, 4, 1 << capacity);
            prop_assert!(geometry.seek_ns(geometry.within(ns) + more) >= ns);
        }
    }
}
