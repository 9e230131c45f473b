//! A trace that is read request by request.

use crate::{
    device_events::Action,
    error::{Error, ErrorKind, Place, Result},
    formats::{
        Format, HEAD_BYTES, Reader, Text,
        alibaba::Alibaba,
        blkparse,
        blkparse::Blkparse,
        blktrace::Blktrace,
        detect,
        disksim::{Disksim, Mqsim},
        dm_log_writes::DmLogWrites,
        fio::Fio,
        fiu::Fiu,
        msr::Msr,
        spc::Spc,
        systor17::Systor17,
        tencent::Tencent,
    },
    input::Source,
    lines::Lines,
    request::{Output, Request},
};
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// Maximum number of files: more CPUs than Linux supports on any machine (`NR_CPUS` is at most
/// 8192).
const MAX_FILES: usize = 8192;

/// A trace: yields the requests that reached the devices, in the order of the file.
pub struct Trace {
    format: Format,
    reader: Option<Box<dyn Reader>>,
    out: Output,
    /// Error in the line after the batch.
    error: Option<Error>,
}

struct TextReader<T> {
    lines: Lines,
    text: T,
}

impl<T: Text> Reader for TextReader<T> {
    #[inline]
    fn step(&mut self, out: &mut Output) -> Result<bool> {
        let is_first = self.lines.number() == 0;
        let Some(line) = self.lines.next()? else {
            return Ok(false);
        };
        let is_header = is_first && line.eq_ignore_ascii_case(T::HEADER.as_bytes());
        if !line.is_empty() && !is_header {
            let added = self.text.line(line, out);
            added.map_err(|problem| self.lines.malformed(problem))?;
        }
        Ok(true)
    }
}

impl Trace {
    /// Opens a regular file. The format is detected by content, unless it is given.
    ///
    /// For blkparse and blktrace, D events (issued to the driver) count. Q events count if the
    /// trace has no D, and C events if it has no Q either. The search for these events reads up to
    /// the first D.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Trace> {
        let source = Source::open(path)?;
        let format = match format {
            Some(format) => format,
            None => detect(&source.head(HEAD_BYTES)?).map_err(|p| Error::format(path, p))?,
        };
        Ok(Trace {
            format,
            reader: Some(reader(source, format)?),
            out: Output::default(),
            error: None,
        })
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the names of the disks found so far, in order of appearance: `8,0` (blkparse,
    /// blktrace, FIU), `usr_0` (MSR), the LUN, the device, volume or ASU number, the file (fio),
    /// `log` (dm-log-writes).
    #[must_use]
    pub fn disks(&self) -> &[String] {
        self.out.disks.names()
    }

    /// Returns the time from the first line read so far to the last one. A line need not be a
    /// request: fio stamps the end of a job (`close`), which may follow a long pause. 0 for
    /// dm-log-writes, which has no times: the number of an entry stands for its time.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        match self.format {
            Format::DmLogWrites => 0,
            _ => self.out.span_ns.map_or(0, |(first, last)| last - first),
        }
    }

    /// Returns the next request; `None` at the end and after an error.
    #[inline]
    pub fn next_request(&mut self) -> Result<Option<Request>> {
        loop {
            if let Some(request) = self.out.take() {
                return Ok(Some(request));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Reads a batch after the previous one was taken. False at the end.
    fn fill(&mut self) -> Result<bool> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let Some(reader) = &mut self.reader else {
            return Ok(false);
        };
        self.out.clear();
        // The requests before a malformed line are valid, too.
        match reader.fill(&mut self.out) {
            Ok(true) => {}
            Ok(false) => self.reader = None,
            Err(error) => {
                self.reader = None;
                self.error = Some(error);
            }
        }
        Ok(true)
    }
}

impl Iterator for Trace {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Result<Request>> {
        self.next_request().transpose()
    }
}

fn reader(source: Source, format: Format) -> Result<Box<dyn Reader>> {
    match format {
        Format::Blkparse => text(&source, Blkparse::new(action_of_text(&source)?)),
        Format::Msr => text(&source, Msr::default()),
        Format::Fio => text(&source, Fio::default()),
        Format::Systor17 => text(&source, Systor17),
        Format::Alibaba => text(&source, Alibaba),
        Format::Tencent => text(&source, Tencent),
        Format::Spc => text(&source, Spc),
        Format::Fiu => text(&source, Fiu::default()),
        Format::Disksim => text(&source, Disksim),
        Format::Mqsim => text(&source, Mqsim),
        Format::Blktrace => {
            let sources = files_of_all_cpus(source)?;
            let action = action_of_files(&sources)?;
            Ok(Box::new(Blktrace::new(&sources, action)?))
        }
        Format::DmLogWrites => {
            if source.is_compressed() {
                let cause = "a compressed log of dm-log-writes; decompress it first";
                return Err(Error::format(source.path(), cause));
            }
            Ok(Box::new(DmLogWrites::open(source.path())?))
        }
    }
}

fn text(source: &Source, text: impl Text + 'static) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader {
        lines: Lines::new(source.path(), source.bytes()?),
        text,
    }))
}

