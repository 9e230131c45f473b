//! Ordered ranges in short sorted arrays: most caches hold few ranges, and some hold many.

use super::arm::Spot;

/// Largest number of extents in an array; a larger array is split in two.
const MOST: usize = 128;

/// A dirty range and the location of its first byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) spot: Spot,
}

/// Disjoint ranges that do not touch, ordered by first byte.
#[derive(Debug, Clone)]
pub(super) struct Extents {
    /// One or more arrays. An array is empty only if it is the only one.
    arrays: Vec<Vec<Extent>>,
    count: usize,
}

/// A position among the extents: before the extent with index `at` of an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    array: usize,
    at: usize,
}

impl Extents {
    pub(super) fn new() -> Extents {
        Extents {
            arrays: vec![Vec::new()],
            count: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the position after all extents that begin at or before a byte.
    pub(super) fn after(&self, byte: u64) -> Position {
        let array = match self.arrays.len() {
            1 => 0,
            _ => {
                let first =
                    |array: &Vec<Extent>| array.first().is_none_or(|each| each.first <= byte);
                self.arrays.partition_point(first).saturating_sub(1)
            }
        };
        let at = self.arrays[array].partition_point(|each| each.first <= byte);
        Position { array, at }
    }

    /// Returns the extent before a position that [`after`](Extents::after) returned.
    pub(super) fn before(&self, position: Position) -> Option<&Extent> {
        self.arrays[position.array].get(position.at.checked_sub(1)?)
    }

    pub(super) fn before_mut(&mut self, position: Position) -> Option<&mut Extent> {
        self.arrays[position.array].get_mut(position.at.checked_sub(1)?)
    }

    /// Removes the extent before a position.
    pub(super) fn remove_before(&mut self, position: Position) {
        let array = &mut self.arrays[position.array];
        array.remove(position.at - 1);
        self.count -= 1;
        if array.is_empty() && self.arrays.len() > 1 {
            self.arrays.remove(position.array);
        }
    }

    /// Inserts an extent at a position.
    pub(super) fn insert(&mut self, position: Position, extent: Extent) {
        let array = &mut self.arrays[position.array];
        array.insert(position.at, extent);
        self.count += 1;
        if array.len() > MOST {
            let upper = array.split_off(MOST / 2);
            self.arrays.insert(position.array + 1, upper);
        }
    }

    /// Visits `most` extents in ascending order, starting with the first that begins at or after
    /// `from` and wrapping around to the lowest. Also passes the position after each extent.
    #[inline]
    pub(super) fn upwards(&self, from: u64, most: usize, mut visit: impl FnMut(&Extent, Position)) {
        let mut left = most.min(self.count);
        let Position { mut array, mut at } = match from.checked_sub(1) {
            Some(before) => self.after(before),
            None => Position { array: 0, at: 0 },
        };
        while left > 0 {
            let rest = &self.arrays[array][at..];
            let visited = &rest[..rest.len().min(left)];
            for (behind, extent) in (at + 1..).zip(visited) {
                visit(extent, Position { array, at: behind });
            }
            left -= visited.len();
            array = if array + 1 < self.arrays.len() {
                array + 1
            } else {
                0
            };
            at = 0;
        }
    }
}
