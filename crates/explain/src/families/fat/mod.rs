//! vfat and exFAT: a table that chains clusters, and directories that give the first cluster of
//! each file.
//!
//! These file systems have no inode numbers: a file or directory is identified by its first
//! cluster.

mod causes;
mod table;
mod unnamed;

use crate::disks::read_bytes;
use crate::track::files::{Files, Owner, Part};
use crate::track::follower::Follower;
use crate::{Cause, Family, FormattedDisks, NO_INODE, Now, Rows, Structure, Write};
use directory::{Content, ENTRY, MOST, Named};
use fscost_ondisk::fat::{directory, layout};
use fscost_recording::{Image, Result};
use layout::{FIXED_ROOT, Kind, Layout};
use std::collections::{BTreeSet, HashMap, HashSet};
use table::Table;

/// Returns the family that follows `disk` if the disk holds a vfat or exFAT file system. `image` is
/// the disk as mkfs left it.
pub fn detect(
    _formatted: &FormattedDisks<'_>,
    disk: u16,
    image: &mut Image<'_>,
) -> Result<Option<Box<dyn Family>>> {
    let sector = read_bytes::<512>(image, 0)?;
    let layout = sector.and_then(|sector| Layout::parse(&sector, image.size_bytes()));
    Ok(layout.map(|layout| Box::new(Fat::new(disk, layout)) as Box<dyn Family>))
}

/// `MAX_EXFAT_DENTRIES`, in bytes.
const MOST_DIRECTORY_BYTES: u64 = 256 << 20;

struct Fat {
    disk: u16,
    layout: Layout,
    files: Files,
    chained: Table,
    /// First clusters of chains that no directory has named.
    nameless: HashSet<u64>,
    /// Clusters without a known owner that hold what may be directory entries.
    directory_like: HashSet<u64>,
    /// First clusters of the files that are known to be chained by the table. A contiguous exFAT
    /// file may become chained when it grows.
    linked: HashSet<u64>,
    /// Lengths in bytes of chained exFAT files, by their first cluster.
    chains: HashMap<u64, u64>,
    /// Offset of the previous cluster of the same directory, by the offset of each of its clusters.
    /// `after` is the inverse map.
    before: HashMap<u64, u64>,
    after: HashMap<u64, u64>,
}

impl Follower for Fat {
    const IS_ATOMIC: bool = false;

    fn name(&self) -> &'static str {
        match self.layout.kind {
            Kind::ExFat => "exfat",
            _ => "vfat",
        }
    }

    fn owns(&self, disk: u16) -> bool {
        disk == self.disk
    }

    fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    fn flushed(&mut self, rows: &mut Rows) {
        if self.layout.kind != Kind::ExFat {
            self.adopt(rows);
        }
    }

    fn follow(&mut self, now: &mut Now<'_, '_>) -> Result<()> {
        let root = Owner {
            inode: self.layout.root,
            structure: Structure::Directory,
        };
        if self.files.owner(self.layout.heap.saturating_sub(1), 1).0 != Some(root)
            && self.layout.root == FIXED_ROOT
        {
            let tables_end = self.layout.tables_end;
            let length = self.layout.heap - tables_end;
            self.files.own(tables_end, length, root, now.rows);
        }
        self.follow(Begin::new(self.layout.root, root), now)?;
        let Layout {
            backup,
            table,
            table_bytes,
            tables_end,
            end,
            ..
        } = self.layout;
        self.recognise(now.write, now.rows);
        let mut rest = *now.write;
        while rest.length > 0 {
            let offset = rest.offset;
            let until = match offset {
                _ if offset < backup.0 => backup.0,
                _ if offset < backup.1 => backup.1,
                _ if offset < table => table,
                _ if offset < tables_end => {
                    table + ((offset - table) / table_bytes + 1) * table_bytes
                }
                _ if offset < end => offset + self.files.owner(offset, end - offset).1,
                _ => u64::MAX,
            };
            let piece = rest.take_front(rest.length.min(until - offset));
            let mut part = Part::new(Structure::Superblock, Cause::Accounting);
            if (table..tables_end).contains(&offset) {
                part = Part::new(Structure::AllocationTable, Cause::Allocation);
                part.copy = u8::try_from((offset - table) / table_bytes).unwrap_or(u8::MAX);
                if part.copy == 0 {
                    self.table(&piece, now)?;
                }
            } else if (tables_end..end).contains(&offset) {
                self.heap(&piece, now)?;
                continue;
            } else if (backup.0..backup.1).contains(&offset) {
                part.structure = Structure::SuperblockBackup;
            } else if offset >= end {
                part.structure = Structure::Unused;
            }
            self.files.add(&piece, part, now.rows);
        }
        Ok(())
    }
}

