//! Carries out requests of all front ends: on the backend, and on the model of the disk.

use crate::{
    backend::{Backend, Request},
    timing::{Ticket, Timing},
};
use fscost_recording::{Op, Result};

/// The content of a request.
pub enum Content<'c> {
    /// There is none, or that of a write is already in the backend's space.
    InPlace,
    /// The content to write, or the buffer to read into.
    Buffer(&'c mut [u8]),
}

/// Carry out a request in `parts`, each of at most the largest possible request's length. If the
/// disk has a model, the reply must wait for it, with the ticket ([`Timing::reply`]).
///
/// Whoever calls this must not let another thread's request between the submission to the model and
/// the backend: the model sees requests in the order of the recording.
pub fn carry_out(
    backend: &mut dyn Backend,
    timing: Option<&Timing>,
    parts: &mut [Request],
    content: Content<'_>,
) -> (Result<()>, Option<Ticket>) {
    let ticket = timing.and_then(|timing| timing.submit(backend.requests(), parts));
    let mut rest = match content {
        Content::InPlace => None,
        Content::Buffer(buffer) => Some(buffer),
    };
    let done = parts.iter().try_for_each(|part| {
        let piece = match rest.take() {
            Some(buffer) if matches!(part.op, Op::Read | Op::Write) => {
                let (piece, after) = buffer.split_at_mut(buffer.len().min(part.length as usize));
                rest = Some(after);
                piece
            }
            _ => &mut [],
        };
        if part.op == Op::Read {
            return backend.read(*part, piece);
        }
        backend.space()[..piece.len()].copy_from_slice(piece);
        backend.request(*part)
    });
    (done, ticket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use fscost_recording::DiskInfo;

    fn disk() -> DiskInfo {
        DiskInfo {
            name: "main".into(),
            size_bytes: 1 << 20,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
        }
    }

    fn parts(op: Op, lengths: &[u64]) -> Vec<Request> {
        let mut offset = 4096;
        let part = |&length: &u64| {
            offset += length;
            Request {
                submit_ns: 0,
                disk: 0,
                op,
                offset: offset - length,
                length,
                fua: false,
            }
        };
        lengths.iter().map(part).collect()
    }

    #[test]
    fn the_parts_of_a_request_share_its_content() {
        let mut disks = Memory::new(vec![disk()]);
        let mut content: Vec<u8> = (0..3072_u32).map(|at| (at / 512) as u8).collect();
        let mut run = |op, lengths: &[u64], content: Content<'_>| {
            let (done, ticket) = carry_out(&mut disks, None, &mut parts(op, lengths), content);
            assert!(done.is_ok() && ticket.is_none());
        };
        run(Op::Write, &[1024, 1536, 512], Content::Buffer(&mut content));
        run(Op::Flush, &[0], Content::InPlace);
        let mut read = [9; 3072];
        run(Op::Read, &[512, 2560], Content::Buffer(&mut read));
        assert_eq!(read[..], content);
        run(Op::Discard, &[1024], Content::InPlace);
        run(Op::Read, &[3072], Content::Buffer(&mut read));
        assert_eq!(read[..1024], [0; 1024]);
        assert_eq!(read[1024..], content[1024..]);
    }
}
