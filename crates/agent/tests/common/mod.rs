//! Runs the agent on ext4 over a plain file in memory, and checks for residue.

#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub const MARK: &str = "FSCOST_TEST_CELL";
/// Limit of every wait for something that never happens if the agent is wrong. A busy host does not
/// reach it.
pub const LIMIT: Duration = Duration::from_secs(300);

/// True if cells can run here; prints the reason if not.
pub fn can_run(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let has_loop = Path::new("/dev/loop-control").exists();
    if !(is_root && has_loop) {
        eprintln!(
            "SKIPPED: {test}: cells need root (is root: {is_root}) and loop devices (there: \
            {has_loop})"
        );
    }
    is_root && has_loop
}

/// Directory for one test's cells: `disk.img`, `base/`, `output.log`.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("fscost-agent-")
            .tempdir_in("/dev/shm")
            .unwrap();
        std::fs::create_dir(dir.path().join("base")).unwrap();
        let place = Self { dir };
        std::fs::File::create(place.image())
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn image(&self) -> PathBuf {
        self.path("disk.img")
    }

    /// Unique name of this place. The served disk has the same name, which identifies its loop
    /// device.
    pub fn name(&self) -> String {
        self.dir
            .path()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("output.log")).unwrap_or_default()
    }

    /// A plan with one step.
    pub fn plan(&self, shell: &str) -> Value {
        json!({
            "version": 1,
            "parent_pid": std::process::id(),
            "log": self.path("output.log"),
            "base": self.path("base"),
            "disk_server": null,
            "disks": [{"name": "main", "file": self.image()}],
            "mkfs": [["mkfs.ext4", "-F", "-q", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0", "{disk.main}"]],
            "mount": {"type": "ext4", "device": "{disk.main}", "options": "noatime"},
            "steps": [self.step("work", shell)],
        })
    }

    pub fn step(&self, name: &str, shell: &str) -> Value {
        json!({"name": name, "shell": shell, "measured": true, "settle": "sync", "timeout_s": 60, "env": {MARK: self.mark()}})
    }

    fn mark(&self) -> String {
        self.dir.path().to_string_lossy().into_owned()
    }

    pub fn start(&self, plan: &Value) -> Agent {
        // The agent creates its log and refuses an existing one; a place may have several cells.
        let _ = std::fs::remove_file(self.path("output.log"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_fscost-agent"))
            .arg("run")
            .env(MARK, self.mark())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(plan.to_string().as_bytes())
            .unwrap();
        Agent { child }
    }

    pub fn run(&self, plan: &Value) -> Events {
        self.start(plan).finish()
    }

    /// Loop devices, mounts and processes of this place's cells.
    pub fn residue(&self) -> Vec<String> {
        let mark = self.mark();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
            let backing =
                std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
            // The kernel resolves the file's name from the root of a mount that ended with the
            // cell's namespace, so `/dev/shm` is missing.
            if backing.contains(&self.name()) {
                found.push(format!("{:?} on {backing}", entry.file_name()));
            }
        }
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let read = |file: &str| {
                String::from_utf8_lossy(&std::fs::read(entry.path().join(file)).unwrap_or_default())
                    .into_owned()
            };
            if pid != std::process::id() && read("environ").contains(&mark) {
                found.push(format!(
                    "process {pid}: {}",
                    read("cmdline").replace('\0', " ")
                ));
            }
            if read("mountinfo").contains(&mark) {
                found.push(format!("mounts in process {pid}"));
            }
        }
        found
    }

    /// Asserts that no process and no mount is left, and soon no loop device either: the kernel
    /// clears one in delayed work after its last user (fs/file_table.c).
    pub fn assert_ended(&self, when: &str) {
        let mut residue = self.residue();
        residue.retain(|found| !found.contains(" on "));
        assert_eq!(residue, Vec::<String>::new(), "{when}");
        self.assert_clean(when);
    }

    /// Asserts that no residue is left within [`LIMIT`].
    pub fn assert_clean(&self, when: &str) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let residue = self.residue();
            if residue.is_empty() {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{when}: left behind: {residue:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let base: Vec<_> = std::fs::read_dir(self.path("base")).unwrap().collect();
        assert!(base.is_empty(), "{when}: files in base: {base:?}");
    }
}

/// A running agent.
pub struct Agent {
    pub child: Child,
}

impl Agent {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a process of the cell has `N` children; returns the oldest `N`. Panics if the
    /// agent ends before.
    pub fn first_children<const N: usize>(&mut self, parent: u32) -> [u32; N] {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(found) = children(parent).first_chunk() {
                return *found;
            }
            let ended = self.child.try_wait().unwrap();
            assert_eq!(
                ended, None,
                "the agent ended before {parent} had {N} children"
            );
            assert!(Instant::now() < deadline, "{parent} has no {N} children");
        }
    }

    pub fn kill(pid: u32, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, signal);
    }

    /// Reads events until one of this kind arrives.
    pub fn read_until(&mut self, event: &str, name: &str) {
        let mut lines = BufReader::with_capacity(1, self.child.stdout.as_mut().unwrap());
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["event"] == event && (name.is_empty() || value["name"] == name) {
                return;
            }
            line.clear();
        }
        panic!("no event {event} {name}; last: {line}");
    }

    pub fn finish(mut self) -> Events {
        let mut events = Vec::new();
        for line in BufReader::new(self.child.stdout.take().unwrap()).lines() {
            events.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        Events {
            events,
            status: self.child.wait().unwrap(),
        }
    }
}

pub fn children(pid: u32) -> Vec<u32> {
    let text =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[derive(Debug)]
pub struct Events {
    pub events: Vec<Value>,
    pub status: ExitStatus,
}

impl Events {
    pub fn of(&self, event: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|value| value["event"] == event)
            .collect()
    }

    pub fn one(&self, event: &str) -> &Value {
        let found = self.of(event);
        assert_eq!(found.len(), 1, "{event} in {self:#?}");
        found[0]
    }

    pub fn interval(&self, name: &str) -> &Value {
        self.of("interval")
            .into_iter()
            .find(|value| value["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {self:#?}"))
    }

    pub fn assert_done(&self) {
        assert_eq!(self.events.last().unwrap()["event"], "done", "{self:#?}");
        assert_eq!(self.status.code(), Some(0));
    }

    pub fn assert_failed(&self, kind: &str) -> &Value {
        let last = self.events.last().unwrap();
        assert_eq!(last["event"], "failed", "{self:#?}");
        assert_eq!(last["kind"], kind, "{self:#?}");
        assert_eq!(self.status.code(), Some(1));
        last
    }
}
