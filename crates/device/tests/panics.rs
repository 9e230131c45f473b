//! The running server, one thread of which panics: nobody waits for it for ever, and no recording
//! is called whole.

#![allow(clippy::unwrap_used)]

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const BLOCK_BYTES: u32 = 64 << 10;
/// More than the server keeps in memory: then a request waits for the storing thread.
const REQUESTS: u64 = 1024;
const LIMIT: Duration = Duration::from_secs(60);
const EIO: u32 = 5;

struct Server {
    process: Child,
    control: OwnedFd,
    socket: std::path::PathBuf,
}

impl Server {
    fn start(folder: &Path, panic_at: &str) -> Self {
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
        let socket = folder.join("nbd.sock");
        let process = Command::new(env!("CARGO_BIN_EXE_fscost-disk"))
            .args(["serve", "--disk", "main=1073741824", "--recording"])
            .arg(folder.join("recording"))
            .arg("--nbd")
            .arg(&socket)
            .args(["--control-fd", &theirs.as_raw_fd().to_string()])
            .env("FSCOST_PANIC_AT", panic_at)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(theirs);
        let server = Self {
            process,
            control,
            socket,
        };
        assert!(server.answer().starts_with(r#"{"ready""#));
        server
    }

    fn answer(&self) -> String {
        let mut buffer = [0; 4096];
        let (_, count) =
            rustix::net::recv(&self.control, &mut buffer[..], RecvFlags::empty()).unwrap();
        String::from_utf8_lossy(&buffer[..count]).into_owned()
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

    /// It ends within the limit, and says that the recording is not whole.
    fn finish(mut self) {
        assert!(self.ask(r#"{"finish":{}}"#).starts_with(r#"{"error""#));
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
    /// The error number of the server's answer to a write.
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
    assert!(mark.contains("defect of fscost"), "{mark}");
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
    assert!(mark.contains("ended in a panic"), "{mark}");
    server.finish();
}
