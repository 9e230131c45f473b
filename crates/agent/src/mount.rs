//! mount(2) as mount(8) would call it, unmounting, and the kernel's view of mounts.

use crate::error::{CellError, Context, Kind, Result};
use crate::plan::MountPlan;
use rustix::mount::{MountFlags, UnmountFlags};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// MS_I_VERSION (include/uapi/linux/mount.h), which rustix does not name.
const I_VERSION: MountFlags = MountFlags::from_bits_retain(1 << 23);

/// Time for which an unmount is retried while the kernel closes files of dead processes.
const BUSY_LIMIT: Duration = Duration::from_secs(5);
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Words of mount(8) that are flags of mount(2): the word, the flag, and whether it sets or clears
/// the flag (util-linux `libmount/src/optmap.c`, `linux_flags_map`).
const FLAG_WORDS: &[(&str, MountFlags, bool)] = &[
    ("ro", MountFlags::RDONLY, true),
    ("rw", MountFlags::RDONLY, false),
    ("exec", MountFlags::NOEXEC, false),
    ("noexec", MountFlags::NOEXEC, true),
    ("suid", MountFlags::NOSUID, false),
    ("nosuid", MountFlags::NOSUID, true),
    ("dev", MountFlags::NODEV, false),
    ("nodev", MountFlags::NODEV, true),
    ("sync", MountFlags::SYNCHRONOUS, true),
    ("async", MountFlags::SYNCHRONOUS, false),
    ("dirsync", MountFlags::DIRSYNC, true),
    ("silent", MountFlags::SILENT, true),
    ("loud", MountFlags::SILENT, false),
    ("mand", MountFlags::PERMIT_MANDATORY_FILE_LOCKING, true),
    ("nomand", MountFlags::PERMIT_MANDATORY_FILE_LOCKING, false),
    ("iversion", I_VERSION, true),
    ("noiversion", I_VERSION, false),
    // `atime` is not a mode: it clears noatime, which leaves the kernel's default, relatime.
    ("atime", MountFlags::NOATIME, false),
    ("noatime", MountFlags::NOATIME, true),
    ("diratime", MountFlags::NODIRATIME, false),
    ("nodiratime", MountFlags::NODIRATIME, true),
    ("relatime", MountFlags::RELATIME, true),
    ("norelatime", MountFlags::RELATIME, false),
    // The kernel lets strictatime clear noatime and relatime, in any order (fs/namespace.c,
    // `path_mount`).
    ("strictatime", MountFlags::STRICTATIME, true),
    ("nostrictatime", MountFlags::STRICTATIME, false),
    ("lazytime", MountFlags::LAZYTIME, true),
    ("symfollow", MountFlags::NOSYMFOLLOW, false),
    ("nosymfollow", MountFlags::NOSYMFOLLOW, true),
];

/// Words that only mount(8) and fstab(5) understand. mount(8) does not pass them to the kernel.
const USER_SPACE_WORDS: &[&str] = &[
    "defaults", "auto", "noauto", "nofail", "nouser", "nogroup", "noowner", "_netdev",
];

/// Splits mount options into flags of mount(2) and the data string, in the order given.
pub fn split_options(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data: Vec<&str> = Vec::new();
    for word in words(options) {
        if let Some((_, flag, set)) = FLAG_WORDS.iter().find(|(name, ..)| *name == word) {
            flags.set(*flag, *set);
        } else if word == "nolazytime" {
            // Clears the flag and is also passed to the file system: f2fs sets lazytime by default
            // and must see the word. The kernel accepts it for every file system that uses
            // fs_context (fs/fs_context.c, `common_clear_sb_flag`).
            flags.remove(MountFlags::LAZYTIME);
            data.push(word);
        } else if !is_user_space(word) {
            data.push(word);
        }
    }
    (flags, data.join(","))
}

fn is_user_space(word: &str) -> bool {
    USER_SPACE_WORDS.contains(&word)
        || ["x-", "X-", "comment="]
            .iter()
            .any(|prefix| word.starts_with(prefix))
}

