//! Serves requests and messages in one thread, until the agent says that it is done or is gone.

use super::session::Session;
use crate::{
    control::{Control, Finished, Next, Ready},
    server::Outcome,
    store::Store,
    timing::Timing,
};
use rustix::{fd::AsFd as _, io::Errno};
use std::sync::Arc;

/// Serve until the agent is done or gone.
pub fn serve(
    mut store: Store,
    mut session: Session,
    mut control: Control,
    timing: Option<Arc<Timing>>,
) -> Result<Outcome, Errno> {
    let nodes = session.start(&mut store, timing.clone())?;
    control.ready(&store, Ready::Devices(&nodes))?;
    session.listen(control.socket.as_fd());
    loop {
        let step = session.step(&mut store)?;
        if step.is_idle {
            // The store keeps the error, and `tell_failure` below reports it.
            let _ = store.idle();
        }
        control.tell_failure(&store);
        if !step.has_message {
            continue;
        }
        let next = control.step(&mut store)?;
        if next == Next::Serve {
            session.listen(control.socket.as_fd());
            continue;
        }
        timing.as_deref().inspect(|timing| timing.finish());
        session.stop(&mut store)?;
        let finished = Finished::new(store, None);
        if next == Next::Gone {
            return Ok(Outcome::AgentGone);
        }
        control.finished(finished)?;
        return Ok(Outcome::Finished);
    }
}
