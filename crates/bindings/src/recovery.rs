//! The state from which a mount would recover, as dictionaries.

use fscost_explain::{Recovery, families::btrfs, families::xfs};
use pyo3::{
    prelude::*,
    types::{IntoPyDict as _, PyDict},
};

/// Returns the entry of a file system: `{"disk", "family"}`, for xfs also `{"head", "tail",
/// "records", "bytes", "checkpoints": [{"lsn", "records", "items"}], "unfinished": …}`, for btrfs
/// also `{"generation", "is_sound", "logged_count", "logged": [{"tree", "inode", "path"}]}`.
pub fn entry<'py>(
    py: Python<'py>,
    (disk, recovery): &(u16, Recovery),
) -> PyResult<Bound<'py, PyDict>> {
    let entry = match recovery {
        Recovery::Xfs(found) => of_xfs(py, found),
        Recovery::Btrfs(found) => of_btrfs(py, found),
    }?;
    entry.set_item("disk", disk)?;
    Ok(entry)
}

fn of_xfs<'py>(py: Python<'py>, found: &xfs::Recovery) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("family", "xfs")?;
    entry.set_item("head", found.head)?;
    entry.set_item("tail", found.tail)?;
    entry.set_item("records", found.records)?;
    entry.set_item("bytes", found.bytes)?;
    let each = |c: &xfs::Checkpoint| {
        let counts = [("lsn", c.lsn), ("records", c.records), ("items", c.items)];
        counts.into_py_dict(py)
    };
    let all = |found: &[_]| found.iter().map(each).collect::<PyResult<Vec<_>>>();
    entry.set_item("checkpoints", all(&found.checkpoints)?)?;
    entry.set_item("unfinished", all(&found.unfinished)?)?;
    Ok(entry)
}

fn of_btrfs<'py>(py: Python<'py>, found: &btrfs::Recovery) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("family", "btrfs")?;
    entry.set_item("generation", found.generation)?;
    entry.set_item("is_sound", found.is_sound)?;
    entry.set_item("logged_count", found.logged_count)?;
    let logged = found.logged.iter().map(|logged| {
        let each = PyDict::new(py);
        each.set_item("tree", logged.tree)?;
        each.set_item("inode", logged.inode)?;
        each.set_item("path", &logged.path)?;
        Ok(each)
    });
    entry.set_item("logged", logged.collect::<PyResult<Vec<_>>>()?)?;
    Ok(entry)
}
