//! What the disks hold without any pending unit, and which sectors these change.

use crate::{
    Cut,
    contents::{Contents, Sector},
    requests::Change,
};
use fscost_recording::{Location, SECTOR_BYTES};
use std::collections::BTreeMap;

/// What sectors add to the digest; those that are not there add nothing.
type Sectors = BTreeMap<Sector, u128>;

/// Units that change a sector, and what it adds to the digest after each.
type Changes = BTreeMap<Sector, Vec<(u32, u128)>>;

/// The disks after the first changes of a recording, which neither this cut nor a later one can
/// lose: the next cut begins here, instead of at the first change.
#[derive(Debug, Default)]
pub(crate) struct Base {
    /// How many changes these are.
    changes: usize,
    /// The cut that was here last.
    at_ns: u64,
    sectors: Sectors,
    sum: u128,
}

impl Base {
    /// Adds changes up to the first one that the cut may lose. An earlier cut begins anew.
    pub(crate) fn advance(&mut self, contents: &Contents, cut: &Cut<'_>) {
        let changes = &cut.requests.changes;
        let first = cut.pending.first();
        let pending = first.map_or(changes.len(), |unit| unit.change as usize);
        if cut.at_ns < self.at_ns || pending < self.changes {
            *self = Base::default();
        }
        self.at_ns = cut.at_ns;
        for change in &changes[self.changes..pending] {
            if !cut.is_kept(change, false) {
                break;
            }
            self.apply(contents, change);
            self.changes += 1;
        }
    }

    fn apply(&mut self, contents: &Contents, change: &Change) {
        let event = &change.event;
        for sector in within(&self.sectors, event.disk, event.offset, event.length) {
            let before = self.sectors.remove(&sector).unwrap_or_default();
            self.sum = self.sum.wrapping_sub(before);
        }
        for (sector, added) in written(contents, change, event.offset, event.length) {
            if added != 0 {
                self.sectors.insert(sector, added);
                self.sum = self.sum.wrapping_add(added);
            }
        }
    }
}

/// The changes after a base.
pub(crate) struct After<'a> {
    contents: &'a Contents,
    base: &'a Base,
    /// What those leave that the cut keeps.
    kept: Sectors,
    /// What the pending units change after the last change that the cut keeps.
    pub(crate) pending: Changes,
}

impl<'a> After<'a> {
    pub(crate) fn new(contents: &'a Contents, base: &'a Base, cut: &Cut<'_>) -> After<'a> {
        let mut after = After {
            contents,
            base,
            kept: Sectors::new(),
            pending: Changes::new(),
        };
        let mut units = (0u32..).zip(&cut.pending).peekable();
        let changes = cut.requests.changes.iter().enumerate();
        for (place, change) in changes.skip(base.changes) {
            let mut is_pending = false;
            while let Some((unit, part)) = units.next_if(|(_, part)| part.change as usize == place)
            {
                is_pending = true;
                after.lose(unit, change, part.offset, part.length);
            }
            if cut.is_kept(change, is_pending) {
                after.keep(change);
            }
        }
        after
    }

    /// Adds a change that the cut keeps.
    fn keep(&mut self, change: &Change) {
        let event = &change.event;
        for sector in within(&self.pending, event.disk, event.offset, event.length) {
            self.pending.remove(&sector);
        }
        if event.op.clears() {
            for sector in self.known(event.disk, event.offset, event.length) {
                self.kept.insert(sector, 0);
            }
        }
        let written = written(self.contents, change, event.offset, event.length);
        self.kept.extend(written);
    }

    /// Adds a pending unit of a change.
    fn lose(&mut self, unit: u32, change: &Change, offset: u64, length: u64) {
        let disk = change.event.disk;
        if change.event.op.clears() {
            // Elsewhere, the disk is zero already.
            let mut cleared = self.known(disk, offset, length);
            cleared.extend(within(&self.pending, disk, offset, length));
            cleared.sort_unstable();
            cleared.dedup();
            for sector in cleared {
                self.pending.entry(sector).or_default().push((unit, 0));
            }
        }
        for (sector, added) in written(self.contents, change, offset, length) {
            self.pending.entry(sector).or_default().push((unit, added));
        }
    }

    /// Returns the sectors of a range that may hold something without pending units.
    fn known(&self, disk: u16, offset: u64, length: u64) -> Vec<Sector> {
        let mut known = within(&self.base.sectors, disk, offset, length);
        known.extend(within(&self.kept, disk, offset, length));
        known
    }

    /// Returns what a sector adds without any pending unit.
    pub(crate) fn without(&self, sector: Sector) -> u128 {
        let kept = self.kept.get(&sector);
        let found = kept.or_else(|| self.base.sectors.get(&sector));
        found.copied().unwrap_or_default()
    }

    /// Returns the digest of the disks without any pending unit.
    pub(crate) fn sum(&self) -> u128 {
        self.kept
            .iter()
            .fold(self.base.sum, |sum, (sector, added)| {
                let before = self.base.sectors.get(sector).copied().unwrap_or_default();
                sum.wrapping_sub(before).wrapping_add(*added)
            })
    }
}

/// Returns the known sectors of a range.
fn within<T>(known: &BTreeMap<Sector, T>, disk: u16, offset: u64, length: u64) -> Vec<Sector> {
    let at = |offset: u64| Sector {
        disk,
        number: offset / SECTOR_BYTES,
    };
    let range = known.range(at(offset)..at(offset + length));
    range.map(|(sector, _)| *sector).collect()
}

/// Yields the sectors that a part of a change writes, and what each adds to the digest after that.
/// It writes none if it clears them.
fn written(
    contents: &Contents,
    change: &Change,
    offset: u64,
    length: u64,
) -> impl Iterator<Item = (Sector, u128)> {
    let event = change.event;
    let begin = Location {
        frame: change.frame,
        content_offset: event.content_offset + (offset - event.offset) as u32,
    };
    let sectors = match event.op.clears() {
        true => 0,
        false => length / SECTOR_BYTES,
    };
    (0..sectors).map(move |number| {
        let sector = Sector {
            disk: event.disk,
            number: offset / SECTOR_BYTES + number,
        };
        let location = begin.after(number * SECTOR_BYTES);
        (sector, contents.added(sector, location))
    })
}
