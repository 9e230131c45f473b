//! `fscost-agent run`: stays in the host's namespaces, starts the disk server and `init`, forwards
//! events, and ends only when both have ended.

use crate::cpu::CpuServer;
use crate::error::{CellError, Context, Kind, Result};
use crate::event::{Event, Failed};
use crate::handoff::{Handoff, bequeath};
use crate::output::Output;
use crate::plan::{self, Plan};
use crate::process::{Process, describe};
use crate::relay::Relay;
use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Time for `init` to exit after its last event, or after its pipe was closed.
const INIT_LIMIT: Duration = Duration::from_secs(10);
/// Time for `init` to notice that the disk server has ended. Longer than the watchdog of `init`
/// waits for hanging calls.
const SERVER_GONE_LIMIT: Duration = Duration::from_secs(20);
/// Interval between checks of the log's length.
const OUTPUT_PAUSE: Duration = Duration::from_millis(500);
/// Time for the disk server to exit after `init` has ended.
const SERVER_LIMIT: Duration = Duration::from_secs(10);

/// Entry point of the process.
pub fn main() -> ExitCode {
    let last = match start().map(Supervisor::supervise) {
        Ok(last) => last,
        Err(error) => json!(Event::Failed(Failed::new("", &error, Vec::new()))),
    };
    let is_done = last["event"] == "done";
    // An error means that no runner is left to read it.
    let _ = writeln!(std::io::stdout().lock(), "{last}");
    if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn start() -> Result<Supervisor> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .internal(|| "set the parent-death signal")?;
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut text)
        .context(Kind::Plan, || "read the plan")?;
    let plan = plan::parse(&text)?;
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if parent != plan.parent_pid {
        return Err(CellError::new(
            Kind::Plan,
            format!(
                "the plan names process {} as the parent, but the parent is {parent}",
                plan.parent_pid
            ),
        ));
    }
    // Before any process starts: from now on these signals wait for an orderly end.
    let signals = block_signals()?;
    // Created exclusively, so that an existing link cannot decide where the log is (O_EXCL,
    // open(2)).
    let log = File::options()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&plan.log)
        .internal(|| format!("open the log {}", plan.log.display()))?;
    let argv = plan.disk_server.as_ref();
    let started = argv.map(|argv| start_server(argv, &log)).transpose()?;
    let (control, mut server) = started.unzip();
    let output = Output::new(clone_file(&log)?);
    let started = start_init(
        plan,
        control,
        server.as_ref().map(|server| server.child.id()),
        log,
    );
    if let (Err(_), Some(server)) = (&started, &mut server) {
        server.kill();
        // No process of the cell may outlive the agent; its exit status does not matter.
        let _ = server.child.wait();
    }
    let (init, events, cpu) = started?;
    Ok(Supervisor {
        init,
        events: Some(events),
        cpu: Some(cpu),
        server,
        signals,
        relay: Relay::default(),
        output,
        deadline: None,
        interrupted: None,
        is_forced: false,
    })
}

fn block_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(NixSignal::SIGTERM);
    set.add(NixSignal::SIGINT);
    set.add(NixSignal::SIGHUP);
    set.thread_block().internal(|| "block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .internal(|| "signalfd")
}

/// Makes a child die with this process and inherit `descriptors`. It gets a process group of its own:
/// Ctrl-C on the terminal goes to the runner, which tells the agent.
fn tie(command: &mut Command, descriptors: Vec<RawFd>) {
    command.process_group(0);
    // SAFETY: the system calls sigprocmask, prctl and fcntl only; nothing is allocated and no lock
    // is taken.
    unsafe {
        command.pre_exec(move || {
            // `Command` does not undo the blocking of signals, and exec keeps it.
            SigSet::empty().thread_set_mask()?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            descriptors.iter().copied().try_for_each(bequeath)
        });
    }
}

