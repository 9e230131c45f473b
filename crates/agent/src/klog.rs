//! Lines of the kernel log that concern this cell.

use rustix::fs::{Mode, OFlags, SeekFrom};
use std::os::fd::OwnedFd;

const MOST_LINES: usize = 100;
/// Warnings (include/linux/kern_levels.h). Higher levels are notices, such as those about each
/// mount and unmount.
const LEAST_LEVEL: u32 = 4;

/// A reader of `/dev/kmsg`; yields nothing if the kernel denies access.
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

    /// Discards everything logged so far.
    pub fn skip(&self) {
        if let Some(fd) = &self.fd {
            // Only seeking to the end can fail here; then there are just more lines to filter.
            let _ = rustix::fs::seek(fd, SeekFrom::End(0));
        }
    }

    /// Returns warnings and errors since the last [`skip`](Self::skip) that name one of `devices`
    /// (`loop3`). Lines that name no device may be about another file system of the machine.
    pub fn lines_about(&self, devices: &[String]) -> Vec<String> {
        let Some(fd) = &self.fd else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        // Each read returns one record of at most 8 KiB (Documentation/ABI/testing/dev-kmsg).
        let mut record = [0_u8; 8192];
        while lines.len() < MOST_LINES {
            match rustix::io::read(fd, &mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let (level, message) = parse(&text);
                    if level <= LEAST_LEVEL && is_about(message, devices) {
                        lines.push(message.to_owned());
                    }
                }
                // Records were overwritten before they were read: the next read continues with the
                // oldest record left.
                Err(rustix::io::Errno::PIPE) => {}
                Err(_) => break,
            }
        }
        lines
    }
}

/// Parses a record `priority,sequence,time,flags;message\n KEY=value…` into level and message. The
/// level is the lowest 3 bits of the priority.
fn parse(record: &str) -> (u32, &str) {
    let (prefix, message) = record.split_once(';').unwrap_or(("", record));
    let priority = prefix
        .split(',')
        .next()
        .and_then(|text| text.parse::<u32>().ok());
    let level = priority.map_or(LEAST_LEVEL, |priority| priority & 7);
    (level, message.lines().next().unwrap_or_default())
}

fn is_about(message: &str, devices: &[String]) -> bool {
    message
        .split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
        .any(|word| devices.iter().any(|device| device == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_other_devices_and_about_none_are_left_out() {
        let devices = ["loop1".to_owned()];
        let about = |message| is_about(message, &devices);
        assert!(about("EXT4-fs (loop1): bad"));
        assert!(about("I/O error, dev loop1, sector 0"));
        assert!(!about("EXT4-fs (loop12): mounted"));
        assert!(!about("ext4: Bad value for 'data'"), "of another mount");
    }

    #[test]
    fn a_record_without_its_prefix_and_dictionary() {
        assert_eq!(
            parse("4,1,2,-;EXT4-fs (loop0): bad; thing\n SUBSYSTEM=x\n"),
            (4, "EXT4-fs (loop0): bad; thing")
        );
        assert_eq!(parse("30,1,2,-;EXT4-fs (loop0): unmounting").0, 6);
        assert_eq!(parse("odd"), (LEAST_LEVEL, "odd"));
    }
}