/// Splits a comma-separated list; commas inside double quotes do not separate (SELinux contexts).
fn words(options: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    options
        .split(move |letter| {
            quoted ^= letter == '"';
            letter == ',' && !quoted
        })
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

/// Mounts according to the plan, in which placeholders are already filled.
pub fn mount(plan: &MountPlan, dir: &Path) -> Result<()> {
    let (flags, data) = split_options(&plan.options);
    let data =
        std::ffi::CString::new(data).context(Kind::Mount, || "mount options contain a NUL byte")?;
    let mounted = rustix::mount::mount(
        plan.device.as_str(),
        dir,
        plan.fs_type.as_str(),
        flags,
        Some(data.as_c_str()),
    );
    mounted.context(Kind::Mount, || {
        let refused = option_errors(&plan.fs_type, &data.to_string_lossy());
        let refused = refused.map_or_else(String::new, |words| format!(" ({words})"));
        format!(
            "mount -t {} -o '{}' {}{refused}",
            plan.fs_type, plan.options, plan.device
        )
    })
}

/// Returns the kernel's error messages about these options. The kernel reports them only on the
/// descriptor of a file system context (fs/fs_context.c, `logfc`). mount(2) writes the same
/// messages to the log without a device, where they may be about another process's mount.
fn option_errors(fs_type: &str, data: &str) -> Option<String> {
    let context =
        rustix::mount::fsopen(fs_type, rustix::mount::FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    for word in words(data) {
        let set = match word.split_once('=') {
            Some((key, value)) => rustix::mount::fsconfig_set_string(&context, key, value),
            None => rustix::mount::fsconfig_set_flag(&context, word),
        };
        if set.is_err() {
            break;
        }
    }
    let mut found = Vec::new();
    let mut message = [0; 1024];
    // Each read returns one message, such as `e ext4: Unknown parameter`; ENODATA after the last.
    while let Ok(length) = rustix::io::read(&context, &mut message) {
        if length == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&message[..length]);
        found.extend(text.strip_prefix("e ").map(|text| text.trim().to_owned()));
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// Unmounts `dir`.
pub fn unmount(dir: &Path) -> Result<()> {
    let deadline = Instant::now() + BUSY_LIMIT;
    loop {
        match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::BUSY) if Instant::now() < deadline => {
                std::thread::sleep(BUSY_PAUSE)
            }
            Err(error) => {
                return Err(error).context(Kind::Unmount, || {
                    format!("umount {}{}", dir.display(), holders(dir))
                });
            }
        }
    }
}

/// Waits until the file system that was mounted on `dir` has released its block devices.
///
/// A mount point may be gone while the file system lives on, in a bind mount made by the workload
/// or in files that the kernel is still closing. Only when a device can be opened exclusively is it
/// certain that nothing will be written any more.
pub fn until_released<'a>(
    dir: &Path,
    devices: impl IntoIterator<Item = &'a Path> + Clone,
) -> Result<()> {
    let deadline = Instant::now() + BUSY_LIMIT;
    loop {
        match devices.clone().into_iter().find(|device| is_held(device)) {
            None => return Ok(()),
            Some(_) if Instant::now() < deadline => std::thread::sleep(BUSY_PAUSE),
            Some(device) => {
                let message = format!(
                    "{} is unmounted, but {} is still in use: did the workload mount it a second \
                    time, or make a bind mount?",
                    dir.display(),
                    device.display()
                );
                return Err(CellError::new(Kind::Unmount, message));
            }
        }
    }
}

/// True if a file system (or anything else) has claimed the block device.
fn is_held(device: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    matches!(
        rustix::fs::open(device, flags, Mode::empty()),
        Err(rustix::io::Errno::BUSY)
    )
}

/// Lists processes and mounts that keep `dir` busy, as far as they are visible.
fn holders(dir: &Path) -> String {
    let mut found = Vec::new();
    for (pid, name) in crate::reap::processes() {
        let links = ["cwd", "root", "exe"].map(|link| format!("/proc/{pid}/{link}"));
        let files = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        let all = links
            .into_iter()
            .map(Into::into)
            .chain(files.map(|entry| entry.path()));
        if all
            .filter_map(|link| std::fs::read_link(link).ok())
            .any(|target| target.starts_with(dir))
        {
            found.push(format!("process {name} ({pid})"));
        }
    }
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = table
        .lines()
        .filter_map(MountInfo::parse)
        .map(|(point, _)| point);
    found.extend(
        mounts
            .filter(|point| point != dir && point.starts_with(dir))
            .map(|point| format!("mount {}", point.display())),
    );
    if found.is_empty() {
        String::new()
    } else {
        format!(" (held by {})", found.join(", "))
    }
}

/// A mount, as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MountInfo {
    /// Whole line of `/proc/self/mountinfo`.
    pub mountinfo: String,
    /// Per-mount options.
    pub options: String,
    /// Per-superblock options.
    pub super_options: String,
    /// File system type.
    #[serde(rename = "type")]
    pub fs_type: String,
}

