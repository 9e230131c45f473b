//! Commands to `/dev/ublk-control`.

use super::{
    protocol::{self as p, CtrlCmd, DevInfo},
    ring::{Happened, Ring},
};
use rustix::{fd::AsFd as _, io::Errno, ioctl::Opcode};
use std::{
    collections::BTreeSet,
    fs::File,
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

const PATH: &str = "/dev/ublk-control";
const CHAR_DEVICES: &str = "/sys/class/ublk-char";
/// Time limit of a command without content. Commands that need no request to be served take
/// milliseconds, but DEL_DEV waits for every process that has the character device open.
const LIMIT: Duration = Duration::from_secs(10);
/// Tag in the upper bits of a device's private flags, which marks devices of fscost.
const OURS: u64 = 0x19b << 54;
/// Bits of a process ID: `PID_MAX_LIMIT` of Linux is 2^22.
const PID_BITS: u32 = 22;
/// Ring entries for everything in flight other than the requests of the disks.
const OTHER_ENTRIES: u32 = 8;

/// The driver's control device, and the ring used for its commands.
pub struct Control {
    pub ring: Ring,
    control: File,
}

impl Control {
    /// Open the control device, with room for `requests` at once. Refused if the driver cannot copy
    /// with read and write calls.
    pub fn open(requests: u32) -> Result<Self, String> {
        let control = File::options()
            .read(true)
            .write(true)
            .open(PATH)
            .map_err(|error| format!("opening {PATH}: {error}"))?;
        let ring = Ring::new((requests + OTHER_ENTRIES).next_power_of_two()).map_err(|error| {
            format!("making an io_uring (sysctl kernel.io_uring_disabled?): {error}")
        })?;
        let mut opened = Self { ring, control };
        let mut features = 0_u64;
        let command = CtrlCmd {
            dev_id: p::ANY_DEVICE,
            addr: (&raw mut features).expose_provenance() as u64,
            len: size_of::<u64>() as u16,
            ..command_of(0)
        };
        // SAFETY: `features` lives until this returns.
        let asked = unsafe { opened.run(p::GET_FEATURES, &command) };
        asked.map_err(|errno| format!("asking ublk_drv for its features: {errno}"))?;
        if features & p::F_USER_COPY == 0 {
            let errno = Errno::OPNOTSUPP;
            return Err(format!(
                "ublk_drv has no UBLK_F_USER_COPY (Linux 6.5): {errno}"
            ));
        }
        Ok(opened)
    }

    /// Create a device; returns its number.
    pub fn add(&mut self, depth: u16, most_bytes: u32) -> Result<u32, String> {
        let mut info = DevInfo {
            nr_hw_queues: 1,
            queue_depth: depth,
            max_io_buf_bytes: most_bytes,
            dev_id: p::ANY_DEVICE,
            flags: p::F_USER_COPY | p::F_CMD_IOCTL_ENCODE,
            ublksrv_flags: flags_of(own_namespace(), std::process::id()),
            ..DevInfo::default()
        };
        let added = self.run_with_info(p::ADD_DEV, p::ANY_DEVICE, &mut info);
        added.map_err(|errno| format!("making a ublk device: {errno}"))?;
        Ok(info.dev_id)
    }

    /// Set the parameters of a device.
    pub fn set_params(&mut self, device: u32, params: &p::Params) -> Result<(), String> {
        let command = CtrlCmd {
            addr: std::ptr::from_ref(params).expose_provenance() as u64,
            len: params.len as u16,
            ..command_of(device)
        };
        // SAFETY: `params` lives until this returns, and the driver reads it only.
        let set = unsafe { self.run(p::SET_PARAMS, &command) };
        set.map_err(|errno| format!("setting the parameters of a ublk device: {errno}"))
    }

    /// Begin a command without content; `Happened::Commanded` reports its end.
    pub fn begin(&mut self, code: Opcode, device: u32) {
        let command = CtrlCmd {
            // START_DEV needs the process ID of the server.
            data: u64::from(std::process::id()),
            ..command_of(device)
        };
        // SAFETY: the command holds no address.
        unsafe { self.ring.command(self.control.as_fd(), code, &command) };
    }

    /// Run a command on a device for which no request needs to be served; ETIME if it takes long.
    pub fn command(&mut self, code: Opcode, device: u32) -> Result<(), Errno> {
        let command = command_of(device);
        // SAFETY: the command holds no address.
        unsafe { self.ring.command(self.control.as_fd(), code, &command) };
        self.result(Some(Instant::now() + LIMIT))
    }

    /// Remove the devices of disk servers that have ended, because nothing else does. Returns the
    /// servers whose devices remain.
    pub fn sweep(&mut self) -> BTreeSet<u32> {
        let mut left = BTreeSet::new();
        let entries = std::fs::read_dir(CHAR_DEVICES).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("ublkc"));
            let Some(device) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let Some(server) = self.server_of(device) else {
                continue;
            };
            if !is_gone(server) || self.command(p::DEL_DEV, device).is_err() {
                left.insert(server);
            }
        }
        left
    }

    /// Returns the server's process ID of a device that fscost has created in this PID namespace.
    fn server_of(&mut self, device: u32) -> Option<u32> {
        let mut info = DevInfo::default();
        self.run_with_info(p::GET_DEV_INFO, device, &mut info)
            .ok()?;
        server_in(info.ublksrv_flags, own_namespace())
    }

    /// Run a command that reads and fills `info`.
    fn run_with_info(
        &mut self,
        code: Opcode,
        device: u32,
        info: &mut DevInfo,
    ) -> Result<(), Errno> {
        let command = CtrlCmd {
            addr: (&raw mut *info).expose_provenance() as u64,
            len: size_of::<DevInfo>() as u16,
            ..command_of(device)
        };
        // SAFETY: `info` lives until this returns.
        unsafe { self.run(code, &command) }
    }

    /// Run a command.
    ///
    /// # Safety
    ///
    /// Memory that `command` points to must live, and be left alone, until this returns.
    unsafe fn run(&mut self, code: Opcode, command: &CtrlCmd) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        unsafe { self.ring.command(self.control.as_fd(), code, command) };
        // Without a limit: the memory must live for as long as the driver may use it.
        self.result(None)
    }

    /// Wait for the result of the command that was sent last.
    fn result(&mut self, deadline: Option<Instant>) -> Result<(), Errno> {
        let mut happened = Vec::new();
        loop {
            self.ring.wait(LIMIT, &mut happened)?;
            for each in happened.drain(..) {
                if let Happened::Commanded(result) = each {
                    return outcome(result);
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Errno::TIME);
            }
        }
    }
}

