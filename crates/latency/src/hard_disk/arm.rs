//! Where the arm is, and how long it needs to be elsewhere.

use super::{
    geometry::{Geometry, Place},
    parameters::Mechanics,
};
use crate::divisor::Divisor;

/// The arm and the medium below it.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    pub(super) geometry: Geometry,
    pub(super) revolution_ns: u64,
    by_revolution: Divisor,
    head_switch_ns: u64,
    write_settle_ns: u64,
    /// Angle of the medium at instant 0, in nanoseconds of a revolution.
    phase_ns: u64,
    cylinder: u64,
    head: u64,
    /// End of what was read or written last.
    pub(super) at_byte: u64,
}

/// Where a byte is, as the arm needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spot {
    place: Place,
    angle_ns: u64,
}

/// A range on the medium that is to be read or written.
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
            place,
            angle_ns: self.by_revolution.remainder(place.reading_ns),
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

    /// When the target's first byte comes under the head, if the arm sets off at `from_ns`. None:
    /// later than `before_ns`.
    pub(super) fn arrival_ns(&self, from_ns: u64, target: &Target, before_ns: u64) -> Option<u64> {
        let there_ns = from_ns + self.move_ns(target);
        if there_ns >= before_ns {
            return None;
        }
        let angle_ns = self.by_revolution.remainder(there_ns + self.phase_ns);
        let wait_ns = match target.spot.angle_ns.checked_sub(angle_ns) {
            Some(wait_ns) => wait_ns,
            None => target.spot.angle_ns + self.revolution_ns - angle_ns,
        };
        Some(there_ns + wait_ns).filter(|&arrival_ns| arrival_ns < before_ns)
    }

    fn move_ns(&self, target: &Target) -> u64 {
        let (place, cylinders) = (
            target.spot.place,
            target.spot.place.cylinder.abs_diff(self.cylinder),
        );
        let settle_ns = if target.is_write && cylinders > 1 {
            self.write_settle_ns
        } else {
            0
        };
        match cylinders {
            0 if place.head == self.head => 0,
            0 => self.head_switch_ns,
            _ => self.geometry.seek_ns(cylinders) + settle_ns,
        }
    }

    /// Reads or writes the target from `arrival_ns` on, and returns the end.
    pub(super) fn transfer(&mut self, arrival_ns: u64, target: &Target) -> u64 {
        self.rest_at(target.end);
        arrival_ns
            + self
                .geometry
                .transfer_ns(target.first, target.end - target.first)
    }

    /// The arm stands where the byte before this one was read or written.
    pub(super) fn rest_at(&mut self, end: u64) {
        let place = self.geometry.place(end.saturating_sub(1));
        (self.cylinder, self.head, self.at_byte) = (place.cylinder, place.head, end);
    }
}
