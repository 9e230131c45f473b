//! Writes outside the log: metadata at its home location, and data.

use super::block::{Block, group_header, identify, is_inode, is_quota};
use super::metadata::{Late, Metadata};
use super::version::Version;
use crate::bytes::is_zero;
use crate::{Cause, Causes, NO_INODE, Row, Rows, Structure, Write};

/// Rows of one write.
pub struct Home<'a, 'b> {
    write: &'a Write<'b>,
    metadata: &'a mut Metadata,
    rows: &'a mut Rows,
    pending: Option<Row>,
    late: Late,
}

/// Explanation of a run of bytes.
#[derive(Clone, Copy)]
struct Explanation {
    structure: Structure,
    causes: Causes,
    inode: u64,
    /// Transaction of the log that the bytes are written back for.
    transaction: Option<u64>,
}

impl Explanation {
    fn of(structure: Structure, causes: Causes, inode: u64) -> Explanation {
        Explanation {
            structure,
            causes,
            inode,
            transaction: None,
        }
    }
}

/// Explains the whole write.
pub fn explain(write: &Write<'_>, metadata: &mut Metadata, rows: &mut Rows) {
    let mut home = Home {
        write,
        metadata,
        rows,
        pending: None,
        late: Late::new(),
    };
    let mut done = 0;
    while done < write.length {
        done += home.next(done).clamp(1, write.length - done);
    }
    home.flush();
    let Home { mut late, .. } = home;
    metadata.settle_moved(rows, &mut late);
    metadata.name_rows(late, rows);
}

impl Home<'_, '_> {
    /// Explains the piece that begins `done` bytes into the write, and returns its length.
    fn next(&mut self, done: u64) -> u64 {
        let geometry = &self.metadata.geometry;
        let block_bytes = geometry.block_bytes;
        let offset = self.write.offset + done;
        let rest = rest(self.write, done);
        if self.write.content.is_empty() {
            return self.data(offset, self.write.length - done, true);
        }
        if geometry.header_sector(offset).is_some() {
            let sector_bytes = geometry.sector_bytes;
            let length = (sector_bytes - offset % sector_bytes).min(rest.len() as u64);
            let sector = &rest[..length as usize];
            return match group_header(geometry, offset, sector) {
                Some(block) => self.metadata_block(offset, sector, block),
                None => self.data(offset, length, is_zero(sector)),
            };
        }
        let length = (block_bytes - offset % block_bytes).min(rest.len() as u64);
        let content = &rest[..length as usize];
        if offset.is_multiple_of(block_bytes) {
            if let Some(block) = identify(geometry, offset, content) {
                let whole = match self.metadata.structure(offset, &block) {
                    Structure::Directory | Structure::DirectoryIndex => geometry.directory_bytes,
                    _ => block_bytes,
                };
                let whole = (whole.min(rest.len() as u64)) as usize;
                return self.metadata_block(offset, &rest[..whole], block);
            }
            if is_inode(geometry, offset, content) {
                return self.inode_blocks(offset, rest);
            }
            if is_quota(geometry, content) {
                let causes = Causes::one(Cause::Accounting);
                let quota = Explanation::of(Structure::Quota, causes, NO_INODE);
                return self.add(offset, length, quota);
            }
        }
        let zero = self.write.formatting && is_zero(content);
        self.data(offset, length, zero)
    }

    fn metadata_block(&mut self, offset: u64, content: &[u8], block: Block) -> u64 {
        self.forget_data(offset, content.len() as u64);
        let fingerprint = block.fingerprint(content);
        let structure = self.metadata.structure(offset, &block);
        let home = Some(fingerprint);
        let before = self.metadata.know(offset, structure, block.owner, home);
        if structure == Structure::Superblock {
            self.metadata.read_superblock(content);
        }
        let same = before.is_some_and(|b| b.home == home);
        if !same {
            let (rows, late) = (&mut *self.rows, &mut self.late);
            self.metadata
                .read_block(offset, &block, content, rows, late);
        }
        let causes = match same {
            true => Causes::one(Cause::Unchanged),
            false => causes_of(structure),
        };
        let explanation = Explanation {
            transaction: block.sequence(content),
            ..Explanation::of(structure, causes, block.owner)
        };
        self.add(offset, content.len() as u64, explanation)
    }

