//! Recordings of real cells, and their images.

use crate::marks::marks;
use fscost_explain::{Explained, Row};
use fscost_recording::{Instant, Recording};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recorded cell.
pub struct Cell {
    folder: tempfile::TempDir,
}

impl Cell {
    /// Record these steps (name, shell) on this profile. None, said aloud, where this machine
    /// cannot.
    pub fn record(profile: &str, steps: &[(&str, &str)]) -> Option<Cell> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.join("../..");
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new(root.join(".venv/bin/python"))
            .arg(here.join("tests/xfs/record.py"))
            .arg(folder.path().join("cell"))
            .arg(profile)
            .args(steps.iter().map(|(name, shell)| format!("{name}={shell}")))
            .output();
        match made {
            Ok(output) if output.status.success() => {}
            Ok(output) if output.stderr.starts_with(b"failed") => panic!("{output:?}"),
            other => {
                eprintln!("SKIPPED, because no cell of {profile} can be recorded here: {other:?}");
                assert!(std::env::var_os("FSCOST_REQUIRE_ROOT_TESTS").is_none());
                return None;
            }
        }
        Some(Cell { folder })
    }

    /// Opens the cell's recording.
    pub fn recording(&self) -> Recording {
        Recording::open(&self.folder.path().join("cell/recording.fscost")).unwrap()
    }

    /// A disk as it was.
    pub fn image(&self, recording: &Recording, disk: u16, instant: &Instant) -> PathBuf {
        let path = self.folder.path().join(format!("image{disk}"));
        let file = std::fs::File::create(&path).unwrap();
        recording
            .image_at(disk, instant)
            .unwrap()
            .export(&file)
            .unwrap();
        path
    }

    /// A place for another recording.
    pub fn spare(&self) -> PathBuf {
        self.folder.path().join("spare.fscost")
    }
}

/// The shell line that runs a part of `fill.py`.
pub fn fill(part: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    format!(
        "python3 {} {part}",
        here.join("tests/xfs/fill.py").display()
    )
}

/// The rows between a mark and the next.
pub fn rows_of<'a>(recording: &Recording, explained: &'a Explained, name: &str) -> Vec<&'a Row> {
    let marks = marks(recording);
    let at = marks.iter().position(|(_, mark)| mark == name).unwrap();
    let end = marks.get(at + 1).map_or(u64::MAX, |(number, _)| *number);
    let rows = explained.rows.iter();
    rows.filter(|r| (marks[at].0..end).contains(&r.event))
        .collect()
}
