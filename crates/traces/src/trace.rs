//! A trace, opened and read request by request.

use crate::{
    device_events::{Action, Requests},
    disks::Disks,
    error::{Error, ErrorKind, Place, Result},
    formats::{
        Format, HEAD_BYTES, Text, alibaba::Alibaba, blkparse, blkparse::Blkparse,
        blktrace::Blktrace, detect, dm_log_writes::DmLogWrites, fio::Fio, msr::Msr,
        systor17::Systor17, tencent::Tencent,
    },
    input::Source,
    lines::Lines,
    request::{Kind, Request},
};
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// More CPUs than Linux supports on any machine (`NR_CPUS` is at most 8192).
const MAX_FILES: usize = 8192;

/// A trace: an iterator of the requests that reached the devices, in the order of the file.
pub struct Trace {
    path: PathBuf,
    format: Format,
    reader: Reader,
    disks: Disks,
    second: Option<Request>,
    is_over: bool,
}

enum Reader {
    Text { lines: Lines, text: Box<dyn Text> },
    Blktrace(Blktrace),
    DmLogWrites(DmLogWrites),
}

impl Trace {
    /// Opens a regular file. The content decides on the format, unless it is given.
    ///
    /// Of blkparse and blktrace, D events (issued to the driver) count; Q events if there is no D
    /// in the trace, and C
    /// events if there is no Q either. That search reads to the first D.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Trace> {
        let source = Source::open(path)?;
        let format = match format {
            Some(format) => format,
            None => detect(&source.head(HEAD_BYTES)?).map_err(|p| Error::format(path, p))?,
        };
        Ok(Trace {
            path: path.to_owned(),
            format,
            reader: reader(source, format)?,
            disks: Disks::default(),
            second: None,
            is_over: false,
        })
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Names of the disks of the requests so far, in the order of their first request: `8,0`
    /// (blkparse, blktrace),
    /// `usr_0` (MSR), the LUN, the device or volume number, the file (fio), `log` (dm-log-writes).
    #[must_use]
    pub fn disks(&self) -> &[String] {
        self.disks.names()
    }

    /// The next request; none at the end, and after an error.
    pub fn next_request(&mut self) -> Result<Option<Request>> {
        if let Some(request) = self.second.take() {
            return Ok(Some(request));
        }
        while !self.is_over {
            match self.next_requests() {
                Ok(Some(requests)) => {
                    let mut each = [requests.first, requests.second].into_iter().flatten();
                    let mut each = each.by_ref().filter(is_counted);
                    if let Some(first) = each.next() {
                        self.second = each.next();
                        return Ok(Some(first));
                    }
                }
                Ok(None) => self.is_over = true,
                Err(e) => {
                    self.is_over = true;
                    return Err(e);
                }
            }
        }
        Ok(None)
    }

    /// The requests of the next line or record, which may be none.
    fn next_requests(&mut self) -> Result<Option<Requests>> {
        match &mut self.reader {
            Reader::Text { lines, text } => {
                let number = lines.number() + 1;
                let Some(line) = lines.next(&self.path)? else {
                    return Ok(None);
                };
                if line.is_empty() {
                    return Ok(Some(Requests::default()));
                }
                let requests = text.line(line, number, &mut self.disks);
                requests.map(Some).map_err(|problem| {
                    Error::new(
                        ErrorKind::Malformed,
                        &self.path,
                        Place::Line(number),
                        problem,
                    )
                })
            }
            Reader::Blktrace(blktrace) => blktrace.next(&mut self.disks),
            Reader::DmLogWrites(log) => log.next(&mut self.disks),
        }
    }
}

impl Iterator for Trace {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Result<Request>> {
        self.next_request().transpose()
    }
}

/// A read or write of no bytes moves no data.
fn is_counted(request: &Request) -> bool {
    request.length_bytes > 0 || request.kind == Kind::Flush
}

fn reader(source: Source, format: Format) -> Result<Reader> {
    let text: Box<dyn Text> = match format {
        Format::Blkparse => Box::new(Blkparse::new(action_of_text(&source)?)),
        Format::Msr => Box::new(Msr::default()),
        Format::Fio => Box::new(Fio::default()),
        Format::Systor17 => Box::new(Systor17),
        Format::Alibaba => Box::new(Alibaba),
        Format::Tencent => Box::new(Tencent),
        Format::Blktrace => {
            let sources = files_of_all_cpus(source)?;
            let action = action_of_files(&sources)?;
            return Ok(Reader::Blktrace(Blktrace::new(&sources, action)?));
        }
        Format::DmLogWrites => {
            if source.is_compressed() {
                let cause = "a compressed log of dm-log-writes; decompress it first";
                return Err(Error::format(source.path(), cause));
            }
            return Ok(Reader::DmLogWrites(DmLogWrites::open(source.path())?));
        }
    };
    let lines = Lines::new(source.bytes()?);
    Ok(Reader::Text { lines, text })
}

/// The action that counts, of those found until the first D.
#[derive(Default)]
struct Found {
    has_queue: bool,
}

impl Found {
    /// The answer, once it is known.
    fn see(&mut self, action: Action) -> Option<Action> {
        self.has_queue |= action == Action::Queue;
        (action == Action::Issue).then_some(Action::Issue)
    }

    fn at_end(&self) -> Action {
        if self.has_queue {
            Action::Queue
        } else {
            Action::Complete
        }
    }
}

fn action_of_text(source: &Source) -> Result<Action> {
    let mut lines = Lines::new(source.bytes()?);
    let mut found = Found::default();
    while let Some(line) = lines.next(source.path())? {
        if let Some(action) = blkparse::action_of_line(line).and_then(|a| found.see(a)) {
            return Ok(action);
        }
    }
    Ok(found.at_end())
}

fn action_of_files(sources: &[Source]) -> Result<Action> {
    let mut events = Blktrace::new(sources, Action::Issue)?;
    let mut found = Found::default();
    while let Some(action) = events.next_action()? {
        if let Some(action) = action.and_then(|a| found.see(a)) {
            return Ok(action);
        }
    }
    Ok(found.at_end())
}

/// blktrace(8) writes a file for each CPU, `NAME.blktrace.CPU`: one of them is a share of the
/// trace, and all of them
/// are the trace. They may be compressed, all alike.
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

/// `NAME.blktrace.CPU` and an ending, in three parts.
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
