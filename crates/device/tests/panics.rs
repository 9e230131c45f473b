//! The running server when one of its threads panics: nothing waits for it forever, and no
//! recording is marked complete.

#![allow(clippy::unwrap_used)]

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags,
        SocketFlags, SocketType,
    },
};
use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const BLOCK_BYTES: u32 = 64 << 10;
/// Number of requests, more than the server buffers in memory, so that a request waits for the
/// storing thread.
const REQUESTS: u64 = 1024;
const LIMIT: Duration = Duration::from_secs(300);
const EIO: u32 = 5;

struct Server {
    process: Child,
    control: OwnedFd,
    socket: std::path::PathBuf,
    /// FUSE mount, if the server does not speak NBD.
    mount: Option<OwnedFd>,
}

impl Server {
    /// Starts a server that speaks NBD.
    fn start(folder: &Path, panic_at: &str) -> Self {
        let socket = folder.join("nbd.sock");
        let front = ["--nbd".into(), socket.clone().into_os_string()];
        Self::spawn(folder, panic_at, socket, &front)
    }

    fn spawn(folder: &Path, panic_at: &str, socket: PathBuf, front: &[OsString]) -> Self {
        let (control, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::empty(),
            None,
        )
        .unwrap();
        rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::CLOEXEC).unwrap();
        rustix::net::sockopt::set_socket_timeout(
            &control,
            rustix::net::sockopt::Timeout::Recv,
            Some(LIMIT),
        )
        .unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_fscost-disk"))
            .args(["serve", "--disk", "main=1073741824", "--recording"])
            .arg(folder.join("recording"))
            .args(front)
            .args(["--control-fd", &theirs.as_raw_fd().to_string()])
            .env("FSCOST_PANIC_AT", panic_at)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(theirs);
        let mut server = Self {
            process,
            control,
            socket,
            mount: None,
        };
        let (ready, mount) = server.receive();
        assert!(ready.starts_with(r#"{"ready""#), "{ready}");
        server.mount = mount;
        server
    }

    fn receive(&self) -> (String, Option<OwnedFd>) {
        let mut buffer = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            &self.control,
            &mut [io::IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
        .unwrap();
        let descriptor = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let text = String::from_utf8_lossy(&buffer[..received.bytes]).into_owned();
        (text, descriptor)
    }

    fn answer(&self) -> String {
        self.receive().0
    }

    fn ask(&self, question: &str) -> String {
        rustix::net::send(&self.control, question.as_bytes(), SendFlags::empty()).unwrap();
        self.answer()
    }

    fn client(&self) -> Client {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let (flags, export_name) = (3u32, 1u32);
        stream.write_all(&flags.to_be_bytes()).unwrap();
        stream.write_all(b"IHAVEOPT").unwrap();
        stream.write_all(&export_name.to_be_bytes()).unwrap();
        stream.write_all(&4u32.to_be_bytes()).unwrap();
        stream.write_all(b"main").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Client(stream)
    }

    /// Asserts that the server ends within the limit and reports an incomplete recording.
    fn finish(mut self) {
        assert!(self.ask(r#"{"finish":{}}"#).starts_with(r#"{"error""#));
        self.assert_ends();
    }

    fn assert_ends(&mut self) {
        let begin = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < LIMIT, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Client(UnixStream);

impl Client {
    /// Sends a write and returns the error number of the server's reply.
    fn write(&mut self, number: u64) -> io::Result<u32> {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0, 0, 0, 1]);
        request.extend(number.to_be_bytes());
        request.extend((number * u64::from(BLOCK_BYTES)).to_be_bytes());
        request.extend(BLOCK_BYTES.to_be_bytes());
        request.resize(request.len() + BLOCK_BYTES as usize, 7);
        self.0.write_all(&request)?;
        let mut answer = [0; 16];
        self.0.read_exact(&mut answer)?;
        Ok(u32::from_be_bytes(answer[4..8].try_into().unwrap()))
    }
}

fn is_hung_up_on(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

#[test]
fn no_request_waits_for_a_storing_thread_that_panicked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "storing");
    let mut client = server.client();
    let answers: Vec<u32> = (0..REQUESTS).map(|at| client.write(at).unwrap()).collect();
    assert_eq!(answers.last(), Some(&EIO));
    let mark = server.ask(r#"{"mark":{"name":"work","detail":null}}"#);
    assert!(mark.contains("bug in fscost"), "{mark}");
    server.finish();
}

#[test]
fn a_request_that_panicked_ends_the_recording_and_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), "serving");
    let mut unlucky = server.client();
    assert!(is_hung_up_on(&unlucky.write(0).unwrap_err()));
    assert_eq!(server.client().write(1).unwrap(), EIO);
    let mark = server.ask(r#"{"mark":{"name":"work","detail":null}}"#);
    assert!(mark.contains("a request panicked"), "{mark}");
    server.finish();
}

/// The main thread serves the kernel's requests. If it panics, the server ends, and the kernel
/// aborts the requests.
#[test]
fn a_request_of_the_kernel_that_panicked_ends_the_server() {
    if !(rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists()) {
        eprintln!("SKIPPED: a FUSE mount needs root and /dev/fuse");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::spawn(folder.path(), "serving", PathBuf::new(), &[]);
    let mount = server.mount.take().unwrap();
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&mount, "main", flags, Mode::empty()).unwrap();
    let content = vec![7; BLOCK_BYTES as usize];
    let written = rustix::io::pwrite(&file, &content, 0).and_then(|_| rustix::fs::fsync(&file));
    // ECONNABORTED if the request was in flight, ENOTCONN after that (fs/fuse/dev.c).
    let errno = written.unwrap_err();
    assert!(
        matches!(errno, Errno::CONNABORTED | Errno::NOTCONN),
        "{errno}"
    );
    server.assert_ends();
    let recording = fscost_recording::Recording::open(&folder.path().join("recording"));
    assert!(!recording.is_ok_and(|it| *it.end() == fscost_recording::End::Finished));
}
