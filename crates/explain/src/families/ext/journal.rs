//! State of the journal: the transaction of each block, and when its copies take effect.

use crate::hash::HashMap;
use std::collections::BTreeMap;

use super::jbd2::{self, Control, Tag};
use crate::{Row, Structure};

/// Run of blocks that hold the journal: first block, number of blocks, journal position of the
/// first block.
pub type Place = (u64, u64, u32);

/// Copy of a block in the journal.
#[derive(Debug)]
pub struct Copy {
    /// Row for the block of the journal that holds the copy.
    pub row: Row,
    /// The block's content.
    pub content: Box<[u8]>,
}

/// Transaction that is being written.
#[derive(Debug, Default)]
pub struct Transaction {
    /// Home block of each copy, and the copy itself once it has arrived, in the order of journal
    /// positions.
    pub copies: Vec<(u64, Option<Copy>)>,
    missing: usize,
    /// Blocks that announce copies or revoke older ones.
    controls: usize,
    /// Position of the commit block.
    commit: Option<u32>,
}

/// Largest number of transactions that may lie in a page of 4 KiB, in blocks of 1 KiB.
const MOST_IN_A_PAGE: u32 = 4;

/// State of the journal.
#[derive(Debug)]
pub struct Journal {
    /// Location of the journal, in the order of blocks.
    places: Vec<Place>,
    /// Position of the journal's superblock.
    superblock_at: u32,
    superblock: jbd2::Superblock,
    transactions: BTreeMap<u32, Transaction>,
    /// Positions of copies that are announced but not written yet: the transaction, the index in
    /// it, and whether the copy is escaped.
    expected: HashMap<u32, (u32, usize, bool)>,
    /// Copies that were written before the descriptor that announces them.
    early: BTreeMap<u32, Copy>,
    /// Sequence number of the last transaction that was complete.
    complete: Option<u32>,
    /// Sequence number and position of its commit block, where the next transaction begins.
    /// Unknown before the first, and after the log was emptied.
    end: Option<(u32, u32)>,
    /// The newest commit block: its sequence number, the event that wrote it, and the event that
    /// wrote the one before.
    commit: (u32, u64, u64),
    /// Copies of transactions that never became complete, with their home blocks if they were
    /// announced.
    abandoned: Vec<(Option<u64>, Copy)>,
}

impl Journal {
    /// Creates a journal at these places, with its superblock at a position.
    pub fn new(places: Vec<Place>, at: u32, superblock: jbd2::Superblock) -> Journal {
        Journal {
            places,
            superblock_at: at,
            superblock,
            transactions: BTreeMap::new(),
            expected: HashMap::default(),
            early: BTreeMap::new(),
            complete: None,
            end: None,
            commit: (0, 0, 0),
            abandoned: Vec::new(),
        }
    }

    /// Returns the journal position of a block of the file system or of the external journal's
    /// disk.
    pub fn position(&self, block: u64) -> Option<u32> {
        let after = self.places.partition_point(|&(start, ..)| start <= block);
        let &(start, length, position) = self.places.get(after.checked_sub(1)?)?;
        let within = block - start;
        (within < length).then(|| position.saturating_add(within as u32))
    }

    /// Returns the first transaction that is still needed in the journal; `None` if there is none.
    pub fn tail(&self) -> Option<u32> {
        self.superblock.tail()
    }

    /// Returns the last transaction that was complete.
    pub fn complete(&self) -> Option<u32> {
        self.complete
    }

