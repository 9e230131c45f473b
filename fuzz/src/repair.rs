//! Repair of a recording's checksums (`docs/recording-format.md`), so that a fuzzer reaches the
//! code behind them.

const HEADER_BYTES: usize = 64;
const DISK_BYTES: usize = 64;
const FRAME_HEADER_BYTES: usize = 64;
const PIECE_ENTRY_BYTES: usize = 8;
const EVENT_BYTES: usize = 40;
const REPLY_BYTES: usize = 24;
/// Maximum number of events or replies to compress, which is that of a frame. The compressor gets
/// no more than a writer would give it.
const MOST_ENTRIES: usize = 4096;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns the recording with correct checksums and sequence numbers. Uncompressed events and
/// replies, which a fuzzer can change, are compressed.
pub fn repaired(input: &[u8]) -> Vec<u8> {
    let mut out = input.to_vec();
    let Some(disks) = u16_at(input, 10) else {
        return out;
    };
    let first = HEADER_BYTES + usize::from(disks) * DISK_BYTES;
    let Some(header) = out.get_mut(..first) else {
        return out;
    };
    seal(header, 60);
    out.truncate(first);
    let mut at = first;
    for sequence in 0.. {
        let Some((frame, next)) = frame(input, at, sequence) else {
            break;
        };
        out.extend(frame);
        at = next;
    }
    out.extend(&input[at..]);
    out
}

/// Repairs one frame. Returns it with the offset of the next.
fn frame(input: &[u8], at: usize, sequence: u32) -> Option<(Vec<u8>, usize)> {
    let mut header = input.get(at..)?.get(..FRAME_HEADER_BYTES)?.to_vec();
    let size = |field| u32_at(&header, field).map(|bytes| bytes as usize);
    let (content_bytes, pieces) = (size(24)?, size(28)?);
    let (events_bytes, replies_bytes) = (size(16)?, size(56)?);
    let table_at = at + FRAME_HEADER_BYTES;
    let events_at = table_at.checked_add(pieces.checked_mul(PIECE_ENTRY_BYTES)?)?;
    let replies_at = events_at.checked_add(events_bytes)?;
    let content_at = replies_at.checked_add(replies_bytes)?;
    let end = content_at.checked_add(content_bytes)?;
    let mut table = input.get(table_at..events_at)?.to_vec();
    let events = entries(
        &mut header,
        12,
        16,
        input.get(events_at..replies_at)?,
        EVENT_BYTES,
    )?;
    let replies = entries(
        &mut header,
        52,
        56,
        input.get(replies_at..content_at)?,
        REPLY_BYTES,
    )?;
    let mut content = input.get(content_at..end)?;
    let whole = content;
    for entry in table.as_chunks_mut::<PIECE_ENTRY_BYTES>().0 {
        let stored = (u32_at(entry, 0)? as usize).min(content.len());
        let (piece, rest) = content.split_at(stored);
        entry[4..].copy_from_slice(&crc32c::crc32c(piece).to_le_bytes());
        content = rest;
    }
    let index = [table, events, replies].concat();
    header[8..12].copy_from_slice(&sequence.to_le_bytes());
    // The last frame has no body, and therefore no checksum of one.
    let checksum = if index.is_empty() {
        0
    } else {
        crc32c::crc32c(&index)
    };
    header[48..52].copy_from_slice(&checksum.to_le_bytes());
    seal(&mut header, 60);
    Some(([&header, index.as_slice(), whole].concat(), end))
}

/// Returns entries as they are stored: compressed, if they are as many as the header says at
/// `count`. Their new length replaces the one at `length`.
fn entries(
    header: &mut [u8],
    count: usize,
    length: usize,
    found: &[u8],
    entry_bytes: usize,
) -> Option<Vec<u8>> {
    let count = u32_at(header, count)? as usize;
    let is_list = (1..=MOST_ENTRIES).contains(&count) && found.len() == count * entry_bytes;
    if !is_list || found.starts_with(&ZSTD_MAGIC) {
        return Some(found.to_vec());
    }
    let packed = zstd::bulk::compress(found, 1).ok()?;
    header[length..length + 4].copy_from_slice(&(packed.len() as u32).to_le_bytes());
    Some(packed)
}

/// Writes the CRC-32C of `bytes`, computed with the field zeroed, into the field.
fn seal(bytes: &mut [u8], field: usize) {
    bytes[field..field + 4].fill(0);
    let checksum = crc32c::crc32c(bytes);
    bytes[field..field + 4].copy_from_slice(&checksum.to_le_bytes());
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that a recording with unpacked events and wrong checksums is repaired to the original.
    #[test]
    fn what_is_repaired_is_what_it_was() {
        let whole = std::fs::read(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../crates/explain/tests/data/ext/ext2.fscost"
        ));
        let whole = whole.expect("a seed");
        let mut damaged = whole.clone();
        damaged[60] ^= 1;
        for at in (0..whole.len()).filter(|&at| whole[at..].starts_with(b"FRAM")) {
            damaged[at + 8] ^= 0xff;
            damaged[at + 60] ^= 0xff;
        }
        assert!(damaged != whole);
        let again = repaired(&damaged);
        let first = again.iter().zip(&whole).position(|(a, b)| a != b);
        assert_eq!((first, again.len()), (None, whole.len()));
    }

    #[test]
    fn any_input_is_repaired_in_bounds() {
        let whole = include_bytes!("../../crates/explain/tests/data/ext/ext2.fscost");
        for cut in [0, 9, 12, 63, 64, 127, 128, 150, 191, 192, 4000] {
            let _ = repaired(&whole[..cut]);
        }
        let _ = repaired(&[0xff; 300]);
    }
}
