//! Removes the devices of a disk server that was killed. The kernel fails their requests, but keeps
//! the devices until a process deletes them.

use super::command::Control;
use std::{
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// The process that waits for the end of this one.
pub struct Guard(Child);

impl Guard {
    /// Start the guard. Its standard input ends with this process, however that ends.
    pub fn start() -> io::Result<Self> {
        Command::new("/proc/self/exe")
            .args(["sweep", "--after", &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The guard must not receive signals for this process's group.
            .process_group(0)
            .spawn()
            .map(Self)
    }

    /// End the guard, once the devices are gone. If it is dropped instead, it waits for the end of
    /// this process and then removes the devices.
    pub fn end(mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Wait for the end of `server`, then remove its devices, and those of any other server that has
/// ended.
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
