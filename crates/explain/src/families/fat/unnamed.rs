//! Files and directories that are known before, or without, an entry that names them: by the chains
//! of the table, and by their content.

use super::*;

impl Fat {
    /// Makes each chain that no directory names a file without a name. An fsync of an unlinked file
    /// writes the whole table, but no directory entry (`fat_file_fsync`).
    pub(super) fn adopt(&mut self, rows: &mut Rows) {
        for head in self.chained.take_heads() {
            let owner = Owner {
                inode: head,
                structure: Structure::FileData,
            };
            let owns_head = |at| (self.files.owner(at, 1).0).is_some_and(|of| of.inode == head);
            if head == self.layout.root || self.layout.offset(head).is_none_or(owns_head) {
                continue;
            }
            // The directory's first cluster may be written later.
            if (self.chained.chain(head)).any(|cluster| self.directory_like.contains(&cluster)) {
                continue;
            }
            self.nameless.insert(head);
            for cluster in self.chained.chain(head) {
                if let Some(offset) = self.layout.offset(cluster) {
                    let length = self.layout.cluster_bytes;
                    self.files.own(offset, length, owner, rows);
                }
            }
        }
    }

    /// Finds clusters that begin a directory, which its parent may name later. Rows that wait there
    /// are of another file.
    pub(super) fn recognise(&mut self, write: &Write<'_>, rows: &mut Rows) {
        let Layout {
            heap,
            cluster_bytes,
            ..
        } = self.layout;
        let begin = heap.max(write.offset).saturating_sub(heap);
        let mut at = heap + begin.next_multiple_of(cluster_bytes);
        let end = self
            .layout
            .end
            .min(write.offset + write.content.len() as u64);
        while at < end {
            let cluster = 2 + (at - heap) / cluster_bytes;
            let content = write.part(at - write.offset, ENTRY as u64).content;
            let owner = Owner {
                inode: cluster,
                structure: Structure::Directory,
            };
            if directory::names_itself(content, cluster, self.layout.kind)
                && self.files.owner(at, 1).0 != Some(owner)
            {
                self.files.confirm(at, cluster_bytes, rows);
                self.directory_like.remove(&cluster);
                self.files.expect(at, cluster_bytes, owner);
                self.linked.remove(&cluster);
            }
            at += cluster_bytes;
        }
    }

    /// Notes the clusters in which a write without a known owner left entries, or anything else.
    pub(super) fn note_entries(&mut self, write: &Write<'_>) {
        const SECTOR: usize = 512;
        let Layout {
            heap,
            cluster_bytes,
            kind,
            ..
        } = self.layout;
        if write.offset < heap || kind == Kind::ExFat {
            return;
        }
        for (number, sector) in write.content.chunks(SECTOR).enumerate() {
            let at = write.offset + (number * SECTOR) as u64;
            let cluster = 2 + (at - heap) / cluster_bytes;
            if sector[0] == 0 || !directory::are_entries(sector, kind) {
                self.directory_like.remove(&cluster);
            } else if at == write.offset || (at - heap).is_multiple_of(cluster_bytes) {
                self.directory_like.insert(cluster);
            }
        }
    }

    /// Follows the chains of exFAT files of which a cluster's entry has changed. A removed file
    /// keeps its clusters, but their new chain is another file's, which its own entry names.
    pub(super) fn follow_files(
        &mut self,
        files: BTreeSet<u64>,
        now: &mut Now<'_, '_>,
    ) -> Result<()> {
        for inode in files {
            if let Some(&bytes) = self.chains.get(&inode) {
                let owner = Owner {
                    inode,
                    structure: Structure::FileData,
                };
                let begin = Begin {
                    chained: Some(bytes),
                    ..Begin::new(inode, owner)
                };
                self.follow(begin, now)?;
            }
        }
        Ok(())
    }

    /// Returns whether a cluster holds what may be a directory's entries.
    pub(super) fn holds_entries(
        &self,
        offset: u64,
        length: u64,
        now: &mut Now<'_, '_>,
    ) -> Result<bool> {
        let mut content = vec![0; length as usize];
        now.read(offset, &mut content)?;
        Ok(directory::are_entries(&content, self.layout.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: u64 = 512;
    const HEAP: u64 = 4096;
    const END_OF_CHAIN: u64 = 0x0fff_ffff;

    fn family() -> Fat {
        let layout = Layout {
            kind: Kind::Fat32,
            backup: (0, 0),
            table: 512,
            table_bytes: 512,
            tables_end: HEAP,
            heap: HEAP,
            end: HEAP + 100 * CLUSTER,
            cluster_bytes: CLUSTER,
            root: 2,
        };
        Fat::new(0, layout)
    }

    fn write(cluster: u64, content: &[u8]) -> Write<'_> {
        Write {
            event: cluster,
            time_ns: 0,
            disk: 0,
            offset: HEAP + (cluster - 2) * CLUSTER,
            length: content.len() as u64,
            content,
            formatting: false,
        }
    }

    #[test]
    fn an_unlinked_file_is_known_by_its_chain() {
        let (mut family, mut rows) = (family(), Rows::default());
        for cluster in [10, 20, 30] {
            let content = [1; CLUSTER as usize];
            family.files.add_owned(&write(cluster, &content), &mut rows);
        }
        for (cluster, next) in [(10, 20), (20, END_OF_CHAIN)] {
            family.chained.set(cluster, next);
        }
        family.flushed(&mut rows);
        family.files.flush(&mut rows);
        let found = rows.to_vec().into_iter();
        let found: Vec<_> = found
            .map(|row| (row.structure, row.inode, row.path, row.is_doubtful))
            .collect();
        let of = |inode| (Structure::FileData, inode, None, false);
        assert_eq!(found, [of(10), of(10), of(NO_INODE)]);
    }

    #[test]
    fn the_first_cluster_of_a_directory_is_known_without_its_name() {
        let (mut family, mut rows) = (family(), Rows::default());
        let mut content = [0; 3 * CLUSTER as usize];
        let entry = &mut content[CLUSTER as usize..];
        entry[..11].copy_from_slice(b".          ");
        (entry[11], entry[26]) = (0x10, 11);
        family.recognise(&write(10, &content), &mut rows);
        let owner = |cluster| family.files.owner(write(cluster, &[]).offset, 1).0;
        let directory = Owner {
            inode: 11,
            structure: Structure::Directory,
        };
        assert_eq!([10, 11, 12].map(owner), [None, Some(directory), None]);
    }

    #[test]
    fn a_chain_that_may_be_a_directory_is_no_file() {
        let (mut family, mut rows) = (family(), Rows::default());
        let mut entries = [0; CLUSTER as usize];
        entries[..11].copy_from_slice(b"NAME    TXT");
        let at = write(20, &entries);
        family.note_entries(&at);
        family.files.add_owned(&at, &mut rows);
        for (cluster, next) in [(10, 20), (20, END_OF_CHAIN)] {
            family.chained.set(cluster, next);
        }
        family.flushed(&mut rows);
        assert_eq!(rows.to_vec()[0].inode, NO_INODE);
        let structure = Structure::Directory;
        let owner = Owner {
            inode: 10,
            structure,
        };
        family.files.own(at.offset, CLUSTER, owner, &mut rows);
        assert_eq!(rows.to_vec()[0].structure, structure);
    }
}
