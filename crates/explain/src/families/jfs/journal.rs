//! Changes of inodes, trees and names that transactions in the log describe, before their pages are
//! written home.

use super::log::{FREED_INODES, FREED_PAGE, REDO_PAGE, Record};
use super::*;
use crate::track::runs::Runs;
use std::collections::BTreeMap;

/// Maximum number of log pages held in memory: 32 MiB.
const MOST_PAGES: usize = 8192;
/// Types of after-images: inodes, extent trees, name trees, roots in an inode, and the tree of a
/// directory's table in its inode.
const INODES: u16 = 0x0001;
const EXTENTS: u16 = 0x0002;
const NAMES: u16 = 0x0004;
const ROOTS: u16 = 0x0010;
const IN_DIRECTORY: u16 = 0x0800;
const INODES_OF_PAGE: u64 = 8;

/// Changes that a transaction makes to a page.
#[derive(Default)]
struct Changed {
    /// Bit mask of the changed inodes, for a page of inodes.
    inodes: u8,
    /// Owner of any other page, which belongs to a tree.
    owner: Option<Owner>,
}

impl Jfs {
    /// Explains a write to the log and applies the transactions that it commits.
    pub(super) fn log(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>) -> Result<()> {
        self.files.flush(now.rows);
        let part = Part::new(Structure::Log, Cause::Log);
        self.files.add(write, part, now.rows);
        if write.formatting {
            return Ok(());
        }
        let home = Write {
            disk: self.disk,
            content: &[],
            length: 0,
            ..*write
        };
        let now = &mut Now {
            write: &home,
            disks: now.disks,
            rows: now.rows,
        };
        for page in write.content.chunks(PAGE as usize) {
            let news = self.log.page(page);
            if news.is_lost {
                self.logged = HashMap::new();
            }
            if news.is_log {
                self.files.trust_log();
            }
            for records in news.committed {
                self.left = MOST_READ;
                self.apply(&records, now)?;
                self.files.settle(now.rows);
            }
        }
        Ok(())
    }

    /// Returns the newest version of a page: from the log, otherwise from the disk.
    pub(super) fn newest(&self, at: u64, now: &mut Now<'_, '_>) -> Result<Vec<u8>> {
        if let Some(page) = self.logged.get(&at) {
            return Ok(page.clone());
        }
        let mut page = vec![0; PAGE as usize];
        now.read(at, &mut page)?;
        Ok(page)
    }

    fn apply(&mut self, records: &[Record], now: &mut Now<'_, '_>) -> Result<()> {
        let mut changed: BTreeMap<u64, Changed> = BTreeMap::new();
        for record in records {
            let at = record.extent.0.saturating_mul(PAGE);
            if at.saturating_add(PAGE) > self.end {
                continue;
            }
            match record.kind {
                REDO_PAGE => self.redo(at, record, changed.entry(at).or_default(), now)?,
                FREED_PAGE => {
                    self.logged.remove(&at);
                    changed.remove(&at);
                    self.hold(record.inode, at, &[], now.rows);
                    self.files.release(record.inode, at, PAGE, now.rows);
                    self.files.name_at((0, at), record.inode, &[]);
                }
                FREED_INODES => {
                    for page in 0..record.extent.1.min(4) {
                        self.logged.remove(&(at + page * PAGE));
                        changed.remove(&(at + page * PAGE));
                    }
                }
                _ => {}
            }
        }
        for is_inodes in [true, false] {
            for (&at, changed) in &changed {
                if let Some(page) = self.logged.get(&at).cloned()
                    && (changed.inodes != 0) == is_inodes
                {
                    self.learn(at, &page, changed, now)?;
                }
            }
        }
        Ok(())
    }

