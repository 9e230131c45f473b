//! Kinds of on-disk blocks.

use crate::catalogue::catalogue;

catalogue! {
    /// Kind of on-disk block. The names are standard terms, the same in every table.
    #[derive(Default)]
    Structure
    FileData "file_data" "the contents of files",
    // ext2, ext3, ext4
    Superblock "superblock" "the superblock",
    SuperblockBackup "superblock_backup" "a backup of the superblock",
    GroupDescriptors "group_descriptors" "block group descriptors, and space reserved for more",
    BlockBitmap "block_bitmap" "used blocks of a group",
    InodeBitmap "inode_bitmap" "used inodes of a group",
    InodeTable "inode_table" "inodes of ext and jfs; the ifile of nilfs2",
    Directory "directory" "directory entries",
    DirectoryIndex "directory_index" "the hash tree or index of a directory",
    ExtentMap "extent_map" "extent tree, bmap btree or indirect blocks of a file",
    Xattr "xattr" "extended attributes",
    Symlink "symlink" "the target of a symbolic link",
    OrphanFile "orphan_file" "orphan inodes, to be freed after a crash",
    Mmp "mmp" "multiple mount protection",
    Quota "quota" "quota usage and limits",
    // Journals and logs
    JournalSuperblock "journal_superblock" "the superblock of the journal",
    JournalDescriptor "journal_descriptor" "list of the blocks that a journal transaction copies",
    JournalCopy "journal_copy" "copy of a block in a journal; its home structure is the original's",
    JournalRevoke "journal_revoke" "list of older copies that must not be replayed",
    JournalCommit "journal_commit" "the end of a journal transaction",
    JournalFastCommit "journal_fast_commit" "fast-commit area of ext4",
    JournalFree "journal_free" "journal space that mkfs zeroed",
    Log "log" "the log of xfs, jfs or NTFS",
    // xfs
    Agf "agf" "allocation group: free space header",
    Agi "agi" "allocation group: inode header",
    Agfl "agfl" "allocation group: blocks reserved for its btrees",
    FreeSpaceBtree "free_space_btree" "free space, by block or by size",
    InodeBtree "inode_btree" "locations of inode chunks",
    FreeInodeBtree "free_inode_btree" "inode chunks with free inodes",
    RmapBtree "rmap_btree" "owner of each block",
    RefcountBtree "refcount_btree" "reference count of each shared block",
    InodeChunk "inode_chunk" "inodes of xfs",
    Realtime "realtime" "realtime bitmap and summary",
    // f2fs, nilfs2
    Node "node" "inodes of f2fs and their address blocks",
    Checkpoint "checkpoint" "state from which f2fs or nilfs2 recovers",
    Nat "nat" "node address table of f2fs: the location of each node",
    Sit "sit" "segment information table of f2fs: the used blocks of each segment",
    Dat "dat" "disk address translation of nilfs2: the location of each virtual block",
    Sufile "sufile" "segment usage file of nilfs2",
    SegmentSummary "segment_summary" "owners of the blocks of a segment",
    // vfat, exfat, ntfs
    Mft "mft" "file records of NTFS, and the mirror of the first ones",
    AllocationTable "allocation_table" "chains of clusters (FAT)",
    // btrfs
    ChunkTree "chunk_tree" "locations of chunks on the devices",
    RootTree "root_tree" "the roots of all trees",
    ExtentTree "extent_tree" "used extents and their owners",
    DeviceTree "device_tree" "allocated parts of a device",
    FsTree "fs_tree" "inodes, names and extents of a subvolume; the tree of reiserfs",
    CsumTree "csum_tree" "checksums of data",
    FreeSpaceTree "free_space_tree" "free space",
    UuidTree "uuid_tree" "subvolumes by UUID",
    QuotaTree "quota_tree" "quota groups",
    BlockGroupTree "block_group_tree" "block groups",
    LogTree "log_tree" "items that fsync made durable before the next commit",
    RelocationTree "relocation_tree" "trees that a balance is moving",
    FreeSpaceCache "free_space_cache" "free space, version 1",
    // RAID
    Parity "parity" "parity of RAID 4, 5 and 6, of btrfs or md",
    MdSuperblock "md_superblock" "an md member's superblock and its list of bad blocks",
    MdBitmap "md_bitmap" "md's write-intent bitmap",
    MdPartialParityLog "md_partial_parity_log" "md's partial parity log of RAID 5",
    MdResync "md_resync" "data that md wrote to make its members agree",
    // All file systems
    Unused "unused" "zeroed, or written to an unused block",
    #[default]
    Unknown "unknown" "not understood",
}

impl Structure {
    /// Returns whether the structure is part of a journal or log. All such structures add up to
    /// `journal_write_bytes`.
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
