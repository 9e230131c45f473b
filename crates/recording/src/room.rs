//! Limits on the size of a recording, including the free space of its file system.

use crate::{Error, ErrorKind, Result};
use std::{fs::File, io, path::Path};

const GIB: u64 = 1 << 30;

/// Limits of a recording whose size depends on an external workload.
#[derive(Debug, Clone, Copy, Default)]
pub struct Room {
    /// Maximum size of the file, if any.
    pub max_bytes: Option<u64>,
}

impl Room {
    /// Fails if `file`, of `file_bytes`, has reached its limit or leaves too little free space for
    /// others.
    pub(crate) fn check(self, file: &File, path: &Path, file_bytes: u64) -> Result<()> {
        if let Some(most) = self.max_bytes.filter(|&most| file_bytes > most) {
            let (path, mib) = (path.display(), most >> 20);
            let what = format!("{path} is larger than {mib} MiB, its limit");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        let stat = rustix::fs::fstatvfs(file)
            .map_err(|e| Error::io("reading the free space for", path, io::Error::from(e)))?;
        let size_bytes = stat.f_blocks.saturating_mul(stat.f_frsize);
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        let least = reserve_bytes(size_bytes);
        if free_bytes < least {
            let (path, free, least) = (path.display(), free_bytes >> 20, least >> 20);
            let what = format!(
                "{free} MiB are left where {path} is written; {least} MiB are kept free for other \
                 programs"
            );
            return Err(Error::new(ErrorKind::HostDiskFull, what));
        }
        Ok(())
    }
}

/// Returns the free space reserved for others: 5 %, at least 1 GiB on a file system of 4 GiB or
/// more, and at most 4 GiB, as much as journald keeps (journald.conf(5), SystemKeepFree=).
fn reserve_bytes(size_bytes: u64) -> u64 {
    let part = size_bytes / 20;
    if size_bytes < 4 * GIB {
        part
    } else {
        part.clamp(GIB, 4 * GIB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_between_one_and_four_gibibytes_of_what_is_not_small() {
        assert_eq!(reserve_bytes(20 << 20), 1 << 20);
        assert_eq!(reserve_bytes(4 * GIB), GIB);
        assert_eq!(reserve_bytes(40 * GIB), 2 * GIB);
        assert_eq!(reserve_bytes(4096 * GIB), 4 * GIB);
    }

    #[test]
    fn the_largest_size_is_a_size_that_is_allowed() {
        let file = tempfile::tempfile().unwrap();
        let room = Room {
            max_bytes: Some(10),
        };
        assert!(room.check(&file, Path::new("x"), 10).is_ok());
        let error = room.check(&file, Path::new("x"), 11).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
    }
}
