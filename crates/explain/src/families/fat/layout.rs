//! Where things are: the boot sector of FAT (Microsoft's FAT32 specification, fs/fat/inode.c) or
//! exFAT (its specification, section 3.1).

use crate::bytes::{byte, le16, le32};

/// How wide an entry of the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Fat12,
    Fat16,
    Fat32,
    ExFat,
}

/// Places, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Which of them it is.
    pub kind: Kind,
    /// A copy of the boot sectors, and where it ends.
    pub backup: (u64, u64),
    /// The first table.
    pub table: u64,
    /// One table.
    pub table_bytes: u64,
    /// Where the last table ends.
    pub tables_end: u64,
    /// Where clusters begin, from number 2 on. FAT12 and FAT16 have the root directory between the
    /// tables and these.
    pub heap: u64,
    /// Where they end.
    pub end: u64,
    /// One cluster.
    pub cluster_bytes: u64,
    /// The root directory's first cluster, or [`FIXED_ROOT`].
    pub root: u64,
}

/// No cluster has this number.
pub const FIXED_ROOT: u64 = 1;

impl Layout {
    /// From the first sector of a disk of so many bytes.
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
        // fat_fill_super: FAT32 has no short length of the table.
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

    /// How many clusters there are, and two: the number of none.
    pub fn end_cluster(&self) -> u64 {
        2 + (self.end - self.heap) / self.cluster_bytes
    }

    /// Where a cluster begins, if there is one of this number.
    pub fn offset(&self, cluster: u64) -> Option<u64> {
        (2..self.end_cluster())
            .contains(&cluster)
            .then(|| self.heap + (cluster - 2) * self.cluster_bytes)
    }

    /// Bits of an entry of the table.
    pub fn entry_bits(&self) -> u64 {
        match self.kind {
            Kind::Fat12 => 12,
            Kind::Fat16 => 16,
            Kind::Fat32 | Kind::ExFat => 32,
        }
    }

    /// The entry at bit `bit` of `table`: the next cluster. A free one is 0, the end of a chain a
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