    /// Applies an after-image to the page.
    fn redo(
        &mut self,
        at: u64,
        record: &Record,
        changed: &mut Changed,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        let is = |kind: u16| record.page_kind & kind != 0;
        let slot = (record.inode % INODES_OF_PAGE) as usize;
        let begin = slot * inode::BYTES;
        let (from, to) = match () {
            () if is(ROOTS) && is(IN_DIRECTORY) => (begin + inode::TABLE, begin + inode::TREE),
            () if is(ROOTS) => (begin + inode::TREE, begin + inode::BYTES),
            () if is(INODES) || is(EXTENTS) || is(NAMES) => (0, PAGE as usize),
            () => return Ok(()),
        };
        if !self.logged.contains_key(&at) {
            let page = self.newest(at, now)?;
            if self.logged.len() >= MOST_PAGES {
                self.logged = HashMap::new();
            }
            self.logged.insert(at, page);
        }
        let Some(page) = self.logged.get_mut(&at) else {
            return Ok(());
        };
        for (line, content) in record.lines() {
            let begin = from + line;
            if let Some(into) = page[..to].get_mut(begin..begin + content.len()) {
                into.copy_from_slice(content);
            }
            if is(INODES) {
                let first = begin / inode::BYTES;
                changed.inodes |= 1_u8.checked_shl(first as u32).unwrap_or(0);
            }
        }
        if is(ROOTS) {
            changed.inodes |= 1 << slot;
        } else if !is(INODES) {
            let structure = match is(NAMES) {
                true => Structure::Directory,
                false => Structure::ExtentMap,
            };
            let inode = record.inode;
            changed.owner = Some(Owner { inode, structure });
        }
        Ok(())
    }

    /// Applies the content of a page that a transaction changed.
    fn learn(
        &mut self,
        at: u64,
        page: &[u8],
        changed: &Changed,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        if changed.inodes != 0 {
            let table = Owner::no_inode(Structure::InodeTable);
            self.own((at / PAGE, 1), table, now.rows);
        }
        for (number, slot) in page.chunks_exact(inode::BYTES).enumerate() {
            if changed.inodes >> number & 1 != 0 {
                self.inode_logged(slot, now)?;
            }
        }
        if let Some(owner) = changed.owner
            && self.generations.contains_key(&owner.inode)
        {
            self.own((at / PAGE, 1), owner, now.rows);
            self.page(at, page, owner, now)?;
        }
        Ok(())
    }

    fn inode_logged(&mut self, slot: &[u8], now: &mut Now<'_, '_>) -> Result<()> {
        let read = Inode(slot);
        let (inode, generation) = (read.number(), read.generation());
        if read.fileset() != INODE_MAP_FILE {
            return Ok(());
        }
        if !read.is_linked() {
            // The file may still be open and written to.
            if self.generations.remove(&inode).is_some() {
                self.files.bury(inode, now.rows);
            }
            return Ok(());
        }
        if self.generations.insert(inode, generation) != Some(generation) {
            let places = self.held.get(&inode).into_iter().flat_map(HashMap::keys);
            for place in places.copied().collect::<Vec<_>>() {
                self.logged.remove(&place);
                self.hold(inode, place, &[], now.rows);
                if place >= PAGE {
                    self.files.release(inode, place, PAGE, now.rows);
                }
            }
            self.held.remove(&inode);
            self.files.revive(inode, now.rows);
        }
        self.inode(inode, slot, now)
    }

    /// Sets the extents of a node of an inode's tree. Extents that the node no longer has are
    /// freed.
    pub(super) fn hold(&mut self, inode: u64, place: u64, extents: &[(u64, u64)], rows: &mut Rows) {
        let held = self.held.entry(inode).or_default();
        let before = match extents.is_empty() {
            true => held.remove(&place),
            false => held.insert(place, extents.to_vec()),
        };
        let mut gone = Runs::default();
        for (first, count) in before.unwrap_or_default() {
            gone.take(first, first + count);
            gone.insert(first, first + count, ());
        }
        for &(first, count) in extents {
            gone.take(first, first + count);
        }
        for (from, to, ()) in gone.take(0, u64::MAX) {
            let (offset, length) = self.bytes((from, to - from));
            self.files.release(inode, offset, length, rows);
        }
    }
}