impl MountInfo {
    /// Returns the mount on `dir`; the topmost if there are several.
    pub fn of(dir: &Path) -> Result<Self> {
        let table = std::fs::read_to_string("/proc/self/mountinfo")
            .context(Kind::Mount, || "read /proc/self/mountinfo")?;
        let found = table
            .lines()
            .filter_map(Self::parse)
            .rfind(|(point, _)| point == dir);
        found
            .map(|(_, info)| info)
            .ok_or_else(|| CellError::new(Kind::Mount, format!("{} is not mounted", dir.display())))
    }

    /// Fails if this is no longer the mount `earlier`, or no longer as writable; the error says
    /// what the workload did.
    pub fn check_unchanged(&self, earlier: &Self) -> Result<()> {
        let id = |info: &Self| info.mountinfo.split(' ').next().map(str::to_owned);
        let is_read_only = |options: &str| options.split(',').next() == Some("ro");
        let what = if id(self) != id(earlier) {
            "something else is mounted where the file system under test was: did the workload \
            mount it?"
        } else if is_read_only(&self.options) != is_read_only(&earlier.options)
            || is_read_only(&self.super_options) != is_read_only(&earlier.super_options)
        {
            "the file system under test changed between read-only and writable: did the workload \
            remount it, or did the kernel after an error?"
        } else {
            return Ok(());
        };
        Err(CellError::new(Kind::Unmount, what))
    }

    /// Parses a line into mount point and the rest (Documentation/filesystems/proc.rst, 3.5).
    fn parse(line: &str) -> Option<(PathBuf, Self)> {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.splitn(3, ' ');
        let fs_type = right.next()?.to_owned();
        let _source = right.next()?;
        let super_options = right.next()?.to_owned();
        let info = Self {
            mountinfo: line.to_owned(),
            options: (*left.get(5)?).to_owned(),
            super_options,
            fs_type,
        };
        Some((unescaped(left.get(4)?.as_bytes()), info))
    }
}

/// Decodes a path in mountinfo, in which space, tab, newline and backslash are octal escapes
/// (fs/seq_file.c, `mangle_path`).
pub fn unescaped(text: &[u8]) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn split(options: &str) -> (MountFlags, String) {
        split_options(options)
    }

    #[test]
    fn flags_and_data_are_told_apart() {
        let (flags, data) = split("noatime,commit=30,lazytime,data=writeback,nosuid");
        assert_eq!(
            flags,
            MountFlags::NOATIME | MountFlags::LAZYTIME | MountFlags::NOSUID
        );
        assert_eq!(data, "commit=30,data=writeback");
        assert_eq!(split(""), (MountFlags::empty(), String::new()));
        assert_eq!(split("iversion").0.bits(), 1 << 23);
    }

    #[test]
    fn later_words_win_except_where_the_kernel_decides() {
        assert_eq!(split("noatime,atime").0, MountFlags::empty());
        assert_eq!(split("ro,rw").0, MountFlags::empty());
        assert_eq!(
            split("noatime,strictatime").0,
            MountFlags::NOATIME | MountFlags::STRICTATIME
        );
        assert_eq!(
            split("strictatime,nostrictatime,norelatime").0,
            MountFlags::empty()
        );
        assert_eq!(
            split("lazytime,nolazytime"),
            (MountFlags::empty(), "nolazytime".into())
        );
    }

    #[test]
    fn words_of_fstab_are_not_for_the_kernel() {
        assert_eq!(
            split("defaults,nofail,x-systemd.automount,comment=hello,_netdev"),
            (MountFlags::empty(), String::new())
        );
    }

    #[test]
    fn a_quoted_comma_does_not_separate() {
        assert_eq!(
            split(r#"context="a:b,c",noatime"#),
            (MountFlags::NOATIME, r#"context="a:b,c""#.into())
        );
    }

    #[test]
    fn a_line_of_mountinfo() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let (point, info) = MountInfo::parse(line).unwrap();
        assert_eq!(point, Path::new("/mnt 2"));
        assert_eq!(
            (info.options.as_str(), info.super_options.as_str()),
            ("rw,noatime", "rw,errors=continue")
        );
        assert_eq!(info.fs_type, "ext3");
        assert_eq!(unescaped(br"a\b\"), Path::new(r"a\b\"));
    }
}
