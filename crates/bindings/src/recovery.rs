//! The state from which a mount would recover, as dictionaries.

use fscost_explain::{Recovery, families::btrfs, families::xfs};
use fscost_recording::Recording;
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};

/// Returns an entry for each file system: `{"disk", "family"}`, for xfs also `{"head", "tail",
/// "records", "bytes", "checkpoints": [{"lsn", "records", "items"}], "unfinished": …}`, for btrfs
/// also `{"generation", "is_sound", "logged_count", "logged": [{"tree", "inode", "path"}]}`.
pub fn recovery<'py>(
    py: Python<'py>,
    recording: &Recording,
    at_ns: u64,
    lost: &[u64],
) -> PyResult<Bound<'py, PyList>> {
    let found = py
        .detach(|| fscost_explain::recovery(recording, at_ns, lost))
        .map_err(crate::error)?;
    let list = PyList::empty(py);
    for (disk, recovery) in found {
        let entry = match recovery {
            Recovery::Xfs(found) => of_xfs(py, &found),
            Recovery::Btrfs(found) => of_btrfs(py, &found),
        }?;
        entry.set_item("disk", disk)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn of_xfs<'py>(py: Python<'py>, found: &xfs::Recovery) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("family", "xfs")?;
    entry.set_item("head", found.head)?;
    entry.set_item("tail", found.tail)?;
    entry.set_item("records", found.records)?;
    entry.set_item("bytes", found.bytes)?;
    for (name, checkpoints) in [
        ("checkpoints", &found.checkpoints),
        ("unfinished", &found.unfinished),
    ] {
        let list = PyList::empty(py);
        for checkpoint in checkpoints {
            let each = PyDict::new(py);
            each.set_item("lsn", checkpoint.lsn)?;
            each.set_item("records", checkpoint.records)?;
            each.set_item("items", checkpoint.items)?;
            list.append(each)?;
        }
        entry.set_item(name, list)?;
    }
    Ok(entry)
}

fn of_btrfs<'py>(py: Python<'py>, found: &btrfs::Recovery) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("family", "btrfs")?;
    entry.set_item("generation", found.generation)?;
    entry.set_item("is_sound", found.is_sound)?;
    entry.set_item("logged_count", found.logged_count)?;
    let list = PyList::empty(py);
    for logged in &found.logged {
        let each = PyDict::new(py);
        each.set_item("tree", logged.tree)?;
        each.set_item("inode", logged.inode)?;
        each.set_item("path", &logged.path)?;
        list.append(each)?;
    }
    entry.set_item("logged", list)?;
    Ok(entry)
}
