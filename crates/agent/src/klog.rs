//! The kernel's own words: the lines of the kernel log that concern this cell.

use rustix::fs::{Mode, OFlags, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;

const MOST_LINES: usize = 100;

/// A reader of `/dev/kmsg`; silent when the kernel does not let us read it.
#[derive(Debug)]
pub struct KernelLog {
    fd: Option<OwnedFd>,
}

impl KernelLog {
    /// Opens the log at its end.
    pub fn open() -> Self {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let log = Self {
            fd: rustix::fs::open("/dev/kmsg", flags, Mode::empty()).ok(),
        };
        log.skip();
        log
    }

    /// Forgets everything logged until now.
    pub fn skip(&self) {
        if let Some(fd) = &self.fd {
            // Seeking to the end is all that can fail here, and then there are only more lines to filter.
            let _ = rustix::fs::seek(fd, SeekFrom::End(0));
        }
    }

    /// The lines since the last [`skip`](Self::skip) that name one of `devices` (`loop3`), or the file system type and no
    /// other device: another cell, or the host itself, may use the same type.
    pub fn lines_about(&self, devices: &[String], fs_type: &str) -> Vec<String> {
        let Some(fd) = &self.fd else {
            return Vec::new();
        };
        let is_block_device = |word: &str| Path::new("/sys/class/block").join(word).exists();
        let mut lines = Vec::new();
        // One read gives one record, of at most 8 KiB (Documentation/ABI/testing/dev-kmsg).
        let mut record = [0_u8; 8192];
        while lines.len() < MOST_LINES {
            match rustix::io::read(fd, &mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let message = message_of(&text);
                    if is_about(message, devices, fs_type, is_block_device) {
                        lines.push(message.to_owned());
                    }
                }
                // Records were overwritten before we read them: the next read goes on with the oldest that is left.
                Err(rustix::io::Errno::PIPE) => {}
                Err(_) => break,
            }
        }
        lines
    }
}

/// The message of a record `priority,sequence,time,flags;message\n KEY=value…`.
fn message_of(record: &str) -> &str {
    let message = record
        .split_once(';')
        .map_or(record, |(_, message)| message);
    message.lines().next().unwrap_or_default()
}

fn is_about(
    message: &str,
    devices: &[String],
    fs_type: &str,
    is_block_device: impl Fn(&str) -> bool,
) -> bool {
    let mut words = message
        .split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
        .filter(|word| !word.is_empty());
    if words
        .clone()
        .any(|word| devices.iter().any(|device| device == word))
    {
        return true;
    }
    message.to_lowercase().contains(&fs_type.to_lowercase()) && !words.any(is_block_device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_other_devices_are_left_out() {
        let devices = ["loop1".to_owned()];
        let about = |message| is_about(message, &devices, "ext4", |word| word.starts_with("loop"));
        assert!(about("EXT4-fs (loop1): bad"));
        assert!(about("I/O error, dev loop1, sector 0"));
        assert!(about("EXT4-fs: Mount option not supported"));
        assert!(!about("EXT4-fs (loop12): mounted"));
        assert!(!about("BTRFS: something"));
    }

    #[test]
    fn a_record_without_its_prefix_and_dictionary() {
        assert_eq!(
            message_of("6,1,2,-;EXT4-fs (loop0): bad; thing\n SUBSYSTEM=x\n"),
            "EXT4-fs (loop0): bad; thing"
        );
        assert_eq!(message_of("odd"), "odd");
    }
}
