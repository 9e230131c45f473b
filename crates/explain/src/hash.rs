//! Hash maps keyed by number, with a fast hash. Explaining looks up inodes, blocks and addresses
//! all the time, and the standard library's hash takes longer than the rest of a look-up.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::LazyLock,
};

pub type HashMap<K, V> = std::collections::HashMap<K, V, Seeded>;
pub type HashSet<K> = std::collections::HashSet<K, Seeded>;

/// Fractional digits of pi, from the first on.
const FACTOR: u64 = 0x243f_6a88_85a3_08d3;
/// Seed of the hash: the same for all maps of a process, and different in each process. The author
/// of a recording therefore cannot choose numbers that collide.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// Hasher builder that begins every hash with the seed of the process.
#[derive(Debug, Clone, Copy)]
pub struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Seeded {
        Seeded(*SEED)
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Hasher that multiplies to 128 bits and folds the halves into each other. Every bit of the hash
/// depends on every bit of the number.
#[derive(Debug)]
pub struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_usize(bytes.len());
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(FACTOR);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maps use the lowest bits of a hash for the slot and the highest seven for comparison.
    #[test]
    fn numbers_in_steps_spread_over_the_bits_that_maps_use() {
        let seeded = Seeded::default();
        for step in [1, 64, 4096, 16384, 1 << 32] {
            for (shift, bits) in [(0, 10), (57, 7)] {
                let of =
                    |number: u64| (seeded.hash_one(number * step) >> shift) & ((1 << bits) - 1);
                let mut counts = vec![0; 1 << bits];
                (0..16_u64 << bits).for_each(|number| counts[of(number) as usize] += 1);
                let most = counts.iter().max().unwrap();
                // The average is 16. With 1024 random slots, one of them has more than 48 with
                // probability 10^-7.
                assert!(
                    *most < 48,
                    "step {step}: {most} of 16 << {bits} in one place"
                );
            }
        }
    }

    #[test]
    fn texts_that_differ_in_a_byte_or_in_length_differ() {
        let seeded = Seeded::default();
        let texts = [
            "",
            "\0",
            "\0\0",
            "12345678",
            "123456780",
            "12345678\0",
            "02345678",
        ];
        let hashes: std::collections::BTreeSet<_> =
            texts.iter().map(|text| seeded.hash_one(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
