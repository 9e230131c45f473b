//! Tree blocks by logical address, read through the chunk map, and searches in the trees.

use super::block::{Block, Header};
use super::chunk::{Chunk, ChunkMap, Place};
use super::devices::Devices;
use super::item::{self, Key, kind, tree};
use super::superblock::Super;
use crate::Disks;
use crate::hash::{HashMap, HashSet};
use fscost_recording::Result;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum size of the cache of tree blocks. A commit is mostly compared with blocks that were
/// written recently.
const CACHE_BYTES: usize = 64 << 20;
/// Maximum number of blocks read from a chunk tree. A larger tree is implausible: it would map 100
/// TiB.
const MAX_CHUNK_BLOCKS: usize = 1024;
/// Maximum number of leaves read from the tree of logs.
const MAX_LOG_LEAVES: usize = 64;

/// Returns the first and the last key of this kind that an object may have.
pub fn keys_of(objectid: u64, kind: u8) -> (Key, Key) {
    let key = |offset| Key::new(objectid, kind, offset);
    (key(0), key(u64::MAX))
}

/// One file system on its devices.
pub struct Volume {
    pub fsid: [u8; 16],
    pub node_bytes: u32,
    pub sector_bytes: u32,
    pub devices: Devices,
    pub chunks: ChunkMap,
    chunk_root: u64,
    cache: HashMap<u64, Arc<Block>>,
    order: VecDeque<u64>,
}

impl Volume {
    pub fn new(superblock: &Super, devices: Devices) -> Volume {
        let mut chunks = ChunkMap::default();
        superblock.add_chunks(&mut chunks);
        Volume {
            fsid: superblock.fsid,
            node_bytes: superblock.node_bytes,
            sector_bytes: superblock.sector_bytes,
            devices,
            chunks,
            chunk_root: 0,
            cache: HashMap::default(),
            order: VecDeque::new(),
        }
    }

    /// Looks up a place on a disk in the chunk map.
    pub fn place(&self, disk: u16, offset: u64) -> Option<Place> {
        self.chunks.place(self.devices.devid(disk)?, offset)
    }

    /// Reads from the device tree which device is being replaced.
    pub fn follow_replacement(&mut self, disks: &mut Disks<'_>, superblock: &Super) -> Result<()> {
        if !self.devices.is_replacing() {
            return Ok(());
        }
        let Some(root) = self.root_of(disks, superblock.root, tree::DEVICE)? else {
            return Ok(());
        };
        let key = Key::new(0, kind::DEV_REPLACE, 0);
        let source = self.look_up(disks, root, key, key, |_, item| item::replaced(item))?;
        self.devices.replaced = source;
        Ok(())
    }

    /// Returns the header at the start of `bytes`, if a block of this file system begins there.
    pub fn header(&self, bytes: &[u8]) -> Option<Header> {
        Header::parse(bytes, &self.fsid, self.node_bytes)
    }

    /// Adds a block that was just written to the cache.
    pub fn put(&mut self, bytes: &[u8]) {
        let Some(header) = self.header(bytes) else {
            return;
        };
        // This is the second copy of the block.
        let known = self.cache.get(&header.bytenr);
        if known.is_some_and(|known| known.is(bytes)) {
            return;
        }
        self.keep(Block::new(header, bytes.into()));
    }

    fn keep(&mut self, block: Block) -> Arc<Block> {
        let bytenr = block.header.bytenr;
        let block = Arc::new(block);
        if self.cache.insert(bytenr, block.clone()).is_none() {
            self.order.push_back(bytenr);
        }
        while self.order.len() > CACHE_BYTES / self.node_bytes as usize {
            if let Some(oldest) = self.order.pop_front() {
                self.cache.remove(&oldest);
            }
        }
        block
    }

    /// Removes a block from the cache because part of it was overwritten.
    pub fn forget(&mut self, bytenr: u64) {
        if self.cache.remove(&bytenr).is_some() {
            self.order.retain(|&b| b != bytenr);
        }
    }

    /// Returns the tree block at a logical address, if there is one.
    pub fn block(&mut self, disks: &mut Disks<'_>, bytenr: u64) -> Result<Option<Arc<Block>>> {
        if let Some(block) = self.cache.get(&bytenr) {
            return Ok(Some(block.clone()));
        }
        let spots: Vec<_> = self.chunks.copies(bytenr).collect();
        let mut bytes = vec![0; self.node_bytes as usize];
        for spot in spots {
            let Some(disk) = self.devices.disk(spot.devid) else {
                continue;
            };
            disks.read(disk, spot.offset, &mut bytes)?;
            if let Some(header) = self.header(&bytes).filter(|h| h.bytenr == bytenr) {
                return Ok(Some(self.keep(Block::new(header, bytes.into()))));
            }
        }
        Ok(None)
    }