    /// Records a write to a block of the journal, which `row` covers. Returns the row with the
    /// structure and transaction of a block of the journal's own. A copy is kept until its
    /// transaction is complete.
    pub fn write(&mut self, position: u32, content: &[u8], row: Row) -> Option<Row> {
        let own = |structure| Some(Row { structure, ..row });
        if position == self.superblock_at {
            if let Some(superblock) = jbd2::Superblock::parse(content) {
                self.superblock = superblock;
                if superblock.tail().is_none() {
                    self.end = None;
                }
            }
            return own(Structure::JournalSuperblock);
        }
        if position >= self.superblock.end() {
            return own(Structure::JournalFastCommit);
        }
        let Some((control, sequence)) = jbd2::control(content) else {
            let content = content.into();
            self.arrive(position, Copy { row, content });
            return None;
        };
        let is_again = self.is_again(sequence);
        let structure = match control {
            Control::Superblock => return own(Structure::JournalSuperblock),
            Control::Revoke => {
                if !is_again {
                    self.transactions.entry(sequence).or_default().controls += 1;
                }
                Structure::JournalRevoke
            }
            Control::Descriptor => {
                if !is_again {
                    self.transactions.entry(sequence).or_default().controls += 1;
                    self.announce(position, sequence, content);
                }
                Structure::JournalDescriptor
            }
            Control::Commit => {
                if !is_again {
                    self.transactions.entry(sequence).or_default().commit = Some(position);
                    if self.commit.0 != sequence {
                        self.commit = (sequence, row.event, self.commit.1);
                    }
                }
                Structure::JournalCommit
            }
        };
        Some(Row {
            structure,
            transaction: Some(sequence.into()),
            ..row
        })
    }

    /// Returns whether a block belongs to one of the last transactions that were complete. RAID 4, 5
    /// and 6 write pages of 4 KiB, and with them the smaller blocks beside a new one.
    fn is_again(&self, sequence: u32) -> bool {
        let since = self.complete.and_then(|last| last.checked_sub(sequence));
        since.is_some_and(|since| since < MOST_IN_A_PAGE)
    }

    fn announce(&mut self, position: u32, sequence: u32, descriptor: &[u8]) {
        let mut at = position;
        let (last, event, before) = self.commit;
        let since = if last == sequence { before } else { event };
        for Tag { home, escaped } in self.superblock.tags(descriptor) {
            at = self.superblock.after(at);
            let transaction = self.transactions.entry(sequence).or_default();
            let number = transaction.copies.len();
            transaction.copies.push((home, None));
            transaction.missing += 1;
            let displaced = self.expected.insert(at, (sequence, number, escaped));
            if let Some(older) = displaced.and_then(|(older, ..)| self.transactions.get_mut(&older))
            {
                older.missing = older.missing.saturating_sub(1);
            }
            // A copy no newer than the transaction before is the earlier content of this place.
            match self.early.remove(&at) {
                Some(copy) if copy.row.event > since => self.arrive(at, copy),
                early => self.abandoned.extend(early.map(|copy| (None, copy))),
            }
        }
    }

    fn arrive(&mut self, position: u32, mut copy: Copy) {
        let announced = self.expected.remove(&position);
        let slot = announced.and_then(|(sequence, number, escaped)| {
            let transaction = self.transactions.get_mut(&sequence)?;
            transaction.missing = transaction.missing.saturating_sub(1);
            if escaped {
                jbd2::unescape(&mut copy.content);
            }
            transaction.copies.get_mut(number)
        });
        match slot {
            Some((_, slot)) => *slot = Some(copy),
            None => {
                let older = self.early.insert(position, copy);
                self.abandoned.extend(older.map(|copy| (None, copy)));
            }
        }
    }

    /// Removes and returns the next complete transaction. Older transactions never become complete.
    pub fn committed(&mut self) -> Option<(u32, Transaction)> {
        let (&sequence, _) = self
            .transactions
            .iter()
            .find(|(sequence, t)| self.is_whole(**sequence, t))?;
        let later = self.transactions.split_off(&sequence);
        let older = std::mem::replace(&mut self.transactions, later);
        let copies = older.into_values().flat_map(|t| t.copies);
        self.abandoned
            .extend(copies.filter_map(|(home, copy)| Some((Some(home), copy?))));
        self.complete = Some(sequence);
        let transaction = self.transactions.remove(&sequence)?;
        self.end = transaction.commit.map(|position| (sequence, position));
        Some((sequence, transaction))
    }

