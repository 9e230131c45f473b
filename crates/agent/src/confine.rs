//! Confines a program that runs a virtual machine: another user, and a root in which most of the
//! host is hidden.
//!
//! The program's root is a read-only copy of the host's mounts, in a mount namespace of its own.
//! `/proc`, `/sys`, `/dev`, `/run`, `/root`
//! and `/home` are empty in it, and so is every mount of a kernel interface elsewhere. What the
//! guest reads is a second such copy at
//! [`ROOT_SHARE`], with the folders in [`Confinement::shown`]; other folders for the guest are at
//! `/run/fscost/NAME`.

use crate::error::{CellError, Context, Kind, Result};
use crate::mount_attributes::{self, set_attributes};
use rustix::fs::{CWD, Gid, Mode, OFlags, Uid};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The host's root as the guest sees it.
pub const ROOT_SHARE: &str = "/run/fscost/root";
const SHARES: &str = "/run/fscost";
const HIDDEN: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/root", "/home"];
/// Device nodes that the program itself opens.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/urandom"];
/// Interfaces of the kernel, which may be mounted anywhere (containers and chroots have their own).
const INTERFACES: [&str; 22] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// How a program is confined.
#[derive(Debug, Default)]
pub struct Confinement {
    /// The user and group that it becomes.
    pub user: Option<(u32, u32)>,
    /// Whether it gets a root of its own; the rest needs that.
    pub is_hidden: bool,
    /// Folders that the guest sees at their own place although what is around them is hidden.
    pub shown: Vec<PathBuf>,
    /// Folders that the guest sees as shares of their own, by name.
    pub shares: Vec<(String, PathBuf)>,
    /// A device node that the program opens, besides [`DEVICES`]. The program joins its group.
    pub device: Option<PathBuf>,
}

