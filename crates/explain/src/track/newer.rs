//! Of several writes to one place, which can be of the file that turns out to have it.

use crate::track::runs::Runs;

/// Whether a place was written again before it was known whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// Not that.
    Newest,
    /// Again at the same time, as far as time is told apart.
    Overwritten,
    /// Again at a later time: by another file, perhaps.
    OfBefore,
}

/// What was written to a place, and when.
#[derive(Debug)]
pub struct Newer<T>(Runs<T>);

impl<T> Default for Newer<T> {
    fn default() -> Newer<T> {
        Newer(Runs::default())
    }
}

impl<T: Copy + Ord> Newer<T> {
    /// The range was written at `time`, after all that was not added before it.
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
