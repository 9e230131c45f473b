//! What a disk server owes the kernel when memory is short: the kernel may be waiting for it to
//! write.

/// include/uapi/linux/prctl.h; since Linux 5.6.
const PR_SET_IO_FLUSHER: libc::c_int = 57;
/// Spared by the out-of-memory killer: a mounted file system hangs on the server.
const OOM_SCORE: &str = "-500";

/// Tells the kernel that this process is in its write path (prctl(2), PR_SET_IO_FLUSHER: made for
/// FUSE daemons and the like):
/// its allocations then do not wait for what it has to write itself. Threads started later inherit
/// it.
///
/// Without the privilege (CAP_SYS_RESOURCE), as in the VM lab of an unprivileged user, both
/// requests change nothing.
pub fn declare() {
    // SAFETY: the call takes numbers only.
    let _ = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1_u64, 0_u64, 0_u64, 0_u64) };
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
}

/// The most memory that maps of the disks may take: a quarter of what is available now.
pub fn map_bytes() -> usize {
    /// Where the kernel does not tell.
    const FALLBACK: usize = 1 << 30;
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available_bytes(&text).map_or(FALLBACK, |bytes| bytes / 4)
}

/// MemAvailable of proc_meminfo(5).
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