impl Fat {
    fn new(disk: u16, layout: Layout) -> Fat {
        Fat {
            disk,
            files: match layout.kind {
                Kind::ExFat => Files::doubting(layout.root, Structure::FileData),
                _ => Files::doubting_names(layout.root, Structure::FileData),
            },
            chained: Table::default(),
            nameless: HashSet::new(),
            directory_like: HashSet::new(),
            linked: HashSet::new(),
            chains: HashMap::new(),
            before: HashMap::new(),
            after: HashMap::new(),
            layout,
        }
    }

    /// Handles a write to part of the first table.
    fn table(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>) -> Result<()> {
        if write.content.is_empty() {
            // A write-zeroes request may be as long as the table.
            let entry = |at: u64| (at - self.layout.table) * 8 / self.layout.entry_bits();
            let cleared = entry(write.offset)..entry(write.offset + write.length);
            self.chained.clear(|cluster| cleared.contains(&cluster));
            return Ok(());
        }
        // A 12-bit entry may begin in the previous byte and end in the next one.
        let from = write.offset.saturating_sub(1).max(self.layout.table);
        let mut bytes = vec![0; (write.offset + write.length - from + 1) as usize];
        now.read(from, &mut bytes)?;
        let bits = self.layout.entry_bits();
        let begin = (from - self.layout.table) * 8;
        let first = begin.div_ceil(bits);
        let last = ((write.offset + write.length - self.layout.table) * 8).div_ceil(bits);
        let mut chained = BTreeSet::new();
        for cluster in first.max(2)..last.min(self.layout.end_cluster()) {
            let next = self.layout.entry(&bytes, cluster * bits - begin);
            if next == 0 && self.chained.is_new(cluster) {
                self.flushed(now.rows);
            }
            let is_changed = self.chained.set(cluster, next);
            if next == 0 && self.nameless.remove(&cluster) {
                self.files.forget(cluster, now.rows);
            }
            // A freed cluster keeps its owner: writes to a deleted directory may still reach the
            // disk.
            if next != 0
                && is_changed
                && let Some(at) = self.layout.offset(cluster)
                && let Some(owner) = self.files.owner(at, 1).0
            {
                if self.layout.kind == Kind::ExFat && owner.structure == Structure::FileData {
                    chained.insert(owner.inode);
                    continue;
                }
                let begin = Begin {
                    before: Some(at),
                    ..Begin::new(next, owner)
                };
                self.follow(begin, now)?;
            }
        }
        self.follow_files(chained, now)
    }

    /// Explains part of a write to clusters, all of the same owner or without one.
    fn heap(&mut self, write: &Write<'_>, now: &mut Now<'_, '_>) -> Result<()> {
        self.files.confirm(write.offset, write.length, now.rows);
        let (owner, _) = self.files.owner(write.offset, 1);
        let kind = self.layout.kind;
        let mut owner = owner.filter(|owner| owner.structure == Structure::Directory);
        if owner.is_some() && !directory::are_entries(write.content, kind) {
            // A file has reused the clusters of a removed directory.
            self.files.free(write.offset, write.length);
            owner = None;
        }
        let Some(owner) = owner else {
            self.note_entries(write);
            self.files.add_owned(write, now.rows);
            return Ok(());
        };
        let mut before = vec![0; write.content.len()];
        now.disks.read(write.disk, write.offset, &mut before)?;
        let part = Part {
            structure: Structure::Directory,
            causes: causes::causes(&before, write.content, kind),
            inode: owner.inode,
            ..Part::default()
        };
        self.files.add_waiting(write, part, now.rows);
        self.gone(write, owner, now)?;
        for begin in self.names(write.offset, write.length, owner, now)? {
            self.follow(begin, now)?;
        }
        Ok(())
    }

