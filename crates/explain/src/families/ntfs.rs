//! NTFS: everything is a file. The MFT has a record for each file, with its names and its runs of
//! clusters (fs/ntfs3/ntfs.h).

use crate::disks::read_bytes;
use crate::track::files::{Files, Owner, Part};
use crate::track::fingerprints::{Fingerprints, causes_of};
use crate::track::follower::Follower;
use crate::track::names::Entry;
use crate::{Cause, Causes, Family, FormattedDisks, Now, Rows, Structure, Write};
use fscost_ondisk::ntfs::{self, Geometry, Record};
use fscost_recording::{Image, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const MFT: u64 = 0;
const MIRROR: u64 = 1;
const ROOT: u64 = 5;

/// Returns the family that follows `disk` if the disk holds an NTFS file system. `image` is the
/// disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let sector = read_bytes::<512>(image, 0)?;
    let geometry = sector.and_then(|sector| Geometry::parse(&sector, image.size_bytes()));
    let Some(geometry) = geometry else {
        return Ok(None);
    };
    // The MFT is also a file: its first record locates the others.
    let mut first = vec![0; geometry.record_bytes as usize];
    if geometry.mft + geometry.record_bytes <= image.size_bytes() {
        image.read_at(geometry.mft, &mut first)?;
    }
    Ok(Some(Box::new(Ntfs {
        disk,
        files: Files::doubting(ROOT, Structure::FileData),
        first: Record::parse(&first),
        mft: Vec::new(),
        records: HashMap::new(),
        names: HashMap::new(),
        geometry,
    })))
}

struct Ntfs {
    disk: u16,
    geometry: Geometry,
    files: Files,
    /// The MFT's own record, until the first write.
    first: Option<Record>,
    /// Clusters of the MFT: offset in the MFT, offset on the disk, and length, all in bytes.
    mft: Vec<(u64, u64, u64)>,
    /// Last written version of each record, with its sequence number.
    records: HashMap<u64, (u16, Fingerprints)>,
    /// Names by record and directory.
    names: HashMap<u64, BTreeMap<u64, Vec<String>>>,
}

impl Follower for Ntfs {
    const IS_ATOMIC: bool = false;

    fn name(&self) -> &'static str {
        "ntfs"
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()> {
        if let Some(first) = self.first.take() {
            self.learn(0, &first, now.rows);
        }
        let backup_at = self.geometry.end - 512;
        let mut rest = *now.write;
        while rest.length > 0 {
            // The last sector holds a copy of the first.
            if rest.offset >= backup_at {
                let part = Part::new(Structure::SuperblockBackup, Cause::Accounting);
                self.files.add(&rest, part, now.rows);
                break;
            }
            let most = rest.length.min(backup_at - rest.offset);
            let (owner, length) = self.files.owner(rest.offset, most);
            let piece = rest.take_front(length);
            self.files.confirm(piece.offset, piece.length, now.rows);
            match owner {
                Some(owner) if owner.structure == Structure::Mft => {
                    self.records(&piece, owner.inode == MIRROR, now.rows);
                }
                _ => self.files.add_owned(&piece, now.rows),
            }
        }
        Ok(())
    }
}

impl Ntfs {
    /// Explains a write to records of the MFT, or of its mirror.
    fn records(&mut self, write: &Write<'_>, is_mirror: bool, rows: &mut Rows) {
        let mut rest = *write;
        while rest.length > 0 {
            // A write-zeroes request has no records.
            let length = match rest.content.is_empty() {
                true => rest.length,
                false => self.geometry.record_bytes.min(rest.length),
            };
            let piece = rest.take_front(length);
            let mut part = Part::new(Structure::Mft, Cause::Allocation);
            if is_mirror {
                (part.causes, part.copy) = (Causes::one(Cause::Accounting), 1);
            } else if let (Some(record), Some(number)) =
                (Record::parse(piece.content), self.number(piece.offset))
            {
                part.causes = self.causes(number, &record, rows);
                part.inode = record.base(number);
                // A record that was written only because a neighbour changed may be older than the
                // inode in memory, which may have given up clusters.
                if record.is_in_use() && part.causes != Causes::one(Cause::Unchanged) {
                    self.learn(number, &record, rows);
                }
            }
            self.files.add(&piece, part, rows);
        }
    }

    /// Returns the number of the record at a disk offset.
    fn number(&self, offset: u64) -> Option<u64> {
        let within = |&&(_, from, bytes): &&(u64, u64, u64)| (from..from + bytes).contains(&offset);
        let &(at, from, _) = self.mft.iter().find(within)?;
        Some((at + offset - from) / self.geometry.record_bytes)
    }

    fn causes(&mut self, number: u64, record: &Record, rows: &mut Rows) -> Causes {
        let sequence = record.sequence();
        if !record.is_in_use() {
            self.rename(number, record.base(number), BTreeMap::new());
            self.files.forget(number, rows);
            return Causes::one(match self.records.remove(&number) {
                Some(_) => Cause::InodeRemoved,
                None => Cause::Allocation,
            });
        }
        let now = record.fingerprints();
        let before = self.records.insert(number, (sequence, now));
        if before.is_some_and(|(of, _)| of != sequence) {
            self.files.forget(number, rows);
        }
        match before {
            Some((of, before)) if of == sequence => causes_of(&now, &before),
            _ if now.data != 0 => Causes::one(Cause::NewInode).with(Cause::Data),
            _ => Causes::one(Cause::NewInode),
        }
    }

