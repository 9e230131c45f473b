//! Frames that a client or the kernel may send to the disk server.

use crate::{bounded, requests::header};
use fscost_device::backend::{Backend, Clock};
use fscost_device::fuse::Session;
use fscost_device::nbd::{handshake, shared::Shared, transmission};
use fscost_device::recorder::Recorder;
use fscost_recording::{Recording, Writer, verify};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Bytes of the extent maps: more than an input can fill.
const MAP_BYTES: usize = 1 << 20;
/// Size of a FUSE request without content, which the kernel never exceeds for those of one file.
const FRAME_BYTES: usize = 80;

/// A client whose answers are dropped.
struct Client<'a>(&'a [u8]);

impl Read for Client<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the input as the messages of an NBD client: the options of its negotiation and, if that
/// succeeds, its requests. What was recorded must be whole.
pub fn nbd(input: &[u8]) {
    let mut client = Client(input);
    let disks = header().disks;
    let Ok(Some(agreed)) = handshake::negotiate(&mut client, &disks) else {
        return;
    };
    let (mut theirs, mut ours) = UnixStream::pair().expect("a pair of sockets");
    theirs.write_all(client.0).expect("space for the input");
    theirs.shutdown(Shutdown::Write).expect("a socket");
    recorded(|backend| {
        let shared = Shared::new(backend, None);
        std::thread::scope(|scope| {
            scope.spawn(|| io::copy(&mut theirs, &mut io::sink()));
            let disk = &disks[agreed.disk];
            let _ = transmission::serve(&mut ours, agreed, disk, &shared);
            let _ = ours.shutdown(Shutdown::Both);
        });
        let backend = shared.lock().take();
        backend.expect("a backend that is not finished")
    });
}

/// Reads the input as requests of the kernel's FUSE, of which the header's length is mended.
pub fn fuse(input: &[u8]) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (theirs, ours): (OwnedFd, OwnedFd) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .expect("a pair of sockets");
    recorded(|mut backend| {
        let mut session = Session::new(ours, None, None);
        let mut answer = vec![0; 1 << 20];
        for frame in input
            .chunks(FRAME_BYTES + 512)
            .filter(|frame| frame.len() > 40)
        {
            let mut frame = frame.to_vec();
            let length = (frame.len() as u32).to_le_bytes();
            frame[..4].copy_from_slice(&length);
            rustix::io::write(&theirs, &frame).expect("space for a frame");
            if !matches!(session.serve_pending(&mut *backend), Ok(true)) {
                break;
            }
            while rustix::io::read(&theirs, &mut answer).is_ok() {}
        }
        backend
    });
}

/// Runs a front end on empty disks, and checks their recording.
fn recorded(serve: impl FnOnce(Box<dyn Backend>) -> Box<dyn Backend>) {
    bounded(|folder| {
        let path = folder.join("recorded");
        let recorder = Recorder::new(writer(&path), Clock::start(), MAP_BYTES);
        if serve(Box::new(recorder)).finish().is_ok() {
            let recording = Recording::open(&path).expect("what was just written");
            assert!(verify(&recording).is_ok_and(|report| report.is_whole()));
        }
    });
}

fn writer(path: &Path) -> Writer {
    Writer::create(path, &header()).expect("space for a recording")
}
