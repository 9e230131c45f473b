//! The plan of a cell, which the runner writes to standard input.

use crate::error::{CellError, Context, Kind, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Version of the protocol that this agent speaks.
pub const VERSION: u32 = 1;

/// One cell, with every detail spelled out.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Protocol version: [`VERSION`].
    pub version: u32,
    /// Process that must be the agent's parent. The parent may have died before the agent could ask
    /// to die with it.
    pub parent_pid: i32,
    /// File that receives the output of every command.
    pub log: PathBuf,
    /// Existing directory; hidden by a private tmpfs inside the cell.
    pub base: PathBuf,
    /// Folder that is bound read-only at `base/input`.
    #[serde(default)]
    pub input: Option<PathBuf>,
    /// Folders of the host that the cell may write to.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// True if the cell has the host's network; otherwise it has none.
    #[serde(default)]
    pub has_network: bool,
    /// Command line (argv) of the disk server.
    #[serde(default)]
    pub disk_server: Option<Vec<String>>,
    /// The disks of the cell.
    pub disks: Vec<DiskPlan>,
    /// Commands that create the file system.
    pub mkfs: Vec<Vec<String>>,
    /// The file system to mount on `{dir}`.
    pub mount: MountPlan,
    /// Commands run once after mounting.
    #[serde(default)]
    pub after_mount: Vec<Vec<String>>,
    /// Commands that run as long as the file system is mounted.
    #[serde(default)]
    pub background: Vec<Vec<String>>,
    /// Commands run after the last unmount, to release the disks.
    #[serde(default)]
    pub after_unmount: Vec<Vec<String>>,
    /// Commands whose output becomes an `inspected` event.
    #[serde(default)]
    pub inspect: Vec<InspectPlan>,
    /// Tracepoints that a call for durability passes exactly once, such as
    /// `ext4/ext4_sync_file_enter`.
    #[serde(default)]
    pub sync_tracepoints: Vec<String>,
    /// System calls by which programs outside the cell write back its file system (`sync`).
    #[serde(default)]
    pub outside_sync_calls: Vec<String>,
    /// Value of the mount option `commit`, kept in the marks.
    #[serde(default)]
    pub commit_s: Option<u64>,
    /// True if the processor's clock counts instructions.
    #[serde(default)]
    pub is_emulated: bool,
    /// True if the kernel runs for this cell alone, as in a guest.
    #[serde(default)]
    pub owns_kernel: bool,
    /// The workload.
    pub steps: Vec<StepPlan>,
}

/// One disk: served by the disk server unless `file` or `device` is given.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DiskPlan {
    /// Name of the disk in placeholders, marks and events.
    pub name: String,
    /// Sector size of the loop device.
    #[serde(default = "default_logical_block_bytes")]
    pub logical_block_bytes: u32,
    /// File to which a plain loop device is attached.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Real block device to use.
    #[serde(default)]
    pub device: Option<PathBuf>,
    /// Identity of the disk behind `device`, as it was when the user confirmed the device.
    #[serde(default)]
    pub identity: Option<DeviceIdentity>,
    /// True if the device was created for this cell: its counters then include the kernel's
    /// reads while it probed the device.
    #[serde(default)]
    pub is_new: bool,
}

/// Identity of a disk. Names and numbers of an unplugged disk are reused for another disk; its
/// sequence number is not (since Linux 5.15).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// Major number of the block device.
    pub major: u32,
    /// Minor number of the block device.
    pub minor: u32,
    /// Sequence number of the disk (BLKGETDISKSEQ).
    pub diskseq: u64,
}

/// Arguments of mount(2).
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MountPlan {
    /// File system type, as the kernel names it.
    #[serde(rename = "type")]
    pub fs_type: String,
    /// Source, usually `{disk.main}`.
    pub device: String,
    /// Comma-separated options.
    #[serde(default)]
    pub options: String,
}

/// A command whose output is kept as a fact about the cell.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InspectPlan {
    /// Name of the fact.
    pub name: String,
    /// Command line (argv).
    pub command: Vec<String>,
}

/// One step of the workload.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StepPlan {
    /// Name of the step's interval.
    pub name: String,
    /// Command passed to `/bin/sh -c`.
    pub shell: String,
    /// True for a phase, false for a prepare step.
    pub measured: bool,
    /// Rule that ends the step.
    pub settle: Settle,
    /// True to empty the page cache before the step.
    #[serde(default)]
    pub drop_caches: bool,
    /// Interval at which pauses of small directory changes are measured during the step.
    #[serde(default)]
    pub probe_interval_ms: Option<u64>,
    /// Time limit of this step: its command and its settling.
    pub timeout_s: u64,
    /// Variables added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Rule that ends a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Settle {
    /// Calls syncfs.
    Sync,
    /// Unmounts and mounts again.
    Remount,
    /// Does nothing.
    None,
}

fn default_logical_block_bytes() -> u32 {
    512
}

fn bad(message: impl Into<String>) -> CellError {
    CellError::new(Kind::Plan, message)
}