    /// Returns whether all blocks of a transaction were written.
    fn is_whole(&self, sequence: u32, transaction: &Transaction) -> bool {
        let Some(commit) = transaction.commit.filter(|_| transaction.missing == 0) else {
            return false;
        };
        // The next transaction waits for all of this one.
        let is_last = self.transactions.keys().next_back() == Some(&sequence);
        if !is_last || !self.superblock.has_async_commit() {
            return true;
        }
        // The commit block may come before a descriptor, but then the log has room for one.
        let before = self
            .end
            .filter(|(last, _)| last.checked_add(1) == Some(sequence));
        let is_first = self.superblock.tail() == Some(sequence);
        let first = match before {
            Some((_, end)) => Some(self.superblock.after(end)),
            None => self.superblock.start().filter(|_| is_first),
        };
        match first {
            Some(first) => {
                let others = transaction.controls + transaction.copies.len();
                self.superblock.distance(first, commit) as usize == others
            }
            None => transaction.controls > 0,
        }
    }

    /// Removes and returns copies that can no longer become part of a transaction, with their home
    /// blocks if known.
    pub fn abandoned(&mut self) -> Vec<(Option<u64>, Copy)> {
        std::mem::take(&mut self.abandoned)
    }

    /// Removes and returns the transactions without a commit, in order, at the end of the
    /// recording.
    pub fn uncommitted(&mut self) -> BTreeMap<u32, Transaction> {
        let early = std::mem::take(&mut self.early).into_values();
        self.abandoned.extend(early.map(|copy| (None, copy)));
        self.expected.clear();
        std::mem::take(&mut self.transactions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: u32 = 0xC03B_3998;

    fn block(words: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        bytes.resize(1024, 0);
        bytes
    }

    /// Creates a journal of 8 blocks with its log in blocks 1 to 7.
    fn journal() -> Journal {
        let superblock = block(&[MAGIC, 4, 0, 1024, 8, 1, 1, 1]);
        let superblock = jbd2::Superblock::parse(&superblock).unwrap();
        Journal::new(vec![(100, 8, 0)], 0, superblock)
    }

    /// Writes a block of the journal. Returns the structure and the transaction of its row.
    fn write(
        journal: &mut Journal,
        position: u32,
        content: &[u8],
    ) -> Option<(Structure, Option<u64>)> {
        let event = u64::from(position);
        let row = Row {
            event,
            ..Row::data(0, 1024)
        };
        let row = journal.write(position, content, row)?;
        Some((row.structure, row.transaction))
    }

    fn descriptor(sequence: u32, homes: &[u32]) -> Vec<u8> {
        let mut words = vec![MAGIC, 1, sequence];
        for (number, &home) in homes.iter().enumerate() {
            let last = if number + 1 == homes.len() { 8 } else { 0 };
            words.extend([home, 2 | last | u32::from(home == 9)]);
        }
        block(&words)
    }

    fn copies(transaction: &Transaction) -> Vec<(u64, u8)> {
        let found = transaction.copies.iter();
        found
            .map(|(home, copy)| (*home, copy.as_ref().unwrap().content[0]))
            .collect()
    }

    #[test]
    fn a_transaction_is_whole_in_any_order_and_around_the_end() {
        let mut journal = journal();
        assert_eq!(write(&mut journal, 7, &block(&[5 << 24])), None);
        let own = Some((Structure::JournalDescriptor, Some(3)));
        assert_eq!(write(&mut journal, 6, &descriptor(3, &[50, 9])), own);
        assert_eq!(
            write(&mut journal, 2, &block(&[MAGIC, 2, 3])),
            Some((Structure::JournalCommit, Some(3)))
        );
        assert!(journal.committed().is_none(), "a copy is missing");
        write(&mut journal, 1, &block(&[0, 0x0107_0000]));
        let (sequence, transaction) = journal.committed().unwrap();
        assert_eq!(sequence, 3);
        // Block 9 is escaped: it begins with the magic number.
        assert_eq!(copies(&transaction), [(50, 5), (9, 0xC0)]);
        assert!(journal.committed().is_none() && journal.abandoned().is_empty());
    }

    #[test]
    fn an_asynchronous_commit_waits_for_all_descriptors() {
        // The log begins with transaction 3, at block 3.
        let superblock = block(&[MAGIC, 4, 0, 1024, 8, 1, 3, 3, 0, 0, 4]);
        let superblock = jbd2::Superblock::parse(&superblock).unwrap();
        let mut journal = Journal::new(vec![(100, 8, 0)], 0, superblock);
        let mut event = 0;
        let mut write = |journal: &mut Journal, position, content: &[u8]| {
            event += 1;
            let row = Row {
                event,
                ..Row::data(0, 1024)
            };
            journal.write(position, content, row)
        };
        write(&mut journal, 5, &block(&[MAGIC, 2, 3]));
        assert!(journal.committed().is_none(), "the first descriptor");
        write(&mut journal, 3, &descriptor(3, &[50]));
        write(&mut journal, 4, &block(&[1 << 24]));
        assert_eq!(copies(&journal.committed().unwrap().1), [(50, 1)]);
        // The end of the log splits the next transaction, and its second part is written first.
        write(&mut journal, 2, &block(&[MAGIC, 2, 4]));
        write(&mut journal, 1, &block(&[2 << 24]));
        assert!(journal.committed().is_none(), "the descriptor is missing");
        write(&mut journal, 6, &block(&[MAGIC, 5, 4]));
        write(&mut journal, 7, &descriptor(4, &[51]));
        let (sequence, transaction) = journal.committed().unwrap();
        assert_eq!((sequence, copies(&transaction)), (4, vec![(51, 2)]));
        assert!(journal.abandoned().is_empty());
        // A later transaction shows that this one is whole, wherever it began.
        write(&mut journal, 5, &block(&[MAGIC, 2, 5]));
        assert!(journal.committed().is_none());
        write(&mut journal, 6, &descriptor(6, &[52]));
        assert_eq!(journal.committed().unwrap().0, 5);
    }

    #[test]
    fn blocks_beside_new_ones_are_what_they_were() {
        let mut journal = journal();
        let write = |journal: &mut Journal, event, position, content: &[u8]| {
            let row = Row {
                event,
                ..Row::data(0, 1024)
            };
            journal.write(position, content, row)
        };
        let (commit, stale) = (block(&[MAGIC, 2, 3]), block(&[7 << 24]));
        write(&mut journal, 1, 1, &descriptor(3, &[50]));
        write(&mut journal, 1, 2, &block(&[1 << 24]));
        // A page with the commit block, and what is left of an earlier round.
        write(&mut journal, 2, 3, &commit);
        write(&mut journal, 2, 5, &stale);
        assert_eq!(copies(&journal.committed().unwrap().1), [(50, 1)]);
        write(&mut journal, 3, 1, &descriptor(3, &[50]));
        write(&mut journal, 3, 2, &block(&[1 << 24]));
        write(&mut journal, 3, 3, &commit);
        assert!(journal.committed().is_none(), "that was complete before");
        write(&mut journal, 3, 4, &descriptor(4, &[51]));
        write(&mut journal, 3, 5, &block(&[8 << 24]));
        write(&mut journal, 4, 6, &block(&[MAGIC, 2, 4]));
        let (sequence, transaction) = journal.committed().unwrap();
        assert_eq!((sequence, copies(&transaction)), (4, vec![(51, 8)]));
    }

    #[test]
    fn what_is_never_committed_comes_back_once() {
        let mut journal = journal();
        write(&mut journal, 1, &descriptor(3, &[50]));
        write(&mut journal, 2, &block(&[1]));
        write(&mut journal, 6, &block(&[2]));
        write(&mut journal, 6, &block(&[3]));
        write(&mut journal, 3, &descriptor(4, &[51]));
        write(&mut journal, 4, &block(&[4]));
        write(&mut journal, 5, &block(&[MAGIC, 2, 4]));
        assert_eq!(journal.committed().unwrap().0, 4);
        let lost = journal.abandoned();
        let lost: Vec<_> = lost.iter().map(|(h, c)| (*h, c.content[3])).collect();
        assert_eq!(lost, [(None, 2), (Some(50), 1)]);
        assert!(journal.uncommitted().is_empty());
        assert_eq!(journal.abandoned().len(), 1);
    }

    #[test]
    fn positions_follow_the_extents() {
        let superblock = journal().superblock;
        let journal = Journal::new(vec![(100, 4, 0), (200, 4, 4)], 0, superblock);
        let found = [99, 100, 103, 104, 201].map(|block| journal.position(block));
        assert_eq!(found, [None, Some(0), Some(3), None, Some(5)]);
    }
}
