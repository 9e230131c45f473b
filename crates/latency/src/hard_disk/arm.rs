//! Position of the arm and the duration of its movements.

use super::{geometry::Geometry, parameters::Mechanics};
use crate::divisor::Divisor;

/// The arm and the medium below it.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    pub(super) geometry: Geometry,
    pub(super) revolution_ns: u64,
    by_revolution: Divisor,
    head_switch_ns: u64,
    write_settle_ns: u64,
    /// Angle of the medium at instant 0, in nanoseconds of rotation.
    phase_ns: u64,
    cylinder: u64,
    head: u64,
    /// End of the range that was last read or written.
    pub(super) at_byte: u64,
}

/// Location of a byte in the form the arm needs. A command including its location fits one cache
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spot {
    cylinder: u64,
    reading_ns: u64,
    /// Angle in nanoseconds. Less than the time of a revolution, which is below a second.
    angle_ns: u32,
    head: u32,
}

/// A range on the medium to read or write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) is_write: bool,
    pub(super) spot: Spot,
}

impl Arm {
    pub(super) fn new(model: &Mechanics, capacity_bytes: u64, seed: u64) -> Arm {
        Arm {
            geometry: Geometry::new(model, capacity_bytes),
            revolution_ns: model.revolution_ns,
            by_revolution: Divisor::new(model.revolution_ns),
            head_switch_ns: model.head_switch_ns,
            write_settle_ns: model.write_settle_ns,
            phase_ns: crate::seeded(seed) % model.revolution_ns,
            cylinder: 0,
            head: 0,
            at_byte: 0,
        }
    }

    pub(super) fn spot(&self, byte: u64) -> Spot {
        let place = self.geometry.place(byte);
        Spot {
            cylinder: place.cylinder,
            reading_ns: place.reading_ns,
            angle_ns: self.by_revolution.remainder(place.reading_ns) as u32,
            head: place.head as u32,
        }
    }

    pub(super) fn target(&self, first: u64, length: u64, is_write: bool) -> Target {
        Target {
            first,
            end: first + length,
            is_write,
            spot: self.spot(first),
        }
    }

    /// Returns the number of cylinders between the arm and a target.
    #[inline]
    pub(super) fn cylinders_to(&self, target: &Target) -> u64 {
        target.spot.cylinder.abs_diff(self.cylinder)
    }

    /// Returns the instant at which the target's first byte passes under the head if the arm starts
    /// at `from_ns`.
    #[inline]
    pub(super) fn arrival_ns(&self, from_ns: u64, target: &Target) -> u64 {
        let there_ns = from_ns + self.move_ns(target);
        let angle_ns = self.by_revolution.remainder(there_ns + self.phase_ns);
        let wanted_ns = u64::from(target.spot.angle_ns);
        let has_passed = wanted_ns < angle_ns;
        // An unpredictable branch would cost more than this arithmetic.
        there_ns + wanted_ns + u64::from(has_passed) * self.revolution_ns - angle_ns
    }

    #[inline]
    fn move_ns(&self, target: &Target) -> u64 {
        let cylinders = self.cylinders_to(target);
        if cylinders == 0 {
            return u64::from(u64::from(target.spot.head) != self.head) * self.head_switch_ns;
        }
        let settles = target.is_write && cylinders > 1;
        self.geometry.seek_ns(cylinders) + u64::from(settles) * self.write_settle_ns
    }

    /// Reads or writes the target from `arrival_ns` on, and returns the instant at which it is
    /// done.
    pub(super) fn transfer(&mut self, arrival_ns: u64, target: &Target) -> u64 {
        let last = self.geometry.place_before(target.end);
        (self.cylinder, self.head, self.at_byte) = (last.cylinder, last.head, target.end);
        if target.end == target.first {
            return arrival_ns;
        }
        arrival_ns + last.reading_ns - target.spot.reading_ns
    }

    /// Moves the arm to the place where the byte before `end` was read or written.
    pub(super) fn rest_at(&mut self, end: u64) {
        if end != self.at_byte {
            let place = self.geometry.place_before(end);
            (self.cylinder, self.head, self.at_byte) = (place.cylinder, place.head, end);
        }
    }
}
