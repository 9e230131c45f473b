//! The private namespaces of a cell. Mounts in them are invisible outside, and all of them end with
//! `init`.
//!
//! The host's tree is read-only in the cell. On top of it are the cell's own directories, private
//! layers over the places that programs write to, and the folders that the plan lists as writable.

use crate::error::{CellError, Context, Result};
use crate::mount_attributes;
use rustix::fs::{CWD, Mode, StatVfsMountFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const EMPTY: &CStr = c"";
/// Flags of every mount that a workload may write to.
const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);
/// Flags of a detached copy of a mount.
const COPY: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC);

/// Directories that show the host's content, while writes to them stay in the cell. Nothing listens
/// on a socket seen through an overlay, so a workload cannot use a daemon of the host.
const OVERLAID: [&str; 3] = ["/tmp", "/var/tmp", "/run"];
/// Shared memory and semaphores (shm_overview(7)): the workload must not reach those of the host.
const SHARED_MEMORY: &str = "/dev/shm";
/// Settings of the whole machine, most of which have no namespace.
const READ_ONLY: [&str; 4] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"];
/// Directories that are read-only for the steps only: `mdadm --create` names its array in the first
/// and creates nodes in the second.
const SETUP: [&str; 2] = ["/sys", "/dev"];
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The directories of a cell.
#[derive(Debug, Clone)]
pub struct Directories {
    /// Mount point of the file system under test.
    pub fs: PathBuf,
    /// Private tmpfs.
    pub scratch: PathBuf,
}

/// Leaves the host's namespaces; later mounts do not propagate back to the host.
pub fn leave_host(has_network: bool) -> Result<()> {
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if !has_network {
        flags |= UnshareFlags::NEWNET;
    }
    // SAFETY: these flags do not touch file descriptors, and this process has one thread.
    unsafe { unshare_unsafe(flags) }.internal(|| "unshare the cell's namespaces")?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .internal(|| "make every mount private")
}

/// A detached copy of the mounts on `path`, taken before anything hides them or makes them
/// read-only.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    tree: OwnedFd,
}

/// Parts of the host's tree that stay unchanged.
#[derive(Debug)]
pub struct Kept {
    input: Option<OwnedFd>,
    writable: Vec<Tree>,
}

impl Kept {
    /// Opens `input` and `writable`.
    pub fn open(input: Option<&Path>, writable: &[PathBuf]) -> Result<Self> {
        let open = |path: &Path, flags| {
            open_tree(CWD, path, flags).internal(|| format!("open {}", path.display()))
        };
        let writable = writable.iter().map(|path| {
            let tree = open(path, COPY | OpenTreeFlags::AT_RECURSIVE)?;
            Ok(Tree {
                path: path.clone(),
                tree,
            })
        });
        Ok(Self {
            input: input.map(|path| open(path, COPY)).transpose()?,
            writable: writable.collect::<Result<_>>()?,
        })
    }
}

/// Makes the host's tree read-only, and mounts the cell's own directories.
pub fn build(base: &Path, kept: Kept) -> Result<Directories> {
    let mut setup = SETUP.map(Path::new).to_vec();
    setup.retain(|path| is_writable(path));
    mount_attributes::set_recursively(Path::new("/"), mount_attributes::READ_ONLY)
        .internal(|| "make the host's files read-only (mount_setattr, Linux 5.12)")?;
    for path in setup {
        mount_attributes::clear(path, mount_attributes::READ_ONLY)
            .internal(|| format!("keep {} writable", path.display()))?;
    }
    mount_tmpfs(base, c"mode=0755")?;
    let make = |name: &str, mode: u32| {
        let path = base.join(name);
        make_directory(&path, mode)?;
        Ok(path)
    };
    let fs = make("fs", 0o755)?;
    // World-writable like /tmp: a workload may drop root.
    let scratch = make("scratch", 0o1777)?;
    if let Some(tree) = kept.input {
        let target = make("input", 0o755)?;
        attach(&tree, &target)?;
        mount_remount(
            &target,
            MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOATIME,
            EMPTY,
        )
        .internal(|| "make the input read-only")?;
    }
    cover_host(base, &make("private", 0o700)?)?;
    for Tree { path, tree } in &kept.writable {
        attach(tree, path)?;
    }
    mount("proc", "/proc", "proc", PLAIN | MountFlags::NOEXEC, None).internal(|| "mount /proc")?;
    Ok(Directories { fs, scratch })
}

