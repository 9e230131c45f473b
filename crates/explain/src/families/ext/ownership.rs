//! Block ownership, updated as the mappings in inodes and nodes change.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    blocks::{Content, Kind, Mapper},
    directory,
    map::{self, Claim},
    rounds::Round,
    state::{Applied, Blocks, State, Trust, Update},
    xattr,
};
use crate::hash::HashSet;
use crate::{Disks, track::waiting::MAX_WAITING};
use fscost_recording::Result;

impl State {
    /// Returns the last round in which all metadata from the inode down to `mapper` had been
    /// written. Returns the earliest round if that is not known.
    pub(super) fn known_at(&self, mut mapper: Mapper) -> Round {
        let mut known = self.rounds.now;
        for _ in 0..=map::MAX_DEPTH {
            known = known.min(self.written.get(&mapper).copied().unwrap_or_default());
            if mapper.node == 0 {
                return known;
            }
            match self.space.get(mapper.node) {
                Some(used) if used.kind.is_node() && used.inode == mapper.inode => {
                    mapper = used.mapper();
                }
                _ => break,
            }
        }
        Round::default()
    }

    /// Records a write to a block without a known mapper. Returns whether the block looks like
    /// directory entries or a node: a directory or file may have grown by it, with its inode still
    /// to be written. Called only without a journal.
    pub(super) fn written_unmapped(&mut self, block: u64, content: &[u8]) -> bool {
        let looks_like_metadata = map::looks_like_node(content, &self.superblock)
            || directory::is_first(content)
            || self.entries(content).is_some_and(|names| !names.is_empty());
        if looks_like_metadata {
            self.may_be_anothers(block, self.rounds.now);
        } else if !self.unmapped.is_empty() {
            self.unmapped.remove(&block);
        }
        looks_like_metadata
    }

    /// Records that the content that a block got in this round may be that of a mapper that is
    /// still to be written.
    pub(super) fn may_be_anothers(&mut self, block: u64, written: Round) {
        if self.unmapped.len() < MAX_WAITING {
            self.unmapped.insert(block, written);
        }
    }

    /// Returns whether a written block has the form of its known use. Otherwise the block has
    /// another owner by now. Called only without a journal.
    pub(super) fn has_form_of(&self, kind: Kind, content: &[u8]) -> bool {
        match kind {
            NAMES => self.entries(content).is_some(),
            _ => !kind.is_node() || map::is_form_of(kind, content, &self.superblock),
        }
    }

    fn no_longer_unmapped(&mut self, start: u64, length: u64) -> BTreeMap<u64, Round> {
        let mut found = BTreeMap::new();
        let end = start.saturating_add(length);
        while let Some((&block, &round)) = self.unmapped.range(start..end).next() {
            self.unmapped.remove(&block);
            found.insert(block, round);
        }
        found
    }

    /// Returns the round in which this block was last written as a node of its current owner.
    /// Called only without a journal.
    fn written_as_node(&self, block: u64) -> Option<Round> {
        let used = self.space.get(block).filter(|used| used.kind.is_node())?;
        let (inode, node) = (used.inode, block);
        self.written.get(&Mapper { inode, node }).copied()
    }

    /// Claims the blocks, and the blocks that nodes among them map. Returns the metadata blocks
    /// that were read to do so.
    pub(super) fn claim(
        &mut self,
        mut stack: Vec<(Mapper, Claim)>,
        update: &mut Update<'_, '_>,
    ) -> Result<HashSet<u64>> {
        let mut visited = HashSet::default();
        while let Some((mapper, claim)) = stack.pop() {
            let written = self.own(mapper, claim, update)?;
            let has_values = claim.kind == Kind::Xattr && self.superblock.has_value_inodes();
            if !names_others(claim.kind) && !has_values {
                continue;
            }
            for block in claim.start..claim.start.saturating_add(claim.length) {
                if self.reads_left == 0 {
                    break;
                }
                self.reads_left -= 1;
                let content = match (update.blocks.get(&block), update.trust) {
                    (Some(&new), _) => Arc::from(new),
                    (None, Trust::All) => self.newest(block, update)?,
                    (None, Trust::Written) if written.contains_key(&block) => {
                        self.read(block, update.disks)?.into()
                    }
                    (None, Trust::Written) => {
                        self.versions.remove(&block);
                        self.unread.insert(block);
                        continue;
                    }
                };
                if !visited.insert((mapper.inode, block)) {
                    continue;
                }
                self.unread.remove(&block);
                if claim.kind.is_node() {
                    let node = mapper.below(block);
                    let children = map::of_node(claim.kind, &content, &self.superblock);
                    stack.extend(children.into_iter().map(|child| (node, child)));
                    match written.get(&block) {
                        Some(&round) => _ = self.written.insert(node, round),
                        None => update.applied.mappers.push(node),
                    }
                } else if claim.kind == NAMES {
                    self.see_parent(mapper.inode, &content);
                    let entries = self.entries(&content).unwrap_or_default();
                    self.rename(mapper.inode, &[], &entries);
                } else {
                    self.values_of(mapper.inode, xattr::of_block(&content));
                }
                self.versions.insert(block, content);
            }
        }
        Ok(visited.into_iter().map(|(_, block)| block).collect())
    }

