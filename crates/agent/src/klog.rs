//! The kernel's own words: the lines of the kernel log that concern this cell.

use rustix::fs::{Mode, OFlags, SeekFrom};
use std::os::fd::OwnedFd;

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

    /// The lines since the last [`skip`](Self::skip) that contain one of `words`, whatever their case.
    pub fn lines_with(&self, words: &[String]) -> Vec<String> {
        let Some(fd) = &self.fd else {
            return Vec::new();
        };
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let mut lines = Vec::new();
        // One read gives one record, of at most 8 KiB (Documentation/ABI/testing/dev-kmsg).
        let mut record = [0_u8; 8192];
        while lines.len() < MOST_LINES {
            match rustix::io::read(fd, &mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let message = message_of(&text);
                    let lower = message.to_lowercase();
                    if words.iter().any(|word| lower.contains(word)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_its_prefix_and_dictionary() {
        assert_eq!(
            message_of("6,1,2,-;EXT4-fs (loop0): bad; thing\n SUBSYSTEM=x\n"),
            "EXT4-fs (loop0): bad; thing"
        );
        assert_eq!(message_of("odd"), "odd");
    }
}
