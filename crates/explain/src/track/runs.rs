//! Owners of the parts of a disk, as runs.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
struct Run<T> {
    end: u64,
    owner: T,
}

/// Runs without overlap: the newest wins.
#[derive(Debug)]
pub struct Runs<T>(BTreeMap<u64, Run<T>>);

impl<T> Default for Runs<T> {
    fn default() -> Runs<T> {
        Runs(BTreeMap::new())
    }
}

impl<T: Copy> Runs<T> {
    /// Removes and returns the runs in a range, cut to the range, in order.
    pub fn take(&mut self, start: u64, end: u64) -> Vec<(u64, u64, T)> {
        let Some((&at, &run)) = self.0.range(..end).next_back() else {
            return Vec::new();
        };
        if run.end <= start {
            return Vec::new();
        }
        // Extents mostly come and go as a whole.
        if at == start && run.end <= end {
            self.0.remove(&at);
            return vec![(at, run.end, run.owner)];
        }
        self.split(start);
        self.split(end);
        let mut taken = Vec::new();
        while let Some((&at, _)) = self.0.range(start..end.max(start)).next()
            && let Some(run) = self.0.remove(&at)
        {
            taken.push((at, run.end, run.owner));
        }
        taken
    }

    /// Splits the run that crosses `at`, if there is one.
    fn split(&mut self, at: u64) {
        if let Some((_, run)) = self.0.range_mut(..at).next_back()
            && run.end > at
        {
            let rest = *run;
            run.end = at;
            self.0.insert(at, rest);
        }
    }

    /// Assigns the range to `owner`. No other run may overlap it.
    pub fn insert(&mut self, start: u64, end: u64, owner: T) {
        self.0.insert(start, Run { end, owner });
    }

    /// Returns the owners within a range.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = T> {
        let first = self.0.range(..start).next_back();
        let first = first.filter(|(_, run)| run.end > start);
        let inside = self.0.range(start..end.max(start));
        first.into_iter().chain(inside).map(|(_, run)| run.owner)
    }

    /// Returns the end of the run at `at`, and the run's owner.
    pub fn at(&self, at: u64) -> Option<(u64, T)> {
        let (_, run) = self.0.range(..=at).next_back()?;
        (run.end > at).then_some((run.end, run.owner))
    }

    /// Returns the start of the next run after `at`.
    pub fn next(&self, at: u64) -> Option<u64> {
        self.0.range(at + 1..).next().map(|(&start, _)| start)
    }
}
