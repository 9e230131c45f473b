//! The native front end: one FUSE file a disk, to be attached to a loop device.
//!
//! A protocol loop of our own rather than a library's: a write's content is received straight into
//! the frame that is being filled
//! (`readv` of header and content), which saves a copy of every byte, and the loop may poll for a
//! moment before it sleeps.

mod mount;
mod protocol;
mod session;

pub use mount::Mount;
pub use session::{Session, Step};
