//! Serves requests and messages in one thread, until the agent says that it is done or is gone.

use super::session::Session;
use crate::{
    backend::Backend,
    control::{Control, Finished, Next, Ready},
    server::Outcome,
    timing::Timing,
};
use rustix::{fd::AsFd as _, io::Errno};
use std::sync::Arc;

/// Serve until the agent is done or gone.
pub fn serve(
    mut backend: Box<dyn Backend>,
    mut session: Session,
    mut control: Control,
    timing: Option<Arc<Timing>>,
) -> Result<Outcome, Errno> {
    let nodes = session.start(&mut *backend, timing.clone())?;
    control.ready(&*backend, Ready::Devices(&nodes))?;
    session.listen(control.socket.as_fd());
    loop {
        let step = session.step(&mut *backend)?;
        if step.is_idle {
            // The backend keeps the error, and `tell_failure` below reports it.
            let _ = backend.idle();
        }
        control.tell_failure(&*backend);
        if !step.has_message {
            continue;
        }
        let next = control.step(&mut *backend)?;
        if next == Next::Serve {
            session.listen(control.socket.as_fd());
            continue;
        }
        timing.as_deref().inspect(|timing| timing.finish());
        session.stop(&mut *backend)?;
        let finished = Finished::new(backend, None);
        if next == Next::Gone {
            return Ok(Outcome::AgentGone);
        }
        control.finished(finished)?;
        return Ok(Outcome::Finished);
    }
}