    fn forget_data(&mut self, offset: u64, length: u64) {
        self.metadata.owners.forget(offset, length, self.rows);
    }

    /// Explains a cluster of inodes. Inodes are read and written in clusters: the whole cluster is
    /// written because of those that changed.
    fn inode_blocks(&mut self, offset: u64, rest: &[u8]) -> u64 {
        let geometry = self.metadata.geometry.clone();
        let in_group = offset / geometry.block_bytes % geometry.ag_blocks;
        let cluster = geometry.inode_cluster_blocks();
        let length = ((cluster - in_group % cluster) * geometry.block_bytes).min(rest.len() as u64);
        let mut causes = Causes::NONE;
        let mut changed = 0;
        let mut inode = NO_INODE;
        let mut transaction = None;
        let mut end = 0;
        let slot_bytes = geometry.inode_bytes as usize;
        for (number, slot) in rest[..length as usize].chunks_exact(slot_bytes).enumerate() {
            let at = offset + (number * slot_bytes) as u64;
            if !is_inode(&geometry, at, slot) {
                break;
            }
            end = (number + 1) * slot_bytes;
            let Some(version) = Version::on_disk(slot) else {
                continue;
            };
            let this = geometry.inode_at(at);
            let (rows, late) = (&mut *self.rows, &mut self.late);
            let before = self.metadata.inode_home(this, slot, version, rows, late);
            let why = version.causes(before.as_ref());
            if why.only() != Some(Cause::Unchanged) {
                let sequence = version.core.sequence;
                transaction = transaction.max(Some(sequence).filter(|&lsn| lsn != 0));
            }
            match why.only() {
                Some(Cause::Unchanged) => {}
                // Free slots are written together with the inodes created among them.
                Some(Cause::Allocation) => {}
                _ => {
                    causes = causes.and(why);
                    changed += 1;
                    inode = this;
                }
            }
            if why.has(Cause::Allocation) && changed == 0 {
                inode = NO_INODE;
            }
        }
        // A cluster has no fingerprint of its own: each inode has one.
        let structure = Structure::InodeChunk;
        let before = self.metadata.know(offset, structure, NO_INODE, Some(0));
        let fresh = before.is_none_or(|b| b.home.is_none());
        if causes.is_empty() {
            causes = Causes::one(if fresh {
                Cause::Allocation
            } else {
                Cause::Unchanged
            });
        }
        let inode = if changed == 1 { inode } else { NO_INODE };
        let length = (end as u64)
            .next_multiple_of(geometry.block_bytes)
            .min(length);
        self.forget_data(offset, length);
        let explanation = Explanation {
            transaction,
            ..Explanation::of(Structure::InodeChunk, causes, inode)
        };
        self.add(offset, length, explanation)
    }

    /// Explains blocks that do not identify themselves as metadata: data, or the kind given by the
    /// owner's fork.
    fn data(&mut self, offset: u64, length: u64, zero: bool) -> u64 {
        let block_bytes = self.metadata.geometry.block_bytes;
        let end = offset + length;
        let (first, last) = (offset / block_bytes, end.div_ceil(block_bytes));
        let (owner, blocks) = self.metadata.owners.of(first, last - first);
        let length = ((first + blocks) * block_bytes).min(end) - offset;
        match owner {
            Some(owner) => {
                let causes = causes_of(owner.structure);
                let explanation = Explanation::of(owner.structure, causes, owner.inode);
                self.add(offset, length, explanation)
            }
            None => {
                let (structure, causes) = match (self.write.formatting, zero) {
                    (true, true) => (Structure::Unused, Causes::NONE),
                    (true, false) => (Structure::Unknown, Causes::NONE),
                    (false, _) => (Structure::FileData, Causes::one(Cause::Data)),
                };
                self.add(offset, length, Explanation::of(structure, causes, NO_INODE))
            }
        }
    }

