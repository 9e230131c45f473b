//! `fscost-agent guest`: the first process of a virtual machine.
//!
//! It loads the modules that lie in the initramfs, says on the port `fscost.events` that it is there (a snapshot may be taken now), and
//! waits for one line, the order. Then it mounts the host's root read-only, starts `fscost-agent run` in it with the order's plan, passes its events
//! on, and powers off. It stays in the initramfs itself: the kernel looks for modules where its first process lives.

use crate::error::{CellError, Context, Kind, Result};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};
use rustix::system::RebootCommand;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const EVENTS_PORT: &str = "fscost.events";
/// Where devices lie in the order's plan: `/dev/fscost/main`.
const DEVICES: &str = "/dev/fscost";
const HOST: &str = "/host";
/// The agent, where `fscost-agent run` in the host's root finds it.
const AGENT: &str = "/run/fscost/agent";
/// Devices and shares are plugged after the snapshot: they come some time after the order.
const PLUG_LIMIT: Duration = Duration::from_secs(20);
const PLUG_PAUSE: Duration = Duration::from_millis(5);

/// What the host wants.
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
    /// docs/cell-protocol.md.
    plan: Value,
}

/// Entry of the process: never returns while the machine runs.
pub fn main() -> ! {
    if let Err(error) = live() {
        // The console is the only place left when the port is not there.
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
            "`fscost-agent guest` is the first process of a virtual machine only",
        ));
    }
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC;
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        make_dir(target)?;
        mount(kind, target, kind, plain, None)
            .context(Kind::Internal, || format!("mount {target}"))?;
    }
    load_modules()?;
    let mut events = open_port(EVENTS_PORT)?;
    let release = rustix::system::uname();
    tell(
        &mut events,
        &json!({"event": "hello", "agent": env!("CARGO_PKG_VERSION"), "kernel": release.release().to_string_lossy()}),
    )?;
    let mut line = Vec::new();
    BufReader::new(
        events
            .try_clone()
            .context(Kind::Internal, || "duplicate the port")?,
    )
    .read_until(b'\n', &mut line)
    .context(Kind::Plan, || "read the order")?;
    let served = serde_json::from_slice(&line)
        .context(Kind::Plan, || "understand the order")
        .and_then(|order| serve(order, &mut events));
    if let Err(error) = served {
        tell(
            &mut events,
            &json!({"event": "failed", "step": "", "kind": error.kind, "message": error.paragraph(), "status": null, "signal": null, "kernel": []}),
        )?;
    }
    tell(&mut events, &json!({"event": "bye"}))
}

/// In the order of `/modules/order`: each after what it needs.
fn load_modules() -> Result<()> {
    let order =
        fs::read_to_string("/modules/order").context(Kind::Internal, || "read /modules/order")?;
    for name in order.lines() {
        let path = format!("/modules/{name}.ko");
        let file = File::open(&path).context(Kind::Internal, || format!("open {path}"))?;
        match rustix::system::finit_module(&file, c"", 0) {
            // Built in, or loaded by another already.
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            // A module may find that the machine has no use for it.
            Err(error) => eprintln!("fscost-agent guest: module {name}: {error}"),
        }
    }
    Ok(())
}

fn serve(order: Order, events: &mut File) -> Result<()> {
    make_dir(HOST)?;
    mount_share(&order.root, HOST)?;
    for (kind, target, data) in [
        ("tmpfs", "run", Some(c"mode=0755")),
        ("tmpfs", "tmp", Some(c"mode=1777")),
    ] {
        let target = Path::new(HOST).join(target);
        mount(kind, &target, kind, MountFlags::NOSUID, data)
            .context(Kind::Internal, || format!("mount {}", target.display()))?;
    }
    let in_host = |path: &str| PathBuf::from(format!("{HOST}{path}"));
    make_dir(in_host("/run/fscost"))?;
    fs::copy("/init", in_host(AGENT)).context(Kind::Internal, || "copy the agent")?;
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
    for name in ["dev", "sys", "proc"] {
        let (from, to) = (format!("/{name}"), in_host(&format!("/{name}")));
        mount_bind_recursive(&from, &to).context(Kind::Internal, || format!("bind {from}"))?;
    }
    run(&order.plan, events)
}

