//! Confinement of a program that runs a virtual machine: another user, and a root that hides most
//! of the host.
//!
//! The program's root is a read-only copy of the host's mounts, in a private mount namespace. In
//! this copy, `/proc`, `/sys`, `/dev`, `/run`, `/root` and `/home` are empty, and so is every other
//! mount of a kernel interface. The guest reads a second such copy at [`ROOT_SHARE`], with the
//! folders in [`Confinement::shown`]. Other folders for the guest are at `/run/fscost/NAME`.

use crate::error::{CellError, Context, Kind, Result};
use crate::mount::unescaped;
use crate::mount_attributes::{self, NODEV, NOEXEC, NOSUID, READ_ONLY, set_attributes};
use rustix::fs::{CWD, Gid, Uid};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The host's root as the guest sees it.
pub const ROOT_SHARE: &str = "/run/fscost/root";
const SHARES: &str = "/run/fscost";
const HIDDEN: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/root", "/home"];
/// Device nodes that the program itself opens.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/urandom"];
/// Types of file systems that are kernel interfaces. They may be mounted anywhere: containers and
/// chroots have their own.
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

/// The confinement of a program.
#[derive(Debug, Default)]
pub struct Confinement {
    /// User and group that the program changes to.
    pub user: Option<(u32, u32)>,
    /// True if the program gets a private root, which the other restrictions require.
    pub is_hidden: bool,
    /// Folders that the guest sees at their own paths although their surroundings are hidden.
    pub shown: Vec<PathBuf>,
    /// Folders that the guest sees as separate shares, by name.
    pub shares: Vec<(String, PathBuf)>,
    /// Device node that the program opens in addition to [`DEVICES`]. The program joins its group.
    pub device: Option<PathBuf>,
}

impl Confinement {
    /// Confines this process, which must have only one thread.
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
        // Maps the user to itself, and no other user (user_namespaces(7)).
        for (file, line) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{uid} {uid} 1", uid = uid.as_raw())),
            ("gid_map", format!("{gid} {gid} 1", gid = gid.as_raw())),
        ] {
            fs::write(format!("/proc/self/{file}"), line)
                .internal(|| format!("write /proc/self/{file}"))?;
        }
        self.build()
    }

    /// Gives up root and with it every capability.
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
            .internal(|| format!("become user {}", uid.as_raw()))
    }

    /// Builds the new root and enters it.
    fn build(&self) -> Result<()> {
        let interfaces = interfaces()?;
        let ours = PathBuf::from(format!("/proc/{}/fd", std::process::id()));
        // Opens all sources before anything hides them.
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
            set_attributes(tree, READ_ONLY | NOSUID).internal(|| "make the new root read-only")?;
        }
        enter_root(&root)?;
        hide(Path::new("/"), &interfaces, &[])?;
        for (path, node) in &devices {
            fs::File::create(path).internal(|| format!("make {}", path.display()))?;
            attach(node, path)?;
        }
        // QEMU reads extended attributes and inherited files through /proc/self/fd. No other
        // process is visible.
        attach_folder(&descriptors, Path::new("/proc/self/fd"))?;
        let share = Path::new(ROOT_SHARE);
        attach_folder(&guest_root, share)?;
        hide(share, &interfaces, &self.shown)?;
        for (folder, tree) in &shown {
            attach_folder(tree, &below(share, folder))?;
        }
        for interface in interfaces
            .iter()
            .filter(|path| self.shown.iter().any(|folder| path.starts_with(folder)))
        {
            cover(&below(share, interface))?;
        }
        for (name, tree) in &shares {
            attach_folder(tree, &Path::new(SHARES).join(name))?;
        }
        seal()
    }

    /// Returns a copy of the mount of `folder` in which the program's user owns what the folder's
    /// owner owns.
    fn readable(&self, folder: &Path) -> Result<OwnedFd> {
        let tree = copy(folder)?;
        let owner = fs::metadata(folder).internal(|| format!("stat {}", folder.display()))?;
        if let Some(user) = self.user
            && user.0 != owner.uid()
        {
            // Not every file system supports this (mount_setattr(2), ID-mapped mounts). On others,
            // the guest sees only what any user may read.
            let _ = mount_attributes::exchange_owner(&tree, (owner.uid(), owner.gid()), user);
        }
        set_attributes(&tree, READ_ONLY | NOSUID | NODEV | NOEXEC)
            .internal(|| format!("make {} read-only", folder.display()))?;
        Ok(tree)
    }
}

