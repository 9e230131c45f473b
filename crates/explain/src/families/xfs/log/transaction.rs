//! Transactions: the operations of records are assembled, in order, into regions, and regions into
//! items.
//! Checkpoints of the kernel's in-memory log are transactions.

use super::super::log_item::{Items, MOST_TRANSACTIONS, Part};
use super::super::log_record::{COMMIT, Operation, Record, START, UNMOUNT};
use super::super::metadata::{Late, Metadata};
use super::item::{Explanation, explain};
use super::parts::Parts;
use super::record::Place;
use crate::{Cause, NO_INODE, Row, Rows};
use std::mem::take;

#[derive(Debug, Default)]
struct Transaction {
    id: u32,
    lsn: u64,
    items: Items,
    /// Slot of the current item in the current record.
    slot: Option<usize>,
    /// Rows of the current item from earlier records.
    rows: Vec<usize>,
    late: Late,
    /// Bytes of items so far, for access times alone. `other` counts all other items.
    atime: usize,
    other: usize,
}

/// Transactions that have begun: one, or the few that the kernel writes concurrently.
#[derive(Debug, Default)]
pub struct Transactions {
    open: Vec<Transaction>,
    /// Transactions that end in the current record.
    committed: Vec<Transaction>,
}

fn find(transactions: &mut [Transaction], id: u32) -> Option<&mut Transaction> {
    transactions.iter_mut().find(|t| t.id == id)
}

impl Transactions {
    /// Reads a record, and splits its rows by explanation.
    pub fn read(&mut self, record: Record<Place>, metadata: &mut Metadata, rows: &mut Rows) {
        let mut parts = Parts::of(&record);
        let mut at = record.content_at;
        for operation in record.operations() {
            let (id, flags) = (operation.id, operation.flags);
            metadata.is_unmounted = flags & UNMOUNT != 0;
            let slot = if flags & START != 0 {
                self.begin(id, record.lsn);
                parts.of_transaction(id, record.lsn)
            } else if flags & (COMMIT | UNMOUNT) != 0 {
                let place = self.open.iter().position(|t| t.id == id);
                let mut transaction = place.map(|place| self.open.remove(place));
                let lsn = transaction.as_ref().map_or(record.lsn, |t| t.lsn);
                // Before the next transaction in this record, which may remove names that this one
                // added.
                if let Some(transaction) = &mut transaction {
                    metadata.commit(take(&mut transaction.late), rows);
                }
                self.committed.extend(transaction);
                parts.of_transaction(id, lsn)
            } else {
                self.region(&operation, record.lsn, &mut parts, metadata, rows)
            };
            at = operation.range.end;
            parts.add(operation.range, slot);
        }
        parts.pad(at..record.bytes.len(), record.lsn);
        self.count(&parts);
        let of = |count: fn(&Transaction) -> usize| self.committed.iter().map(count).sum::<usize>();
        if of(|t| t.other) > 0 {
            parts.round(at, of(|t| t.atime), metadata.geometry.log_unit as usize);
        }
        self.emit(&record, &parts, rows);
        if !self.committed.is_empty() {
            metadata.owners.record(rows);
        }
        for transaction in self.committed.drain(..) {
            metadata.name_rows(transaction.late, rows);
        }
    }

    fn begin(&mut self, id: u32, lsn: u64) {
        self.open.retain(|t| t.id != id);
        if self.open.len() >= MOST_TRANSACTIONS {
            self.open.remove(0);
        }
        self.open.push(Transaction {
            id,
            lsn,
            ..Transaction::default()
        });
    }

    /// Reads a region or a part of one, and returns its slot.
    fn region(
        &mut self,
        operation: &Operation<'_>,
        lsn: u64,
        parts: &mut Parts,
        metadata: &mut Metadata,
        rows: &mut Rows,
    ) -> usize {
        let id = operation.id;
        let Some(transaction) = find(&mut self.open, id) else {
            return parts.of_transaction(id, lsn);
        };
        let lsn = transaction.lsn;
        let part = transaction.items.take(operation);
        if let Part::Header(_) = part {
            return parts.of_transaction(id, lsn);
        }
        let slot = *transaction.slot.get_or_insert_with(|| parts.open(id, lsn));
        if part == Part::Item {
            return slot;
        }
        let regions = &mut transaction.items.regions;
        let explanation = explain(regions, metadata, rows);
        regions.clear();
        transaction.late.append(&mut metadata.late);
        parts.close(slot, explanation);
        transaction.slot = None;
        for number in transaction.rows.drain(..) {
            if let Some(row) = rows.get_mut(number) {
                explanation.apply(row);
            }
            if explanation.inode != NO_INODE {
                transaction.late.push((number, explanation.inode));
            }
        }
        slot
    }

    /// Adds the bytes of each transaction in this record to its counters.
    fn count(&mut self, parts: &Parts) {
        for (range, slot) in &parts.ranges {
            let slot = parts.slots.get(*slot);
            let Some(slot) = slot.filter(|s| !s.is_overhead()) else {
                continue;
            };
            let id = slot.transaction.unwrap_or_default();
            let ended = find(&mut self.committed, id);
            if let Some(transaction) = ended.or(find(&mut self.open, id)) {
                match slot.is_atime() {
                    true => transaction.atime += range.len(),
                    false => transaction.other += range.len(),
                }
            }
        }
    }

    /// Splits the rows of the record.
    fn emit(&mut self, record: &Record<Place>, parts: &Parts, rows: &mut Rows) {
        for piece in &record.pieces {
            let Some(whole) = rows.get_mut(piece.place.row).copied() else {
                continue;
            };
            let mut number = Some(piece.place.row);
            for (range, slot) in parts.merged() {
                let start = range.start.max(piece.range.start);
                let end = range.end.min(piece.range.end);
                let Some(slot) = parts.slots.get(slot).filter(|_| start < end) else {
                    continue;
                };
                let mut row = Row {
                    offset: piece.place.offset + (start - piece.range.start) as u64,
                    length: (end - start) as u64,
                    transaction: Some(slot.lsn),
                    ..whole
                };
                let explanation = slot.explanation.unwrap_or(Explanation::UNKNOWN);
                explanation.apply(&mut row);
                if whole.causes.has(Cause::Format) {
                    row.causes = whole.causes;
                }
                let number = match number.take() {
                    Some(first) => {
                        if let Some(place) = rows.get_mut(first) {
                            *place = row;
                        }
                        first
                    }
                    None => rows.push(row),
                };
                let id = slot.transaction.unwrap_or_default();
                let open = find(&mut self.open, id);
                let Some(transaction) = open.or(find(&mut self.committed, id)) else {
                    continue;
                };
                if slot.explanation.is_none() {
                    transaction.rows.push(number);
                } else if row.inode != NO_INODE {
                    transaction.late.push((number, row.inode));
                }
            }
        }
        for transaction in &mut self.open {
            transaction.slot = None;
        }
    }

    /// Settles the names of transactions that never committed.
    pub fn finish(&mut self, metadata: &mut Metadata, rows: &mut Rows) {
        for transaction in self.open.drain(..) {
            metadata.name_rows(transaction.late, rows);
        }
    }
}
