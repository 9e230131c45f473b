//! The log: records are split into regions of items, and the stripped regions are put back where
//! they were written.

use super::item::{self, Contents};
use crate::{Part, Secret, checksum};
use fscost_ondisk::bytes::is_zero;
use fscost_ondisk::xfs::log_item::{self, Items, MOST_TRANSACTIONS};
use fscost_ondisk::xfs::log_record::{
    CHECKSUM_AT, COMMIT, HEADER_BYTES, Operation, Record, Records, SECTOR, START, UNMOUNT,
    is_header, swap_words,
};
use fscost_ondisk::xfs::superblock::Geometry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Location where a piece of a record was written: the event and its first sector.
type Spot = (u64, usize);

/// A transaction and the places of its current item's bytes: record number and byte range.
#[derive(Default)]
struct Transaction {
    items: Items,
    places: Vec<(u64, Range<usize>)>,
}

/// Sectors of a write.
type Sectors = BTreeMap<usize, Option<Box<[u8; SECTOR]>>>;

/// The log of one file system.
pub struct Log {
    /// Bytes of the log on its disk.
    area: Range<u64>,
    records: Records<Spot>,
    /// Records with incomplete items, and their bytes in stripped form.
    live: BTreeMap<u64, Record<Spot>>,
    new: BTreeMap<u64, Vec<u8>>,
    next_record: u64,
    transactions: HashMap<u32, Transaction>,
    contents: Contents,
    /// Understood sectors of writes, by event: new content, or `None` if the sector is unchanged.
    sectors: HashMap<u64, Sectors>,
}

impl Log {
    /// Creates an empty log.
    pub fn new(geometry: &Geometry) -> Log {
        let sectors = geometry.log_bytes / SECTOR as u64;
        Log {
            area: geometry.log_offset..geometry.log_offset.saturating_add(geometry.log_bytes),
            records: Records::new(sectors, geometry.log_uuid),
            live: BTreeMap::new(),
            new: BTreeMap::new(),
            next_record: 0,
            transactions: HashMap::new(),
            contents: Contents::new(geometry.clone()),
            sectors: HashMap::new(),
        }
    }

    /// Reads a write to the log's disk.
    pub fn write(&mut self, event: u64, offset: u64, content: &[u8], secret: &mut Secret) {
        let mut done = 0;
        while done + SECTOR <= content.len() {
            let at = offset + done as u64;
            let in_log = self.area.contains(&at).then(|| {
                let sector = (at - self.area.start) / SECTOR as u64;
                let spot = (event, done / SECTOR);
                self.records.write(sector, &content[done..], |_| spot)
            });
            done += in_log.flatten().unwrap_or(SECTOR);
        }
        while let Some(record) = self.records.next(false) {
            self.record(record, secret);
        }
    }

    /// Reads a write outside the log. Items contain changes to such writes.
    pub fn home(&mut self, offset: u64, content: &[u8]) {
        self.contents.write(offset, content);
    }

    /// Ends the reading. Incomplete items are treated as not understood.
    pub fn finish(&mut self, secret: &mut Secret) {
        while let Some(record) = self.records.next(true) {
            self.record(record, secret);
        }
        for transaction in std::mem::take(&mut self.transactions).into_values() {
            self.give_up(transaction, secret);
        }
        self.emit();
    }

    fn record(&mut self, record: Record<Spot>, secret: &mut Secret) {
        let number = self.next_record;
        self.next_record += 1;
        self.new.insert(number, record.bytes.clone());
        let mut at = record.content_at;
        for operation in record.operations() {
            at = operation.range.end;
            let (id, flags) = (operation.id, operation.flags);
            if flags & START != 0 {
                self.begin(id, secret);
            } else if flags & (COMMIT | UNMOUNT) != 0 {
                if let Some(transaction) = self.transactions.remove(&id) {
                    self.give_up(transaction, secret);
                }
            } else {
                self.region(&operation, number, secret);
            }
        }
        if let Some(bytes) = self.new.get_mut(&number) {
            // Padding at the end of a record.
            secret.bytes(&mut bytes[at..]);
        }
        self.live.insert(number, record);
        self.emit();
    }

    fn begin(&mut self, id: u32, secret: &Secret) {
        let crowded = self.transactions.len() >= MOST_TRANSACTIONS;
        let oldest = self.transactions.keys().min().copied().filter(|_| crowded);
        for id in oldest.into_iter().chain([id]) {
            if let Some(transaction) = self.transactions.remove(&id) {
                self.give_up(transaction, secret);
            }
        }
        self.transactions.insert(id, Transaction::default());
    }

