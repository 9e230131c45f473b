//! Layout: the boot sector of FAT (Microsoft's FAT32 specification, fs/fat/inode.c) or exFAT (its
//! specification, section 3.1).

use crate::bytes::{byte, le16, le32};

/// Width of a table entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 12 bits.
    Fat12,
    /// 16 bits.
    Fat16,
    /// 32 bits, 28 of them used.
    Fat32,
    /// 32 bits.
    ExFat,
}

/// Locations and sizes, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Variant of FAT.
    pub kind: Kind,
    /// Start and end of the copy of the boot sectors.
    pub backup: (u64, u64),
    /// Start of the first table.
    pub table: u64,
    /// Size of one table.
    pub table_bytes: u64,
    /// End of the last table.
    pub tables_end: u64,
    /// Start of the clusters, which are numbered from 2. In FAT12 and FAT16, the root directory
    /// lies between the tables and the clusters.
    pub heap: u64,
    /// End of the clusters.
    pub end: u64,
    /// Size of one cluster.
    pub cluster_bytes: u64,
    /// First cluster of the root directory, or [`FIXED_ROOT`].
    pub root: u64,
}

/// Root directory without clusters: no cluster has this number.
pub const FIXED_ROOT: u64 = 1;

impl Layout {
    /// Parses the first sector of a disk of `disk_bytes` bytes.
    pub fn parse(sector: &[u8], disk_bytes: u64) -> Option<Layout> {
        if sector.get(510..512) != Some(&[0x55, 0xaa]) {
            return None;
        }
        let layout = match &sector[3..11] {
            b"EXFAT   " => Layout::ex_fat(sector),
            _ => Layout::fat(sector),
        }?;
        let places = [layout.table, layout.tables_end, layout.heap, layout.end];
        (layout.table > 0 && places.is_sorted() && layout.end <= disk_bytes).then_some(layout)
    }

    fn ex_fat(sector: &[u8]) -> Option<Layout> {
        let (sector_log, cluster_log) = (byte(sector, 108), byte(sector, 109));
        if !(9..=12).contains(&sector_log) || sector_log.checked_add(cluster_log)? > 25 {
            return None;
        }
        let bytes = |at| u64::from(le32(sector, at)) << sector_log;
        let cluster_bytes = 1 << (sector_log + cluster_log);
        let table_bytes = bytes(84);
        Some(Layout {
            kind: Kind::ExFat,
            backup: (12 << sector_log, 24 << sector_log),
            table: bytes(80),
            table_bytes,
            tables_end: bytes(80) + table_bytes * u64::from(byte(sector, 110).clamp(1, 2)),
            heap: bytes(88),
            end: bytes(88) + u64::from(le32(sector, 92)) * cluster_bytes,
            cluster_bytes,
            root: u64::from(le32(sector, 96)),
        })
    }

    fn fat(sector: &[u8]) -> Option<Layout> {
        let sector_bytes = u64::from(le16(sector, 11));
        let per_cluster = u64::from(byte(sector, 13));
        let tables = u64::from(byte(sector, 16));
        let is_jump = matches!(byte(sector, 0), 0xeb | 0xe9);
        if !is_jump || !matches!(sector_bytes, 512 | 1024 | 2048 | 4096) {
            return None;
        }
        if !per_cluster.is_power_of_two() || !(1..=4).contains(&tables) {
            return None;
        }
        let either = |short: u16, long: u32| match short {
            0 => u64::from(long),
            _ => u64::from(short),
        };
        let table_bytes = either(le16(sector, 22), le32(sector, 36)) * sector_bytes;
        let total = either(le16(sector, 19), le32(sector, 32)) * sector_bytes;
        let table = u64::from(le16(sector, 14)) * sector_bytes;
        let tables_end = table + tables * table_bytes;
        let root_bytes = (u64::from(le16(sector, 17)) * 32).next_multiple_of(sector_bytes);
        let heap = tables_end + root_bytes;
        let cluster_bytes = sector_bytes * per_cluster;
        let clusters = total.checked_sub(heap)? / cluster_bytes;
        // fat_fill_super: FAT32 leaves the 16-bit table length at 0.
        let kind = match clusters {
            _ if le16(sector, 22) == 0 => Kind::Fat32,
            0..4085 => Kind::Fat12,
            _ => Kind::Fat16,
        };
        let is_32 = kind == Kind::Fat32;
        let backup = u64::from(le16(sector, 50)) * sector_bytes;
        Some(Layout {
            kind,
            backup: match is_32 && backup > 0 && backup < table {
                true => (backup, (backup + 3 * sector_bytes).min(table)),
                false => (0, 0),
            },
            table,
            table_bytes,
            tables_end,
            heap,
            end: heap + clusters * cluster_bytes,
            cluster_bytes,
            root: match is_32 {
                true => u64::from(le32(sector, 44)),
                false => FIXED_ROOT,
            },
        })
    }

    /// Number after the last cluster: the number of clusters plus 2.
    pub fn end_cluster(&self) -> u64 {
        2 + (self.end - self.heap) / self.cluster_bytes
    }

    /// Start of a cluster, if a cluster with this number exists.
    pub fn offset(&self, cluster: u64) -> Option<u64> {
        (2..self.end_cluster())
            .contains(&cluster)
            .then(|| self.heap + (cluster - 2) * self.cluster_bytes)
    }

    /// Bits of a table entry.
    pub fn entry_bits(&self) -> u64 {
        match self.kind {
            Kind::Fat12 => 12,
            Kind::Fat16 => 16,
            Kind::Fat32 | Kind::ExFat => 32,
        }
    }

    /// Entry at bit `bit` of `table`: the next cluster. 0 means free; the end of a chain is a
    /// number that no cluster has.
    pub fn entry(&self, table: &[u8], bit: u64) -> u64 {
        let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
        match self.kind {
            Kind::Fat12 if bit.is_multiple_of(8) => u64::from(le16(table, at) & 0xfff),
            Kind::Fat12 => u64::from(le16(table, at) >> 4),
            Kind::Fat16 => u64::from(le16(table, at)),
            Kind::Fat32 => u64::from(le32(table, at) & 0x0fff_ffff),
            Kind::ExFat => u64::from(le32(table, at)),
        }
    }
}
