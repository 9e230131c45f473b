//! Behaviour of a disk server when memory is short: the kernel may be waiting for the server's
//! writes.

/// Score that protects from the out-of-memory killer: a mounted file system depends on the server.
const OOM_SCORE: &str = "-500";

/// Tells the kernel that this process is in its write path (prctl(2), PR_SET_IO_FLUSHER, for FUSE
/// daemons and similar processes). Its allocations then do not wait for writes that it must do
/// itself. Threads started later inherit the setting.
///
/// Without the privilege (CAP_SYS_RESOURCE), as in the VM lab of an unprivileged user, neither this
/// setting nor the OOM score takes effect.
pub fn declare() {
    let _ = rustix::process::configure_io_flusher_behavior(true);
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// Returns the limit of memory for the disks' maps: a quarter of the memory available now.
pub fn map_bytes() -> usize {
    /// The limit if the kernel does not report its memory.
    const FALLBACK: usize = 1 << 30;
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available_bytes(&text).map_or(FALLBACK, |bytes| bytes / 4)
}

/// Parses MemAvailable of proc_meminfo(5).
fn available_bytes(meminfo: &str) -> Option<usize> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_meminfo() {
        let text = "MemTotal:       24000 kB\nMemAvailable:    1000 kB\n";
        assert_eq!(available_bytes(text), Some(1_024_000));
        assert_eq!(available_bytes("MemTotal: 1 kB"), None);
    }
}
