//! Time to move bytes at a given rate, one request after another.

use crate::divisor::Divisor;

const NS: u64 = 1_000_000_000;

/// A path for data that transfers one request after another.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    rate: Rate,
    /// Instant at which all transfers are done.
    free_ns: u64,
}

impl Interface {
    /// Creates an idle interface; `bytes_per_s` must not be 0.
    pub(crate) fn new(bytes_per_s: u64) -> Interface {
        let rate = Rate::new(bytes_per_s);
        Interface { rate, free_ns: 0 }
    }

    /// Books a transfer behind all earlier ones. Returns the instant at which it is done.
    pub(crate) fn transfer(&mut self, from_ns: u64, bytes: u64) -> u64 {
        self.free_ns = from_ns.max(self.free_ns) + self.rate.ns(bytes);
        self.free_ns
    }
}

/// Transfer rate in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(Divisor);

impl Rate {
    /// Creates a rate; `bytes_per_s` must not be 0.
    pub(crate) fn new(bytes_per_s: u64) -> Rate {
        Rate(Divisor::new(bytes_per_s))
    }

    /// Returns the whole bytes that are transferred in a time.
    pub(crate) fn bytes(self, ns: u64) -> u64 {
        let bytes = u128::from(ns) * u128::from(self.0.number()) / u128::from(NS);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the time to transfer `bytes` in nanoseconds, rounded up.
    pub(crate) fn ns(self, bytes: u64) -> u64 {
        match bytes.checked_mul(NS) {
            Some(product) => self.0.div_ceil(product),
            None => {
                let divisor = u128::from(self.0.number());
                (u128::from(bytes) * u128::from(NS)).div_ceil(divisor) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_quotient_rounded_up(
            bytes in any::<u64>(), rate in 1..=u64::MAX, shift in 0u32..64,
        ) {
            let bytes = bytes >> shift;
            let exact = (u128::from(bytes) * u128::from(NS)).div_ceil(u128::from(rate));
            prop_assert_eq!(Rate::new(rate).ns(bytes), exact as u64);
        }
    }
}
