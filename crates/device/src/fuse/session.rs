//! Requests from `/dev/fuse`, one at a time, to the store.

use super::protocol::{
    self as p, Attr, AttrOut, EntryOut, FallocateIn, InHeader, InitIn, InitOut, OpenOut, OutHeader,
    ReadIn, StatfsOut, WriteIn, WriteOut, opcode,
};
use crate::store::{Request, Store};
use fscost_recording::{ErrorKind, MAX_REQUEST_BYTES, Op};
use rustix::{
    fd::{AsFd as _, OwnedFd},
    io::Errno,
};
use std::io::{IoSlice, IoSliceMut};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A write's header and arguments; what follows them is content.
const ARGUMENTS_BYTES: usize = size_of::<InHeader>() + size_of::<WriteIn>();
/// The node of disk 0; 1 is the root directory.
const FIRST_NODE: u64 = 2;
const ROOT_NODE: u64 = 1;
/// Files never change their size or place: the kernel may remember.
const VALID_S: u64 = 3600;

/// What one turn of the session did.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Step {
    /// A request was served.
    Served,
    /// None waits.
    Idle,
    /// The mount is gone.
    Ended,
}

/// One connection.
pub struct Session {
    connection: OwnedFd,
    arguments: [u8; ARGUMENTS_BYTES],
    read_buffer: Vec<u8>,
}

/// What to answer.
enum Reply<'a> {
    Error(Errno),
    Bytes(&'a [u8]),
    None,
}

impl Session {
    /// Serve the kernel's requests of `connection` (non-blocking).
    pub fn new(connection: OwnedFd) -> Self {
        Self {
            connection,
            arguments: [0; ARGUMENTS_BYTES],
            read_buffer: vec![0; MAX_REQUEST_BYTES],
        }
    }

    /// To wait on.
    pub fn connection(&self) -> &OwnedFd {
        &self.connection
    }

    /// Serve one request if one waits.
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
            // ECONNABORTED: it went while the kernel was handing over a last request
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
        let request = |op, offset, length| {
            disk.map(|disk| Request {
                submit_ns,
                disk,
                op,
                offset,
                length,
                fua: false,
            })
            .ok_or(Errno::ISDIR)
        };
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
            opcode::READ => {
                let done = self.body::<ReadIn>().and_then(|arguments| {
                    let length = arguments.size as usize;
                    let into = self.read_buffer.get_mut(..length).ok_or(Errno::INVAL)?;
                    let read = request(Op::Read, arguments.offset, length as u64)?;
                    store.read(read, into).map(|()| length).map_err(errno_of)
                });
                match done {
                    Ok(length) => {
                        self.reply(header.unique, &Reply::Bytes(&self.read_buffer[..length]))
                    }
                    Err(errno) => self.reply(header.unique, &Reply::Error(errno)),
                }
            }
            opcode::WRITE => {
                let content_bytes = received.saturating_sub(ARGUMENTS_BYTES);
                let done = self.body::<WriteIn>().and_then(|arguments| {
                    if arguments.size as usize != content_bytes {
                        return Err(Errno::INVAL);
                    }
                    store
                        .request(request(Op::Write, arguments.offset, content_bytes as u64)?)
                        .map_err(errno_of)?;
                    Ok(WriteOut {
                        size: arguments.size,
                        padding: 0,
                    })
                });
                self.answer(header.unique, done)
            }
            opcode::FSYNC => {
                let done = request(Op::Flush, 0, 0)
                    .and_then(|flush| store.request(flush).map_err(errno_of));
                self.answer(header.unique, done.map(|()| [0u8; 0]))
            }
            opcode::FALLOCATE => {
                let done = self.body::<FallocateIn>().and_then(|arguments| {
                    let op = match arguments.mode & !p::FALLOC_FL_KEEP_SIZE {
                        p::FALLOC_FL_PUNCH_HOLE => Op::Punch,
                        p::FALLOC_FL_ZERO_RANGE => Op::WriteZeroes,
                        _ => return Err(Errno::OPNOTSUPP),
                    };
                    store
                        .request(request(op, arguments.offset, arguments.length)?)
                        .map_err(errno_of)
                });
                self.answer(header.unique, done.map(|()| [0u8; 0]))
            }
            // ENOSYS tells the kernel not to ask again (INTERRUPT, ACCESS, xattrs …).
            _ => self.reply(header.unique, &Reply::Error(Errno::NOSYS)),
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
        let (error, body) = match reply {
            Reply::Error(errno) => (-errno.raw_os_error(), &[][..]),
            Reply::Bytes(bytes) => (0, *bytes),
            Reply::None => return Ok(()),
        };
        let header = OutHeader {
            len: (size_of::<OutHeader>() + body.len()) as u32,
            error,
            unique,
        };
        match rustix::io::writev(
            self.connection.as_fd(),
            &[IoSlice::new(header.as_bytes()), IoSlice::new(body)],
        ) {
            // ENOENT: nobody waits for the answer any more.
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
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
