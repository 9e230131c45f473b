//! Writes outside the log: metadata at its home location, and data.

use super::block::{Block, group_header, identify, is_inode, is_quota};
use super::metadata::{Metadata, structure_of};
use super::owners::Owner;
use super::version::Version;
use crate::bytes::is_zero;
use crate::{Cause, Causes, NO_INODE, Row, Rows, Structure, Write};
use std::mem::take;

/// Rows of one write.
pub struct Home<'a, 'b> {
    write: &'a Write<'b>,
    metadata: &'a mut Metadata,
    rows: &'a mut Rows,
    pending: Option<Row>,
}

/// Explains the whole write.
pub fn explain(write: &Write<'_>, metadata: &mut Metadata, rows: &mut Rows) {
    let mut home = Home {
        write,
        metadata,
        rows,
        pending: None,
    };
    let mut done = 0;
    while done < write.length {
        done += home.next(done).clamp(1, write.length - done);
    }
    home.flush();
    metadata.settle_moved(rows);
    let late = take(&mut metadata.late);
    metadata.name_rows(late, rows);
}

impl Home<'_, '_> {
    /// Explains the piece that begins `done` bytes into the write, and returns its length.
    fn next(&mut self, done: u64) -> u64 {
        let geometry = &self.metadata.geometry;
        let block_bytes = geometry.block_bytes;
        let offset = self.write.offset + done;
        let rest = self.write.part(done, self.write.length - done).content;
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
                let whole = match structure_of(block.kind) {
                    Structure::Directory | Structure::DirectoryIndex => geometry.directory_bytes,
                    _ => block_bytes,
                };
                let whole = (whole.min(rest.len() as u64)) as usize;
                return self.metadata_block(offset, &rest[..whole], block);
            }
            // A write by anything but xfs may end within an inode.
            if rest.len() as u64 >= geometry.inode_bytes && is_inode(geometry, offset, content) {
                return self.inode_blocks(offset, rest);
            }
            if is_quota(geometry, content) {
                return self.add(self.row(offset, length, Structure::Quota));
            }
        }
        let zero = self.write.formatting && is_zero(content);
        self.data(offset, length, zero)
    }

    fn metadata_block(&mut self, offset: u64, content: &[u8], block: Block) -> u64 {
        let length = content.len() as u64;
        self.metadata.owners.forget(offset, length, self.rows);
        let structure = structure_of(block.kind);
        let home = Some(block.fingerprint(content));
        let before = self.metadata.know(offset, structure, block.owner, home);
        if structure == Structure::Superblock {
            self.metadata.read_superblock(content);
        }
        let mut row = Row {
            inode: block.owner,
            transaction: block.sequence(content),
            ..self.row(offset, length, structure)
        };
        match before.is_some_and(|b| b.home == home) {
            true => row.causes = Causes::one(Cause::Unchanged),
            false => self.metadata.read_block(offset, &block, content, self.rows),
        }
        self.add(row)
    }

    /// Explains a cluster of inodes. Inodes are read and written in clusters: the whole cluster is
    /// written because of those that changed.
    fn inode_blocks(&mut self, offset: u64, rest: &[u8]) -> u64 {
        let geometry = self.metadata.geometry.clone();
        let in_group = offset / geometry.block_bytes % geometry.ag_blocks;
        let cluster = geometry.inode_cluster_blocks();
        let length = ((cluster - in_group % cluster) * geometry.block_bytes).min(rest.len() as u64);
        let mut causes = Causes::NONE;
        let mut changed = Vec::new();
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
            let why = self.metadata.inode_home(this, slot, version, self.rows);
            if why.only() == Some(Cause::Unchanged) {
                continue;
            }
            let sequence = version.core.sequence;
            transaction = transaction.max(Some(sequence).filter(|&lsn| lsn != 0));
            // Free slots are written together with the inodes created among them.
            if why.only() != Some(Cause::Allocation) {
                causes = causes.and(why);
                changed.push(this);
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
        let end = (end as u64).next_multiple_of(geometry.block_bytes);
        let length = end.min(length);
        self.metadata.owners.forget(offset, length, self.rows);
        self.add(Row {
            causes,
            inode: match changed[..] {
                [one] => one,
                _ => NO_INODE,
            },
            transaction,
            ..self.row(offset, length, structure)
        })
    }

    /// Explains blocks that do not identify themselves as metadata: data, or the kind given by the
    /// owner's fork.
    fn data(&mut self, offset: u64, length: u64, zero: bool) -> u64 {
        let block_bytes = self.metadata.geometry.block_bytes;
        let end = offset + length;
        let (first, last) = (offset / block_bytes, end.div_ceil(block_bytes));
        let (owner, blocks) = self.metadata.owners.of(first, last - first);
        let length = ((first + blocks) * block_bytes).min(end) - offset;
        let unowned = Owner {
            inode: NO_INODE,
            structure: match self.write.formatting {
                true if zero => Structure::Unused,
                true => Structure::Unknown,
                false => Structure::FileData,
            },
        };
        let Owner { inode, structure } = owner.unwrap_or(unowned);
        let row = self.row(offset, length, structure);
        self.add(Row { inode, ..row })
    }

    /// Returns a row for a part of the write that changed the disk.
    fn row(&self, offset: u64, length: u64, structure: Structure) -> Row {
        Row {
            offset,
            length,
            ..self.write.row(structure, Causes::one(cause_of(structure)))
        }
    }

    /// Adds the next row of the write, and returns its length.
    fn add(&mut self, mut row: Row) -> u64 {
        if self.write.formatting {
            row.causes = Causes::one(Cause::Format);
            row.transaction = None;
        }
        let pending = self.pending.as_mut();
        if !pending.is_some_and(|before| before.absorb(&row)) {
            self.flush();
            self.pending = Some(row);
        }
        row.length
    }

    fn flush(&mut self) {
        let Some(row) = self.pending.take() else {
            return;
        };
        let number = self.rows.push(row);
        if row.inode != NO_INODE {
            self.metadata.late.push((number, row.inode));
        } else if row.structure == Structure::FileData || self.write.formatting {
            self.metadata.owners.wait(number, row.offset, row.length);
        }
    }
}

/// Returns the cause of writing a block of this kind if it differs from the previous version.
pub fn cause_of(structure: Structure) -> Cause {
    match structure {
        Structure::FileData => Cause::Data,
        Structure::Superblock | Structure::SuperblockBackup | Structure::Quota => Cause::Accounting,
        Structure::Directory | Structure::DirectoryIndex => Cause::DirectoryEntries,
        Structure::ExtentMap => Cause::SizeOrExtents,
        Structure::Xattr => Cause::LinksOrMode,
        // A symlink target never changes.
        Structure::Symlink => Cause::NewInode,
        _ => Cause::Allocation,
    }
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
