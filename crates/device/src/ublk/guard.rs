//! Removes the devices of a disk server that was killed: the kernel fails their requests, but keeps
//! them until somebody deletes them.

use super::command::Control;
use std::{
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// The process that waits for our end.
pub struct Guard(Child);

impl Guard {
    /// Start it. Its standard input ends with us, however we end.
    pub fn start() -> io::Result<Self> {
        Command::new("/proc/self/exe")
            .args(["sweep", "--after", &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal for our group is not for it.
            .process_group(0)
            .spawn()
            .map(Self)
    }

    /// End it, once the devices are gone. Dropped instead, it waits for the end of this process,
    /// and removes them.
    pub fn end(mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Wait for the end of `server`, then remove its devices, and those of any other that is gone.
pub fn sweep_after(server: u32) {
    let _ = io::stdin().read(&mut [0]);
    for _ in 0..ATTEMPTS {
        let left = Control::open(1).map(|mut control| control.sweep());
        if !left.is_ok_and(|servers| servers.contains(&server)) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}
