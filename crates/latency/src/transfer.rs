//! Time to move bytes at a given rate.

/// Nanoseconds, rounded up.
pub(crate) fn ns(bytes: u64, bytes_per_s: u64) -> u64 {
    const NS: u64 = 1_000_000_000;
    match bytes.checked_mul(NS) {
        Some(product) => product.div_ceil(bytes_per_s),
        None => (u128::from(bytes) * u128::from(NS)).div_ceil(u128::from(bytes_per_s)) as u64,
    }
}
