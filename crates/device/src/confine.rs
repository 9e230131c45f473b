//! Privileges that a disk server gives up before it serves: it parses input from guests and
//! kernels. What is open (the recording, the disks, the connections) keeps working.

use crate::syscalls::Filter;
use nix::unistd::{Gid, Uid};
use rustix::process::{Pid, Signal};

/// User and group that become root's place. Neither systemd nor Debian gives 65533 to a program
/// (<https://systemd.io/UIDS-GIDS/>), unlike `nobody`, whose processes could send signals to the
/// server.
const UNUSED: (u32, u32) = (65533, 65533);

/// The limits of a serving process.
pub struct Confinement {
    /// User and group to become; root becomes `UNUSED` without them.
    pub user: Option<(u32, u32)>,
    /// Process with which this one ends.
    pub ppid: Option<u32>,
}

impl Confinement {
    /// Give up root, all capabilities, and most system calls, in all threads.
    pub fn enter(&self) -> Result<(), Box<dyn std::error::Error>> {
        let is_root = rustix::process::geteuid().is_root();
        if let Some(user) = self.user.or(is_root.then_some(UNUSED)) {
            become_user(user)?;
            // The change of user has cleared the setting (prctl(2), PR_SET_PDEATHSIG).
            die_with_parent(self.ppid)?;
        }
        Filter::new()?.enter()?;
        Ok(())
    }
}

/// Change the user of all threads. The kernel then clears their capabilities (capabilities(7)).
fn become_user((uid, gid): (u32, u32)) -> nix::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    nix::unistd::setgroups(&[])?;
    nix::unistd::setresgid(gid, gid, gid)?;
    nix::unistd::setresuid(uid, uid, uid)
}

/// Have the kernel kill this process when its parent dies, so that no disk outlives its cell.
pub fn die_with_parent(ppid: Option<u32>) -> Result<(), Box<dyn std::error::Error>> {
    let Some(ppid) = ppid else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the call above.
    let parent = rustix::process::getppid()
        .map(Pid::as_raw_nonzero)
        .map_or(0, |p| p.get() as u32);
    if parent != ppid {
        return Err("the parent that started this disk server is gone".into());
    }
    Ok(())
}
