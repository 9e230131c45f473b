//! `fscost-disk`: serves recorded disks. Started by `fscost-agent` or, for guests, by the VM lab;
//! see `docs/cell-protocol.md`.

use clap::{Parser, Subcommand, ValueEnum};
use fscost_device::{
    backend::{Backend, Clock},
    confine::{Confinement, die_with_parent},
    control, fuse, nbd, pressure, real, recorder, server, timing, ublk,
};
use fscost_recording::{DiskInfo, Header, Room, Writer};
use rustix::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{SystemTime, SystemTimeError},
};

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve disks until told to finish: over ublk, FUSE or NBD.
    Serve(Box<Serve>),
    /// Print as JSON which front end `serve` would use here, and why.
    FrontEnd,
    /// Wait until standard input ends, then remove the ublk devices of a disk server that has
    /// ended.
    #[command(hide = true)]
    Sweep {
        /// Process ID of the disk server.
        #[arg(long)]
        after: u32,
    },
}

#[derive(clap::Args)]
struct Serve {
    /// Recording to write; must not exist.
    #[arg(long)]
    recording: PathBuf,
    /// NAME=BYTES[,logical=512][,physical=4096]: a disk to serve; once for each disk.
    #[arg(long = "disk", required = true, value_parser = parse_disk)]
    disks: Vec<DiskInfo>,
    /// NAME=FILE.toml: complete the requests of a disk when this device model does; at most once
    /// for each disk.
    #[arg(long = "model", value_parser = parse_model)]
    models: Vec<(String, PathBuf)>,
    /// NAME=PATH,MAJOR,MINOR,DISKSEQ: pass the requests of a disk through to this block device,
    /// which is refused if its numbers have changed; at most once for each disk. Over FUSE only.
    #[arg(long = "device", value_parser = real::Named::parse, conflicts_with = "nbd")]
    devices: Vec<real::Named>,
    /// Front end of the disks. `auto`: ublk if available, else FUSE.
    #[arg(long, value_enum, default_value_t = FrontEnd::Auto, conflicts_with = "nbd")]
    front_end: FrontEnd,
    /// Seed of the models' random choices.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Serve over NBD, with each disk as an export under its name: the path of a Unix socket that
    /// does not exist, or @NAME for an abstract one.
    #[arg(long, value_name = "ADDRESS")]
    nbd: Option<nbd::Address>,
    /// Neither record nor report the date and time. For writers with their own clock (an emulated
    /// guest), so that no time in the recording depends on when their timers ran.
    #[arg(long)]
    untimed: bool,
    /// Become this user (UID:GID) once everything is open. Without this option, root becomes a
    /// user that no program uses.
    #[arg(long, value_name = "UID:GID", value_parser = parse_user)]
    user: Option<(u32, u32)>,
    /// Fail once the recording is larger than this many bytes.
    #[arg(long, value_name = "BYTES")]
    max_recording: Option<u64>,
    /// Control channel: an open SOCK_SEQPACKET socket.
    #[arg(long)]
    control_fd: RawFd,
    /// Exit when this process, the parent, exits.
    #[arg(long)]
    ppid: Option<u32>,
}

/// Front end of the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FrontEnd {
    Auto,
    Fuse,
    Ublk,
}

fn parse_disk(text: &str) -> Result<DiskInfo, String> {
    let (name, rest) = text
        .split_once('=')
        .ok_or("NAME=BYTES[,logical=512][,physical=4096]")?;
    let mut parts = rest.split(',');
    let size = parts.next().unwrap_or_default();
    let number = |what: &str, text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("{what} {text:?} is not a whole number"))
    };
    let mut disk = DiskInfo {
        name: name.to_owned(),
        size_bytes: number("size", size)?,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
    };
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?} is not KEY=VALUE"))?;
        let bytes =
            u32::try_from(number(key, value)?).map_err(|_| format!("{key} is too large"))?;
        match key {
            "logical" => disk.logical_block_bytes = bytes,
            "physical" => disk.physical_block_bytes = bytes,
            _ => return Err(format!("{key:?} is neither logical nor physical")),
        }
    }
    disk.check()?;
    Ok(disk)
}

fn parse_model(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or("NAME=FILE.toml")?;
    Ok((name.to_owned(), file.into()))
}

