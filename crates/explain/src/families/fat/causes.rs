//! Causes of a write to part of a directory, from the entries that changed.

use super::directory::ENTRY;
use super::layout::Kind;
use crate::bytes::{byte, part};
use crate::{Cause, Causes};

/// Returns the causes of a write to part of a directory, given its previous content.
pub fn causes(before: &[u8], after: &[u8], kind: Kind) -> Causes {
    let mut causes = Causes::NONE;
    let (mut times, mut atime) = (false, false);
    for (before, after) in before.chunks(ENTRY).zip(after.chunks(ENTRY)) {
        let differs = |from, to| part(before, from, to) != part(after, from, to);
        if before == after {
            continue;
        }
        let is_same_kind = byte(before, 0) == byte(after, 0);
        let cause = match (kind, byte(after, 0)) {
            (Kind::ExFat, 0x85) if is_same_kind => {
                times |= differs(8, 16) || differs(20, 22);
                atime |= differs(16, 20);
                differs(4, 6).then_some(Cause::LinksOrMode)
            }
            // The hash of the name changes with the name. Here it did not, so the size or the
            // clusters changed.
            (Kind::ExFat, 0xc0) if is_same_kind && !differs(2, 6) => Some(Cause::SizeOrExtents),
            (Kind::ExFat, _) => Some(Cause::DirectoryEntries),
            _ if differs(0, 11) || byte(after, 11) & 0x3f == 0x0f => Some(Cause::DirectoryEntries),
            _ => {
                times |= differs(13, 18) || differs(22, 26);
                atime |= differs(18, 20);
                if differs(11, 12) {
                    causes = causes.with(Cause::LinksOrMode);
                }
                // Whether the name is shown in lower case.
                if differs(12, 13) {
                    causes = causes.with(Cause::DirectoryEntries);
                }
                let moved = differs(20, 22) || differs(26, 32);
                moved.then_some(Cause::SizeOrExtents)
            }
        };
        causes = cause.map_or(causes, |cause| causes.with(cause));
    }
    causes.or(match (times, atime) {
        (true, _) => Cause::Times,
        (false, true) => Cause::Atime,
        (false, false) => Cause::Unchanged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_in_an_entry_is_the_cause() {
        let mut before = [0; ENTRY];
        before[..11].copy_from_slice(b"NAME    TXT");
        let why = |at: usize| {
            let mut after = before;
            after[at] = b'A';
            causes(&before, &after, Kind::Fat32).only()
        };
        for (at, cause) in [
            (0, Cause::DirectoryEntries),
            (22, Cause::Times),
            (18, Cause::Atime),
            (28, Cause::SizeOrExtents),
            // Read-only, hidden, system, archive: chmod and `fatattr` change them.
            (11, Cause::LinksOrMode),
            (12, Cause::DirectoryEntries),
        ] {
            assert_eq!(why(at), Some(cause), "{at}");
        }
    }
}
