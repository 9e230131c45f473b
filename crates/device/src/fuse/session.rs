//! Passes requests from `/dev/fuse` to the store, one at a time.

use super::protocol::{
    self as p, Attr, AttrOut, EntryOut, FallocateIn, InHeader, InitIn, InitOut, OpenOut, OutHeader,
    ReadIn, StatfsOut, WriteIn, WriteOut, opcode,
};
use crate::{
    real::{Outcome, Real},
    store::{Request, Store},
    timing::Timing,
};
use fscost_recording::{ErrorKind, MAX_REQUEST_BYTES, Op};
use rustix::{
    fd::{AsFd as _, OwnedFd},
    io::Errno,
};
use std::{
    io::{IoSlice, IoSliceMut},
    sync::Arc,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size of a write's header and arguments; the content follows.
const ARGUMENTS_BYTES: usize = size_of::<InHeader>() + size_of::<WriteIn>();
/// Node number of disk 0; node 1 is the root directory.
const FIRST_NODE: u64 = 2;
const ROOT_NODE: u64 = 1;
/// Seconds for which the kernel may cache entries and attributes: files never change their size or
/// place.
const VALID_S: u64 = 3600;

/// Result of one turn of the session.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Step {
    /// A request was served.
    Served,
    /// No request is pending.
    Idle,
    /// The mount is gone.
    Ended,
}

/// One connection.
pub struct Session {
    connection: Arc<OwnedFd>,
    arguments: [u8; ARGUMENTS_BYTES],
    read_buffer: Vec<u8>,
    timing: Option<Arc<Timing>>,
    real: Option<Real>,
}

/// A reply.
enum Reply<'a> {
    Error(Errno),
    Bytes(&'a [u8]),
    None,
}

impl Session {
    /// Serve the kernel's requests on `connection` (non-blocking). For disks that have a model,
    /// `timing` sends the replies; for real disks, the threads of `real` do.
    pub fn new(connection: OwnedFd, timing: Option<Arc<Timing>>, real: Option<Real>) -> Self {
        Self {
            connection: Arc::new(connection),
            arguments: [0; ARGUMENTS_BYTES],
            read_buffer: vec![0; MAX_REQUEST_BYTES],
            timing,
            real,
        }
    }

    /// The real disks.
    pub fn real(&self) -> Option<&Real> {
        self.real.as_ref()
    }

    /// Connection to wait on.
    pub fn connection(&self) -> &OwnedFd {
        &self.connection
    }

    /// Serve one request, if one is pending.
    pub fn step(&mut self, store: &mut Store) -> Result<Step, Errno> {
        let received = {
            let mut parts = [
                IoSliceMut::new(&mut self.arguments),
                IoSliceMut::new(store.space()),
            ];
            rustix::io::readv(&self.connection, &mut parts)
        };
        let received = match received {
            Ok(count) => count,
            Err(Errno::AGAIN) => return Ok(Step::Idle),
            // ENOENT: the request was interrupted before it was read.
            Err(Errno::INTR | Errno::NOENT) => return Ok(Step::Served),
            // ECONNABORTED: the connection ended while the kernel was handing over a last request
            // (`fuse_dev_do_read`, fs/fuse/dev.c).
            Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(Step::Ended),
            Err(errno) => return Err(errno),
        };
        let submit_ns = store.clock().now_ns();
        let Ok((header, _)) = InHeader::read_from_prefix(&self.arguments) else {
            return Err(Errno::IO);
        };
        if received < size_of::<InHeader>() || header.len as usize != received {
            return Err(Errno::IO);
        }
        if header.opcode == opcode::DESTROY {
            self.reply(header.unique, &Reply::Bytes(&[]))?;
            return Ok(Step::Ended);
        }
        self.serve(&header, received, submit_ns, store)?;
        Ok(Step::Served)
    }

    fn serve(
        &mut self,
        header: &InHeader,
        received: usize,
        submit_ns: u64,
        store: &mut Store,
    ) -> Result<(), Errno> {
        let disk = header
            .nodeid
            .checked_sub(FIRST_NODE)
            .and_then(|d| u16::try_from(d).ok());
        match header.opcode {
            opcode::INIT => {
                let out = self.init();
                self.answer(header.unique, out)
            }
            opcode::FORGET | opcode::BATCH_FORGET => self.reply(header.unique, &Reply::None),
            opcode::LOOKUP => {
                let out = self.lookup(received, store);
                self.answer(header.unique, out)
            }
            opcode::GETATTR | opcode::SETATTR => {
                let out = attributes(header.nodeid, store).map(|attr| AttrOut {
                    attr_valid: VALID_S,
                    attr,
                    ..AttrOut::default()
                });
                self.answer(header.unique, out)
            }
            opcode::OPEN => {
                let out = disk
                    .map(|_| OpenOut {
                        open_flags: p::OPEN_FLAGS,
                        ..OpenOut::default()
                    })
                    .ok_or(Errno::ISDIR);
                self.answer(header.unique, out)
            }
            opcode::STATFS => self.answer(
                header.unique,
                Ok(StatfsOut {
                    bsize: 4096,
                    frsize: 4096,
                    namelen: 255,
                    ..StatfsOut::default()
                }),
            ),
            opcode::RELEASE | opcode::FLUSH => self.reply(header.unique, &Reply::Bytes(&[])),
            opcode::READ | opcode::WRITE | opcode::FSYNC | opcode::FALLOCATE => {
                match self.request(header, received, submit_ns) {
                    Ok(request) => self.transfer(header.unique, request, store),
                    Err(errno) => self.reply(header.unique, &Reply::Error(errno)),
                }
            }
            // ENOSYS tells the kernel not to ask again (INTERRUPT, ACCESS, xattrs …).
            _ => self.reply(header.unique, &Reply::Error(Errno::NOSYS)),
        }
    }