/// Parses and checks a plan. Nothing has been done when this fails.
pub fn parse(text: &[u8]) -> Result<Plan> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    // The version comes first: a plan of another version may have other fields, and the error must
    // then name the version.
    let versioned: Versioned = serde_json::from_slice(text)
        .context(Kind::Plan, || "the plan is not JSON with a version")?;
    if versioned.version != VERSION {
        return Err(bad(format!(
            "the plan has version {}, but this agent supports version {VERSION}; run `make setup`",
            versioned.version
        )));
    }
    let plan: Plan = serde_json::from_slice(text).context(
        Kind::Plan,
        || "the plan does not match docs/cell-protocol.md",
    )?;
    plan.check()?;
    Ok(plan)
}

impl Plan {
    fn check(&self) -> Result<()> {
        for (what, path) in [
            ("log", Some(&self.log)),
            ("base", Some(&self.base)),
            ("input", self.input.as_ref()),
        ] {
            if path.is_some_and(|path| !path.is_absolute()) {
                return Err(bad(format!("`{what}` must be an absolute path")));
            }
        }
        if self.writable.iter().any(|path| !path.is_absolute()) {
            return Err(bad("`writable` must be absolute paths"));
        }
        self.check_disks()?;
        self.check_steps()?;
        let sample = self.sample_placeholders();
        let argvs = self
            .mkfs
            .iter()
            .chain(&self.after_mount)
            .chain(&self.background)
            .chain(&self.after_unmount)
            .chain(self.inspect.iter().map(|inspect| &inspect.command));
        for argv in argvs {
            if argv.is_empty() {
                return Err(bad("an empty command"));
            }
            sample.fill_all(argv)?;
        }
        sample.fill(&self.mount.device)?;
        sample.fill(&self.mount.options)?;
        for step in &self.steps {
            for text in std::iter::once(&step.shell).chain(step.env.values()) {
                sample.fill(text)?;
            }
        }
        Ok(())
    }

    fn check_disks(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for disk in &self.disks {
            let name = &disk.name;
            if name.is_empty()
                || !name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            {
                return Err(bad(format!(
                    "disk name {name:?}: letters, digits, `-` and `_` only"
                )));
            }
            if !names.insert(name) {
                return Err(bad(format!("two disks named {name}")));
            }
            if disk.file.is_some() && disk.device.is_some() {
                return Err(bad(format!("disk {name} has both `file` and `device`")));
            }
            if disk.is_served() && self.disk_server.is_none() {
                return Err(bad(format!(
                    "disk {name} is to be served, but `disk_server` is null"
                )));
            }
        }
        match &self.disk_server {
            Some(argv) if argv.is_empty() => Err(bad("`disk_server` is an empty command")),
            _ => Ok(()),
        }
    }

    fn check_steps(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for step in &self.steps {
            let name = step.name.as_str();
            let is_reserved = ["mkfs", "mount", "end"].contains(&name);
            let is_new = names.insert(name);
            for (is_wrong, fault) in [
                (name.is_empty(), "is empty"),
                (is_reserved, "is reserved"),
                (!is_new, "is used twice"),
            ] {
                if is_wrong {
                    return Err(bad(format!("step name {name:?} {fault}")));
                }
            }
            if step.timeout_s == 0 || step.probe_interval_ms == Some(0) {
                return Err(bad(format!("step {}: times must be above zero", step.name)));
            }
        }
        if self.steps.is_empty() {
            return Err(bad("no steps"));
        }
        Ok(())
    }

    /// Returns placeholders with the right names and no values, to find unknown ones before
    /// anything is done.
    fn sample_placeholders(&self) -> Placeholders {
        let disks = self
            .disks
            .iter()
            .map(|disk| (disk.name.clone(), String::new()))
            .collect();
        Placeholders::new(self, disks)
    }
}

impl DiskPlan {
    /// True if the disk server serves this disk.
    pub fn is_served(&self) -> bool {
        self.file.is_none() && self.device.is_none()
    }
}

/// Values of `{disk.NAME}`, `{dir}`, `{input}` and `{scratch}`.
#[derive(Debug)]
pub struct Placeholders {
    values: BTreeMap<String, String>,
}

impl Placeholders {
    /// Creates the placeholders of a plan, given the path of each disk.
    pub fn new(plan: &Plan, disks: Vec<(String, String)>) -> Self {
        let under = |name: &str| plan.base.join(name).to_string_lossy().into_owned();
        let mut values: BTreeMap<String, String> = disks
            .into_iter()
            .map(|(name, path)| (format!("disk.{name}"), path))
            .collect();
        values.insert("dir".into(), under("fs"));
        values.insert("scratch".into(), under("scratch"));
        if plan.input.is_some() {
            values.insert("input".into(), under("input"));
        }
        Self { values }
    }

    /// Replaces the placeholders in each word.
    pub fn fill_all(&self, words: &[String]) -> Result<Vec<String>> {
        words.iter().map(|word| self.fill(word)).collect()
    }

    /// Replaces the placeholders in `text`. Other braces stay, because shell text has its own.
    pub fn fill(&self, text: &str) -> Result<String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            let word = rest[1..].split_once('}').map(|(word, _)| word);
            // `${dir}` is a variable of the shell, not a placeholder.
            let ours = word.filter(|_| !filled.ends_with('$'));
            match ours {
                Some(word) if self.values.contains_key(word) => {
                    filled.push_str(&self.values[word]);
                    rest = &rest[word.len() + 2..];
                }
                Some(word) if word == "input" || word.starts_with("disk.") => {
                    return Err(bad(format!(
                        "{{{word}}} is used, but the plan does not define it"
                    )));
                }
                _ => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

#[cfg(test)]
mod tests;
