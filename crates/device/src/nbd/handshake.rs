//! Negotiation of the export and of the reply format.

use super::protocol::{
    self as p, BlockSizeInfo, EXPORT_FLAGS, ExportInfo, OptionHeader, OptionReply, handshake_flag,
    info, option, reply,
};
use fscost_recording::{DiskInfo, MAX_REQUEST_BYTES};
use std::io::{self, Read, Write};
use zerocopy::{FromZeros, IntoBytes};

/// Longest option that is read: a name has at most 4096 bytes.
const LONGEST_OPTION_BYTES: usize = 16 * 1024;
/// Limit of options per client, so that negotiation ends.
const MOST_OPTIONS: usize = 1024;

/// Result of the negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// Index of the disk.
    pub disk: usize,
    /// Reads are answered in chunks.
    pub structured: bool,
}

/// Negotiate; `None` when the client leaves.
pub fn negotiate(
    stream: &mut (impl Read + Write),
    disks: &[DiskInfo],
) -> io::Result<Option<Agreed>> {
    let flags = greet(stream)?;
    let mut structured = false;
    for _ in 0..MOST_OPTIONS {
        let (wanted, data) = read_option(stream)?;
        let Some(data) = data else {
            answer(stream, wanted, reply::TOO_BIG, &[])?;
            continue;
        };
        match wanted {
            option::EXPORT_NAME => {
                // The protocol has no refusal here other than closing the connection.
                let disk = find(disks, &data).ok_or_else(|| invalid("export name"))?;
                start_export(stream, flags, &disks[disk])?;
                return Ok(Some(Agreed { disk, structured }));
            }
            option::INFO | option::GO => match name_asked(&data).map(|name| find(disks, name)) {
                None => answer(stream, wanted, reply::INVALID, &[])?,
                Some(None) => answer(stream, wanted, reply::UNKNOWN, &[])?,
                Some(Some(disk)) => {
                    tell(stream, wanted, &disks[disk])?;
                    if wanted == option::GO {
                        return Ok(Some(Agreed { disk, structured }));
                    }
                }
            },
            option::LIST if data.is_empty() => list(stream, disks)?,
            option::STRUCTURED_REPLY if data.is_empty() => {
                structured = true;
                answer(stream, wanted, reply::ACK, &[])?;
            }
            option::LIST | option::STRUCTURED_REPLY => {
                answer(stream, wanted, reply::INVALID, &[])?;
            }
            option::ABORT => {
                // The client may have closed the connection already.
                let _ = answer(stream, wanted, reply::ACK, &[]);
                return Ok(None);
            }
            _ => answer(stream, wanted, reply::UNSUPPORTED, &[])?,
        }
    }
    Err(invalid("number of options"))
}

/// Exchanges the handshake flags and returns the client's.
fn greet(stream: &mut (impl Read + Write)) -> io::Result<u32> {
    let ours = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    let mut greeting = Vec::with_capacity(18);
    greeting.extend_from_slice(&p::SERVER_MAGIC.to_be_bytes());
    greeting.extend_from_slice(&p::OPTION_MAGIC.to_be_bytes());
    greeting.extend_from_slice(&ours.to_be_bytes());
    stream.write_all(&greeting)?;
    let mut flags = [0; 4];
    stream.read_exact(&mut flags)?;
    let theirs = u32::from_be_bytes(flags);
    if theirs & u32::from(handshake_flag::FIXED_NEWSTYLE) == 0 || theirs & !u32::from(ours) != 0 {
        return Err(invalid("handshake flags"));
    }
    Ok(theirs)
}

/// Reads an option and its data; the data is `None` if it is too long.
fn read_option(stream: &mut impl Read) -> io::Result<(u32, Option<Vec<u8>>)> {
    let mut header = OptionHeader::new_zeroed();
    stream.read_exact(header.as_mut_bytes())?;
    if header.magic != p::OPTION_MAGIC {
        return Err(invalid("magic number of an option"));
    }
    let length = header.length.get() as usize;
    let mut data = vec![0; length.min(LONGEST_OPTION_BYTES)];
    stream.read_exact(&mut data)?;
    let rest = length - data.len();
    if rest == 0 {
        return Ok((header.option.get(), Some(data)));
    }
    // The rest of the option must be read to stay in step with the client.
    io::copy(&mut stream.take(rest as u64), &mut io::sink())?;
    Ok((header.option.get(), None))
}

/// Answers EXPORT_NAME, whose answer has no header.
fn start_export(stream: &mut impl Write, flags: u32, disk: &DiskInfo) -> io::Result<()> {
    let mut answer = Vec::new();
    answer.extend_from_slice(&disk.size_bytes.to_be_bytes());
    answer.extend_from_slice(&EXPORT_FLAGS.to_be_bytes());
    if flags & u32::from(handshake_flag::NO_ZEROES) == 0 {
        answer.resize(answer.len() + 124, 0);
    }
    stream.write_all(&answer)
}

fn list(stream: &mut impl Write, disks: &[DiskInfo]) -> io::Result<()> {
    for disk in disks {
        let mut entry = (disk.name.len() as u32).to_be_bytes().to_vec();
        entry.extend_from_slice(disk.name.as_bytes());
        answer(stream, option::LIST, reply::SERVER, &entry)?;
    }
    answer(stream, option::LIST, reply::ACK, &[])
}

fn tell(stream: &mut impl Write, wanted: u32, disk: &DiskInfo) -> io::Result<()> {
    let export = ExportInfo {
        kind: info::EXPORT.into(),
        size_bytes: disk.size_bytes.into(),
        flags: EXPORT_FLAGS.into(),
    };
    answer(stream, wanted, reply::INFO, export.as_bytes())?;
    let blocks = BlockSizeInfo {
        kind: info::BLOCK_SIZE.into(),
        minimum: disk.logical_block_bytes.into(),
        preferred: disk.physical_block_bytes.into(),
        maximum: (MAX_REQUEST_BYTES as u32).into(),
    };
    answer(stream, wanted, reply::INFO, blocks.as_bytes())?;
    answer(stream, wanted, reply::ACK, &[])
}

/// Returns the name in an INFO or GO option. The name's length and the name come first, then a list
/// of requested information. The server sends all its information in any case.
fn name_asked(data: &[u8]) -> Option<&[u8]> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    let name = rest.get(..length)?;
    let (count, asked) = rest.get(length..)?.split_first_chunk::<2>()?;
    (asked.len() == 2 * usize::from(u16::from_be_bytes(*count))).then_some(name)
}

/// Finds an export by name. The empty name is the protocol's default export: the first disk.
fn find(disks: &[DiskInfo], name: &[u8]) -> Option<usize> {
    if name.is_empty() {
        return (!disks.is_empty()).then_some(0);
    }
    disks.iter().position(|disk| disk.name.as_bytes() == name)
}

fn answer(stream: &mut impl Write, option: u32, reply: u32, data: &[u8]) -> io::Result<()> {
    let header = OptionReply {
        magic: p::OPTION_REPLY_MAGIC.into(),
        option: option.into(),
        reply: reply.into(),
        length: (data.len() as u32).into(),
    };
    let mut message = header.as_bytes().to_vec();
    message.extend_from_slice(data);
    stream.write_all(&message)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the client sent an invalid {what}"),
    )
}
