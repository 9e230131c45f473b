//! A bitmap of physical units: each bit tells if a logical unit still maps to the unit.

use crate::memory::{prefetch, table};

/// The bitmap.
#[derive(Debug, Clone)]
pub struct Valid {
    words: Vec<u64>,
}

impl Valid {
    pub fn new(units: u64) -> Valid {
        Valid {
            words: table(0, units.div_ceil(64) as usize),
        }
    }

    #[inline]
    pub fn clear(&mut self, at: u32) {
        self.words[(at / 64) as usize] &= !(1 << (at % 64));
    }

    /// Returns the number of set bits before each word: see [`Valid::rank`].
    pub fn ranks(&self) -> Vec<u32> {
        let mut sum = 0;
        let before = |word: &u64| {
            let here = sum;
            sum += word.count_ones();
            here
        };
        let mut found: Vec<u32> = self.words.iter().map(before).collect();
        found.push(sum);
        found
    }

    /// Returns the number of set bits before `at`; `ranks` is the result of [`Valid::ranks`].
    pub fn rank(&self, ranks: &[u32], at: u32) -> u32 {
        let (index, bit) = ((at / 64) as usize, at % 64);
        let word = self.words.get(index).copied().unwrap_or(0);
        ranks[index] + (word & !(u64::MAX << bit)).count_ones()
    }

    /// Returns the number of set bits.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    pub fn is_set(&self, at: u32) -> bool {
        self.words[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    #[inline]
    pub fn set(&mut self, at: u32) {
        self.words[(at / 64) as usize] |= 1 << (at % 64);
    }

    /// Prefetches the word of `at`.
    #[inline]
    pub fn prefetch(&self, at: u32) {
        prefetch(&self.words, (at / 64) as usize);
    }

    #[inline]
    pub fn set_range(&mut self, begin: u32, count: u32) {
        self.each_word(begin, count, |word, mask| *word |= mask);
    }

    #[inline]
    pub fn clear_range(&mut self, begin: u32, count: u32) {
        self.each_word(begin, count, |word, mask| *word &= !mask);
    }

    /// Calls `change` with each word of a range and the mask of the range's bits in that word.
    #[inline]
    fn each_word(&mut self, begin: u32, count: u32, change: impl Fn(&mut u64, u64)) {
        let (mut at, end) = (u64::from(begin), u64::from(begin) + u64::from(count));
        while at < end {
            let bit = at % 64;
            let bits = (64 - bit).min(end - at);
            let mask = (u64::MAX >> (64 - bits)) << bit;
            change(&mut self.words[(at / 64) as usize], mask);
            at += bits;
        }
    }

    /// Returns the runs of bits equal to `wanted` in a range, in order: first place and length.
    pub fn runs(
        &self,
        begin: u32,
        count: u32,
        wanted: bool,
    ) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (mut at, end) = (u64::from(begin), u64::from(begin) + u64::from(count));
        std::iter::from_fn(move || {
            let first = self.next_change(at, end, wanted)?;
            at = self.next_change(first, end, !wanted).unwrap_or(end);
            Some((first as u32, (at - first) as u32))
        })
    }

    /// Returns the first place from `at` on, before `end`, whose bit equals `wanted`.
    #[inline]
    fn next_change(&self, mut at: u64, end: u64, wanted: bool) -> Option<u64> {
        while at < end {
            let word = self.words[(at / 64) as usize];
            let bits = (if wanted { word } else { !word }) >> (at % 64);
            if bits != 0 {
                let found = at + u64::from(bits.trailing_zeros());
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Returns the places in a range whose bit equals `wanted`, in order.
    pub fn places(&self, begin: u32, count: u32, wanted: bool) -> impl Iterator<Item = u32> + '_ {
        let (begin, end) = (u64::from(begin), u64::from(begin) + u64::from(count));
        (begin / 64..end.div_ceil(64)).flat_map(move |index| {
            let word = self.words[index as usize];
            let low = begin.saturating_sub(index * 64).min(64);
            let high = (end - index * 64).min(64);
            let inside = if high == low {
                0
            } else {
                (u64::MAX >> (64 - (high - low))) << low
            };
            let mut bits = (if wanted { word } else { !word }) & inside;
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros();
                    bits &= bits - 1;
                    (index * 64) as u32 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Valid;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_equal_single_bits(ranges in prop::collection::vec((0u32..300, 0u32..200, any::<bool>()), 1..20), begin in 0u32..300, count in 0u32..200) {
            let (mut valid, mut naive) = (Valid::new(500), vec![false; 500]);
            for (begin, count, set) in ranges {
                if set { valid.set_range(begin, count) } else { valid.clear_range(begin, count) }
                naive[begin as usize..(begin + count) as usize].fill(set);
            }
            for wanted in [false, true] {
                let is_wanted = |&at: &u32| naive[at as usize] == wanted;
                let expected: Vec<u32> = (begin..begin + count).filter(is_wanted).collect();
                let places: Vec<u32> = valid.places(begin, count, wanted).collect();
                prop_assert_eq!(&places, &expected);
                let runs: Vec<_> = valid.runs(begin, count, wanted).collect();
                let of_runs = runs.iter().flat_map(|&(first, many)| first..first + many);
                prop_assert_eq!(of_runs.collect::<Vec<_>>(), expected);
                let are_apart = runs.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0);
                prop_assert!(are_apart, "runs that touch are one");
            }
            prop_assert!((0..500).all(|at| valid.is_set(at) == naive[at as usize]));
        }
    }
}