impl Confinement {
    /// Confines this process. It must have one thread.
    pub fn enter(&self) -> Result<()> {
        if !self.is_hidden {
            return self.become_user();
        }
        if may_mount() {
            leave_mounts(UnshareFlags::NEWNS)?;
            self.build()?;
            return self.become_user();
        }
        self.become_user()?;
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        leave_mounts(UnshareFlags::NEWNS | UnshareFlags::NEWUSER)?;
        // The same user as outside, and no other (user_namespaces(7)).
        for (file, line) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{uid} {uid} 1", uid = uid.as_raw())),
            ("gid_map", format!("{gid} {gid} 1", gid = gid.as_raw())),
        ] {
            fs::write(format!("/proc/self/{file}"), line)
                .context(Kind::Internal, || format!("write /proc/self/{file}"))?;
        }
        self.build()
    }

    /// Gives up root, and with it every capability.
    fn become_user(&self) -> Result<()> {
        let Some((uid, gid)) = self.user else {
            return Ok(());
        };
        let group = self
            .device
            .as_deref()
            .and_then(|device| fs::metadata(device).ok());
        let groups: Vec<Gid> = group
            .iter()
            .map(|node| Gid::from_raw(node.gid()))
            .filter(|group| !group.is_root())
            .collect();
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        rustix::thread::set_thread_groups(&groups)
            .and_then(|()| rustix::thread::set_thread_res_gid(gid, gid, gid))
            .and_then(|()| rustix::thread::set_thread_res_uid(uid, uid, uid))
            .context(Kind::Internal, || format!("become user {}", uid.as_raw()))
    }

    /// Makes the new root and goes there.
    fn build(&self) -> Result<()> {
        let interfaces = interfaces()?;
        let ours = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
        // All sources before anything hides them.
        let (root, guest_root) = (copy(Path::new("/"))?, copy(Path::new("/"))?);
        let descriptors = copy(&ours)?;
        let devices = DEVICES
            .iter()
            .map(|path| Path::new(*path))
            .chain(self.device.as_deref())
            .map(|path| Ok((path, copy(path)?)))
            .collect::<Result<Vec<_>>>()?;
        let shown = self
            .shown
            .iter()
            .map(|folder| Ok((folder, self.readable(folder)?)))
            .collect::<Result<Vec<_>>>()?;
        let shares = self
            .shares
            .iter()
            .map(|(name, folder)| Ok((name, self.readable(folder)?)))
            .collect::<Result<Vec<_>>>()?;
        for tree in [&root, &guest_root] {
            set_attributes(tree, mount_attributes::READ_ONLY | mount_attributes::NOSUID)
                .context(Kind::Internal, || "make the new root read-only")?;
        }
        enter_root(&root)?;
        hide(Path::new("/"), &interfaces, &[])?;
        for (path, node) in &devices {
            fs::File::create(path)
                .context(Kind::Internal, || format!("make {}", path.display()))?;
            attach(node, path)?;
        }
        // QEMU reads extended attributes, and the files that it inherits, through it; no other
        // process is seen.
        make_dir(Path::new("/proc/self/fd"))?;
        attach(&descriptors, Path::new("/proc/self/fd"))?;
        make_dir(Path::new(ROOT_SHARE))?;
        attach(&guest_root, Path::new(ROOT_SHARE))?;
        hide(Path::new(ROOT_SHARE), &interfaces, &self.shown)?;
        for (folder, tree) in &shown {
            let place = below(Path::new(ROOT_SHARE), folder);
            make_dir(&place)?;
            attach(tree, &place)?;
        }
        for interface in interfaces
            .iter()
            .filter(|path| self.shown.iter().any(|folder| path.starts_with(folder)))
        {
            cover(&below(Path::new(ROOT_SHARE), interface))?;
        }
        for (name, tree) in &shares {
            let place = Path::new(SHARES).join(name);
            make_dir(&place)?;
            attach(tree, &place)?;
        }
        seal()
    }

    /// A copy of the mount of `folder` in which the owner of the folder is the user that the
    /// program becomes.
    fn readable(&self, folder: &Path) -> Result<OwnedFd> {
        let tree = copy(folder)?;
        let owner = fs::metadata(folder)
            .context(Kind::Internal, || format!("look at {}", folder.display()))?;
        if let Some(user) = self.user
            && user.0 != owner.uid()
        {
            // Not every file system can (mount_setattr(2), ID-mapped mounts): then the folder shows
            // what anybody may read.
            let _ = mount_attributes::exchange_owner(&tree, (owner.uid(), owner.gid()), user);
        }
        set_attributes(
            &tree,
            mount_attributes::READ_ONLY
                | mount_attributes::NOSUID
                | mount_attributes::NODEV
                | mount_attributes::NOEXEC,
        )
        .context(Kind::Internal, || {
            format!("make {} read-only", folder.display())
        })?;
        Ok(tree)
    }
}

/// Whether this process may mount in the host's user namespace.
fn may_mount() -> bool {
    const SYS_ADMIN: u64 = 1 << 21; // include/uapi/linux/capability.h
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & SYS_ADMIN != 0)
}

fn leave_mounts(flags: UnshareFlags) -> Result<()> {
    // SAFETY: neither flag touches file descriptors, and this process has one thread.
    unsafe { unshare_unsafe(flags) }.context(Kind::Internal, || "leave the host's mounts")?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .context(Kind::Internal, || "make every mount private")
}

/// A detached copy of a mount and those below it. Recursive, because a user namespace may not
/// uncover what mounts hide.
fn copy(path: &Path) -> Result<OwnedFd> {
    open_tree(
        CWD,
        path,
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE,
    )
    .context(Kind::Internal, || {
        format!("copy the mount of {}", path.display())
    })
}

