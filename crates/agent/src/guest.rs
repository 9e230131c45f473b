//! `fscost-agent guest`: the first process of a virtual machine.
//!
//! The process loads the modules in the initramfs, then reports on the port `fscost.events` that it
//! is running (a snapshot may be taken now), and waits for one line, the order. Then it mounts the
//! host's root read-only and starts `fscost-agent run` in it with the order's plan, or the order's
//! program. It forwards the events of that run and finally powers off. The process itself stays in
//! the initramfs: the kernel looks for modules in the root of its first process.

use crate::error::{CellError, Context, Kind, Result};
use crate::event::{Event, Failed};
use crate::port::{open_port, wait_for};
use crate::spinner;
use crate::sync_calls::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};
use rustix::system::RebootCommand;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::CStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const EVENTS_PORT: &str = "fscost.events";
/// Port of a program's standard input and output.
const CONTROL_PORT: &str = "fscost.control";
/// Folder of devices in the order's plan, such as `/dev/fscost/main`.
const DEVICES: &str = "/dev/fscost";
const HOST: &str = "/host";
const RUN: &str = "/host/run";
/// Path of the agent, where `fscost-agent run` in the host's root finds it.
const AGENT: &str = "/run/fscost/agent";
/// Interval between signs of life: the host considers a silent guest dead.
const ALIVE_PAUSE_NS: u64 = 2_000_000_000;

/// Time limit for the host's acknowledgement. If the host's process dies, no answer arrives, but
/// the host's kernel then kills the machine, too.
const HEARD_LIMIT: Duration = Duration::from_secs(60);

/// Order from the host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// 9p tag of the host's root.
    root: String,
    /// 9p tag of the workload's input, mounted at `/run/fscost/input`.
    #[serde(default)]
    input: Option<String>,
    /// Serial numbers of the disks; each becomes `/dev/fscost/SERIAL`.
    disks: Vec<String>,
    /// Plan of the cell (docs/cell-protocol.md).
    #[serde(default)]
    plan: Option<Value>,
    /// In place of a plan: a program that talks to the host over `fscost.control`.
    #[serde(default)]
    program: Vec<String>,
}

/// Entry point of the process: never returns while the machine runs.
pub fn main() -> ! {
    if let Err(error) = live() {
        // Without the port, the console is the only place to report to.
        eprintln!("fscost-agent guest: {}", error.paragraph());
    }
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    loop {
        std::thread::park();
    }
}

fn live() -> Result<()> {
    if std::process::id() != 1 {
        return Err(CellError::new(
            Kind::Internal,
            "`fscost-agent guest` can run only as the first process (pid 1) of a virtual machine",
        ));
    }
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC;
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        make_dir(target)?;
        mount_at(target, kind, plain, None)?;
    }
    load_modules()?;
    if std::env::args().any(|word| word == spinner::ARGUMENT) {
        spinner::start();
    }
    let mut port = open_port(EVENTS_PORT)?;
    let events = Events::to(&port)?;
    let release = rustix::system::uname();
    events.tell(&json!({
        "event": "hello",
        "agent": env!("CARGO_PKG_VERSION"),
        "kernel": release.release().to_string_lossy(),
    }))?;
    let mut line = Vec::new();
    BufReader::new(&mut port)
        .read_until(b'\n', &mut line)
        .context(Kind::Plan, || "read the order")?;
    events.stay_alive();
    let served = serde_json::from_slice(&line)
        .context(Kind::Plan, || "parse the order")
        .and_then(|order| serve(order, &events));
    if let Err(error) = served {
        events.tell(&json!(Event::Failed(Failed::new("", &error, Vec::new()))))?;
    }
    events.tell(&json!({"event": "bye"}))?;
    wait_until_heard(&port)
}

/// Waits until the host confirms that it has read everything. The port's driver only queues the
/// data, and on power-off QEMU drops what the host has not read.
fn wait_until_heard(port: &File) -> Result<()> {
    let limit = Timespec::try_from(HEARD_LIMIT).unwrap_or_default();
    let mut answer = [PollFd::new(port, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut answer, Some(&limit)))
        .map(drop)
        .internal(|| "wait for the host")
}

