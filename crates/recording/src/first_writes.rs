//! Which sectors of a disk were written before.

use crate::format::SECTOR_BYTES;
use std::collections::HashMap;

const WORD_SECTORS: u64 = u64::BITS as u64;
/// Sectors in one part of the map, a bit each: parts of a disk that nothing is written to take no memory.
const PART_SECTORS: u64 = 1 << 16;
const PART_WORDS: usize = (PART_SECTORS / WORD_SECTORS) as usize;

#[derive(Debug, Default)]
pub(crate) struct FirstWrites {
    parts: HashMap<u64, Box<[u64; PART_WORDS]>>,
}

impl FirstWrites {
    /// How many of these bytes are written for the first time; from now on none of them is.
    pub fn write(&mut self, offset: u64, length: u64) -> u64 {
        let (mut sector, end) = (offset / SECTOR_BYTES, (offset + length) / SECTOR_BYTES);
        let mut fresh = 0;
        while sector < end {
            let part = self.parts.entry(sector / PART_SECTORS);
            let words = part.or_insert_with(|| Box::new([0; PART_WORDS]));
            let stop = end.min((sector / PART_SECTORS + 1) * PART_SECTORS);
            while sector < stop {
                let bit = sector % WORD_SECTORS;
                let count = (WORD_SECTORS - bit).min(stop - sector);
                let mask = (u64::MAX >> (WORD_SECTORS - count)) << bit;
                let word = &mut words[(sector % PART_SECTORS / WORD_SECTORS) as usize];
                fresh += u64::from((mask & !*word).count_ones());
                *word |= mask;
                sector += count;
            }
        }
        fresh * SECTOR_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn it_is_what_a_set_of_sectors_says(
            writes in prop::collection::vec((0..3 * PART_SECTORS, 1..300u64), 1..60)
        ) {
            let (mut first, mut known) = (FirstWrites::default(), HashSet::new());
            for (sector, count) in writes {
                let fresh = (sector..sector + count).filter(|s| known.insert(*s)).count() as u64;
                let found = first.write(sector * SECTOR_BYTES, count * SECTOR_BYTES);
                prop_assert_eq!(found, fresh * SECTOR_BYTES);
            }
        }
    }
}
