//! The floor of a recorded disk (benches/overhead.py): the same FUSE session and control channel
//! over disks in memory, of which nothing is recorded.

use clap::Parser;
use fscost_device::{control::Control, fuse::Mount, memory::Memory, server};
use rustix::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;

/// Arguments with which the agent starts `fscost-disk`.
#[derive(Parser)]
struct Arguments {
    /// Subcommand: `serve`.
    command: String,
    /// Path of the recording, which is not written.
    #[arg(long)]
    recording: PathBuf,
    /// Disks as NAME=BYTES[,…].
    #[arg(long = "disk")]
    disks: Vec<String>,
    #[arg(long)]
    control_fd: RawFd,
    #[arg(long)]
    ppid: Option<u32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let disks = arguments.disks.iter().map(|text| disk(text));
    let disks = Memory::new(disks.collect::<Option<_>>().ok_or("NAME=BYTES[,…]")?);
    // SAFETY: the agent opened the descriptor for us alone; nothing else in this process uses it.
    let socket = unsafe { OwnedFd::from_raw_fd(arguments.control_fd) };
    let control = Control::new(socket, true);
    server::serve(Box::new(disks), Mount::new()?, control, None, None)?;
    Ok(())
}

fn disk(text: &str) -> Option<fscost_recording::DiskInfo> {
    let (name, rest) = text.split_once('=')?;
    Some(fscost_recording::DiskInfo {
        name: name.to_owned(),
        size_bytes: rest.split(',').next()?.parse().ok()?,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    })
}
