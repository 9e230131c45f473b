//! NTFS: everything is a file, and the MFT has a record of each, its names and its runs of clusters
//! (fs/ntfs3/ntfs.h).

mod record;

use crate::bytes::{byte, le16, le64};
use crate::track::files::{Files, Owner, Part};
use crate::track::fingerprints::Fingerprints;
use crate::track::follower::Follower;
use crate::track::names::Entry;
use crate::{Cause, Causes, Disks, Family, FormattedDisks, Rows, Structure, Write};
use fscost_recording::{Image, Result};
use record::Record;
use std::collections::{BTreeMap, BTreeSet, HashMap};

const MFT: u64 = 0;
const MIRROR: u64 = 1;
const ROOT: u64 = 5;

/// Sizes and places, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Geometry {
    cluster_bytes: u64,
    record_bytes: u64,
    mft: u64,
    end: u64,
}

impl Geometry {
    fn parse(sector: &[u8], disk_bytes: u64) -> Option<Geometry> {
        let sector_bytes = u64::from(le16(sector, 11));
        let is_one = sector.get(3..11) == Some(b"NTFS    ")
            && matches!(sector_bytes, 512 | 1024 | 2048 | 4096);
        // From 0x80 on, powers of two (`true_sectors_per_clst`).
        let per_cluster = match byte(sector, 13) {
            small @ 1..=0x80 => u64::from(small),
            log @ 0xf0.. => 1 << (256 - u32::from(log)),
            _ => return None,
        };
        let cluster_bytes = sector_bytes * per_cluster;
        // A negative number is a power of two, too.
        let record_bytes = match byte(sector, 64) {
            log @ 0xf0..=0xf7 => 1 << (256 - u32::from(log)),
            clusters @ 1..=64 => cluster_bytes * u64::from(clusters),
            _ => return None,
        };
        let end = le64(sector, 40).checked_mul(sector_bytes)?;
        let mft = le64(sector, 48).checked_mul(cluster_bytes)?;
        let is_one = is_one && mft < end && end <= disk_bytes && record_bytes <= 65536;
        is_one.then_some(Geometry {
            cluster_bytes,
            record_bytes,
            mft,
            end,
        })
    }
}

/// The family that follows `disk`, if it holds one. `image` is the disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let mut sector = [0; 512];
    if image.size_bytes() < sector.len() as u64 {
        return Ok(None);
    }
    image.read_at(0, &mut sector)?;
    let Some(geometry) = Geometry::parse(&sector, image.size_bytes()) else {
        return Ok(None);
    };
    // The MFT is a file, too: its first record tells where the others are.
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
    /// Clusters of the MFT: its bytes from the first on, where they are, and how many.
    mft: Vec<(u64, u64, u64)>,
    /// Records as they were written last, with their sequence numbers.
    records: HashMap<u64, (u16, Fingerprints)>,
    /// By record and directory, names.
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

    fn follow(&mut self, write: &Write<'_>, _disks: &mut Disks<'_>, rows: &mut Rows) -> Result<()> {
        if let Some(first) = self.first.take() {
            self.learn(0, &first, rows);
        }
        let mut done = 0;
        while done < write.length {
            let offset = write.offset + done;
            let rest = write.length - done;
            // The last sector has a copy of the first.
            if offset >= self.geometry.end - 512 {
                let part = Part::new(Structure::SuperblockBackup, Cause::Accounting);
                self.files.add(&write.part(done, rest), part, rows);
                break;
            }
            let (owner, length) = self
                .files
                .owner(offset, rest.min(self.geometry.end - 512 - offset));
            let piece = write.part(done, length);
            done += length;
            self.files.confirm(piece.offset, piece.length, rows);
            match owner {
                Some(owner) if owner.structure == Structure::Mft => {
                    self.records(&piece, owner.inode == MIRROR, rows);
                }
                _ => self.files.add_owned(&piece, rows),
            }
        }
        Ok(())
    }
}

impl Ntfs {
    /// Records of the MFT, or of its mirror.
    fn records(&mut self, write: &Write<'_>, is_mirror: bool, rows: &mut Rows) {
        let mut done = 0;
        while done < write.length {
            // A write-zeroes has no records.
            let length = match write.content.is_empty() {
                true => write.length,
                false => self.geometry.record_bytes.min(write.length - done),
            };
            let piece = write.part(done, length);
            done += length;
            let mut part = Part::new(Structure::Mft, Cause::Allocation);
            if is_mirror {
                (part.causes, part.copy) = (Causes::one(Cause::Accounting), 1);
            } else if let (Some(record), Some(number)) =
                (Record::parse(piece.content), self.number(piece.offset))
            {
                part.causes = self.causes(number, &record, rows);
                part.inode = record.base(number);
                if record.is_in_use() {
                    self.learn(number, &record, rows);
                }
            }
            self.files.add(&piece, part, rows);
        }
    }

    /// The number of the record at a place.
    fn number(&self, offset: u64) -> Option<u64> {
        let within = |&&(_, from, bytes): &&(u64, u64, u64)| (from..from + bytes).contains(&offset);
        let &(at, from, _) = self.mft.iter().find(within)?;
        Some((at + offset - from) / self.geometry.record_bytes)
    }

    fn causes(&mut self, number: u64, record: &Record, rows: &Rows) -> Causes {
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
            Some((of, before)) if of == sequence => now.causes(&before),
            _ if now.data != 0 => Causes::one(Cause::NewInode).with(Cause::Data),
            _ => Causes::one(Cause::NewInode),
        }
    }

    /// A record has these names from now on, by directory, and none of before.
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

    /// What a record's clusters are, and its names.
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

/// The names that a record gives its file, by directory.
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

/// What the clusters of a file's attribute are; the first records are the file system's own (`enum
/// RECORD_NUM`).
fn structure(inode: u64, attribute: u32) -> Structure {
    match (inode, attribute) {
        (0 | 1, record::DATA) => Structure::Mft,
        (0, record::BITMAP) => Structure::InodeBitmap,
        (2, _) => Structure::Log,
        (6, record::DATA) => Structure::BlockBitmap,
        // $AttrDef, $Boot, $UpCase: what mkfs says once and for all. $BadClus has no clusters.
        (4 | 7 | 8 | 10, record::DATA) => Structure::Superblock,
        // $Secure
        (9, _) => Structure::Xattr,
        (_, record::INDEX | record::BITMAP | record::INDEX_ROOT) => Structure::Directory,
        (_, record::DATA) => Structure::FileData,
        (_, record::LIST) => Structure::ExtentMap,
        (_, record::REPARSE) => Structure::Symlink,
        _ => Structure::Xattr,
    }
}
