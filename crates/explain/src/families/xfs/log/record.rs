//! Rows for writes to the log. Each piece of a record gets its own row until the record is
//! explained.

use super::super::log_record::Records;
use super::super::superblock::BASIC_BLOCK;
use super::Area;
use crate::{Row, Rows};

/// Location of a piece of a record.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Row that covers the whole piece.
    pub row: usize,
    /// Byte offset on the disk.
    pub offset: u64,
}

/// Assigns bytes written to the log to the records that they belong to. Pushes rows that cover
/// them.
pub fn cover(records: &mut Records<Place>, area: Area, row: Row, content: &[u8], rows: &mut Rows) {
    let mut done = 0;
    let mut plain: Option<usize> = None;
    while done < row.length {
        let rest = content.get(done as usize..).unwrap_or_default();
        let sector = (row.offset + done - area.offset) / BASIC_BLOCK;
        let part = |length| Row {
            offset: row.offset + done,
            length,
            ..row
        };
        let taken = records.write(sector, rest, |length| Place {
            row: rows.push(part(length as u64)),
            offset: area.offset + sector * BASIC_BLOCK,
        });
        if let Some(length) = taken {
            plain = None;
            done += length as u64;
            continue;
        }
        // Zeroes, or remains of cleared records: part of the log itself.
        let length = match content.is_empty() {
            true => row.length - done,
            false => BASIC_BLOCK.min(row.length - done),
        };
        match plain.and_then(|number| rows.get_mut(number)) {
            Some(before) => before.length += length,
            None => plain = Some(rows.push(part(length))),
        }
        done += length;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::log_record::SECTOR;
    use super::*;
    use crate::{Cause, Causes, Structure};

    #[test]
    fn what_is_no_record_is_one_row() {
        let area = Area {
            disk: 0,
            offset: 8192,
            bytes: 16 * BASIC_BLOCK,
        };
        // The header of another file system's record, and its content.
        let mut content = vec![1; 4 * SECTOR];
        content[..4].copy_from_slice(&[0xfe, 0xed, 0xba, 0xbe]);
        let row = Row {
            structure: Structure::Log,
            causes: Causes::one(Cause::Log),
            ..Row::data(area.offset, content.len() as u64)
        };
        let (mut records, mut rows) = (Records::new(16, [0; 16]), Rows::default());
        cover(&mut records, area, row, &content, &mut rows);
        assert!(records.next(true).is_none());
        assert_eq!(rows.to_vec().len(), 1);
    }
}
