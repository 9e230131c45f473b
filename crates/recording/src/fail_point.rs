//! Deliberate panics, with which tests check that no thread waits forever for one that panicked.

/// Panics if `FSCOST_PANIC_AT` names `place`. Does nothing without the feature `fail-points`, which
/// only tests enable.
#[inline]
pub fn fail_point(place: &str) {
    #[cfg(feature = "fail-points")]
    #[expect(clippy::panic, reason = "a panic is its purpose")]
    if std::env::var_os("FSCOST_PANIC_AT").is_some_and(|named| named == place) {
        panic!("injected at {place}");
    }
    let _ = place;
}