fn action_of_text(source: &Source) -> Result<Action> {
    let mut lines = Lines::new(source.path(), source.bytes()?);
    action_to_count(|| Ok(lines.next()?.map(blkparse::action_of_line)))
}

fn action_of_files(sources: &[Source]) -> Result<Action> {
    let mut events = Blktrace::new(sources, Action::Issue)?;
    action_to_count(|| events.next_action())
}

/// Returns the action to count. `next` returns the action of the next line or record, if it has
/// one; `None` at the end.
fn action_to_count(mut next: impl FnMut() -> Result<Option<Option<Action>>>) -> Result<Action> {
    let mut found = Action::Complete;
    while let Some(action) = next()? {
        match action {
            Some(Action::Issue) => return Ok(Action::Issue),
            Some(Action::Queue) => found = Action::Queue,
            _ => {}
        }
    }
    Ok(found)
}

/// Opens the files of all CPUs. blktrace(8) writes one file per CPU, `NAME.blktrace.CPU`: each
/// contains a share of the trace, and all of them together are the trace. They may be compressed,
/// all in the same way.
fn files_of_all_cpus(source: Source) -> Result<Vec<Source>> {
    let path = source.path().to_owned();
    let Some((base, own_cpu, ending)) = path.file_name().and_then(name_of_cpu) else {
        return Ok(vec![source]);
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let failed = |e: std::io::Error| {
        let cause = format!("looking for the files of other CPUs: {e}");
        Error::new(ErrorKind::Io, &path, Place::File, cause)
    };
    let mut others: Vec<(u32, PathBuf)> = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let other = name_of_cpu(&name);
        if let Some((_, cpu, _)) = other.filter(|o| o.0 == base && o.1 != own_cpu && o.2 == ending)
        {
            others.push((cpu, folder.join(&name)));
        }
        if others.len() >= MAX_FILES {
            return Err(Error::format(
                &path,
                "the folder has files of more than 8192 CPUs",
            ));
        }
    }
    others.sort();
    let mut sources = vec![source];
    for (_, other) in others {
        sources.push(Source::open(&other)?);
    }
    Ok(sources)
}

/// Splits `NAME.blktrace.CPU` and an optional ending into three parts.
fn name_of_cpu(name: &OsStr) -> Option<(Vec<u8>, u32, Vec<u8>)> {
    let name = name.as_bytes();
    let at = memchr::memmem::rfind(name, b".blktrace.")?;
    let (base, rest) = (&name[..at], &name[at + b".blktrace.".len()..]);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let cpu = crate::number::integer(&rest[..digits])?;
    let ending = &rest[digits..];
    let is_ending = ending.is_empty() || ending.starts_with(b".");
    let cpu = u32::try_from(cpu).ok().filter(|_| is_ending)?;
    Some((base.to_owned(), cpu, ending.to_owned()))
}
