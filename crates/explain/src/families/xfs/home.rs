//! Writes outside the log: metadata at its home location, and data.

use super::block::{Block, group_header, identify, is_inode, is_quota};
use super::metadata::{Metadata, structure_of};
use super::owners::Owner;
use super::version::Version;
use crate::bytes::is_zero;
use crate::{Cause, Causes, Disks, NO_INODE, Row, Rows, Structure, Write};
use fscost_recording::{MAX_REQUEST_BYTES, Result};
use std::mem::take;

/// Rows of one write.
pub struct Home<'a, 'b> {
    write: &'a Write<'b>,
    metadata: &'a mut Metadata,
    rows: &'a mut Rows,
    pending: Option<Row>,
    /// True if data of this write no longer waits for an owner.
    is_settled: bool,
    /// The row that the next one replaces.
    replaced: Option<usize>,
}

/// Explains the whole write.
pub fn explain(write: &Write<'_>, metadata: &mut Metadata, rows: &mut Rows) {
    explain_over(write, None, metadata, rows);
}

/// Reads the rows that were taken for data without being read, and explains the metadata in them:
/// the first values of attributes. The disks still hold their content.
pub fn again(metadata: &mut Metadata, disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
    for number in take(&mut metadata.owners.misplaced) {
        let row = rows.get_mut(number).copied();
        read(row, disks, |write| {
            explain_over(write, Some((number, true)), metadata, rows);
        })?;
    }
    if !metadata.has_xattr_blocks || metadata.reads_short {
        return Ok(());
    }
    metadata.reads_short = true;
    for piece in metadata.owners.newest_waiting(rows) {
        let row = rows.get_mut(piece.row).copied();
        read(row, disks, |write| {
            let geometry = &metadata.geometry;
            let block_bytes = geometry.block_bytes as usize;
            let offsets = (write.offset..).step_by(block_bytes);
            let mut blocks = offsets.zip(write.content.chunks(block_bytes));
            if blocks.any(|(offset, block)| identify(geometry, offset, block).is_some()) {
                metadata.owners.forget(piece.offset, piece.length, rows);
                explain_over(write, Some((piece.row, false)), metadata, rows);
            }
        })?;
    }
    Ok(())
}

/// Reads what the disk holds at the place of a row, as the write that it was.
fn read(row: Option<Row>, disks: &mut Disks<'_>, explain: impl FnOnce(&Write<'_>)) -> Result<()> {
    // A longer row is of zeroes.
    let Some(row) = row.filter(|row| row.length <= MAX_REQUEST_BYTES as u64) else {
        return Ok(());
    };
    let mut content = vec![0; row.length as usize];
    disks.read(row.disk, row.offset, &mut content)?;
    explain(&Write {
        event: row.event,
        time_ns: 0,
        disk: row.disk,
        offset: row.offset,
        content: &content,
        length: row.length,
        formatting: false,
    });
    Ok(())
}

