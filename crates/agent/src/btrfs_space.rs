//! Metadata space of a btrfs, read from sysfs; none for other file systems.
//!
//! This is the only place where the agent knows a file system by name. statvfs cannot tell metadata
//! from data, and btrfs is the only file system whose metadata can be counted without reading its
//! structures (fs/btrfs/sysfs.c, `allocation/metadata/bytes_used`).

use std::path::Path;

/// Bytes of metadata in use on the btrfs that contains the block device `kernel_name` (`loop3`).
pub fn metadata_used_bytes(kernel_name: &str) -> Option<u64> {
    find(Path::new("/sys/fs/btrfs"), kernel_name)
}

fn find(root: &Path, kernel_name: &str) -> Option<u64> {
    for entry in std::fs::read_dir(root).ok()?.flatten() {
        let dir = entry.path();
        if dir.join("devices").join(kernel_name).exists() {
            let text = std::fs::read_to_string(dir.join("allocation/metadata/bytes_used")).ok()?;
            return text.trim().parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_file_system_that_has_the_device_is_found() {
        let root = tempfile::tempdir().unwrap();
        for (uuid, device, used) in [("aa", "loop1", "4096\n"), ("bb", "loop2", "8192\n")] {
            fs::create_dir_all(root.path().join(uuid).join("devices").join(device)).unwrap();
            fs::create_dir_all(root.path().join(uuid).join("allocation/metadata")).unwrap();
            fs::write(
                root.path()
                    .join(uuid)
                    .join("allocation/metadata/bytes_used"),
                used,
            )
            .unwrap();
        }
        fs::create_dir(root.path().join("features")).unwrap();
        assert_eq!(find(root.path(), "loop2"), Some(8192));
        assert_eq!(find(root.path(), "loop3"), None);
        assert_eq!(find(&root.path().join("none"), "loop1"), None);
    }
}