fn main() -> ExitCode {
    // Without a backtrace, for which the standard library reads files.
    std::panic::set_hook(Box::new(|panic| {
        // `eprintln!` panics if standard error is full.
        let _ = writeln!(io::stderr(), "fscost-disk: {panic}");
    }));
    let arguments = match Arguments::parse().command {
        Command::Serve(arguments) => *arguments,
        Command::FrontEnd => return say_front_end(),
        Command::Sweep { after } => {
            ublk::sweep_after(after);
            return ExitCode::SUCCESS;
        }
    };
    match serve(arguments) {
        Ok(server::Outcome::Finished) => ExitCode::SUCCESS,
        Ok(server::Outcome::AgentGone) => ExitCode::from(3),
        Err(error) => {
            eprintln!("fscost-disk: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say_front_end() -> ExitCode {
    let because = ublk::unsupported_reason();
    let front_end = if because.is_none() { "ublk" } else { "fuse" };
    let answer = serde_json::json!({ "front_end": front_end, "because": because });
    println!("{answer}");
    ExitCode::SUCCESS
}

fn serve(arguments: Serve) -> Result<server::Outcome, Box<dyn std::error::Error>> {
    die_with_parent(arguments.ppid)?;
    pressure::declare();
    if arguments.control_fd < 3 {
        return Err("--control-fd is the number of an inherited socket, 3 or more".into());
    }
    // SAFETY: the number names a descriptor that our parent opened for us alone; nothing else in
    // this process uses it. A wrong number fails
    // at the first use.
    let socket = unsafe { OwnedFd::from_raw_fd(arguments.control_fd) };
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    let header = header(arguments.disks, arguments.untimed)?;
    let clock = Clock::start();
    let models = timing::models::read(&header.disks, &arguments.models, arguments.seed)?;
    let has_models = models.iter().any(Option::is_some);
    let replies = Arc::new(timing::Replies::default());
    let devices = &arguments.devices;
    let real = real::Real::open(&header.disks, devices, clock, Arc::clone(&replies))?;
    let mut writer = Writer::create(&arguments.recording, &header)?;
    writer.keep_within(Room {
        max_bytes: arguments.max_recording,
    });
    let confinement = Confinement {
        user: arguments.user,
        ppid: arguments.ppid,
    };
    let start = || timing::Timing::start(models, clock, Arc::clone(&replies));
    let timing = has_models.then(start).transpose()?.map(Arc::new);
    let mut recorder = recorder::Recorder::new(writer, clock, pressure::map_bytes());
    if has_models || real.is_some() {
        recorder = recorder.with(replies);
    }
    let backend = Box::new(recorder);
    let control = control::Control::new(socket, !arguments.untimed);
    Ok(match arguments.nbd {
        Some(address) => {
            let listener = address.listen()?;
            confinement.enter()?;
            nbd::serve(backend, &listener, control, timing)?
        }
        None => {
            let front_end = arguments.front_end;
            serve_natively(front_end, backend, control, timing, real, confinement)?
        }
    })
}

/// Serve over ublk or FUSE.
fn serve_natively(
    front_end: FrontEnd,
    backend: Box<dyn Backend>,
    control: control::Control,
    timing: Option<Arc<timing::Timing>>,
    real: Option<real::Real>,
    confinement: Confinement,
) -> Result<server::Outcome, Box<dyn std::error::Error>> {
    let requests = ublk::Session::requests(backend.disks().len());
    let driver = match front_end {
        FrontEnd::Ublk => Some(ublk::Control::open(requests)?),
        // Real devices are served over FUSE: a thread for each request would copy its content.
        FrontEnd::Auto if real.is_none() => ublk::Control::open(requests).ok(),
        FrontEnd::Auto | FrontEnd::Fuse => None,
    };
    let run_first = || {
        // Not earlier: threads and processes that start later inherit the class.
        if timing.is_some() || real.is_some() {
            timing::run_first();
        }
    };
    if let Some(driver) = driver {
        let session = ublk::Session::new(driver, backend.disks())?;
        run_first();
        confinement.enter()?;
        return Ok(ublk::serve(backend, session, control, timing)?);
    }
    let mount = fuse::Mount::new()?;
    run_first();
    confinement.enter()?;
    Ok(server::serve(backend, mount, control, timing, real)?)
}

fn header(disks: Vec<DiskInfo>, untimed: bool) -> Result<Header, SystemTimeError> {
    let begin_unix_ns = if untimed {
        0
    } else {
        SystemTime::UNIX_EPOCH.elapsed()?.as_nanos() as u64
    };
    Ok(Header {
        begin_unix_ns,
        disks,
        stripped: fscost_recording::Stripped::No,
    })
}

fn parse_user(text: &str) -> Result<(u32, u32), String> {
    text.split_once(':')
        .and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)))
        .ok_or_else(|| "UID:GID".into())
}
