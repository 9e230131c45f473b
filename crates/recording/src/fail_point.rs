//! Panics on purpose: how tests see what becomes of the threads that wait for one that panicked.

/// Panics where `FSCOST_PANIC_AT` names `place`. Nothing without the feature `fail-points`, which
/// only tests turn on.
#[inline]
pub fn fail_point(place: &str) {
    #[cfg(feature = "fail-points")]
    #[expect(clippy::panic, reason = "it is what this is for")]
    if std::env::var_os("FSCOST_PANIC_AT").is_some_and(|named| named == place) {
        panic!("injected at {place}");
    }
    let _ = place;
}