    /// Convert to a request to the disk.
    fn request(
        &self,
        header: &InHeader,
        received: usize,
        submit_ns: u64,
    ) -> Result<Request, Errno> {
        let disk = header.nodeid.checked_sub(FIRST_NODE);
        let disk = disk.and_then(|disk| u16::try_from(disk).ok());
        let (op, offset, length) = match header.opcode {
            opcode::READ => {
                let arguments = self.body::<ReadIn>()?;
                if arguments.size as usize > self.read_buffer.len() {
                    return Err(Errno::INVAL);
                }
                (Op::Read, arguments.offset, u64::from(arguments.size))
            }
            opcode::WRITE => {
                let arguments = self.body::<WriteIn>()?;
                let content_bytes = received.saturating_sub(ARGUMENTS_BYTES);
                if arguments.size as usize != content_bytes {
                    return Err(Errno::INVAL);
                }
                (Op::Write, arguments.offset, content_bytes as u64)
            }
            opcode::FSYNC => (Op::Flush, 0, 0),
            _ => {
                let arguments = self.body::<FallocateIn>()?;
                let op = match arguments.mode & !p::FALLOC_FL_KEEP_SIZE {
                    p::FALLOC_FL_PUNCH_HOLE => Op::Punch,
                    p::FALLOC_FL_ZERO_RANGE => Op::WriteZeroes,
                    _ => return Err(Errno::OPNOTSUPP),
                };
                (op, arguments.offset, arguments.length)
            }
        };
        Ok(Request {
            submit_ns,
            disk: disk.ok_or(Errno::ISDIR)?,
            op,
            offset,
            length,
            fua: false,
        })
    }

    /// Carry out a request. The reply is sent at once, or when the disk's model completes it.
    fn transfer(
        &mut self,
        unique: u64,
        mut request: Request,
        store: &mut Store,
    ) -> Result<(), Errno> {
        let length = request.length as usize;
        if let Some(real) = &self.real
            && let Some(disk) = real.of(request.disk)
        {
            let connection = Arc::clone(&self.connection);
            let reply =
                move |done: Outcome<'_>| answer_for_device(&connection, unique, request, done);
            real.carry_out(disk, request, store, reply);
            return Ok(());
        }
        let timing = self.timing.as_ref();
        let parts = std::slice::from_mut(&mut request);
        let ticket = timing.and_then(|timing| timing.submit(store.requests(), parts));
        let done = if request.op == Op::Read {
            store.read(request, &mut self.read_buffer[..length])
        } else {
            store.request(request)
        };
        let written = WriteOut {
            size: length as u32,
            padding: 0,
        };
        let reply = match (done, request.op) {
            (Err(error), _) => Reply::Error(errno_of(error)),
            (Ok(()), Op::Read) => Reply::Bytes(&self.read_buffer[..length]),
            (Ok(()), Op::Write) => Reply::Bytes(written.as_bytes()),
            (Ok(()), _) => Reply::Bytes(&[]),
        };
        match (timing, ticket) {
            (Some(timing), Some(ticket)) => {
                let message = encoded(unique, &reply);
                let connection = Arc::clone(&self.connection);
                // An error can be ignored here: if the connection is gone, the session ends too.
                let send = move || {
                    let _ = send(&connection, &[IoSlice::new(&message)]);
                };
                timing.reply(ticket, Box::new(send));
                Ok(())
            }
            _ => self.reply(unique, &reply),
        }
    }

    fn body<T: FromBytes + KnownLayout + Immutable>(&self) -> Result<T, Errno> {
        T::read_from_prefix(&self.arguments[size_of::<InHeader>()..])
            .map(|(body, _)| body)
            .map_err(|_| Errno::INVAL)
    }