/// Starts the disk server in the host's namespaces: it must not be in the namespace that holds the
/// mounts.
fn start_server(argv: &[String], log: &File) -> Result<(OwnedFd, Process)> {
    let (ours, theirs) = seqpacket_pair().internal(|| "make the control socket")?;
    let (program, rest) = argv
        .split_first()
        .ok_or_else(|| CellError::new(Kind::Plan, "`disk_server` is empty"))?;
    let number = theirs.as_raw_fd();
    let mut command = Command::new(program);
    command.args(rest);
    command.args([
        "--control-fd",
        &number.to_string(),
        "--ppid",
        &std::process::id().to_string(),
    ]);
    command
        .stdin(Stdio::null())
        .stdout(clone_file(log)?)
        .stderr(clone_file(log)?);
    tie(&mut command, vec![number]);
    let child = command.spawn().context(Kind::DiskServer, || {
        format!("start the disk server {program}")
    })?;
    Ok((ours, Process::new(child)?))
}

/// Starts `init` as pid 1 of a new PID namespace.
fn start_init(
    plan: Plan,
    control: Option<OwnedFd>,
    server_pid: Option<u32>,
    log: File,
) -> Result<(Process, ChildStdout, CpuServer)> {
    let proc = File::open("/proc").internal(|| "open /proc")?;
    let (ours, theirs) = seqpacket_pair().internal(|| "make the socket for CPU times")?;
    let cpu = CpuServer::new(proc.into(), server_pid, ours);
    let control_fd = control.as_ref().map(AsRawFd::as_raw_fd);
    let handoff = Handoff {
        plan,
        cpu_fd: theirs.as_raw_fd(),
        control_fd,
    };
    let inherited = [Some(handoff.cpu_fd), control_fd];
    // SAFETY: NEWPID does not touch file descriptors; it decides where children are born.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }
        .internal(|| "unshare the PID namespace (needs root)")?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("fscost-agent").arg("init");
    command
        .stdin(handoff.to_file()?)
        .stdout(Stdio::piped())
        .stderr(log);
    tie(&mut command, inherited.into_iter().flatten().collect());
    let mut child = command.spawn().internal(|| "start init")?;
    let events = child
        .stdout
        .take()
        .ok_or_else(|| CellError::new(Kind::Internal, "init has no output"))?;
    Ok((Process::new(child)?, events, cpu))
}

fn seqpacket_pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
}

fn clone_file(file: &File) -> Result<File> {
    file.try_clone().internal(|| "duplicate the log")
}

#[derive(Debug)]
struct Supervisor {
    init: Process,
    events: Option<ChildStdout>,
    /// Answers questions of `init`, until `init` has ended.
    cpu: Option<CpuServer>,
    server: Option<Process>,
    signals: SignalFd,
    relay: Relay,
    output: Output,
    /// Time at which everything is ended by force.
    deadline: Option<Instant>,
    /// Reason for ending everything early.
    interrupted: Option<String>,
    /// True if processes had to be killed.
    is_forced: bool,
}

impl Supervisor {
    /// Forwards events until all processes have ended; returns the last event.
    fn supervise(mut self) -> Value {
        while !self.is_over() {
            self.wait();
            if self.cpu.as_mut().is_some_and(|cpu| !cpu.answer()) {
                self.cpu = None;
            }
            self.pass_on();
            self.output.bound();
            if let Ok(Some(signal)) = self.signals.read_signal() {
                self.interrupt(format!("ended by signal {}", signal.ssi_signo));
            }
            self.note_ends();
            if self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
            {
                self.kill_all();
            }
        }
        // On error, the log stays long.
        let _ = self.output.finish();
        self.last_event()
    }

