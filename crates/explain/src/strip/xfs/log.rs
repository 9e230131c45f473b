//! The log: records become regions of items; what is private in these goes back to where it was
//! written.

use super::be32;
use super::item::{self, Contents};
use super::record::{MAGIC, Record, Records, SECTOR};
use crate::bytes::{le16, le32};
use crate::families::xfs::Geometry;
use crate::strip::{Part, Secret, is_zero};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// `xlog_op_header`, and flags of operations.
const HEADER_BYTES: usize = 12;
const START: u8 = 1;
const COMMIT: u8 = 2;
const CONTINUES: u8 = 4;
const CONTINUED: u8 = 8;
const UNMOUNT: u8 = 32;
/// `XFS_TRANS_HEADER_MAGIC`, and its bytes.
const TRANSACTION_MAGIC: u32 = 0x5452_414e;
const TRANSACTION_HEADER_BYTES: usize = 16;
const MOST_ITEM_BYTES: usize = 4 << 20;
const MOST_TRANSACTIONS: usize = 64;

/// An item as far as it has come: its regions, and where their bytes are: the record, and bytes of
/// it.
#[derive(Default)]
struct Item {
    regions: Vec<Vec<u8>>,
    places: Vec<Vec<(u64, Range<usize>)>>,
    bytes: usize,
}

#[derive(Default)]
struct Transaction {
    header: usize,
    partial: bool,
    item: Item,
}

/// Sectors of a write.
type Sectors = BTreeMap<u32, Option<Box<[u8; SECTOR]>>>;

/// The log of one file system.
pub struct Log {
    begin: u64,
    bytes: u64,
    records: Records,
    /// Records that items go on from.
    live: BTreeMap<u64, Record>,
    next_record: u64,
    transactions: HashMap<u32, Transaction>,
    contents: Contents,
    /// Sectors of writes that are understood, by event: what they become, or nothing if they stay.
    sectors: HashMap<u64, Sectors>,
}

impl Log {
    /// At these bytes of its disk.
    pub fn new(begin: u64, bytes: u64, uuid: [u8; 16]) -> Log {
        Log {
            begin,
            bytes,
            records: Records::new(bytes / SECTOR as u64, uuid),
            live: BTreeMap::new(),
            next_record: 0,
            transactions: HashMap::new(),
            contents: Contents::default(),
            sectors: HashMap::new(),
        }
    }

    /// A write to the log's disk is read.
    pub fn write(
        &mut self,
        event: u64,
        offset: u64,
        content: &[u8],
        geometry: &Geometry,
        secret: &mut Secret,
    ) {
        let end = self.begin.saturating_add(self.bytes);
        for (number, sector) in content.chunks_exact(SECTOR).enumerate() {
            let at = offset + (number * SECTOR) as u64;
            if let (true, Some(sector)) = ((self.begin..end).contains(&at), sector.first_chunk()) {
                let in_log = (at - self.begin) / SECTOR as u64;
                self.records.write(in_log, sector, (event, number as u32));
            }
        }
        while let Some(record) = self.records.next(false) {
            self.record(record, geometry, secret);
        }
    }

    /// A write outside the log is read: items bring changes to what was written.
    pub fn home(&mut self, offset: u64, content: &[u8]) {
        self.contents.write(offset, content);
    }

    /// No more will come: what is not complete is not understood.
    pub fn finish(&mut self, geometry: &Geometry, secret: &mut Secret) {
        while let Some(record) = self.records.next(true) {
            self.record(record, geometry, secret);
        }
        for transaction in std::mem::take(&mut self.transactions).into_values() {
            self.give_up(transaction.item, secret);
        }
        self.emit();
    }

    fn record(&mut self, record: Record, geometry: &Geometry, secret: &mut Secret) {
        let number = self.next_record;
        self.next_record += 1;
        let (mut at, operations) = (record.content_at, record.operations);
        self.live.insert(number, record);
        for _ in 0..operations {
            let bytes = self.live.get(&number).map_or(&[][..], |r| &r.bytes);
            let Some(header) = bytes.get(at..at + HEADER_BYTES) else {
                break;
            };
            let (id, length, flags) = (be32(header, 0), be32(header, 4) as usize, header[9]);
            let range = at + HEADER_BYTES..(at + HEADER_BYTES).saturating_add(length);
            if range.end > bytes.len() {
                break;
            }
            at = range.end;
            if flags & START != 0 {
                self.begin(id, secret);
            } else if flags & (COMMIT | UNMOUNT) != 0 {
                if let Some(transaction) = self.transactions.remove(&id) {
                    self.give_up(transaction.item, secret);
                }
            } else {
                self.region(id, flags, (number, range), geometry, secret);
            }
        }
        if let Some(record) = self.live.get_mut(&number) {
            // Rounding up.
            secret.bytes(&mut record.bytes[at..]);
        }
        self.emit();
    }

