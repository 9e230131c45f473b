//! mount_setattr(2), which rustix does not wrap.

use nix::libc;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Read-only files; devices can still be written.
pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// No set-user-ID programs.
pub const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
/// No device nodes.
pub const NODEV: u64 = libc::MOUNT_ATTR_NODEV;
/// No programs.
pub const NOEXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

/// Subcommand that [`exchange_owner`] starts.
pub const HOLD: &str = "hold-namespace";

/// Entry point of that process: waits until its input ends.
pub fn hold() -> ExitCode {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    ExitCode::SUCCESS
}

/// Sets attributes of the mount on the folder `path` and of those below it.
pub fn set_recursively(path: &Path, attributes: u64) -> io::Result<()> {
    set_attributes(&open(path)?, attributes)
}

/// Sets attributes of the mount on the folder `path` alone.
pub fn set_own(path: &Path, attributes: u64) -> io::Result<()> {
    change(&open(path)?, 0, attributes, 0, None)
}

/// Clears attributes of the mount on the folder `path` alone.
pub fn clear(path: &Path, attributes: u64) -> io::Result<()> {
    change(&open(path)?, 0, 0, attributes, None)
}

/// Sets attributes of a mount and of those below it.
pub fn set_attributes(tree: &OwnedFd, attributes: u64) -> io::Result<()> {
    change(tree, libc::AT_RECURSIVE, attributes, 0, None)
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Swaps two owners on the file system of a detached mount: files of `owner` (user, group) appear
/// to belong to `user`, and vice versa.
pub fn exchange_owner(tree: &OwnedFd, owner: (u32, u32), user: (u32, u32)) -> io::Result<()> {
    let namespace = namespace(&exchange(owner.0, user.0), &exchange(owner.1, user.1))?;
    change(tree, 0, libc::MOUNT_ATTR_IDMAP, 0, Some(&namespace))
}

fn change(
    mount: &OwnedFd,
    flags: i32,
    set: u64,
    clear: u64,
    namespace: Option<&OwnedFd>,
) -> io::Result<()> {
    let mut asked = libc::mount_attr {
        attr_set: set,
        attr_clr: clear,
        propagation: 0,
        userns_fd: namespace.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    // SAFETY: the path is an empty C string, and the structure outlives the call and has the size
    // that is passed.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            (libc::AT_EMPTY_PATH | flags) as libc::c_uint,
            &raw mut asked,
            size_of::<libc::mount_attr>(),
        )
    };
    if returned == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Lines of uid_map (user_namespaces(7)) that swap two numbers and map every other to itself.
fn exchange(one: u32, other: u32) -> String {
    let (low, high) = (one.min(other), one.max(other));
    let mut lines = Vec::new();
    let mut same = |from: u32, to: u32| {
        if from < to {
            lines.push(format!("{from} {from} {}", to - from));
        }
    };
    same(0, low);
    same(low.saturating_add(1), high);
    same(high.saturating_add(1), u32::MAX);
    if low == high {
        lines.push(format!("{low} {low} 1"));
    } else {
        lines.push(format!("{low} {high} 1\n{high} {low} 1"));
    }
    lines.join("\n") + "\n"
}

/// Creates a user namespace with these maps. It lives as long as the descriptor; the process that
/// started it has ended.
fn namespace(users: &str, groups: &str) -> io::Result<OwnedFd> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(HOLD)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    // SAFETY: unshare is a system call; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(|| {
            rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWUSER)
                .map_err(<Errno as Into<io::Error>>::into)
        });
    }
    let mut holder = command.spawn()?;
    let folder = format!("/proc/{}", holder.id());
    let made = fs::write(format!("{folder}/uid_map"), users)
        .and_then(|()| fs::write(format!("{folder}/gid_map"), groups))
        .and_then(|()| File::open(format!("{folder}/ns/user")));
    drop(holder.stdin.take());
    holder.wait()?;
    Ok(made?.into())
}
