//! Format of a row in the temporary file.

use crate::{Causes, PathId, Row, Shift, Structure};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned,
    little_endian::{U16, U32, U64},
};

/// Size of every record in bytes. A row's number determines its place in the file.
pub(super) const RECORD_BYTES: usize = size_of::<Record>();

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Record {
    event: U64,
    offset: U64,
    length: U64,
    home_offset: U64,
    inode: U64,
    tree: U64,
    transaction: U64,
    shift: U64,
    path: U32,
    causes: U32,
    disk: U16,
    structure: u8,
    home: u8,
    copy: u8,
    /// Flags of the optional fields that are present, and `IS_DOUBTFUL`.
    has: u8,
}

const HAS_HOME: u8 = 1;
const HAS_HOME_OFFSET: u8 = 2;
const HAS_PATH: u8 = 4;
const HAS_TRANSACTION: u8 = 8;
/// Not the flag of an optional field, but a field itself: it needs only one bit.
const IS_DOUBTFUL: u8 = 16;
const HAS_SHIFT: u8 = 32;

/// Appends the row's record to `bytes`.
pub(super) fn encode(row: &Row, bytes: &mut Vec<u8>) {
    let flag = |has: bool, flag: u8| if has { flag } else { 0 };
    let record = Record {
        event: row.event.into(),
        offset: row.offset.into(),
        length: row.length.into(),
        home_offset: row.home_offset.unwrap_or(0).into(),
        inode: row.inode.into(),
        tree: row.tree.into(),
        transaction: row.transaction.unwrap_or(0).into(),
        shift: row.shift.map_or(0, Shift::bits).into(),
        path: row.path.map_or(0, PathId::index).into(),
        causes: row.causes.bits().into(),
        disk: row.disk.into(),
        structure: row.structure as u8,
        home: row.home.map_or(0, |home| home as u8),
        copy: row.copy,
        has: flag(row.home.is_some(), HAS_HOME)
            | flag(row.home_offset.is_some(), HAS_HOME_OFFSET)
            | flag(row.path.is_some(), HAS_PATH)
            | flag(row.transaction.is_some(), HAS_TRANSACTION)
            | flag(row.shift.is_some(), HAS_SHIFT)
            | flag(row.is_doubtful, IS_DOUBTFUL),
    };
    bytes.extend_from_slice(record.as_bytes());
}

/// Appends the rows of these records to `rows`. Returns `None` if the records are not what was
/// written.
pub(super) fn decode(bytes: &[u8], rows: &mut Vec<Row>) -> Option<()> {
    for record in <[Record]>::ref_from_bytes(bytes).ok()? {
        let has = |flag: u8| record.has & flag != 0;
        let structure = |number: u8| Structure::ALL.get(usize::from(number)).copied();
        rows.push(Row {
            event: record.event.get(),
            disk: record.disk.get(),
            offset: record.offset.get(),
            length: record.length.get(),
            structure: structure(record.structure)?,
            home: match has(HAS_HOME) {
                true => Some(structure(record.home)?),
                false => None,
            },
            home_offset: has(HAS_HOME_OFFSET).then(|| record.home_offset.get()),
            causes: Causes::from_bits(record.causes.get()),
            inode: record.inode.get(),
            tree: record.tree.get(),
            path: has(HAS_PATH).then(|| PathId::from_index(record.path.get())),
            transaction: has(HAS_TRANSACTION).then(|| record.transaction.get()),
            shift: has(HAS_SHIFT).then(|| Shift::from_bits(record.shift.get())),
            copy: record.copy,
            is_doubtful: has(IS_DOUBTFUL),
        });
    }
    Some(())
}