    /// Removes the names that a write to part of a directory overwrites, unless they are still
    /// present.
    fn gone(&mut self, write: &Write<'_>, owner: Owner, now: &mut Now<'_, '_>) -> Result<()> {
        let (after, _) = self.named(write.offset, write.length, owner, Time::Now, now)?;
        let kept: HashSet<_> = after.iter().map(|n| (&n.name, n.cluster)).collect();
        let (before, _) = self.named(write.offset, write.length, owner, Time::Before, now)?;
        for named in before {
            if let Some(name) = &named.name
                && !kept.contains(&(&named.name, named.cluster))
                && self.layout.offset(named.cluster).is_some()
            {
                let entry = (name.as_bytes(), named.cluster);
                self.chains.remove(&named.cluster);
                self.files.unname(owner.inode, entry, now.rows);
            }
        }
        Ok(())
    }

    /// Attributes the whole chain that begins at a cluster to its owner.
    fn follow(&mut self, begin: Begin, now: &mut Now<'_, '_>) -> Result<()> {
        let mut open = vec![begin];
        // In untrusted content directories may contain each other, so each is read once.
        let mut read = HashSet::new();
        while let Some(begin) = open.pop() {
            let owner = begin.owner;
            let mut before = begin.before;
            let is_link = begin.contiguous.is_none();
            let is_new = match is_link {
                true => begin.before.is_none() && self.linked.insert(begin.cluster),
                false => self.linked.remove(&begin.cluster),
            };
            for (offset, length) in self.chain(&begin, is_new) {
                if owner.structure != Structure::Directory {
                    self.files.own(offset, length, owner, now.rows);
                    continue;
                }
                if self.layout.kind == Kind::ExFat && !self.holds_entries(offset, length, now)? {
                    // What waits there is of another file; the directory's entries may follow.
                    self.files.expect(offset, length, owner);
                    continue;
                }
                self.files.own(offset, length, owner, now.rows);
                if let Some(before) = before.replace(offset + length - self.layout.cluster_bytes) {
                    self.before.insert(offset, before);
                    self.after.insert(before, offset);
                }
                if read.insert(offset) {
                    open.extend(self.names(offset, length, owner, now)?);
                }
            }
        }
        Ok(())
    }

    /// Returns the clusters of a chain that the owner does not have yet, as runs. A chain in the
    /// table is followed up to the first cluster that the owner has; with `all`, to its end.
    fn chain(&self, begin: &Begin, all: bool) -> Vec<(u64, u64)> {
        let Begin { cluster, owner, .. } = *begin;
        let cluster_bytes = self.layout.cluster_bytes;
        let mut parts: Vec<(u64, u64)> = Vec::new();
        let Some(offset) = self.layout.offset(cluster) else {
            return parts;
        };
        if let Some(bytes) = begin.contiguous {
            let is_directory = owner.structure == Structure::Directory;
            let bytes = if is_directory {
                bytes.min(MOST_DIRECTORY_BYTES)
            } else {
                bytes
            };
            let whole = bytes.div_ceil(cluster_bytes).saturating_mul(cluster_bytes);
            let end = offset.saturating_add(whole).min(self.layout.end);
            let mut at = offset;
            while at < end {
                // Directory clusters are read one by one.
                let most = if is_directory {
                    cluster_bytes
                } else {
                    end - at
                };
                let (before, length) = self.files.owner(at, most);
                // File data is doubtful until its owner is confirmed, so clusters that the owner
                // already has are included again.
                if before != Some(owner) || owner.structure == Structure::FileData {
                    parts.push((at, length));
                }
                at += length;
            }
            return parts;
        }
        let all = all || self.layout.kind == Kind::ExFat && begin.before.is_none();
        let (mut cluster, mut seen) = (cluster, HashSet::new());
        // exFAT does not clear the entries of freed clusters: those beyond the length are of
        // earlier chains.
        let most = begin
            .chained
            .map_or(u64::MAX, |bytes| bytes.div_ceil(cluster_bytes));
        while let Some(offset) = self.layout.offset(cluster)
            && (seen.len() as u64) < most
            && seen.insert(cluster)
        {
            let has = self.files.owner(offset, 1).0 == Some(owner);
            match parts.last_mut() {
                _ if has && !all => break,
                // The owner has this cluster already, but a directory also needs the order of its
                // clusters.
                _ if has && owner.structure != Structure::Directory => {}
                // Directory clusters are read one by one.
                Some((from, length))
                    if *from + *length == offset && owner.structure != Structure::Directory =>
                {
                    *length += cluster_bytes;
                }
                _ => parts.push((offset, cluster_bytes)),
            }
            cluster = self.chained.next(cluster);
        }
        parts
    }

