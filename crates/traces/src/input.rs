//! The bytes of a trace in a regular file, decompressed on the fly if its first bytes identify a
//! compression.

use crate::error::{Error, ErrorKind, Place, Result};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use fscost_recording as recording;
use lzma_rust2::XzReader;
use std::{
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

const BUFFER_BYTES: usize = 1 << 18;
/// Memory limit of a decompressor. zstd itself rejects windows above 128 MiB; `xz -9` needs 65 MiB.
const MAX_XZ_KIB: u32 = 192 << 10;

/// Decompressed bytes from the beginning.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// A trace's file, which can be read several times.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    path: PathBuf,
    compression: Option<Compression>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    /// Detects the compression by its magic number: RFC 1952, RFC 8878, the .xz file format 1.2.1
    /// §2.1.1.1, bzip2's manual (stream header, then the header of a block or of the end).
    fn of(head: &[u8]) -> Option<Compression> {
        const BZIP2_BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
        const BZIP2_END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
        let after_bzip2 = head.get(4..10);
        if head.starts_with(&[0x1f, 0x8b, 8]) {
            Some(Compression::Gzip)
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Compression::Zstd)
        } else if head.starts_with(b"\xfd7zXZ\0") {
            Some(Compression::Xz)
        } else if head.starts_with(b"BZh")
            && (after_bzip2 == Some(&BZIP2_BLOCK) || after_bzip2 == Some(&BZIP2_END))
        {
            Some(Compression::Bzip2)
        } else {
            None
        }
    }
}

impl Source {
    /// Opens a regular file.
    pub(crate) fn open(path: &Path) -> Result<Source> {
        let file = recording::open_regular(path).map_err(|e| match e.kind {
            recording::ErrorKind::Format => Error::format(
                path,
                "not a regular file; a trace is read from a regular file",
            ),
            _ => Error::new(ErrorKind::Io, path, Place::File, e.to_string()),
        })?;
        let mut source = Source {
            file,
            path: path.to_owned(),
            compression: None,
        };
        let head = source.head(16)?;
        source.compression = Compression::of(&head);
        Ok(source)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// Returns the first decompressed bytes: `most`, or all if there are fewer.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let taken = self.bytes()?.take(most as u64).read_to_end(&mut head);
        taken.map_err(|e| read_error(&self.path, Place::File, &e))?;
        Ok(head)
    }

    /// Returns all bytes from the beginning. Readers of one source share its position, so only the
    /// most recent reader is valid.
    pub(crate) fn bytes(&self) -> Result<Bytes> {
        let failed = |e: io::Error| read_error(&self.path, Place::File, &e);
        let mut file = self.file.try_clone().map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let Some(compression) = self.compression else {
            return Ok(Box::new(file));
        };
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(match compression {
            Compression::Gzip => Box::new(MultiGzDecoder::new(input)),
            Compression::Zstd => Box::new(zstd::Decoder::with_buffer(input).map_err(failed)?),
            Compression::Xz => Box::new(XzReader::new_mem_limit(input, true, MAX_XZ_KIB)),
            Compression::Bzip2 => Box::new(MultiBzDecoder::new(input)),
        })
    }
}

/// Returns the error of a failed read, either by the operating system or by a decompressor.
pub(crate) fn read_error(path: &Path, place: Place, error: &io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::new(ErrorKind::Io, path, place, format!("reading: {error}"));
    }
    let cause = format!("the compressed data are damaged or cut off ({error})");
    Error::malformed(path, place, cause.into())
}
