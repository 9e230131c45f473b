//! A map of the sectors of a disk that have been written so far.

use crate::format::SECTOR_BYTES;
use std::collections::HashMap;

const WORD_SECTORS: u64 = u64::BITS as u64;
/// Sectors in one part of the map. A part takes at most 512 bytes, about ten times the size of the
/// event that creates it. An untrusted recording that touches many parts must therefore itself be
/// large.
const PART_SECTORS: u64 = 1 << 12;
const PART_WORDS: usize = (PART_SECTORS / WORD_SECTORS) as usize;

#[derive(Debug, Default)]
pub(crate) struct FirstWrites {
    /// Parts by number. A part without written sectors is absent.
    parts: HashMap<u64, Part>,
}

#[derive(Debug)]
enum Part {
    /// Every sector was written: one request may be 2 TiB of zeroes.
    Full,
    /// Bit mask of the written sectors.
    Sectors(Box<[u64; PART_WORDS]>),
}

impl FirstWrites {
    /// Marks these bytes as written. Returns the number of bytes that were not written before.
    pub fn write(&mut self, offset: u64, length: u64) -> u64 {
        let (mut sector, end) = (offset / SECTOR_BYTES, (offset + length) / SECTOR_BYTES);
        let mut fresh = 0;
        while sector < end {
            let number = sector / PART_SECTORS;
            let begin = number * PART_SECTORS;
            let stop = end.min(begin + PART_SECTORS);
            fresh += if stop - sector == PART_SECTORS {
                let before = self.parts.insert(number, Part::Full);
                PART_SECTORS - before.map_or(0, |part| part.count())
            } else {
                let part = self.parts.entry(number);
                part.or_insert_with(|| Part::Sectors(Box::new([0; PART_WORDS])))
                    .write(sector - begin, stop - begin)
            };
            sector = stop;
        }
        fresh * SECTOR_BYTES
    }
}

impl Part {
    fn count(&self) -> u64 {
        match self {
            Part::Full => PART_SECTORS,
            Part::Sectors(words) => words.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// Marks sectors as written, and returns the number of new ones.
    fn write(&mut self, mut sector: u64, stop: u64) -> u64 {
        let Part::Sectors(words) = self else {
            return 0;
        };
        let mut fresh = 0;
        while sector < stop {
            let bit = sector % WORD_SECTORS;
            let count = (WORD_SECTORS - bit).min(stop - sector);
            let mask = (u64::MAX >> (WORD_SECTORS - count)) << bit;
            let word = &mut words[(sector / WORD_SECTORS) as usize];
            fresh += u64::from((mask & !*word).count_ones());
            *word |= mask;
            sector += count;
        }
        fresh
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
            writes in prop::collection::vec((0..3 * PART_SECTORS, 1..2 * PART_SECTORS), 1..60)
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