    /// Reads the names in part of a directory, and returns the start and owner of each file.
    fn names(
        &mut self,
        offset: u64,
        length: u64,
        owner: Owner,
        now: &mut Now<'_, '_>,
    ) -> Result<Vec<Begin>> {
        let mut begins = Vec::new();
        let (all, begin) = self.named(offset, length, owner, Time::Now, now)?;
        let written = now.write.offset..now.write.offset + now.write.length;
        for named in all {
            if self.layout.offset(named.cluster).is_none() {
                continue;
            }
            self.nameless.remove(&named.cluster);
            let is_file = matches!(named.content, Content::Data | Content::Directory);
            let inode = if is_file { named.cluster } else { NO_INODE };
            if let Some(name) = named.name {
                let (directory, entry) = (owner.inode, (name.as_bytes(), inode));
                let at = named.at.checked_sub(begin).map(|at| offset + at as u64);
                match at.filter(|at| *at < offset + length && written.contains(at)) {
                    Some(_) => self.files.rename((0, directory), directory, &[], &[entry]),
                    None => self.files.name_again((0, directory), directory, &[entry]),
                }
            }
            let owner = Owner {
                inode,
                structure: structure_of(named.content),
            };
            match named.chained {
                Some(bytes) => self.chains.insert(inode, bytes),
                None => self.chains.remove(&inode),
            };
            begins.push(Begin {
                contiguous: named.contiguous,
                chained: named.chained,
                ..Begin::new(named.cluster, owner)
            });
        }
        Ok(begins)
    }

    /// Returns the names in part of a directory, and where the part begins among their entries. A
    /// name may begin before this part and end after it.
    fn named(
        &self,
        offset: u64,
        length: u64,
        owner: Owner,
        time: Time,
        now: &mut Now<'_, '_>,
    ) -> Result<(Vec<Named>, usize)> {
        const AROUND: u64 = (ENTRY * MOST) as u64;
        let (heap, cluster_bytes) = (self.layout.heap, self.layout.cluster_bytes);
        let begin_of = |at: u64| match at < heap {
            true => self.layout.tables_end,
            false => at - (at - heap) % cluster_bytes,
        };
        let belongs = |at: u64| self.files.owner(at, 1).0 == Some(owner);
        let end = offset + length;
        let (first, last) = (begin_of(offset), begin_of(end - 1));
        let last_end = match last < heap {
            true => heap,
            false => last + cluster_bytes,
        };
        let from = offset.saturating_sub(AROUND).max(first);
        let to = (end + AROUND).min(last_end);
        let before = self.before.get(&first).map(|before| before + cluster_bytes);
        let mut heads = before.into_iter().chain([first]);
        let head = heads.find(|&head| belongs(head - 1)).unwrap_or(0);
        let tail = self.after.get(&last).copied().unwrap_or(last_end);
        let (head_bytes, tail_bytes) = (AROUND - (offset - from), AROUND - (to - end));
        let parts = [
            (head.saturating_sub(head_bytes), head.min(head_bytes)),
            (from, to - from),
            (tail, if belongs(tail) { tail_bytes } else { 0 }),
        ];
        let mut content = Vec::new();
        for (at, length) in parts {
            let filled = content.len();
            content.resize(filled + length as usize, 0);
            match time {
                Time::Before => now.disks.read(now.write.disk, at, &mut content[filled..])?,
                Time::Now => now.read(at, &mut content[filled..])?,
            }
        }
        let before = (parts[0].1 + offset - from) as usize;
        let named = directory::named(&content, before, self.layout.kind);
        Ok((named, before))
    }
}

/// State of the disk: before the current write, or with it applied.
enum Time {
    Before,
    Now,
}

/// Start of a chain of clusters.
struct Begin {
    cluster: u64,
    /// Length in bytes if the clusters are contiguous.
    contiguous: Option<u64>,
    /// Length in bytes of the chain in the table, if known.
    chained: Option<u64>,
    owner: Owner,
    /// Offset of the preceding cluster of the same owner.
    before: Option<u64>,
}

impl Begin {
    fn new(cluster: u64, owner: Owner) -> Begin {
        Begin {
            cluster,
            contiguous: None,
            chained: None,
            owner,
            before: None,
        }
    }
}

/// Structure of the clusters that a name refers to.
fn structure_of(content: Content) -> Structure {
    match content {
        Content::Data => Structure::FileData,
        Content::Directory => Structure::Directory,
        Content::Bitmap => Structure::BlockBitmap,
        Content::Letters => Structure::Superblock,
    }
}