    /// Reloads the chunk map if the chunk tree has changed.
    pub fn follow_chunks(&mut self, disks: &mut Disks<'_>, superblock: &Super) -> Result<()> {
        if superblock.chunk_root == self.chunk_root {
            return Ok(());
        }
        // Removed chunks stay in the map until others take their place: nothing else is written
        // there.
        superblock.add_chunks(&mut self.chunks);
        let mut seen = HashSet::default();
        let mut next = vec![superblock.chunk_root];
        let mut found = ChunkMap::default();
        superblock.add_chunks(&mut found);
        while let Some(bytenr) = next.pop() {
            if seen.len() >= MAX_CHUNK_BLOCKS || !seen.insert(bytenr) {
                continue;
            }
            let Some(block) = self.block(disks, bytenr)? else {
                continue;
            };
            if block.header.owner != tree::CHUNK {
                continue;
            }
            next.extend(block.children());
            for (key, item) in block.items().filter(|(key, _)| key.kind == kind::CHUNK) {
                if let Some((chunk, _)) = Chunk::parse(key.offset, item) {
                    found.insert(chunk);
                }
            }
        }
        if found.len() > 0 {
            self.chunks = found;
        }
        self.chunk_root = superblock.chunk_root;
        Ok(())
    }

    /// Returns the logs in the tree of logs at `root`: the tree that each belongs to, and its root.
    pub fn logs(&mut self, disks: &mut Disks<'_>, root: u64) -> Result<Vec<(u64, u64)>> {
        let leaves = self.leaves(disks, root, Key::FIRST, Key::LAST, MAX_LOG_LEAVES)?;
        let items = leaves.iter().flat_map(|leaf| leaf.items());
        let roots =
            items.filter(|(key, _)| (key.objectid, key.kind) == (tree::LOG, kind::ROOT_ITEM));
        let logs = roots.filter_map(|(key, item)| Some((key.offset, item::root(item)?)));
        Ok(logs.collect())
    }

    /// Returns at most `limit` leaves of the tree at `root` that may hold keys from `from` to `to`.
    /// The first may hold only smaller keys.
    pub fn leaves(
        &mut self,
        disks: &mut Disks<'_>,
        root: u64,
        from: Key,
        to: Key,
        limit: usize,
    ) -> Result<Vec<Arc<Block>>> {
        let limit = limit.max(1);
        let mut found = Vec::new();
        // Levels strictly decrease on the way down, so a cycle ends; the number of nodes is bounded
        // along with the leaves.
        let mut nodes = 0;
        let mut next = vec![(root, u8::MAX)];
        while let Some((bytenr, below)) = next.pop() {
            let block = self.block(disks, bytenr)?;
            let Some(block) = block.filter(|b| b.header.level < below) else {
                continue;
            };
            if block.header.level == 0 {
                found.push(block);
                if found.len() >= limit {
                    break;
                }
                continue;
            }
            nodes += 1;
            if nodes > limit.saturating_mul(2) + 8 {
                break;
            }
            let first = block.child_for(&from);
            let last = match to == from {
                true => first,
                false => block.child_for(&to),
            };
            let last = last.min(first.saturating_add(limit - 1));
            for number in (first..=last).rev() {
                next.extend(block.child(number).map(|child| (child, block.header.level)));
            }
        }
        Ok(found)
    }

    /// Returns the first result of `look` among the items with keys from `from` to `to`, in at most
    /// two leaves.
    pub fn look_up<T>(
        &mut self,
        disks: &mut Disks<'_>,
        root: u64,
        from: Key,
        to: Key,
        mut look: impl FnMut(Key, &[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let most = if from == to { 1 } else { 2 };
        let leaves = self.leaves(disks, root, from, to, most)?;
        let items = leaves.iter().flat_map(|leaf| {
            let items = (leaf.position(&from)..leaf.len()).map_while(|number| leaf.item(number));
            items.take_while(|(key, _)| *key <= to)
        });
        let mut found = items.filter(|(key, _)| *key >= from);
        Ok(found.find_map(|(key, item)| look(key, item)))
    }

    /// Returns whether there is an item with this key. `near` caches the leaf of the previous query
    /// of the same tree, which answers most queries for neighbouring keys.
    pub fn has(
        &mut self,
        disks: &mut Disks<'_>,
        root: u64,
        key: Key,
        near: &mut Option<Arc<Block>>,
    ) -> Result<bool> {
        if !near.as_ref().is_some_and(|leaf| leaf.spans(&key)) {
            *near = self.leaves(disks, root, key, key, 1)?.pop();
        }
        let item = near
            .as_ref()
            .and_then(|leaf| leaf.item(leaf.position(&key)));
        Ok(item.is_some_and(|(found, _)| found == key))
    }

    /// Returns the root block of tree `id` according to the tree of roots at `root_tree`.
    pub fn root_of(
        &mut self,
        disks: &mut Disks<'_>,
        root_tree: u64,
        id: u64,
    ) -> Result<Option<u64>> {
        let (from, to) = keys_of(id, kind::ROOT_ITEM);
        let mut last = None;
        self.look_up(disks, root_tree, from, to, |_, item| {
            last = item::root(item);
            None::<()>
        })?;
        Ok(last)
    }
}