fn attach(tree: &OwnedFd, place: &Path) -> Result<()> {
    move_mount(
        tree,
        c"",
        CWD,
        place,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .context(Kind::Internal, || format!("attach {}", place.display()))
}

/// Makes `root` this process's root, and takes the old one away (pivot_root(2), "pivot_root(".",
/// ".")").
fn enter_root(root: &OwnedFd) -> Result<()> {
    attach(root, Path::new("/proc"))?;
    rustix::process::chdir("/proc")
        .and_then(|()| rustix::process::pivot_root(".", "."))
        .and_then(|()| unmount(".", UnmountFlags::DETACH))
        .and_then(|()| rustix::process::chdir("/"))
        .context(Kind::Internal, || "enter the new root")
}

/// Covers what a guest must not see below `root`; interfaces in a folder that is `shown` are
/// covered later.
fn hide(root: &Path, interfaces: &[PathBuf], shown: &[PathBuf]) -> Result<()> {
    for folder in HIDDEN {
        let place = below(root, Path::new(folder));
        // A link leads to a folder that is looked at by itself.
        if fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir()) {
            cover(&place)?;
        }
    }
    interfaces
        .iter()
        .filter(|path| !HIDDEN.iter().any(|folder| path.starts_with(folder)))
        .filter(|path| !shown.iter().any(|folder| path.starts_with(folder)))
        .try_for_each(|path| cover(&below(root, path)))
}

fn cover(place: &Path) -> Result<()> {
    let what = || format!("hide {}", place.display());
    let Ok(found) = fs::symlink_metadata(place) else {
        return Ok(());
    };
    if found.is_dir() {
        return mount(
            "fscost",
            place,
            "tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
            Some(c"mode=0755,size=1m"),
        )
        .context(Kind::Internal, what);
    }
    attach(&copy(Path::new("/dev/null"))?, place)
}

/// Makes the folders of this module read-only, now that everything in them is in its place.
fn seal() -> Result<()> {
    let places = HIDDEN.iter().map(|folder| PathBuf::from(*folder)).chain(
        HIDDEN
            .iter()
            .map(|folder| below(Path::new(ROOT_SHARE), Path::new(*folder))),
    );
    for place in places {
        if fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir()) {
            let folder = rustix::fs::open(
                &place,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .context(Kind::Internal, || format!("open {}", place.display()))?;
            mount_attributes::set_own(folder.as_fd(), mount_attributes::READ_ONLY)
                .context(Kind::Internal, || format!("seal {}", place.display()))?;
        }
    }
    Ok(())
}

/// Mount points of the kernel's interfaces (proc_pid_mountinfo(5)), outer ones first.
fn interfaces() -> Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo").context(Kind::Internal, || "read the mounts")?;
    let mut found: Vec<PathBuf> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let dash = words.iter().position(|word| *word == b"-")?;
            let kind = std::str::from_utf8(words.get(dash + 1)?).ok()?;
            INTERFACES
                .contains(&kind)
                .then(|| unescaped(words.get(4).copied().unwrap_or_default()))
        })
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// A path of mountinfo: space, tab, newline and backslash are octal there.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(path))
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).context(Kind::Internal, || format!("make {}", path.display()))
}

/// What the words of the command line ask for, up to `--`; and the words after that.
pub fn parse(words: &[String]) -> Result<(Confinement, &[String])> {
    let mut asked = Confinement::default();
    let mut rest = words;
    while let [option, after @ ..] = rest {
        let value = || {
            after
                .first()
                .map(String::as_str)
                .ok_or_else(|| CellError::new(Kind::Plan, format!("{option} needs a value")))
        };
        match option.as_str() {
            "--" => return Ok((asked, after)),
            "--hide" => {
                asked.is_hidden = true;
                rest = after;
                continue;
            }
            "--user" => asked.user = Some(parse_user(value()?)?),
            "--show" => asked.shown.push(value()?.into()),
            "--device" => asked.device = Some(value()?.into()),
            "--share" => {
                let (name, folder) = value()?
                    .split_once('=')
                    .filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
                    .ok_or_else(|| CellError::new(Kind::Plan, "--share is NAME=FOLDER"))?;
                asked.shares.push((name.to_owned(), folder.into()));
            }
            _ => break,
        }
        rest = &after[1..];
    }
    Err(CellError::new(Kind::Plan, "a command is expected after --"))
}

fn parse_user(text: &str) -> Result<(u32, u32)> {
    text.split_once(':')
        .and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)))
        .ok_or_else(|| CellError::new(Kind::Plan, "--user is UID:GID"))
}