    /// Makes the mapper the owner of the claimed blocks. Returns those that were written before
    /// this claim and may hold the mapper's content, with the rounds of the writes. With a journal,
    /// there are none.
    fn own(
        &mut self,
        mapper: Mapper,
        claim: Claim,
        update: &mut Update<'_, '_>,
    ) -> Result<BTreeMap<u64, Round>> {
        let used = mapper.uses(claim.kind);
        let mut newly_written = None;
        if update.trust == Trust::Written {
            newly_written = self
                .written_as_node(claim.start)
                .filter(|&round| claim.kind.is_node() && round.is_with(self.rounds.now));
            self.displace(claim.start, claim.length, used, update)?;
        }
        if claim.kind == Kind::Xattr
            && let Some(other) = self.space.get(claim.start)
            && other.kind == claim.kind
            && other.inode != mapper.inode
        {
            let others = self.sharers.entry(claim.start).or_default();
            others.push(other.inode);
        }
        let file_block = self.file_block_of(mapper, &claim);
        self.space.map(claim.start, claim.length, used, file_block);
        update.applied.claimed.push((claim.start, claim.length));
        update.applied.moves.come(mapper.inode, claim);
        let mut written = self.no_longer_unmapped(claim.start, claim.length);
        // Content written long before may belong to a file that is gone.
        if claim.kind.is_node() && claim.kind != NODE_OF_NAMES {
            written.retain(|_, round| round.is_near(self.rounds.now));
        }
        if let Some(round) = newly_written {
            written.insert(claim.start, round);
        }
        Ok(written)
    }

    /// Returns the newest version of a block that the blocks being applied do not contain. Its
    /// mapping may have moved to a node, for example when a directory's extents outgrow its inode:
    /// the block was then released before.
    fn newest(&self, block: u64, update: &mut Update<'_, '_>) -> Result<Arc<[u8]>> {
        match update.applied.forgotten.remove(&block) {
            Some(newest) => Ok(newest),
            None => self.before(block, update.disks),
        }
    }

    /// Reads directory blocks and nodes that were not written since they were mapped. All changes
    /// are on the disk, so their content is current. Called only without a journal.
    pub fn settle(&mut self, disks: &mut Disks<'_>) -> Result<Applied> {
        let unread = std::mem::take(&mut self.unread);
        self.allow_reads(unread.len());
        let claim_again = |block| Some(self.claim_of(block, self.space.get(block)?));
        let stack = unread.into_iter().filter_map(claim_again).collect();
        let blocks = Blocks::new();
        let mut update = Update::new(&blocks, Trust::All, disks);
        self.claim(stack, &mut update)?;
        self.name();
        Ok(update.applied)
    }
}

const NAMES: Kind = Kind::Content(Content::Directory);
const NODE_OF_NAMES: Kind = Kind::Extents(Content::Directory);

