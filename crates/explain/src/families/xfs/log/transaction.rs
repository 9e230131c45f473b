//! Transactions: operations of records, in order, become regions, and these items. Checkpoints of
//! the kernel's in-memory log are transactions.

use super::super::metadata::{Late, Metadata};
use super::item::{Explanation, explain};
use super::operation::{COMMIT, Items, Operation, Part, START, UNMOUNT};
use super::parts::{Parts, Slot};
use super::record::Record;
use crate::{Cause, NO_INODE, Row, Rows};

/// More than the kernel has open at once.
const MOST_TRANSACTIONS: usize = 64;

#[derive(Debug)]
struct Transaction {
    id: u32,
    lsn: u64,
    items: Items,
    /// The part of the present record that is the present item.
    slot: Option<usize>,
    /// Rows that earlier records have of it.
    rows: Vec<usize>,
    late: Late,
    /// Bytes of items so far: for access times alone, and for anything else.
    atime: usize,
    other: usize,
}

/// Transactions that have begun: one, or the few that the kernel writes side by side.
#[derive(Debug, Default)]
pub struct Transactions {
    open: Vec<Transaction>,
}

fn find(transactions: &mut [Transaction], id: u32) -> Option<&mut Transaction> {
    transactions.iter_mut().find(|t| t.id == id)
}

impl Transactions {
    /// Read a record: its rows are split by what they explain.
    pub fn read(&mut self, record: Record, metadata: &mut Metadata, rows: &mut Rows) {
        let mut parts = Parts {
            slots: vec![Slot {
                transaction: None,
                lsn: record.lsn,
                explanation: Explanation::OWN,
                open: false,
            }],
            ranges: vec![(0..record.content_at, 0)],
        };
        let mut committed = Vec::new();
        let mut at = record.content_at;
        for operation in record.operations() {
            let (id, flags) = (operation.id, operation.flags);
            let slot = if flags & START != 0 {
                self.begin(id, record.lsn);
                parts.of_transaction(id, record.lsn)
            } else if flags & (COMMIT | UNMOUNT) != 0 {
                let place = self.open.iter().position(|t| t.id == id);
                let transaction = place.map(|place| self.open.remove(place));
                let lsn = transaction.as_ref().map_or(record.lsn, |t| t.lsn);
                committed.extend(transaction);
                parts.of_transaction(id, lsn)
            } else {
                self.region(&operation, record.lsn, &mut parts, metadata, rows)
            };
            at = operation.range.end;
            parts.add(operation.range, slot);
        }
        parts.add(at..record.bytes.len(), 0);
        self.count(&parts, &mut committed);
        if !committed.is_empty() {
            let of = |all: fn(&Transaction) -> usize| committed.iter().map(all).sum::<usize>();
            if of(|t| t.other) > 0 {
                parts.round(at, of(|t| t.atime), metadata.geometry.log_unit as usize);
            }
        }
        self.emit(&record, &parts, &mut committed, rows);
        for transaction in committed {
            metadata.commit(transaction.late, rows);
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
            items: Items::default(),
            slot: None,
            rows: Vec::new(),
            late: Late::new(),
            atime: 0,
            other: 0,
        });
    }

    /// A region, or a part of one; the slot that it belongs to.
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
        if part == Part::Header {
            return parts.of_transaction(id, lsn);
        }
        let slot = *transaction.slot.get_or_insert_with(|| parts.open(id, lsn));
        if part == Part::Item {
            return slot;
        }
        let regions = &mut transaction.items.regions;
        let explanation = explain(regions, metadata, rows, &mut transaction.late);
        regions.clear();
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

    /// Add what this record has of each transaction.
    fn count(&mut self, parts: &Parts, committed: &mut [Transaction]) {
        for (range, slot) in &parts.ranges {
            let Some(slot) = parts
                .slots
                .get(*slot)
                .filter(|s| s.explanation != Explanation::OWN)
            else {
                continue;
            };
            let id = slot.transaction.unwrap_or_default();
            if let Some(transaction) = find(committed, id).or(find(&mut self.open, id)) {
                match slot.explanation.is_atime() {
                    true => transaction.atime += range.len(),
                    false => transaction.other += range.len(),
                }
            }
        }
    }

    /// Split the record's rows.
    fn emit(
        &mut self,
        record: &Record,
        parts: &Parts,
        committed: &mut [Transaction],
        rows: &mut Rows,
    ) {
        for piece in &record.pieces {
            let Some(whole) = rows.get_mut(piece.row).copied() else {
                continue;
            };
            let mut number = Some(piece.row);
            for (range, slot) in parts.merged() {
                let (start, end) = (
                    range.start.max(piece.range.start),
                    range.end.min(piece.range.end),
                );
                let Some(slot) = parts.slots.get(slot).filter(|_| start < end) else {
                    continue;
                };
                let mut row = Row {
                    offset: piece.offset + (start - piece.range.start) as u64,
                    length: (end - start) as u64,
                    transaction: Some(slot.lsn),
                    ..whole
                };
                slot.explanation.apply(&mut row);
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
                let Some(transaction) = find(&mut self.open, id).or(find(committed, id)) else {
                    continue;
                };
                if slot.open {
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

    /// What never committed has names all the same.
    pub fn finish(&mut self, metadata: &mut Metadata, rows: &mut Rows) {
        for transaction in self.open.drain(..) {
            metadata.name_rows(transaction.late, rows);
        }
    }
}
