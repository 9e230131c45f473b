//! What kind of on-disk block a write is.

macro_rules! structures {
    ($($variant:ident $name:literal $meaning:literal),* $(,)?) => {
        /// What kind of on-disk block a write is: names of the field, the same in every table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Structure {
            $(#[doc = $meaning] $variant),*
        }

        impl Structure {
            /// All, in the order of tables.
            pub const ALL: &[Structure] = &[$(Structure::$variant),*];

            /// Its name in tables: `<name>_write_bytes`.
            pub fn name(self) -> &'static str {
                match self { $(Structure::$variant => $name),* }
            }

            /// One line for people.
            pub fn meaning(self) -> &'static str {
                match self { $(Structure::$variant => $meaning),* }
            }
        }
    };
}

structures! {
    FileData "file_data" "the contents of files",
    // ext2, ext3, ext4
    Superblock "superblock" "the superblock",
    SuperblockBackup "superblock_backup" "a copy of the superblock",
    GroupDescriptors "group_descriptors" "block group descriptors, and space reserved for more",
    BlockBitmap "block_bitmap" "which blocks of a group are in use",
    InodeBitmap "inode_bitmap" "which inodes of a group are in use",
    InodeTable "inode_table" "inodes of ext; nilfs2's ifile; jfs",
    Directory "directory" "names in a directory",
    DirectoryIndex "directory_index" "the hash tree or index of a directory",
    ExtentMap "extent_map" "extent tree, bmap btree or indirect blocks: where a file's blocks are",
    Xattr "xattr" "extended attributes",
    Symlink "symlink" "the target of a symbolic link",
    OrphanFile "orphan_file" "inodes to be cleaned up after a crash",
    Mmp "mmp" "multiple mount protection",
    Quota "quota" "quota accounts",
    // Journals and logs
    JournalSuperblock "journal_superblock" "the journal's own superblock",
    JournalDescriptor "journal_descriptor" "which blocks a journal transaction copies",
    JournalCopy "journal_copy" "a journal's copy of a block (its home structure says of which)",
    JournalRevoke "journal_revoke" "which older copies must not be replayed",
    JournalCommit "journal_commit" "the end of a journal transaction",
    JournalFastCommit "journal_fast_commit" "ext4's fast-commit area",
    JournalFree "journal_free" "space of a journal that mkfs zeroed",
    Log "log" "the log of xfs, jfs or NTFS",
    // xfs
    Agf "agf" "allocation group: free space header",
    Agi "agi" "allocation group: inode header",
    Agfl "agfl" "allocation group: blocks kept for its btrees",
    FreeSpaceBtree "free_space_btree" "free space, by block or by size",
    InodeBtree "inode_btree" "where inode chunks are",
    FreeInodeBtree "free_inode_btree" "which inode chunks have free inodes",
    RmapBtree "rmap_btree" "who owns each block",
    RefcountBtree "refcount_btree" "how often each block is shared",
    InodeChunk "inode_chunk" "inodes of xfs",
    Realtime "realtime" "realtime bitmap and summary",
    // f2fs, nilfs2
    Node "node" "inodes of f2fs, and its blocks of addresses",
    Checkpoint "checkpoint" "from where f2fs or nilfs2 goes on after a crash",
    AddressTable "address_table" "where each node (f2fs) or block (nilfs2) is",
    SegmentTable "segment_table" "how much of each segment is in use",
    SegmentSummary "segment_summary" "whose the blocks of a segment are",
    // vfat, exfat, ntfs
    Mft "mft" "records of files of NTFS, and the copy of the first of them",
    AllocationTable "allocation_table" "which cluster follows which (FAT)",
    // btrfs
    ChunkTree "chunk_tree" "where chunks lie on the devices",
    RootTree "root_tree" "the roots of all trees",
    ExtentTree "extent_tree" "which extents are in use, and by whom",
    DeviceTree "device_tree" "which parts of a device are allocated",
    FsTree "fs_tree" "inodes, names and extents of a subvolume; the tree of reiserfs",
    CsumTree "csum_tree" "checksums of data",
    FreeSpaceTree "free_space_tree" "free space",
    UuidTree "uuid_tree" "subvolumes by UUID",
    QuotaTree "quota_tree" "quota groups",
    BlockGroupTree "block_group_tree" "block groups",
    LogTree "log_tree" "what fsync made durable before the next commit",
    RelocationTree "relocation_tree" "trees being moved by balance",
    FreeSpaceCache "free_space_cache" "free space, version 1",
    // RAID
    Parity "parity" "parity of RAID 4, 5 and 6, of btrfs or md",
    MdSuperblock "md_superblock" "an md member's superblock and its list of bad blocks",
    MdBitmap "md_bitmap" "md's write-intent bitmap",
    MdPartialParityLog "md_partial_parity_log" "md's partial parity log of RAID 5",
    MdResync "md_resync" "data that md copied or computed to make its members agree",
    // All
    Unused "unused" "zeroed, or written to a place that nothing uses",
    Unknown "unknown" "not understood",
}

impl Structure {
    /// Whether it is part of a journal or log: added up as `journal_write_bytes`.
    pub fn is_journal(self) -> bool {
        use Structure::*;
        matches!(
            self,
            JournalSuperblock
                | JournalDescriptor
                | JournalCopy
                | JournalRevoke
                | JournalCommit
                | JournalFastCommit
                | JournalFree
                | Log
                | LogTree
        )
    }
}
