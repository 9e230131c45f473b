//! Division by constant numbers, computed as a multiplication.

/// A constant divisor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    divisor: u64,
    /// (2⁶⁴ − 1) ÷ divisor, rounded down.
    reciprocal: u64,
}

impl Divisor {
    /// Creates a divisor; `divisor` must not be 0.
    pub(crate) fn new(divisor: u64) -> Divisor {
        Divisor {
            divisor,
            reciprocal: u64::MAX / divisor,
        }
    }

    pub(crate) fn number(self) -> u64 {
        self.divisor
    }

    /// Returns the quotient and the remainder.
    #[inline]
    pub(crate) fn divide(self, number: u64) -> (u64, u64) {
        let product = u128::from(number) * u128::from(self.reciprocal);
        let mut quotient = (product >> 64) as u64;
        let mut remainder = number - quotient * self.divisor;
        // The reciprocal is too small by less than 2 units, and so is the quotient.
        while remainder >= self.divisor {
            quotient += 1;
            remainder -= self.divisor;
        }
        (quotient, remainder)
    }

    #[inline]
    pub(crate) fn quotient(self, number: u64) -> u64 {
        self.divide(number).0
    }

    #[inline]
    pub(crate) fn remainder(self, number: u64) -> u64 {
        self.divide(number).1
    }

    /// Returns the quotient, rounded up.
    #[inline]
    pub(crate) fn div_ceil(self, number: u64) -> u64 {
        let (quotient, remainder) = self.divide(number);
        quotient + u64::from(remainder > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_divides_as_the_processor_does(
            number in any::<u64>(),
            divisor in 1..=u64::MAX,
            shifts in (0u32..64, 0u32..64),
        ) {
            let (number, divisor) = (number >> shifts.0, (divisor >> shifts.1).max(1));
            let found = Divisor::new(divisor).divide(number);
            prop_assert_eq!(found, (number / divisor, number % divisor));
            prop_assert_eq!(Divisor::new(divisor).div_ceil(number), number.div_ceil(divisor));
        }
    }

    #[test]
    fn the_largest_numbers() {
        for divisor in [1, 2, 3, u64::MAX - 1, u64::MAX] {
            for number in [0, 1, divisor - 1, divisor, u64::MAX - 1, u64::MAX] {
                let found = Divisor::new(divisor).divide(number);
                assert_eq!(
                    found,
                    (number / divisor, number % divisor),
                    "{number} / {divisor}"
                );
            }
        }
    }
}