    fn begin(&mut self, id: u32, secret: &Secret) {
        let crowded = self.transactions.len() >= MOST_TRANSACTIONS;
        let oldest = self.transactions.keys().min().copied().filter(|_| crowded);
        for id in oldest.into_iter().chain([id]) {
            if let Some(transaction) = self.transactions.remove(&id) {
                self.give_up(transaction.item, secret);
            }
        }
        self.transactions.insert(id, Transaction::default());
    }

    /// A region, or a part of one.
    fn region(
        &mut self,
        id: u32,
        flags: u8,
        (number, range): (u64, Range<usize>),
        geometry: &Geometry,
        secret: &mut Secret,
    ) {
        let record = self.live.get_mut(&number);
        let Some(payload) = record.and_then(|r| r.bytes.get_mut(range.clone())) else {
            return;
        };
        let Some(transaction) = self.transactions.get_mut(&id) else {
            return secret.bytes(payload);
        };
        let continued = flags & CONTINUED != 0 && transaction.partial;
        transaction.partial = flags & CONTINUES != 0;
        if transaction.header < TRANSACTION_HEADER_BYTES {
            let begins = transaction.header > 0 || le32(payload, 0) == TRANSACTION_MAGIC;
            if begins {
                let left = TRANSACTION_HEADER_BYTES - transaction.header;
                transaction.header += payload.len();
                let own = left.min(payload.len());
                return secret.bytes(&mut payload[own..]);
            }
            transaction.header = TRANSACTION_HEADER_BYTES;
        }
        let item = &mut transaction.item;
        item.bytes += payload.len();
        let place = (number, range);
        match (item.regions.last_mut(), item.places.last_mut()) {
            (Some(region), Some(places)) if continued => {
                region.extend_from_slice(payload);
                places.push(place);
            }
            _ => {
                item.regions.push(payload.to_vec());
                item.places.push(vec![place]);
            }
        }
        // Every format begins with its type and the number of regions.
        let count = item
            .regions
            .first()
            .map_or(0, |first| usize::from(le16(first, 2)));
        let is_complete = !transaction.partial && item.regions.len() >= count;
        if is_complete {
            let mut item = std::mem::take(item);
            item::strip(&mut item.regions, &mut self.contents, geometry, secret);
            self.put_back(item);
        } else if item.bytes >= MOST_ITEM_BYTES {
            let item = std::mem::take(item);
            self.give_up(item, secret);
        }
    }

    /// An item that will not be complete. Its format says nothing private.
    fn give_up(&mut self, mut item: Item, secret: &Secret) {
        if let Some((_, regions)) = item.regions.split_first_mut() {
            item::rest(regions, secret);
        }
        self.put_back(item);
    }

    fn put_back(&mut self, item: Item) {
        for (region, places) in item.regions.iter().zip(item.places) {
            let mut done = 0;
            for (number, range) in places {
                let part = &region[done..done + range.len()];
                done += range.len();
                if let Some(record) = self.live.get_mut(&number) {
                    record.bytes[range].copy_from_slice(part);
                }
            }
        }
    }

    /// Records that no item needs any more are as they will be.
    fn emit(&mut self) {
        let places = self
            .transactions
            .values()
            .flat_map(|t| t.item.places.iter().flatten());
        let needed = places.map(|(number, _)| *number).min();
        let later = match needed {
            Some(needed) => self.live.split_off(&needed),
            None => BTreeMap::new(),
        };
        for record in std::mem::replace(&mut self.live, later).into_values() {
            for ((event, sector), bytes) in record.sectors() {
                let sectors = self.sectors.entry(event).or_default();
                sectors.insert(sector, bytes.map(Box::new));
            }
        }
    }

    /// Write a part of the log.
    pub fn strip(&self, part: &Part, bytes: &mut [u8], secret: &Secret) {
        let known = self.sectors.get(&part.event);
        let mut done = 0;
        while done < bytes.len() {
            let at = part.within + done;
            let (number, within) = (at / SECTOR, at % SECTOR);
            let count = (SECTOR - within).min(bytes.len() - done);
            let piece = &mut bytes[done..done + count];
            match known.and_then(|sectors| sectors.get(&(number as u32))) {
                Some(Some(new)) => piece.copy_from_slice(&new[within..within + count]),
                Some(None) => {}
                // A header without operations, which the kernel writes over what an old cycle left,
                // has nothing behind it.
                None if piece.starts_with(&MAGIC) && count == SECTOR => {
                    secret.bytes(&mut piece[328..]);
                }
                None if is_zero(piece) => {}
                None => secret.sectors(piece),
            }
            done += count;
        }
    }
}