/// Explains the write. Its first row replaces this one, whose data may be settled: it no longer
/// waits for an owner.
fn explain_over(
    write: &Write<'_>,
    replaced: Option<(usize, bool)>,
    metadata: &mut Metadata,
    rows: &mut Rows,
) {
    let mut home = Home {
        write,
        metadata,
        rows,
        pending: None,
        is_settled: replaced.is_some_and(|(_, is_settled)| is_settled),
        replaced: replaced.map(|(number, _)| number),
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
            shift: None,
        };
        let owner = owner.filter(|owner| !self.is_settled && !self.is_stale(owner, offset, length));
        let Owner {
            inode,
            structure,
            shift,
        } = owner.unwrap_or(unowned);
        self.add(Row {
            inode,
            shift,
            ..self.row(offset, length, structure)
        })
    }

    /// Returns whether these blocks, which do not identify themselves, no longer hold attributes:
    /// each block of those has a header (`xfs_attr3_rmt_hdr`, `xfs_da3_blkinfo`). The log says
    /// later that they were freed and used again. Content that was not read is zero.
    fn is_stale(&self, owner: &Owner, offset: u64, length: u64) -> bool {
        let content = self.write.part(offset - self.write.offset, length).content;
        owner.structure == Structure::Xattr && !is_zero(content)
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
        let number = match self.replaced.take() {
            Some(number) => {
                if let Some(before) = self.rows.get_mut(number) {
                    *before = row;
                }
                number
            }
            None => self.rows.push(row),
        };
        if row.inode != NO_INODE {
            self.metadata.late.push((number, row.inode));
        } else if (row.structure == Structure::FileData && !self.is_settled)
            || self.write.formatting
        {
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
    use fscost_recording::{DiskInfo, Event, Header, Op, Recording, Stripped, Writer};
    use std::path::Path;

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

    /// Records one write.
    fn recorded(path: &Path, event: Event, content: &[u8]) -> Recording {
        let header = Header {
            begin_unix_ns: 0,
            disks: vec![DiskInfo {
                name: "main".into(),
                size_bytes: 2000 * 4096,
                logical_block_bytes: 512,
                physical_block_bytes: 512,
            }],
            stripped: Stripped::No,
        };
        let mut writer = Writer::create(path, &header).unwrap();
        writer.space()[..content.len()].copy_from_slice(content);
        writer.append(event).unwrap();
        writer.finish().unwrap();
        Recording::open(path).unwrap()
    }

    fn written(offset: u64, length: u64) -> Event {
        Event {
            submit_ns: 0,
            complete_ns: 0,
            offset,
            length,
            content_offset: 0,
            disk: 0,
            op: Op::Write,
            fua: false,
        }
    }

    /// Returns a block of data, and a value of inode 77 at this sector.
    fn data_and_value(sector: u64) -> Vec<u8> {
        let mut value = vec![0; 4096];
        value[..4].copy_from_slice(b"XARM");
        value[32..40].copy_from_slice(&77_u64.to_be_bytes());
        value[40..48].copy_from_slice(&sector.to_be_bytes());
        [vec![1; 4096], value].concat()
    }

    #[test]
    fn what_has_no_header_is_no_attribute_any_more() {
        const OFFSET: u64 = 256 * 4096;
        let (mut metadata, mut rows) = (Metadata::new(geometry()), Rows::default());
        let owner = |structure| Owner {
            inode: 9,
            structure,
            shift: None,
        };
        let blocks = OFFSET / metadata.geometry.block_bytes;
        let attributes = owner(Structure::Xattr);
        metadata.owners.give(blocks, 2, attributes, false);
        let content = data_and_value(257 * 8);
        let write = Write {
            event: 0,
            time_ns: 0,
            disk: 0,
            offset: OFFSET,
            content: &content,
            length: content.len() as u64,
            formatting: false,
        };
        explain(&write, &mut metadata, &mut rows);
        let data = owner(Structure::FileData);
        metadata.owners.claim(OFFSET, 4096, data, &mut rows);
        let rows = rows.to_vec();
        let found: Vec<_> = rows.iter().map(|row| (row.structure, row.inode)).collect();
        assert_eq!(found, [(Structure::FileData, 9), (Structure::Xattr, 77)]);
    }

    #[test]
    fn the_first_values_of_attributes_are_read_once_the_log_names_their_like() {
        const OFFSET: u64 = 256 * 4096;
        let content = data_and_value(257 * 8);
        let folder = tempfile::tempdir().unwrap();
        let event = written(OFFSET, content.len() as u64);
        let recording = recorded(&folder.path().join("recording"), event, &content);
        let mut disks = Disks::new(&recording).unwrap();
        disks.apply(0, &event);
        let owner = |structure| Owner {
            inode: 9,
            structure,
            shift: None,
        };
        for (named, is_used, expected) in [
            // Only the like is named so far; the value, or the data, may still get another owner.
            (None, true, [Structure::FileData, Structure::Xattr]),
            // The log names the value's block, but nothing else.
            (
                Some(Structure::Xattr),
                false,
                [Structure::FileData, Structure::Xattr],
            ),
            // Data is not read.
            (Some(Structure::FileData), false, [Structure::FileData; 2]),
        ] {
            let (mut metadata, mut rows) = (Metadata::new(geometry()), Rows::default());
            let zeros = vec![0; content.len()];
            let write = Write {
                event: 0,
                time_ns: 0,
                disk: 0,
                offset: OFFSET,
                content: &zeros,
                length: event.length,
                formatting: false,
            };
            assert!(!metadata.may_be_at(OFFSET, event.length));
            explain(&write, &mut metadata, &mut rows);
            metadata.has_xattr_blocks = is_used;
            if let Some(structure) = named {
                metadata
                    .owners
                    .claim(OFFSET + 4096, 4096, owner(structure), &mut rows);
            }
            again(&mut metadata, &mut disks, &mut rows).unwrap();
            assert_eq!(metadata.may_be_at(1 << 21, 4096), is_used);
            metadata
                .owners
                .claim(OFFSET, 4096, owner(Structure::FileData), &mut rows);
            let mut found = rows.to_vec();
            found.sort_by_key(|row| row.offset);
            let found: Vec<_> = found.iter().map(|row| (row.structure, row.inode)).collect();
            let last = if expected[1] == Structure::Xattr {
                77
            } else {
                9
            };
            assert_eq!(found, [(expected[0], 9), (expected[1], last)], "{named:?}");
        }
    }
}