    fn init(&self) -> Result<InitOut, Errno> {
        let asked = self.body::<InitIn>()?;
        if asked.major != p::MAJOR || asked.minor < p::MINOR {
            return Err(Errno::PROTO);
        }
        Ok(InitOut {
            major: p::MAJOR,
            minor: p::MINOR,
            max_readahead: asked.max_readahead,
            flags: asked.flags & p::INIT_FLAGS,
            max_background: 128,
            congestion_threshold: 128,
            max_write: MAX_REQUEST_BYTES as u32,
            time_gran: 1,
            max_pages: (MAX_REQUEST_BYTES / 4096) as u16,
            ..InitOut::default()
        })
    }

    fn lookup(&self, received: usize, store: &Store) -> Result<EntryOut, Errno> {
        let name = self
            .arguments
            .get(size_of::<InHeader>()..received)
            .unwrap_or_default();
        let name = name.strip_suffix(&[0]).ok_or(Errno::NOENT)?;
        let found = store
            .disks()
            .iter()
            .position(|d| d.name.as_bytes() == name)
            .ok_or(Errno::NOENT)?;
        let nodeid = FIRST_NODE + found as u64;
        let attr = attributes(nodeid, store)?;
        Ok(EntryOut {
            nodeid,
            entry_valid: VALID_S,
            attr_valid: VALID_S,
            attr,
            ..EntryOut::default()
        })
    }

    fn answer<T: IntoBytes + Immutable>(
        &self,
        unique: u64,
        result: Result<T, Errno>,
    ) -> Result<(), Errno> {
        match result {
            Ok(body) => self.reply(unique, &Reply::Bytes(body.as_bytes())),
            Err(errno) => self.reply(unique, &Reply::Error(errno)),
        }
    }

    fn reply(&self, unique: u64, reply: &Reply) -> Result<(), Errno> {
        match reply {
            Reply::None => Ok(()),
            Reply::Error(_) => send(
                &self.connection,
                &[IoSlice::new(header_of(unique, reply).as_bytes())],
            ),
            Reply::Bytes(body) => send(
                &self.connection,
                &[
                    IoSlice::new(header_of(unique, reply).as_bytes()),
                    IoSlice::new(body),
                ],
            ),
        }
    }
}

/// Answer a request that a real disk has carried out. Errors are ignored: if the connection is
/// gone, the session ends too.
fn answer_for_device(connection: &OwnedFd, unique: u64, request: Request, done: Outcome<'_>) {
    let written = WriteOut {
        size: request.length as u32,
        padding: 0,
    };
    let reply = match (&done, request.op) {
        (Err(error), _) => Reply::Error(Errno::from_io_error(error).unwrap_or(Errno::IO)),
        (Ok(_), Op::Write) => Reply::Bytes(written.as_bytes()),
        (Ok(content), _) => Reply::Bytes(content),
    };
    let header = header_of(unique, &reply);
    let body: &[u8] = match &reply {
        Reply::Bytes(body) => body,
        _ => &[],
    };
    let _ = send(
        connection,
        &[IoSlice::new(header.as_bytes()), IoSlice::new(body)],
    );
}

fn header_of(unique: u64, reply: &Reply) -> OutHeader {
    let (error, body_bytes) = match reply {
        Reply::Error(errno) => (-errno.raw_os_error(), 0),
        Reply::Bytes(body) => (0, body.len()),
        Reply::None => (0, 0),
    };
    OutHeader {
        len: (size_of::<OutHeader>() + body_bytes) as u32,
        error,
        unique,
    }
}

/// Encode a reply that is sent later.
fn encoded(unique: u64, reply: &Reply) -> Vec<u8> {
    let mut message = header_of(unique, reply).as_bytes().to_vec();
    if let Reply::Bytes(body) = reply {
        message.extend_from_slice(body);
    }
    message
}

fn send(connection: &OwnedFd, message: &[IoSlice<'_>]) -> Result<(), Errno> {
    match rustix::io::writev(connection.as_fd(), message) {
        // ENOENT: no process waits for the answer any more.
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn attributes(nodeid: u64, store: &Store) -> Result<Attr, Errno> {
    const DIRECTORY: u32 = 0o040700;
    const FILE: u32 = 0o100600;
    if nodeid == ROOT_NODE {
        return Ok(Attr {
            ino: nodeid,
            mode: DIRECTORY,
            nlink: 2,
            blksize: 4096,
            ..Attr::default()
        });
    }
    let index = nodeid.checked_sub(FIRST_NODE).ok_or(Errno::NOENT)?;
    let disk = store.disks().get(index as usize).ok_or(Errno::NOENT)?;
    Ok(Attr {
        ino: nodeid,
        size: disk.size_bytes,
        blocks: disk.size_bytes / 512,
        mode: FILE,
        nlink: 1,
        blksize: disk.physical_block_bytes,
        ..Attr::default()
    })
}

fn errno_of(error: fscost_recording::Error) -> Errno {
    match error.kind {
        ErrorKind::Invalid => Errno::INVAL,
        _ => Errno::IO,
    }
}
