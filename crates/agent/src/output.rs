//! Limits the size of a cell's output log: a command that prints without end must not fill the
//! host's disk.
//!
//! The commands write to the file directly, without a process in between. The part between head and
//! tail is punched out while they run, and removed when they have ended.

use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Size of the head and of the tail that are kept.
const KEPT_BYTES: u64 = 64 << 20;
const CHUNK_BYTES: u64 = 1 << 20;

/// Output log of a cell.
#[derive(Debug)]
pub struct Output {
    file: File,
    kept_bytes: u64,
    punched_to: u64,
}

impl Output {
    /// Takes the descriptor of the open log.
    pub fn new(file: File) -> Self {
        Self::keeping(file, KEPT_BYTES)
    }

    fn keeping(file: File, kept_bytes: u64) -> Self {
        Self {
            file,
            kept_bytes,
            punched_to: kept_bytes,
        }
    }

    /// Frees the space between head and tail.
    pub fn bound(&mut self) {
        let length = self.file.metadata().map_or(0, |meta| meta.len());
        let tail = length.saturating_sub(self.kept_bytes) / CHUNK_BYTES * CHUNK_BYTES;
        if tail <= self.punched_to {
            return;
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // If the host's file system cannot punch holes, the log is cut at the end only.
        let _ = rustix::fs::fallocate(&self.file, flags, self.punched_to, tail - self.punched_to);
        self.punched_to = tail;
    }

    /// Joins head and tail, with a line between them that says how much is left out. All writers
    /// must have ended.
    pub fn finish(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length <= 2 * self.kept_bytes {
            return Ok(());
        }
        let tail = length - self.kept_bytes;
        // The log itself is open for appending, which sends every write to the end (open(2)).
        let file = File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        let left_out = tail - self.kept_bytes;
        let note = format!("\n=== {left_out} bytes of output are left out here\n");
        file.write_all_at(note.as_bytes(), self.kept_bytes)?;
        let mut to = self.kept_bytes + note.len() as u64;
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        let mut from = tail;
        while from < length {
            let count = file.read_at(&mut chunk, from)?;
            if count == 0 {
                break;
            }
            file.write_all_at(&chunk[..count], to)?;
            from += count as u64;
            to += count as u64;
        }
        file.set_len(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn head_and_tail_stay_and_the_middle_takes_no_space() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut file = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        let mut output = Output::keeping(file.try_clone().unwrap(), 2 * CHUNK_BYTES);
        for part in 0..20_u8 {
            file.write_all(&vec![b'a' + part; CHUNK_BYTES as usize])
                .unwrap();
            output.bound();
            assert!(file.metadata().unwrap().blocks() * 512 <= 5 * CHUNK_BYTES);
        }
        file.write_all(b"the end").unwrap();
        output.finish().unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        let note = "\n=== 16777223 bytes of output are left out here\n";
        assert_eq!(text.len() as u64, 4 * CHUNK_BYTES + note.len() as u64);
        let (head, tail) = text.split_once(note).unwrap();
        assert!(
            head.starts_with('a') && head.ends_with('b'),
            "{}",
            head.len()
        );
        assert!(tail.starts_with('s') && tail.ends_with("the end"));
    }

    #[test]
    fn a_short_log_stays_as_it_is() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"short").unwrap();
        let mut output = Output::new(file.try_clone().unwrap());
        output.bound();
        output.finish().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 5);
    }
}