    /// Reads a region of this record, or a part of one.
    fn region(&mut self, operation: &Operation<'_>, number: u64, secret: &mut Secret) {
        let end = operation.range.end;
        let range = end - operation.payload.len()..end;
        let bytes = self.new.get_mut(&number);
        let payload = bytes.and_then(|bytes| bytes.get_mut(range.clone()));
        let Some(transaction) = self.transactions.get_mut(&operation.id) else {
            return secret.bytes(payload.unwrap_or_default());
        };
        let part = transaction.items.take(operation);
        if let log_item::Part::Header(own) = part {
            return secret.bytes(&mut payload.unwrap_or_default()[own..]);
        }
        transaction.places.push((number, range));
        if part == log_item::Part::LastOfItem {
            let Items { regions, .. } = &mut transaction.items;
            item::strip(regions, &mut self.contents, secret);
            let places = std::mem::take(&mut transaction.places);
            put_back(&mut self.new, regions.bytes(), places);
            regions.clear();
        }
    }

    /// Strips a transaction whose current item will not be completed.
    fn give_up(&mut self, mut transaction: Transaction, secret: &Secret) {
        let regions = &mut transaction.items.regions;
        item::rest(regions, secret);
        put_back(&mut self.new, regions.bytes(), transaction.places);
    }

    /// Finishes the records that no incomplete item needs.
    fn emit(&mut self) {
        let transactions = self.transactions.values();
        let places = transactions.flat_map(|transaction| &transaction.places);
        let needed = places.map(|(number, _)| *number).min();
        let needed = needed.unwrap_or(self.next_record);
        let later = self.live.split_off(&needed);
        for (number, record) in std::mem::replace(&mut self.live, later) {
            let bytes = self.new.remove(&number).unwrap_or_default();
            self.place(record, bytes);
        }
    }

    /// Assigns a record's sectors, in their on-disk form, to the writes that contained them.
    fn place(&mut self, record: Record<Spot>, mut new: Vec<u8>) {
        let mut old = record.bytes.clone();
        for bytes in [&mut old, &mut new] {
            swap_words(bytes, record.content_at);
        }
        let covered = |bytes: &[u8]| -> Vec<u8> {
            let ranges = record.covered();
            ranges.flat_map(|range| bytes[range].to_vec()).collect()
        };
        let change = checksum::change(&covered(&old), &covered(&new));
        checksum::apply(&mut new, CHECKSUM_AT, change);
        for piece in &record.pieces {
            let (event, first) = piece.place;
            let (old, new) = (&old[piece.range.clone()], &new[piece.range.clone()]);
            let sectors = old.as_chunks().0.iter().zip(new.as_chunks().0);
            let changed = sectors.map(|(old, new)| (old != new).then(|| Box::new(*new)));
            let known = self.sectors.entry(event).or_default();
            known.extend((first..).zip(changed));
        }
    }

    /// Strips a part of a write to the log.
    pub fn strip(&self, part: &Part, bytes: &mut [u8], secret: &Secret) {
        let known = self.sectors.get(&part.event);
        let mut done = 0;
        while done < bytes.len() {
            let at = part.within + done;
            let (number, within) = (at / SECTOR, at % SECTOR);
            let count = (SECTOR - within).min(bytes.len() - done);
            let piece = &mut bytes[done..done + count];
            match known.and_then(|sectors| sectors.get(&number)) {
                Some(Some(new)) => piece.copy_from_slice(&new[within..within + count]),
                Some(None) => {}
                // The kernel overwrites leftovers of an old cycle with headers without operations.
                // No content follows such a header.
                None if is_header(piece) && count == SECTOR => {
                    secret.bytes(&mut piece[HEADER_BYTES..]);
                }
                None if is_zero(piece) => {}
                None => secret.sectors(piece),
            }
            done += count;
        }
    }
}

/// Copies an item's consecutive regions back to their original places.
fn put_back(
    records: &mut BTreeMap<u64, Vec<u8>>,
    mut regions: &[u8],
    places: Vec<(u64, Range<usize>)>,
) {
    for (number, range) in places {
        let Some((part, rest)) = regions.split_at_checked(range.len()) else {
            return;
        };
        regions = rest;
        if let Some(bytes) = records.get_mut(&number) {
            bytes[range].copy_from_slice(part);
        }
    }
}
