//! `fscost-agent forward PORT`: in a guest, takes the place of the disk server, which runs on the
//! host.
//!
//! The agent talks to its child over a control socket, as on a host. Each message goes to the host
//! as one line on a port, and each line that comes back is an answer. The disks are devices of the
//! guest, so there is no mount to hand over.

use crate::error::{CellError, Context, Kind, Result};
use crate::handoff::adopt;
use crate::port::open_port;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;

/// Longest message of the control channel: a mark of maximum length (docs/cell-protocol.md).
const LONGEST_MESSAGE: usize = 300 * 1024;

/// Entry point of the process: `forward PORT … --control-fd N --ppid PID`.
pub fn main(arguments: &[String]) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fscost-agent forward: {}", error.paragraph());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let usage = || {
        CellError::new(
            Kind::Plan,
            "usage: fscost-agent forward PORT --control-fd N --ppid PID",
        )
    };
    let (port, rest) = arguments.split_first().ok_or_else(usage)?;
    let number = rest
        .iter()
        .skip_while(|word| *word != "--control-fd")
        .nth(1)
        .and_then(|word| word.parse().ok())
        .ok_or_else(usage)?;
    let control = adopt(number)?;
    let mut to_host = open_port(port)?;
    let mut from_host = BufReader::new(to_host.try_clone().internal(|| "duplicate the port")?);
    // One more byte for the newline.
    let mut message = vec![0; LONGEST_MESSAGE + 1];
    // The host's server speaks first: it reports that it is ready.
    loop {
        let mut line = Vec::new();
        let length = from_host
            .read_until(b'\n', &mut line)
            .context(Kind::DiskServer, || "read from the host")?;
        if length == 0 {
            return Err(hung_up());
        }
        line.pop();
        send(&control, &line, SendFlags::NOSIGNAL).internal(|| "reply to the agent")?;
        if line.starts_with(br#"{"finished""#) {
            return Ok(());
        }
        // The host hangs up if its server dies, and the agent may send nothing for a long time.
        let mut fds = [
            PollFd::new(&control, PollFlags::IN),
            PollFd::new(&to_host, PollFlags::empty()),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds, None)).internal(|| "wait for the agent")?;
        if fds[1].revents().contains(PollFlags::HUP) {
            return Err(hung_up());
        }
        let (_, length) = recv(
            &control,
            &mut message[..LONGEST_MESSAGE],
            RecvFlags::empty(),
        )
        .internal(|| "receive from the agent")?;
        if length == 0 {
            return Ok(());
        }
        message[length] = b'\n';
        to_host
            .write_all(&message[..=length])
            .context(Kind::DiskServer, || "write to the host")?;
    }
}

fn hung_up() -> CellError {
    CellError::new(Kind::DiskServer, "the host has hung up")
}
