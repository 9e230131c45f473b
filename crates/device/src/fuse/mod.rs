//! The native front end: one FUSE file per disk, to be attached to a loop device.
//!
//! The front end has its own protocol loop instead of a library's. A write's content is received
//! straight into the frame that is being filled (`readv` of header and content), which saves a copy
//! of every byte.

mod mount;
mod protocol;
mod session;

pub use mount::Mount;
pub use session::Session;