    fn add(&mut self, offset: u64, length: u64, explanation: Explanation) -> u64 {
        let mut explanation = explanation;
        if self.write.formatting {
            explanation.causes = Causes::one(Cause::Format);
            explanation.transaction = None;
        }
        let row = explanation.row(self.write, offset, length);
        match &mut self.pending {
            Some(before)
                if (
                    before.structure,
                    before.causes,
                    before.inode,
                    before.transaction,
                ) == (row.structure, row.causes, row.inode, row.transaction) =>
            {
                before.length += length;
            }
            _ => {
                self.flush();
                self.pending = Some(row);
            }
        }
        length
    }

    fn flush(&mut self) {
        let Some(row) = self.pending.take() else {
            return;
        };
        let number = self.rows.push(row);
        if row.inode != NO_INODE {
            self.late.push((number, row.inode));
        } else if row.structure == Structure::FileData || self.write.formatting {
            self.metadata.owners.wait(number, row.offset, row.length);
        }
    }
}

impl Explanation {
    fn row(self, write: &Write<'_>, offset: u64, length: u64) -> Row {
        Row {
            offset,
            length,
            inode: self.inode,
            transaction: self.transaction,
            ..write.row(self.structure, self.causes)
        }
    }
}

/// Returns the causes of writing a block of this kind if it differs from the previous version.
pub fn causes_of(structure: Structure) -> Causes {
    Causes::one(match structure {
        Structure::FileData => Cause::Data,
        Structure::Superblock | Structure::SuperblockBackup | Structure::Quota => Cause::Accounting,
        Structure::Directory | Structure::DirectoryIndex => Cause::DirectoryEntries,
        Structure::ExtentMap => Cause::SizeOrExtents,
        Structure::Xattr => Cause::LinksOrMode,
        // A symlink target never changes.
        Structure::Symlink => Cause::NewInode,
        _ => Cause::Allocation,
    })
}

fn rest<'b>(write: &Write<'b>, done: u64) -> &'b [u8] {
    let from = usize::try_from(done).unwrap_or(usize::MAX);
    write.content.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::geometry;
    use super::*;

    #[test]
    fn what_is_written_home_with_the_content_of_before_is_unchanged() {
        let mut group = vec![0; 512];
        group[..4].copy_from_slice(b"XAGF");
        // An inode: mode, version, format, links, and its own number.
        let mut inodes = vec![0; 4096];
        inodes[..6].copy_from_slice(&[b'I', b'N', 0o100, 0, 3, 2]);
        inodes[19] = 1;
        inodes[152..160].copy_from_slice(&512_u64.to_be_bytes());
        // Bytes that do not count as a change (the last bytes of the sequence number and of the
        // checksum), and one that does: free blocks, the access time.
        let cases = [
            (512, group, [215, 219], 55, ["allocation", "allocation"]),
            (64 * 4096, inodes, [119, 103], 39, ["new_inode", "atime"]),
        ];
        for (offset, mut content, volatile, telling, [first, last]) in cases {
            let mut metadata = Metadata::new(geometry());
            let mut rows = Rows::default();
            for changed in [&[][..], &[], &volatile, &[telling]] {
                changed.iter().for_each(|&at| content[at] += 1);
                let write = Write {
                    event: 1,
                    time_ns: 0,
                    disk: 0,
                    offset,
                    content: &content,
                    length: content.len() as u64,
                    formatting: false,
                };
                explain(&write, &mut metadata, &mut rows);
            }
            let causes = rows.to_vec().into_iter().map(|r| r.causes.to_string());
            let causes: Vec<_> = causes.collect();
            assert_eq!(causes, [first, "unchanged", "unchanged", last]);
        }
    }
}