/// Mounts private layers over the places that programs write to. `layers` receives the writes.
fn cover_host(base: &Path, layers: &Path) -> Result<()> {
    // If a layer covers `base` itself, `base` is mounted on top again.
    let own = open_tree(CWD, base, COPY | OpenTreeFlags::AT_RECURSIVE)
        .internal(|| "open the cell's own directories")?;
    let is_there = |path: &Path| path.is_dir() && !path.is_symlink();
    let mut covered = Vec::new();
    for path in OVERLAID.map(Path::new) {
        if is_there(path) {
            overlay(path, layers)?;
            covered.push(path);
        }
    }
    let shared_memory = Path::new(SHARED_MEMORY);
    if is_there(shared_memory) {
        private_memory(shared_memory)?;
        covered.push(shared_memory);
    }
    if covered.iter().any(|path| base.starts_with(path)) {
        std::fs::create_dir_all(base).internal(|| format!("make {}", base.display()))?;
        attach(&own, base)?;
    }
    Ok(())
}

fn overlay(path: &Path, layers: &Path) -> Result<()> {
    let name = path.to_string_lossy().replace('/', "_");
    let layer = |kind: &str| {
        let directory = layers.join(format!("{name}{kind}"));
        make_directory(&directory, 0o1777)?;
        Ok::<_, CellError>(directory.display().to_string())
    };
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        path.display(),
        layer("_upper")?,
        layer("_work")?
    );
    let options = CString::new(options).internal(|| "build the options of an overlay")?;
    mount("fscost", path, "overlay", PLAIN, Some(options.as_c_str()))
        // The kernel has no overlay, or none over this file system: the directory is empty then.
        .or_else(|_| private_memory(path))
}

fn private_memory(path: &Path) -> Result<()> {
    mount_tmpfs(path, c"mode=1777")
}

fn mount_tmpfs(path: &Path, mode: &CStr) -> Result<()> {
    mount("fscost", path, "tmpfs", PLAIN, Some(mode))
        .internal(|| format!("mount a tmpfs on {}", path.display()))
}

fn attach(tree: &OwnedFd, target: &Path) -> Result<()> {
    move_mount(
        tree,
        EMPTY,
        CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
    .internal(|| format!("mount {}", target.display()))
}

fn make_directory(path: &Path, mode: u32) -> Result<()> {
    // mkdir(2) applies the umask; chmod(2) does not.
    rustix::fs::mkdir(path, Mode::RWXU)
        .and_then(|()| rustix::fs::chmod(path, Mode::from_raw_mode(mode)))
        .internal(|| format!("make {}", path.display()))
}

/// Makes the directories that only mkfs and mount need read-only, before the first step.
pub fn protect_setup() -> Result<()> {
    for path in SETUP.map(Path::new) {
        // Only this mount, so that /dev/shm stays writable.
        mount_attributes::set_own(path, mount_attributes::READ_ONLY)
            .internal(|| format!("make {} read-only", path.display()))?;
    }
    Ok(())
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Makes the machine's settings in `/proc` read-only; returns the file that `init` itself writes
/// to.
pub fn protect_settings() -> Result<File> {
    let drop_caches = File::options().write(true).open(DROP_CACHES);
    let drop_caches = drop_caches.internal(|| format!("open {DROP_CACHES}"))?;
    for path in READ_ONLY
        .map(Path::new)
        .into_iter()
        .filter(|path| path.exists())
    {
        mount_bind(path, path)
            .and_then(|()| mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, EMPTY))
            .internal(|| format!("make {} read-only", path.display()))?;
    }
    Ok(drop_caches)
}
