//! Ages of several writes to one place: only some can belong to the file that later owns it.

use crate::track::runs::Runs;

/// Age of a write among several writes to one place whose owner is not yet known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// No later write to the place.
    Newest,
    /// Overwritten at the same time, as far as the times can be distinguished.
    Overwritten,
    /// Overwritten at a later time, possibly by another file.
    OfBefore,
}

/// Writes to each place, with their times.
#[derive(Debug)]
pub struct Newer<T>(Runs<T>);

impl<T> Default for Newer<T> {
    fn default() -> Newer<T> {
        Newer(Runs::default())
    }
}

impl<T: Copy + Ord> Newer<T> {
    /// Adds a write of the range at `time`. Writes are added from the newest to the oldest.
    pub fn add(&mut self, start: u64, end: u64, time: T) -> Age {
        let before = self.0.take(start, end);
        let newest = before.into_iter().map(|(_, _, time)| time).max();
        self.0.insert(start, end, newest.unwrap_or(time));
        match newest {
            None => Age::Newest,
            Some(newest) if newest == time => Age::Overwritten,
            Some(_) => Age::OfBefore,
        }
    }
}
