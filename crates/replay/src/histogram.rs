//! Histogram of latencies in buckets with a relative width of at most 1/16.

/// Bits below the highest bit of a latency that select its bucket.
const KEPT_BITS: u32 = 4;
const PER_POWER: usize = 1 << KEPT_BITS;
/// Number of buckets for all latencies below 2⁶⁴ ns.
const BUCKETS: usize = (64 - KEPT_BITS as usize + 1) * PER_POWER;

/// Counts of latencies. Each latency below 16 ns has its own bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// One count for each bucket, or empty if nothing was counted.
    counts: Vec<u64>,
    sum_ns: u128,
    max_ns: u64,
}

impl Histogram {
    /// Counts a latency.
    pub fn add(&mut self, ns: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket(ns)] += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Returns the sum of all latencies, exact to the nanosecond.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Returns the largest latency, exact to the nanosecond.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the non-empty buckets: smallest latency, largest latency, and count of each.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let each = self.counts.iter().enumerate();
        each.filter(|&(_, &count)| count > 0)
            .map(|(at, &count)| (least(at), least(at + 1) - 1, count))
    }
}

fn bucket(ns: u64) -> usize {
    let power = (ns | 1).ilog2().saturating_sub(KEPT_BITS);
    (power as usize * PER_POWER) + (ns >> power) as usize
}

/// Returns the smallest latency of a bucket. For the index after the last bucket, returns a number
/// beyond all latencies.
fn least(at: usize) -> u64 {
    if at < 2 * PER_POWER {
        return at as u64;
    }
    let power = at / PER_POWER - 1;
    let least = ((at % PER_POWER + PER_POWER) as u128) << power;
    u64::try_from(least).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_latency_lies_in_its_narrow_bucket(ns in any::<u64>(), shift in 0u32..64) {
            let ns = ns >> shift;
            let mut histogram = Histogram::default();
            histogram.add(ns);
            let (least, most, count) = histogram.buckets().next().unwrap();
            prop_assert_eq!(count, 1);
            prop_assert!(least <= ns && ns <= most, "{} {} {}", least, ns, most);
            prop_assert!((most - least) as f64 <= ns as f64 / 16.0);
            prop_assert_eq!(histogram.buckets().count(), 1);
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for at in 0..BUCKETS - 1 {
            assert_eq!(bucket(least(at)), at);
            assert_eq!(bucket(least(at + 1) - 1), at);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
