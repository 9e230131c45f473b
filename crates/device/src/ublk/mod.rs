//! The native front end on kernels with `ublk_drv`: a separate block device for each disk, with
//! FUA, a physical sector size, and discards distinct from write-zeroes requests.
//!
//! Requests and replies pass through one io_uring. Their content is copied by read and write calls
//! on the device's character device (`UBLK_F_USER_COPY`), straight into the frame that is being
//! filled.

mod command;
mod descriptors;
mod device;
mod guard;
mod protocol;
mod replies;
mod ring;
mod server;
mod session;

pub use command::{Control, unsupported_reason};
pub use guard::sweep_after;
pub use server::serve;
pub use session::Session;