/// True if this process may mount in the host's user namespace.
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
    unsafe { unshare_unsafe(flags) }.internal(|| "leave the host's mounts")?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .internal(|| "make every mount private")
}

/// Returns a detached copy of a mount and of those below it. The copy is recursive, because a user
/// namespace may not uncover what mounts hide.
fn copy(path: &Path) -> Result<OwnedFd> {
    open_tree(
        CWD,
        path,
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE,
    )
    .internal(|| format!("copy the mount of {}", path.display()))
}

fn attach(tree: &OwnedFd, place: &Path) -> Result<()> {
    move_mount(
        tree,
        c"",
        CWD,
        place,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .internal(|| format!("attach {}", place.display()))
}

/// Makes `root` this process's root, and detaches the old one (pivot_root(2), "pivot_root(".",
/// ".")").
fn enter_root(root: &OwnedFd) -> Result<()> {
    attach(root, Path::new("/proc"))?;
    rustix::process::chdir("/proc")
        .and_then(|()| rustix::process::pivot_root(".", "."))
        .and_then(|()| unmount(".", UnmountFlags::DETACH))
        .and_then(|()| rustix::process::chdir("/"))
        .internal(|| "enter the new root")
}

/// Covers everything below `root` that a guest must not see. Interfaces in a `shown` folder are
/// covered later.
fn hide(root: &Path, interfaces: &[PathBuf], shown: &[PathBuf]) -> Result<()> {
    for folder in HIDDEN {
        let place = below(root, Path::new(folder));
        // Symbolic links are skipped: their targets are handled at their own paths.
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
        .internal(what);
    }
    attach(&copy(Path::new("/dev/null"))?, place)
}

/// Makes the folders of this module read-only, once everything in them is in place.
fn seal() -> Result<()> {
    let roots = ["/", ROOT_SHARE].map(Path::new);
    let places = |root| {
        HIDDEN
            .iter()
            .map(move |folder| below(root, Path::new(folder)))
    };
    for place in roots.into_iter().flat_map(places) {
        if fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir()) {
            mount_attributes::set_own(&place, READ_ONLY)
                .internal(|| format!("seal {}", place.display()))?;
        }
    }
    Ok(())
}

/// Returns the mount points of kernel interfaces (proc_pid_mountinfo(5)), outer ones first.
fn interfaces() -> Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo").internal(|| "read the mounts")?;
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

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Attaches a copy of a folder's mount at `place`, which is made if necessary.
fn attach_folder(tree: &OwnedFd, place: &Path) -> Result<()> {
    fs::create_dir_all(place).internal(|| format!("make {}", place.display()))?;
    attach(tree, place)
}

/// Parses the options of the command line up to `--`; returns the remaining words too.
pub fn parse(words: &[String]) -> Result<(Confinement, &[String])> {
    let mut asked = Confinement::default();
    let mut words = words.iter();
    while let Some(option) = words.next() {
        let mut value = || {
            let missing = || CellError::new(Kind::Plan, format!("{option} needs a value"));
            words.next().ok_or_else(missing)
        };
        match option.as_str() {
            "--" => return Ok((asked, words.as_slice())),
            "--hide" => asked.is_hidden = true,
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
    }
    Err(CellError::new(Kind::Plan, "a command is expected after --"))
}

fn parse_user(text: &str) -> Result<(u32, u32)> {
    text.split_once(':')
        .and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)))
        .ok_or_else(|| CellError::new(Kind::Plan, "--user is UID:GID"))
}