    /// Replaces all names of a record with these, grouped by directory.
    fn rename(&mut self, number: u64, inode: u64, names: BTreeMap<u64, Vec<String>>) {
        let before = self.names.remove(&number).unwrap_or_default();
        let both: BTreeSet<u64> = before.keys().chain(names.keys()).copied().collect();
        for directory in both {
            let before = entries(before.get(&directory), inode);
            let after = entries(names.get(&directory), inode);
            let place = (number, directory);
            self.files.rename(place, directory, &before, &after);
        }
        if !names.is_empty() {
            self.names.insert(number, names);
        }
    }

    /// Attributes a record's clusters to its file, and stores its names.
    fn learn(&mut self, number: u64, record: &Record, rows: &mut Rows) {
        let inode = record.base(number);
        self.rename(number, inode, names(record));
        for attribute in record.attributes() {
            let structure = structure(inode, attribute.kind);
            let is_mft = inode == MFT && structure == Structure::Mft;
            let bytes = self.geometry.cluster_bytes;
            let mut at = attribute.first().saturating_mul(bytes);
            if is_mft {
                self.mft.retain(|&(before, ..)| before < at);
            }
            for (cluster, count) in attribute.runs() {
                let from = cluster.saturating_mul(bytes).min(self.geometry.end);
                let to = cluster.saturating_add(count).saturating_mul(bytes);
                let length = to.min(self.geometry.end) - from;
                if is_mft {
                    self.mft.push((at, from, length));
                    at = at.saturating_add(length);
                }
                self.files
                    .own(from, length, Owner { inode, structure }, rows);
            }
        }
    }
}

/// Returns the names that a record gives its file, by directory.
fn names(record: &Record) -> BTreeMap<u64, Vec<String>> {
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (directory, name) in record.attributes().filter_map(|attribute| attribute.name()) {
        names.entry(directory).or_default().push(name);
    }
    names
}

fn entries(names: Option<&Vec<String>>, inode: u64) -> Vec<Entry<'_>> {
    let names = names.into_iter().flatten();
    names.map(|name| (name.as_bytes(), inode)).collect()
}

/// Structure of the clusters of a file's attribute. The first records are the file system's own
/// (`enum RECORD_NUM`).
fn structure(inode: u64, attribute: u32) -> Structure {
    match (inode, attribute) {
        (0 | 1, ntfs::DATA) => Structure::Mft,
        (0, ntfs::BITMAP) => Structure::InodeBitmap,
        (2, _) => Structure::Log,
        (6, ntfs::DATA) => Structure::BlockBitmap,
        // $AttrDef, $Boot, $UpCase: written once by mkfs. $BadClus has no clusters.
        (4 | 7 | 8 | 10, ntfs::DATA) => Structure::Superblock,
        // $Secure
        (9, _) => Structure::Xattr,
        (_, ntfs::INDEX | ntfs::BITMAP | ntfs::INDEX_ROOT) => Structure::Directory,
        (_, ntfs::DATA) => Structure::FileData,
        (_, ntfs::LIST) => Structure::ExtentMap,
        (_, ntfs::REPARSE) => Structure::Symlink,
        _ => Structure::Xattr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA_AT: u64 = 64 << 12;

    /// Builds a record in use, with a time and one cluster of data.
    fn record(time: u8) -> Vec<u8> {
        let mut bytes = vec![0; 1024];
        bytes[..4].copy_from_slice(b"FILE");
        (bytes[4], bytes[6], bytes[20], bytes[22]) = (0x30, 3, 0x38, 1);
        // Times: resident, a value of 48 bytes after a header of 24.
        let mut times = vec![0; 72];
        (times[0], times[4], times[16], times[20], times[24]) = (0x10, 72, 48, 24, time);
        // Data: not resident, with the run "1 cluster at cluster 64".
        let mut data = vec![0; 72];
        (data[0], data[4], data[8], data[32]) = (ntfs::DATA as u8, 72, 1, 0x40);
        data[64..68].copy_from_slice(&[0x11, 1, 64, 0]);
        bytes[0x38..0x38 + 72].copy_from_slice(&times);
        bytes[0x80..0x80 + 72].copy_from_slice(&data);
        bytes[0xc8..0xcc].copy_from_slice(&[0xff; 4]);
        bytes
    }

    fn write(event: u64, offset: u64, content: &[u8]) -> Write<'_> {
        Write {
            event,
            time_ns: 0,
            disk: 0,
            offset,
            length: content.len() as u64,
            content,
            formatting: false,
        }
    }

    #[test]
    fn only_a_record_that_changed_confirms_the_owner_of_data() {
        let mut rows = Rows::default();
        let mut family = Ntfs {
            disk: 0,
            geometry: Geometry {
                cluster_bytes: 4096,
                record_bytes: 1024,
                mft: 0,
                end: 1 << 20,
            },
            files: Files::doubting(ROOT, Structure::FileData),
            first: None,
            mft: vec![(0, 0, 16 << 12)],
            records: HashMap::new(),
            names: HashMap::new(),
        };
        let steps = [
            (1, 40 << 10, record(1)),
            (2, DATA_AT, vec![1; 4096]),
            (3, 40 << 10, record(1)),
            (4, 40 << 10, record(2)),
        ];
        let mut found = Vec::new();
        for (event, offset, content) in &steps {
            let write = write(*event, *offset, content);
            family.files.begin(&write, &mut rows);
            match *offset {
                DATA_AT => family.files.add_owned(&write, &mut rows),
                _ => family.records(&write, false, &mut rows),
            }
            let rows = rows.to_vec().into_iter();
            found.extend(rows.filter(|row| row.event == 2).map(|row| row.is_doubtful));
        }
        assert_eq!(found, [true, true, false]);
    }
}