/// Returns whether the content of such a block determines the owners or names of others.
pub(super) fn names_others(kind: Kind) -> bool {
    kind.is_node() || kind == Kind::Content(Content::Directory)
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Area;
    use super::super::{blocks::Use, directory::Entry, state::ext2};
    use super::*;
    use fscost_recording::Recording;
    use std::path::Path;

    const NODE: u64 = 50;
    const TABLE: u64 = 10;
    const DATA: Kind = Kind::Content(Content::Data);

    /// Creates an ext2 with 1 KiB blocks in which inode 13 owns block 100. The inode table starts
    /// at block 10.
    fn state() -> State {
        let mut state = ext2();
        let of = |kind, inode| Use {
            kind,
            inode,
            node: 0,
        };
        let table = Kind::Fixed(Area::InodeTable);
        state.space.set(TABLE, 2, of(table, 1));
        state.space.claim(100, 1, of(DATA, 13));
        // Earlier content of the node's block.
        state
            .versions
            .insert(NODE, pointers(&[100, 101]).as_slice().into());
        state
    }

    fn pointers(blocks: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = blocks.iter().flat_map(|b| b.to_le_bytes()).collect();
        bytes.resize(1024, 0);
        bytes
    }

    /// Builds the second block of the inode table, in which inode 12 maps the node.
    fn table() -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        let inode = &mut bytes[3 * 128..4 * 128];
        inode[1] = 0x81;
        inode[0x1A] = 1;
        inode[0x28 + 4 * 12] = NODE as u8;
        bytes
    }

    fn apply(state: &mut State, blocks: &[(u64, &[u8])], trust: Trust) -> Applied {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ext/ext4-nojournal.fscost");
        let recording = Recording::open(&path).unwrap();
        let mut disks = Disks::new(&recording).unwrap();
        let blocks = blocks.iter().copied().collect();
        state.apply(&blocks, trust, &mut disks).unwrap()
    }

    fn owner(state: &State, block: u64) -> u32 {
        state.space.get(block).map_or(0, |used| used.inode)
    }

    #[test]
    fn a_node_is_not_read_before_it_is_written() {
        let mut state = state();
        apply(&mut state, &[(TABLE + 1, &table())], Trust::Written);
        assert_eq!([NODE, 100, 101].map(|b| owner(&state, b)), [12, 13, 0]);
        apply(&mut state, &[(NODE, &pointers(&[200]))], Trust::Written);
        assert_eq!([100, 101, 200].map(|b| owner(&state, b)), [13, 0, 12]);
    }

    #[test]
    fn what_a_node_maps_from_now_on_is_as_it_was_in_the_journal() {
        let mut state = state();
        let names = [1; 1024];
        let directory = Use {
            kind: NAMES,
            inode: 12,
            node: 0,
        };
        state.space.claim(70, 1, directory);
        state.versions.insert(70, names.as_slice().into());
        // The inode first maps the block directly, then through the node.
        let (mut before, mut after) = (table(), table());
        for table in [&mut before, &mut after] {
            table[3 * 128 + 1] = 0x41;
        }
        before[3 * 128 + 0x28..][..64].fill(0);
        before[3 * 128 + 0x28] = 70;
        state.versions.insert(TABLE + 1, before.as_slice().into());
        let node = pointers(&[70]);
        apply(
            &mut state,
            &[(TABLE + 1, &after), (NODE, &node)],
            Trust::All,
        );
        assert_eq!(state.space.get(70).map(|used| used.node), Some(NODE));
        assert!(state.is_newest(70, &names));
    }

    #[test]
    fn a_transaction_has_all_names() {
        for (trust, is_named) in [(Trust::All, true), (Trust::Written, false)] {
            let mut state = state();
            let entry = Entry {
                inode: 100,
                name: b"a",
                is_directory: false,
            };
            state.names.inode_new(100);
            state.names.add(2, &entry);
            state.names.inode_removed(100);
            state.names.inode_new(100);
            apply(&mut state, &[], trust);
            let path = state.names.path(100, &mut Default::default());
            assert_eq!(path.is_some(), is_named);
        }
    }

    #[test]
    fn without_a_journal_what_nobody_maps_is_only_on_the_disk() {
        let mut names = vec![0; 1024];
        names[..12].copy_from_slice(&[12, 0, 0, 0, 0, 4, 1, 1, b'a', 0, 0, 0]);
        for (trust, kept) in [(Trust::All, true), (Trust::Written, false)] {
            let mut state = state();
            apply(&mut state, &[(300, &names)], trust);
            assert_eq!(state.is_newest(300, &names), kept);
        }
    }

    #[test]
    fn a_node_in_the_same_transaction_or_write_is() {
        for trust in [Trust::All, Trust::Written] {
            let mut state = state();
            let node = pointers(&[200]);
            apply(&mut state, &[(TABLE + 1, &table()), (NODE, &node)], trust);
            assert_eq!([100, 200].map(|b| owner(&state, b)), [13, 12]);
        }
    }

    #[test]
    fn names_that_were_written_before_they_were_mapped_are_read() {
        let mut names = vec![0; 1024];
        names[..12].copy_from_slice(&[12, 0, 0, 0, 0, 4, 1, 1, b'a', 0, 0, 0]);
        let mut node = vec![0; 1024];
        node[..8].copy_from_slice(&[0x0A, 0xF3, 1, 0, 84, 0, 0, 0]);
        node[16..24].copy_from_slice(&[1, 0, 0, 0, 70, 0, 0, 0]);
        let mut of_directory = table();
        of_directory[3 * 128 + 1] = 0x41;
        for (written, inode, is_read) in [
            (&names, &of_directory, true),
            (&node, &of_directory, true),
            (&vec![7; 1024], &of_directory, false),
            (&names, &table(), false),
        ] {
            let mut state = state();
            let mut inode = inode.clone();
            inode[3 * 128 + 0x28 + 4 * 12] = 0;
            inode[3 * 128 + 0x28] = 60;
            state.written_unmapped(60, &[0; 1024]);
            state.written_unmapped(60, written);
            apply(&mut state, &[(TABLE + 1, &inode)], Trust::Written);
            assert_eq!(state.versions.contains_key(&60), is_read);
            assert!(state.unmapped.is_empty());
        }
    }

    #[test]
    fn what_an_inode_maps_is_anew_that_of_the_file_that_it_has_become() {
        let mut second = table();
        second[3 * 128 + 0x64] = 1; // generation
        let mut unlinked = second.clone();
        unlinked[3 * 128 + 0x1A] = 0;
        let again = [NODE, 100].as_slice();
        for (next, again) in [(&second, again), (&unlinked, again), (&table(), &[])] {
            let mut state = state();
            let node = pointers(&[100]);
            apply(
                &mut state,
                &[(TABLE + 1, &table()), (NODE, &node)],
                Trust::All,
            );
            let blocks: [(u64, &[u8]); 2] = [(TABLE + 1, next), (NODE, &node)];
            let applied = apply(&mut state, &blocks, Trust::Written);
            let mut released: Vec<_> = applied.released.iter().map(|r| r.start).collect();
            released.sort_unstable();
            assert_eq!(released, again);
            assert_eq!([NODE, 100].map(|b| owner(&state, b)), [12, 12]);
        }
    }

    #[test]
    fn a_node_that_was_written_before_the_same_flush_is_that_of_its_next_file() {
        let mut second = table();
        second[3 * 128 + 0x64] = 1; // generation
        for is_flushed in [false, true] {
            let mut state = state();
            apply(&mut state, &[(TABLE + 1, &table())], Trust::Written);
            let applied = apply(&mut state, &[(NODE, &pointers(&[200]))], Trust::Written);
            state.written(&applied.mappers);
            if is_flushed {
                state.rounds.flush();
            }
            apply(&mut state, &[(TABLE + 1, &second)], Trust::Written);
            let is_read = state.versions.contains_key(&NODE);
            assert_eq!((owner(&state, NODE), is_read), (12, !is_flushed));
        }
    }

    #[test]
    fn a_node_that_is_lost_takes_what_is_below_with_it() {
        let mut state = state();
        let node = Use {
            kind: Kind::Pointers(1, Content::Data),
            inode: 14,
            node: 0,
        };
        let below = Use {
            kind: DATA,
            inode: 14,
            node: NODE,
        };
        state.space.claim(NODE, 1, node);
        state.space.claim(101, 1, below);
        let applied = apply(&mut state, &[(TABLE + 1, &table())], Trust::Written);
        assert_eq!([NODE, 100, 101].map(|b| owner(&state, b)), [12, 13, 0]);
        let lost: Vec<_> = applied
            .released
            .iter()
            .map(|r| (r.start, r.inode))
            .collect();
        assert!(lost.contains(&(100, 14)), "{lost:?}");
    }

    #[test]
    fn attributes_stay_in_use_while_one_of_their_inodes_is_left() {
        let mut state = state();
        let attributes = |inode: usize, block: u8| {
            let mut bytes = vec![0; 1024];
            for slot in 3..3 + inode {
                bytes[slot * 128 + 1] = 0x81;
                bytes[slot * 128 + 0x1A] = 1;
                bytes[slot * 128 + 0x68] = block;
            }
            bytes
        };
        apply(&mut state, &[(TABLE + 1, &attributes(2, 60))], Trust::All);
        let first = owner(&state, 60);
        assert!([12, 13].contains(&first));
        apply(&mut state, &[(TABLE + 1, &attributes(1, 60))], Trust::All);
        assert_eq!(owner(&state, 60), 12);
        apply(&mut state, &[(TABLE + 1, &attributes(1, 0))], Trust::All);
        assert_eq!(state.space.get(60), None);
    }
}