/// Private flags of a device: the tag, the PID namespace of its server, and the process ID there.
fn flags_of(namespace: u32, process: u32) -> u64 {
    OURS | u64::from(namespace) << PID_BITS | u64::from(process)
}

/// Returns the server's process ID, if it is one of this namespace. Another container's process IDs
/// say nothing here: its server may be alive.
fn server_in(flags: u64, namespace: u32) -> Option<u32> {
    let process = (flags & ((1 << PID_BITS) - 1)) as u32;
    (flags == flags_of(namespace, process)).then_some(process)
}

/// Number of this PID namespace (namespaces(7)), 0 if procfs is missing.
fn own_namespace() -> u32 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino() as u32)
}

/// True if a process has ended, even if it was not reaped.
fn is_gone(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
        return true;
    };
    // The name in parentheses may contain any character (proc_pid_stat(5)).
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    state.starts_with(['Z', 'X'])
}

/// Converts the result of a command: a negative result is an error number.
pub fn outcome(result: i32) -> Result<(), Errno> {
    if result < 0 {
        return Err(Errno::from_raw_os_error(-result));
    }
    Ok(())
}

fn command_of(device: u32) -> CtrlCmd {
    CtrlCmd {
        dev_id: device,
        queue_id: p::NO_QUEUE,
        ..CtrlCmd::default()
    }
}

/// Returns the reason why disks cannot be served over ublk, if there is one.
pub fn unsupported_reason() -> Option<String> {
    Control::open(1).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_another_pid_namespace_is_not_ours_to_judge() {
        let (here, there) = (own_namespace(), own_namespace() ^ 1);
        let most = (1 << PID_BITS) - 1;
        assert_ne!(here, 0);
        assert_eq!(server_in(flags_of(here, most), here), Some(most));
        assert_eq!(server_in(flags_of(there, 7), here), None);
        // Another program's flags, and those of fscost 0.1, which named no namespace.
        assert_eq!(server_in(2, here), None);
        assert_eq!(server_in(0x6673_636f << 32 | 7, here), None);
    }

    #[test]
    fn a_process_is_gone_once_it_has_ended() {
        assert!(!is_gone(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !is_gone(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_gone(child.id()));
    }
}