    fn is_over(&self) -> bool {
        self.processes().all(|process| process.status.is_some()) && self.events.is_none()
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        std::iter::once(&self.init).chain(&self.server)
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let running = self.processes().filter(|process| process.status.is_none());
        fds.extend(running.map(|process| PollFd::new(&process.pidfd, PollFlags::IN)));
        let cpu = self.cpu.as_ref();
        fds.extend(cpu.map(|cpu| PollFd::new(&cpu.socket, PollFlags::IN)));
        let events = self.events.as_ref();
        fds.extend(events.map(|events| PollFd::new(events, PollFlags::IN)));
        let until_deadline = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = until_deadline.unwrap_or(OUTPUT_PAUSE).min(OUTPUT_PAUSE);
        let wait = Timespec::try_from(wait).unwrap_or_default();
        // An error does not matter: all sources are checked anyway.
        let _ = poll(&mut fds, Some(&wait));
    }

    fn pass_on(&mut self) {
        let Some(events) = &mut self.events else {
            return;
        };
        let mut fds = [PollFd::new(events, PollFlags::IN)];
        if !poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return;
        }
        let mut bytes = [0; 64 * 1024];
        let length = events.read(&mut bytes).unwrap_or(0);
        if length == 0 {
            self.events = None;
        } else if let Err(error) = self
            .relay
            .take(&bytes[..length], &mut std::io::stdout().lock())
        {
            self.interrupt(format!("the runner does not read events: {error}"));
        }
    }

    fn interrupt(&mut self, why: String) {
        self.interrupted.get_or_insert(why);
        self.kill_all();
    }

    /// Kills both processes. The end of the server also ends anything that hangs in the kernel on
    /// its disks.
    fn kill_all(&mut self) {
        self.is_forced = true;
        self.init.kill();
        if let Some(server) = &mut self.server {
            server.kill();
        }
        self.deadline = None;
    }

    fn note_ends(&mut self) {
        let init_was = self.init.status.is_some();
        let init_ended = self.init.reap();
        if let Some(server) = &mut self.server {
            let server_was = server.status.is_some();
            if server.reap() && !server_was && !init_ended && self.relay.last.is_none() {
                self.end_within(SERVER_GONE_LIMIT);
            }
        }
        if init_ended && !init_was {
            self.end_within(SERVER_LIMIT);
        } else if !init_ended && (self.relay.last.is_some() || self.events.is_none()) {
            self.end_within(INIT_LIMIT);
        }
    }

    fn end_within(&mut self, limit: Duration) {
        if self.interrupted.is_none() {
            self.deadline.get_or_insert(Instant::now() + limit);
        }
    }

    fn last_event(self) -> Value {
        let server_status = self.server.as_ref().and_then(|server| server.status);
        let failed = |kind, message: String| {
            let error = CellError::new(kind, message);
            json!(Event::Failed(Failed::new("", &error, Vec::new())))
        };
        if let Some(why) = self.interrupted {
            return failed(Kind::Interrupted, why);
        }
        let init_status = self.init.status;
        let init_was_killed = init_status.is_some_and(|status| status.signal().is_some());
        let server_failed = server_status.filter(|status| !status.success());
        match (self.relay.last, server_failed) {
            (Some(last), Some(status)) if last["event"] == "done" => failed(
                Kind::DiskServer,
                format!(
                    "the disk server finished the recording, but then {}: {last}",
                    describe(status)
                ),
            ),
            (Some(mut last), Some(status)) => {
                if last["kind"] == "disk-server" {
                    let message = last["message"].as_str().unwrap_or_default();
                    last["message"] =
                        json!(format!("{message} (the disk server {})", describe(status)));
                    last["status"] = json!(status.code());
                    last["signal"] = json!(status.signal());
                }
                last
            }
            (Some(last), None) => last,
            // If another process killed init, the server ended as a result.
            (None, Some(status)) if self.is_forced || !init_was_killed => failed(
                Kind::DiskServer,
                format!("the disk server {} before the cell ended", describe(status)),
            ),
            (None, _) => {
                let how = init_status.map_or_else(|| "ended".to_owned(), describe);
                failed(
                    Kind::Internal,
                    format!("init {how}; if nobody killed it, the machine may be out of memory"),
                )
            }
        }
    }
}