fn run(plan: &Value, events: &mut File) -> Result<()> {
    let mut command = Command::new(AGENT);
    command
        .arg("run")
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    // SAFETY: chroot and chdir are system calls; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(|| {
            rustix::process::chroot(c"/host")?;
            Ok(rustix::process::chdir(c"/")?)
        });
    }
    let mut child = command
        .spawn()
        .context(Kind::Internal, || "start the agent")?;
    if let Some(mut stdin) = child.stdin.take() {
        // An agent that does not read it says why.
        let _ = stdin.write_all(plan.to_string().as_bytes());
    }
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout)
            .split(b'\n')
            .map_while(std::io::Result::ok)
        {
            events
                .write_all(&line)
                .and_then(|()| events.write_all(b"\n"))
                .context(Kind::Internal, || "pass an event on")?;
        }
    }
    child
        .wait()
        .context(Kind::Internal, || "wait for the agent")?;
    send_log(plan, events)
}

/// What the commands printed, last: the host has it in no other way.
fn send_log(plan: &Value, events: &mut File) -> Result<()> {
    const PART_BYTES: usize = 64 * 1024;
    let path = format!("{HOST}{}", plan["log"].as_str().unwrap_or_default());
    let Ok(mut log) = File::open(path) else {
        return Ok(());
    };
    let mut part = vec![0; PART_BYTES];
    loop {
        let length = log
            .read(&mut part)
            .context(Kind::Internal, || "read the log")?;
        if length == 0 {
            return Ok(());
        }
        tell(
            events,
            &json!({"event": "output", "text": String::from_utf8_lossy(&part[..length])}),
        )?;
    }
}

fn mount_share(tag: &str, target: impl AsRef<Path>) -> Result<()> {
    // cache=loose: the host's files do not change while a cell runs, and without it every look-up asks the host.
    let options = c"trans=virtio,version=9p2000.L,cache=loose,msize=1048576";
    let target = target.as_ref();
    wait_for(&format!("share {tag}"), || {
        mount(
            tag,
            target,
            "9p",
            MountFlags::RDONLY | MountFlags::NOSUID,
            Some(options),
        )
        .ok()
    })
}

/// The device whose serial number is `serial`: letters follow the order of plugging, serials do not.
fn disk_of(serial: &str) -> Option<String> {
    fs::read_dir("/sys/block")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let found = fs::read_to_string(entry.path().join("serial")).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_there = fs::metadata(Path::new("/dev").join(&name))
                .is_ok_and(|node| node.file_type().is_block_device());
            (found.trim_end_matches(['\0', '\n']) == serial && is_there).then_some(name)
        })
}

/// virtio-blk says that it rotates, and file systems heed it (btrfs: no `ssd`); no scheduler, as on NVMe.
fn prepare_queue(device: &str) -> Result<()> {
    for (name, value) in [("rotational", "0"), ("scheduler", "none")] {
        let path = format!("/sys/block/{device}/queue/{name}");
        fs::write(&path, value).context(Kind::Attach, || format!("write {path}"))?;
    }
    Ok(())
}

fn open_port(name: &str) -> Result<File> {
    let path = wait_for(&format!("port {name}"), || {
        fs::read_dir("/sys/class/virtio-ports")
            .ok()?
            .flatten()
            .find_map(|entry| {
                let found = fs::read_to_string(entry.path().join("name")).ok()?;
                (found.trim() == name).then(|| Path::new("/dev").join(entry.file_name()))
            })
    })?;
    File::options()
        .read(true)
        .write(true)
        .open(&path)
        .context(Kind::Internal, || format!("open {}", path.display()))
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + PLUG_LIMIT;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            let seconds = PLUG_LIMIT.as_secs();
            return Err(CellError::new(
                Kind::Attach,
                format!("{what} did not come within {seconds} s"),
            ));
        }
        std::thread::sleep(PLUG_PAUSE);
    }
}

fn make_dir(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    fs::create_dir_all(path).context(Kind::Internal, || format!("make {}", path.display()))
}

fn tell(port: &mut File, event: &Value) -> Result<()> {
    port.write_all(format!("{event}\n").as_bytes())
        .context(Kind::Internal, || "write to the host")
}
