//! Causes of an inode's write, for formats that are compared by fingerprints.

use crate::{Cause, Causes};
pub use fscost_ondisk::fingerprints::Fingerprints;

/// Returns the causes of an inode's write, from its fingerprints now and before.
pub fn causes_of(now: &Fingerprints, before: &Fingerprints) -> Causes {
    let causes = Causes::of([
        (now.map != before.map, Cause::SizeOrExtents),
        (now.data != before.data, Cause::Data),
        (now.names != before.names, Cause::DirectoryEntries),
        (now.attributes != before.attributes, Cause::LinksOrMode),
    ]);
    // Times change with everything else.
    causes.or(if now.times != before.times {
        Cause::Times
    } else if now.atime != before.atime {
        Cause::Atime
    } else {
        Cause::Unchanged
    })
}