/// Loads modules in the order of `/modules/order`, which lists each after its dependencies.
fn load_modules() -> Result<()> {
    let order = fs::read_to_string("/modules/order").internal(|| "read /modules/order")?;
    for name in order.lines() {
        let path = format!("/modules/{name}.ko");
        let file = File::open(&path).internal(|| format!("open {path}"))?;
        match rustix::system::finit_module(&file, c"", 0) {
            // The module is built in or already loaded.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            // A module may find that the machine does not need it.
            Err(error) => eprintln!("fscost-agent guest: module {name}: {error}"),
        }
    }
    Ok(())
}

fn serve(order: Order, events: &Events) -> Result<()> {
    make_dir(HOST)?;
    mount_share(&order.root, HOST)?;
    mount_at(RUN, "tmpfs", MountFlags::NOSUID, Some(c"mode=0755"))?;
    mount_tmp()?;
    let in_host = |path: &str| PathBuf::from(format!("{HOST}{path}"));
    make_dir(in_host("/run/fscost/base"))?;
    fs::copy("/init", in_host(AGENT)).internal(|| "copy the agent")?;
    if let Some(input) = &order.input {
        let target = in_host("/run/fscost/input");
        make_dir(&target)?;
        mount_share(input, &target)?;
    }
    make_dir(DEVICES)?;
    for serial in &order.disks {
        let device = wait_for(&format!("disk {serial}"), || disk_of(serial))?;
        prepare_queue(&device)?;
        let link = Path::new(DEVICES).join(serial);
        std::os::unix::fs::symlink(Path::new("/dev").join(&device), &link)
            .context(Kind::Attach, || format!("link {}", link.display()))?;
    }
    // Programs keep shared memory and semaphores there (shm_overview(7)); devtmpfs has no such
    // folder.
    make_dir("/dev/shm")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_at("/dev/shm", "tmpfs", flags, Some(c"mode=1777"))?;
    for name in ["dev", "sys", "proc"] {
        let (from, to) = (format!("/{name}"), in_host(&format!("/{name}")));
        mount_bind_recursive(&from, &to).internal(|| format!("bind {from}"))?;
    }
    match (&order.plan, order.program.split_first()) {
        (Some(plan), None) => run(plan, events),
        (None, Some((program, arguments))) => examine(program, arguments),
        _ => Err(CellError::new(
            Kind::Plan,
            "an order has either a plan or a program",
        )),
    }
}

/// Mounts `/tmp` so that the host's files are visible while writes to them stay in the guest.
fn mount_tmp() -> Result<()> {
    for layer in ["upper", "work"] {
        let layer = format!("{RUN}/fscost/tmp/{layer}");
        make_dir(&layer)?;
        fs::set_permissions(&layer, Permissions::from_mode(0o1777))
            .internal(|| format!("set the mode of {layer}"))?;
    }
    let options =
        c"lowerdir=/host/tmp,upperdir=/host/run/fscost/tmp/upper,workdir=/host/run/fscost/tmp/work";
    mount(
        "overlay",
        "/host/tmp",
        "overlay",
        MountFlags::NOSUID,
        Some(options),
    )
    .internal(|| "mount /tmp")
}

/// A program in the host's root.
fn program_in_host(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    // SAFETY: chroot and chdir are system calls; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(|| {
            rustix::process::chroot(c"/host")?;
            Ok(rustix::process::chdir(c"/")?)
        });
    }
    command
}

/// Runs a program that examines states (docs/crash.md). Its error output goes to the console.
fn examine(program: &str, arguments: &[String]) -> Result<()> {
    let port = open_port(CONTROL_PORT)?;
    let input = port.try_clone().internal(|| "duplicate the port")?;
    let status = program_in_host(program)
        .args(arguments)
        .stdin(input)
        .stdout(port)
        .status()
        .internal(|| format!("start {program}"))?;
    if status.success() {
        return Ok(());
    }
    let message = format!("{program} ended with {status}");
    Err(CellError::new(Kind::Internal, message))
}

fn run(plan: &Value, events: &Events) -> Result<()> {
    let mut command = program_in_host(AGENT);
    command
        .arg("run")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().internal(|| "start the agent")?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the agent does not read its plan, it reports why.
        let _ = stdin.write_all(plan.to_string().as_bytes());
    }
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout)
            .split(b'\n')
            .map_while(std::io::Result::ok)
        {
            events.pass_on(&line)?;
        }
    }
    child.wait().internal(|| "wait for the agent")?;
    send_log(plan, events)
}

