//! Passes requests of one client to the backend, one at a time. If the disk has a model, replies
//! wait for the model, but the next request does not wait for them.

use super::{
    handshake::Agreed,
    protocol::{
        self as p, ChunkError, ChunkHeader, Error, OffsetData, Request, SimpleReply, chunk,
        command, command_flag,
    },
    shared::Shared,
};
use crate::backend;
use crate::carry_out::{Content, carry_out};
use crate::timing::{Ticket, lock};
use fscost_recording::{DiskInfo, ErrorKind, MAX_REQUEST_BYTES, Op};
use std::{
    io::{self, IoSlice, Read, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex},
};
use zerocopy::{FromZeros, IntoBytes};

/// The protocol's default limit, for a client that has not been given another one.
const LONGEST_REQUEST_BYTES: usize = 32 << 20;

/// Serve until the client leaves.
pub fn serve(
    stream: &mut UnixStream,
    agreed: Agreed,
    disk: &DiskInfo,
    shared: &Shared,
) -> io::Result<()> {
    // Delayed replies come from another thread.
    let replies = Arc::new(Mutex::new(stream.try_clone()?));
    let mut buffer = Vec::new();
    loop {
        let mut request = Request::new_zeroed();
        match stream.read_exact(request.as_mut_bytes()) {
            // Most clients close the connection without a disconnect request.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            other => other?,
        }
        if request.magic != p::REQUEST_MAGIC {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a request does not begin with the protocol's magic number",
            ));
        }
        if request.command == command::DISCONNECT {
            return Ok(());
        }
        let length = request.length.get() as usize;
        let has_content = matches!(request.command.get(), command::READ | command::WRITE);
        if has_content && length > LONGEST_REQUEST_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a request of {length} bytes: the protocol allows 32 MiB"),
            ));
        }
        if has_content {
            buffer.resize(length, 0);
        }
        if request.command == command::WRITE {
            stream.read_exact(&mut buffer)?;
        }
        let (result, ticket) = execute(&request, agreed.disk as u16, disk, shared, &mut buffer);
        match (ticket, shared.timing.as_deref()) {
            (Some(ticket), Some(timing)) => {
                let mut message = Vec::new();
                reply(&mut message, &request, agreed.structured, result, &buffer)?;
                let replies = Arc::clone(&replies);
                // If the client is gone, the thread of its connection ends too.
                let send = move || drop(lock(&replies).write_all(&message));
                timing.reply(ticket, Box::new(send));
            }
            _ => {
                let mut stream = lock(&replies);
                reply(&mut *stream, &request, agreed.structured, result, &buffer)?;
            }
        }
        // Shrinks the buffer after a large request.
        buffer.truncate(MAX_REQUEST_BYTES);
        buffer.shrink_to(MAX_REQUEST_BYTES);
    }
}

fn execute(
    request: &Request,
    disk_number: u16,
    disk: &DiskInfo,
    shared: &Shared,
    buffer: &mut [u8],
) -> (Result<(), Error>, Option<Ticket>) {
    let request = match asked(request, disk_number, disk) {
        Ok(request) => request,
        Err(error) => return (Err(error), None),
    };
    let mut ticket = None;
    let done = shared.with_backend(|backend| {
        let mut parts = in_parts(backend::Request {
            submit_ns: backend.clock().now_ns(),
            ..request
        });
        let timing = shared.timing.as_deref();
        let done;
        (done, ticket) = carry_out(backend, timing, &mut parts, Content::Buffer(buffer));
        done.map_err(|error| match error.kind {
            ErrorKind::Invalid => Error::Invalid,
            _ => Error::Io,
        })
    });
    (done, ticket)
}

/// Checks a request and converts it; it is not submitted yet.
fn asked(request: &Request, disk_number: u16, disk: &DiskInfo) -> Result<backend::Request, Error> {
    let offset = request.offset.get();
    let length = u64::from(request.length.get());
    let op = match request.command.get() {
        command::READ => Op::Read,
        command::WRITE => Op::Write,
        command::FLUSH => Op::Flush,
        command::TRIM => Op::Discard,
        command::WRITE_ZEROES => Op::WriteZeroes,
        _ => return Err(Error::Invalid),
    };
    if op != Op::Flush {
        check(op, offset, length, disk)?;
    }
    let is_flush = op == Op::Flush;
    Ok(backend::Request {
        submit_ns: 0,
        disk: disk_number,
        op,
        offset: if is_flush { 0 } else { offset },
        length: if is_flush { 0 } else { length },
        fua: request.flags.get() & command_flag::FUA != 0 && op != Op::Read,
    })
}

/// Splits a client's request, because recorded requests with content have a size limit.
fn in_parts(request: backend::Request) -> Vec<backend::Request> {
    let most = MAX_REQUEST_BYTES as u64;
    if request.length <= most || !matches!(request.op, Op::Read | Op::Write) {
        return vec![request];
    }
    let begins = (0..request.length).step_by(MAX_REQUEST_BYTES);
    let part = |begin| backend::Request {
        offset: request.offset + begin,
        length: most.min(request.length - begin),
        ..request
    };
    begins.map(part).collect()
}

fn check(op: Op, offset: u64, length: u64, disk: &DiskInfo) -> Result<(), Error> {
    let block = u64::from(disk.logical_block_bytes);
    if length == 0 || !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
        return Err(Error::Invalid);
    }
    let fits = offset
        .checked_add(length)
        .is_some_and(|end| end <= disk.size_bytes);
    match op {
        _ if fits => Ok(()),
        Op::Write | Op::WriteZeroes => Err(Error::NoSpace),
        _ => Err(Error::Invalid),
    }
}

fn reply(
    stream: &mut impl Write,
    request: &Request,
    structured: bool,
    result: Result<(), Error>,
    content: &[u8],
) -> io::Result<()> {
    let is_read = request.command == command::READ;
    // Only reads require chunks in a structured reply; all others may have a simple reply.
    if !(structured && is_read) {
        let header = SimpleReply {
            magic: p::SIMPLE_REPLY_MAGIC.into(),
            error: result.map_or_else(|error| error as u32, |()| 0).into(),
            cookie: request.cookie,
        };
        let content = if is_read && result.is_ok() {
            content
        } else {
            &[]
        };
        return write_all(stream, header.as_bytes(), content);
    }
    let header = |kind: u16, length: usize| ChunkHeader {
        magic: p::STRUCTURED_REPLY_MAGIC.into(),
        flags: chunk::DONE.into(),
        kind: kind.into(),
        cookie: request.cookie,
        length: (length as u32).into(),
    };
    match result {
        Ok(()) => {
            let begin = OffsetData {
                offset: request.offset,
            };
            let length = size_of::<OffsetData>() + content.len();
            let mut head = header(chunk::OFFSET_DATA, length).as_bytes().to_vec();
            head.extend_from_slice(begin.as_bytes());
            write_all(stream, &head, content)
        }
        Err(error) => {
            let body = ChunkError {
                error: (error as u32).into(),
                message_length: 0.into(),
            };
            let head = header(chunk::ERROR, size_of::<ChunkError>());
            write_all(stream, head.as_bytes(), body.as_bytes())
        }
    }
}

/// Writes head and content, in one call if the socket accepts both: a small reply is then one
/// message.
fn write_all(stream: &mut impl Write, head: &[u8], content: &[u8]) -> io::Result<()> {
    let written = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(content)])?;
    if written < head.len() {
        stream.write_all(&head[written..])?;
        stream.write_all(content)
    } else {
        stream.write_all(&content[written - head.len()..])
    }
}
