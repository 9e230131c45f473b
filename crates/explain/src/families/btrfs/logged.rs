//! Rows whose path comes from a log. A log names the files that were synced and new directories
//! above them, but not older directories that were renamed since the last commit: only the next
//! commit shows it.

use super::commit::{Follower, Step};
use super::item::{Key, inode, kind};
use super::paths::{MAX_DEPTH, ROOT_DIRECTORY, name_in};
use super::pending::{LoggedFile, Time};
use crate::track::waiting::MAX_WAITING;
use crate::{PathId, Structure};
use fscost_recording::Result;

impl Follower {
    /// Keeps the rows of a file that the log has just named until the next commit.
    pub fn keep_logged(
        &mut self,
        step: &mut Step<'_, '_>,
        tree: u64,
        inode: u64,
        rows: &[usize],
    ) -> Result<()> {
        if rows.is_empty() || self.logged.count >= MAX_WAITING {
            return Ok(());
        }
        let names = self.names(step, tree)?;
        let (mut directory, mut depth, mut changed) = (None, 1, None);
        for root in names.roots() {
            if directory.is_none() {
                directory = self.above(step, root, inode)?;
            }
            if changed.is_none() {
                changed = self.changed(step, root, inode)?;
            }
        }
        while let (Some(log), Some(named)) = (names.log_root, directory)
            && named != ROOT_DIRECTORY
            && depth < MAX_DEPTH
            && let Some(above) = self.above(step, log, named)?
        {
            (directory, depth) = (Some(above), depth + 1);
        }
        let file = LoggedFile {
            tree,
            inode,
            directory,
            depth,
            changed,
        };
        self.logged.rows.entry(file).or_default().extend(rows);
        self.logged.count += rows.len();
        Ok(())
    }

    /// Corrects the paths of rows that logs named before this commit: directories may have been
    /// renamed before the fsync, or after it.
    pub fn revise_logged(&mut self, step: &mut Step<'_, '_>) -> Result<()> {
        for (file, rows) in std::mem::take(&mut self.logged).rows {
            let whole = self.path(step, file.tree, file.inode)?;
            let directory = match file.directory {
                Some(directory) => self.path(step, file.tree, directory)?,
                None => None,
            };
            let mut is_doubtful = None;
            for number in rows {
                let Some((before, structure)) =
                    step.rows.get_mut(number).map(|r| (r.path, r.structure))
                else {
                    continue;
                };
                let after = match (before, directory) {
                    (Some(path), Some(directory)) => Some(moved(step, path, directory, file.depth)),
                    (Some(_), None) => None,
                    (None, _) => whole,
                };
                if after.is_none() || after == before {
                    continue;
                }
                if is_doubtful.is_none() {
                    is_doubtful = Some(self.is_renamed_later(step, &file)?);
                }
                if let Some(row) = step.rows.get_mut(number) {
                    row.path = after;
                    let is_data = structure == Structure::FileData;
                    row.is_doubtful |= is_data && is_doubtful == Some(true);
                }
            }
        }
        Ok(())
    }

    /// Returns whether a directory above the file may have been renamed after the file was logged.
    fn is_renamed_later(&mut self, step: &mut Step<'_, '_>, file: &LoggedFile) -> Result<bool> {
        let (Some(old), Some(new)) = self.roots(step, file.tree)? else {
            return Ok(false);
        };
        let Some(mut inode) = file.directory else {
            return Ok(false);
        };
        let mut latest = None;
        for _ in 0..MAX_DEPTH {
            let now = name_in(&mut self.volume, step.disks, new, inode)?;
            let before = name_in(&mut self.volume, step.disks, old, inode)?;
            // A directory that was removed meanwhile had its old name, as far as is known.
            let name = now.as_ref().or(before.as_ref());
            let Some(&(above, _)) = name.filter(|_| inode != ROOT_DIRECTORY) else {
                break;
            };
            if now.is_some() && now != before {
                // A renaming changes the directory and the one above it.
                let [own, above] = [inode, above].map(|each| self.changed(step, new, each));
                latest = latest.max(own?.min(above?));
            }
            inode = above;
        }
        // Times may be equal though the fsync came between: a tick of the kernel's clock takes 4 ms.
        Ok(latest.is_some() && latest >= file.changed)
    }

    /// Returns the directory that holds the name of an inode, according to the tree at `root`.
    fn above(&mut self, step: &mut Step<'_, '_>, root: u64, inode: u64) -> Result<Option<u64>> {
        let name = name_in(&mut self.volume, step.disks, root, inode)?;
        Ok(name.map(|(directory, _)| directory))
    }

    /// Returns the time at which an inode last changed, according to the tree at `root`.
    fn changed(&mut self, step: &mut Step<'_, '_>, root: u64, inode: u64) -> Result<Option<Time>> {
        let key = Key::new(inode, kind::INODE_ITEM, 0);
        self.volume
            .look_up(step.disks, root, key, key, |_, item| inode::changed(item))
    }
}

/// Returns the path with this directory in the place of the one that holds its last `depth` names.
fn moved(step: &mut Step<'_, '_>, path: PathId, directory: PathId, depth: usize) -> PathId {
    let paths = &mut step.rows.paths;
    let path_text = paths.text(path);
    let Some((at, _)) = path_text.rmatch_indices('/').nth(depth - 1) else {
        return path;
    };
    let directory = paths.text(directory).trim_end_matches('/');
    let text = format!("{directory}{}", &path_text[at..]);
    paths.intern(&text)
}