/// Sends the commands' output last: the host has no other way to get it.
fn send_log(plan: &Value, events: &Events) -> Result<()> {
    const PART_BYTES: usize = 64 * 1024;
    let path = format!("{HOST}{}", plan["log"].as_str().unwrap_or_default());
    let Ok(mut log) = File::open(path) else {
        return Ok(());
    };
    let mut part = vec![0; PART_BYTES];
    loop {
        let length = log.read(&mut part).internal(|| "read the log")?;
        if length == 0 {
            return Ok(());
        }
        events
            .tell(&json!({"event": "output", "text": String::from_utf8_lossy(&part[..length])}))?;
    }
}

/// Mounts a file system that has no source.
fn mount_at(target: &str, kind: &str, flags: MountFlags, options: Option<&CStr>) -> Result<()> {
    mount(kind, target, kind, flags, options).internal(|| format!("mount {target}"))
}

fn mount_share(tag: &str, target: impl AsRef<Path>) -> Result<()> {
    // cache=loose: the host's files do not change while a cell runs, and without it every look-up
    // asks the host.
    let options = c"trans=virtio,version=9p2000.L,cache=loose,msize=1048576";
    let target = target.as_ref();
    // Mounting a share before it is plugged in prints a complaint on the console, which may hold
    // messages that somebody needs.
    wait_for(&format!("share {tag}"), || is_plugged(tag).then_some(()))?;
    mount(
        tag,
        target,
        "9p",
        MountFlags::RDONLY | MountFlags::NOSUID,
        Some(options),
    )
    .context(Kind::Attach, || format!("mount share {tag}"))
}

/// True if the 9p driver has a channel with this tag.
fn is_plugged(tag: &str) -> bool {
    fs::read_dir("/sys/bus/virtio/drivers/9pnet_virtio").is_ok_and(|devices| {
        devices.flatten().any(|device| {
            fs::read_to_string(device.path().join("mount_tag"))
                .is_ok_and(|found| found.trim_end_matches(['\0', '\n']) == tag)
        })
    })
}

/// Returns the device with the serial number `serial`. Device letters follow the order of plugging;
/// serial numbers do not.
fn disk_of(serial: &str) -> Option<String> {
    fs::read_dir("/sys/block")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let found = fs::read_to_string(entry.path().join("serial")).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // The device's files appear one by one; the kernel links `bdi` after it has added all
            // others (`device_add_disk`).
            let is_there = entry.path().join("bdi").exists()
                && entry.path().join("queue/scheduler").exists()
                && fs::metadata(Path::new("/dev").join(&name))
                    .is_ok_and(|node| node.file_type().is_block_device());
            (found.trim_end_matches(['\0', '\n']) == serial && is_there).then_some(name)
        })
}

/// Sets the queue attributes of a device. virtio-blk claims to be rotational, which file systems
/// act on (btrfs: no `ssd`). The scheduler is none, as on NVMe.
fn prepare_queue(device: &str) -> Result<()> {
    for (name, value) in [("rotational", "0"), ("scheduler", "none")] {
        let path = format!("/sys/block/{device}/queue/{name}");
        fs::write(&path, value).context(Kind::Attach, || format!("write {path}"))?;
    }
    Ok(())
}

fn make_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    fs::create_dir_all(path).internal(|| format!("make {}", path.display()))
}

/// The port, written a whole line at a time by several threads.
#[derive(Clone)]
struct Events(Arc<Mutex<File>>);

impl Events {
    fn to(port: &File) -> Result<Self> {
        let own = port.try_clone().internal(|| "duplicate the port")?;
        Ok(Self(Arc::new(Mutex::new(own))))
    }

    fn tell(&self, event: &Value) -> Result<()> {
        self.pass_on(event.to_string().as_bytes())
    }

    fn pass_on(&self, line: &[u8]) -> Result<()> {
        // A thread that died while writing has left a truncated line, which the host will notice.
        let mut port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        port.write_all(line)
            .and_then(|()| port.write_all(b"\n"))
            .internal(|| "write to the host")
    }

    /// Sends signs of life for as long as the machine runs.
    fn stay_alive(&self) {
        let events = self.clone();
        std::thread::spawn(move || {
            while events.tell(&json!({"event": "alive"})).is_ok() {
                // At the same instants in every run of an emulated guest.
                let since = monotonic_ns() % ALIVE_PAUSE_NS;
                std::thread::sleep(Duration::from_nanos(ALIVE_PAUSE_NS - since));
            }
        });
    }
}
