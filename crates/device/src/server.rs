//! Serves requests and messages in one thread, until the agent says that it is done or is gone.

use crate::{
    backend::Backend,
    control::{Control, Finished, Next, Ready},
    fuse::{Mount, Session},
    real::Real,
    timing::Timing,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsFd as _,
    io::Errno,
};
use std::sync::Arc;

/// Idle time after which the server passes unstored frames to the storing thread.
pub const IDLE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Reason for the end of serving, for the exit status.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The recording was finished and the agent was told.
    Finished,
    /// The agent is gone; the recording was finished all the same.
    AgentGone,
}

/// Serve until the agent is done or gone.
pub fn serve(
    mut backend: Box<dyn Backend>,
    mount: Mount,
    mut control: Control,
    timing: Option<Arc<Timing>>,
    real: Option<Real>,
) -> Result<Outcome, Errno> {
    let mut session = Session::new(mount.connection, timing.clone(), real);
    control.ready(&*backend, Ready::Mount(mount.root.as_fd()))?;
    // Files opened through the mount keep it alive; this descriptor alone must not.
    drop(mount.root);
    let mut fuse_open = true;
    loop {
        if fuse_open {
            fuse_open = session.serve_pending(&mut *backend)?;
        }
        if let Some(what) = session.real.as_ref().and_then(Real::failure) {
            backend.fail(&what);
        }
        control.tell_failure(&*backend);
        let mut waiting = [
            PollFd::new(&control.socket, PollFlags::IN),
            PollFd::new(
                &session.connection,
                if fuse_open {
                    PollFlags::IN
                } else {
                    PollFlags::empty()
                },
            ),
        ];
        match poll(&mut waiting, Some(&IDLE)) {
            Ok(0) => {
                // A failure is reported in the next round.
                let _ = backend.idle();
            }
            Ok(_) if !waiting[0].revents().is_empty() => match control.step(&mut *backend)? {
                Next::Serve => {}
                Next::Finish => {
                    control.finished(finish(backend, timing.as_deref(), session.real.as_ref()))?;
                    return Ok(Outcome::Finished);
                }
                Next::Gone => {
                    timing.as_deref().inspect(|timing| timing.finish());
                    let _ = backend.finish();
                    return Ok(Outcome::AgentGone);
                }
            },
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Finish the recording.
fn finish(
    mut backend: Box<dyn Backend>,
    timing: Option<&Timing>,
    real: Option<&Real>,
) -> fscost_recording::Result<Finished> {
    timing.inspect(|timing| timing.finish());
    let mut devices = None;
    if let Some(real) = real {
        real.finish();
        if let Some(what) = real.failure() {
            backend.fail(&what);
        }
        match real.accounts(backend.disks()) {
            Ok(accounts) => devices = Some(accounts),
            Err(error) => backend.fail(&format!(
                "the kernel's counters of a real disk cannot be read: {error}"
            )),
        }
    }
    Finished::new(backend, devices)
}
