//! Lines of a text, read without copying and in bounded memory.

use crate::{
    error::{Error, Place, Problem, Result},
    input::{Bytes, read_error},
};
use std::path::{Path, PathBuf};

/// Maximum length of a line. No format here has lines of more than 5 KB (a name of 4096 bytes and
/// six numbers).
pub(crate) const MAX_LINE_BYTES: usize = 1 << 16;
const BUFFER_BYTES: usize = 1 << 20;

/// Removes the byte order mark with which some editors begin a UTF-8 file.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

pub(crate) struct Lines {
    path: PathBuf,
    input: Bytes,
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    is_at_end: bool,
    /// Number of the last returned line, from 1.
    number: u64,
}

impl Lines {
    /// Creates the lines of a file; errors refer to `path`.
    pub(crate) fn new(path: &Path, input: Bytes) -> Lines {
        Lines {
            path: path.to_owned(),
            input,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            is_at_end: false,
            number: 0,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the next line without its terminator (`\n` or `\r\n`), which the last line may lack.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut searched = self.begin;
        let (line_end, next) = loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                break (searched + at, searched + at + 1);
            }
            let length = self.end - self.begin;
            if self.is_at_end {
                if length == 0 {
                    return Ok(None);
                }
                break (self.end, self.end);
            }
            if length > MAX_LINE_BYTES {
                return Err(self.too_long());
            }
            self.fill()?;
            searched = self.begin + length;
        };
        if line_end - self.begin > MAX_LINE_BYTES {
            return Err(self.too_long());
        }
        self.number += 1;
        let line = &self.buffer[self.begin..line_end];
        self.begin = next;
        let line = if self.number == 1 {
            without_mark(line)
        } else {
            line
        };
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Returns the error of the last returned line.
    pub(crate) fn malformed(&self, problem: Problem) -> Error {
        Error::malformed(&self.path, Place::Line(self.number), problem)
    }

    fn too_long(&self) -> Error {
        let limit = format!("the line is longer than {MAX_LINE_BYTES} bytes");
        let problem = format!("{limit}: not a text trace, or a damaged one").into();
        Error::malformed(&self.path, Place::Line(self.number + 1), problem)
    }

    /// Reads more data after the unread rest, which is moved to the front.
    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        let read = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(read_error(&self.path, Place::Line(self.number + 1), &e)),
                Ok(read) => break read,
            }
        };
        self.is_at_end = read == 0;
        self.end += read;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn lines(bytes: Bytes) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Path::new("x"), bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(line.to_vec());
        }
        assert_eq!(lines.number(), all.len() as u64);
        all
    }

    #[test]
    fn lines_end_with_lf_crlf_or_the_file() {
        let text = std::io::Cursor::new(b"one\ntwo\r\n\nlast".to_vec());
        assert_eq!(lines(Box::new(text)), [&b"one"[..], b"two", b"", b"last"]);
        assert!(lines(Box::new(std::io::empty())).is_empty());
    }

    #[test]
    fn lines_across_reads_of_any_size_are_whole() {
        struct Dribble(std::io::Cursor<Vec<u8>>, usize);
        impl std::io::Read for Dribble {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.1 = self.1 % 7 + 1;
                let most = buffer.len().min(self.1);
                self.0.read(&mut buffer[..most])
            }
        }
        let wanted: Vec<Vec<u8>> = (0..3000)
            .map(|n: u32| vec![b'x'; (n % 97) as usize])
            .collect();
        let text = wanted.join(&b'\n');
        let found = lines(Box::new(Dribble(std::io::Cursor::new(text), 0)));
        assert_eq!(found, wanted);
    }

    #[test]
    fn an_endless_line_is_an_error_at_once() {
        let endless = std::io::repeat(b'7').take(u64::MAX);
        let mut lines = Lines::new(Path::new("endless"), Box::new(endless));
        let error = lines.next().unwrap_err();
        assert_eq!(error.place, Place::Line(1));
        assert!(
            error
                .to_string()
                .starts_with("endless: line 1: the line is longer than")
        );
    }
}
