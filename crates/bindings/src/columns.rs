//! What the columns of an explained recording share.

use crate::arrow::texts;
use arrow_data::ArrayData;
use fscost_explain::{Structure, Table};
use pyo3::PyResult;

/// Names that all batches share.
pub struct Names {
    pub phases: ArrayData,
    pub disks: ArrayData,
    pub structures: ArrayData,
    pub causes: ArrayData,
    pub paths: ArrayData,
}

impl Names {
    pub fn of(table: &Table, disks: &[String]) -> PyResult<Self> {
        let (explained, timeline) = (&table.explained, &table.timeline);
        Ok(Self {
            phases: texts(timeline.names())?,
            disks: texts(disks)?,
            structures: texts(Structure::ALL.iter().map(|s| s.name()))?,
            causes: texts(explained.rows.cause_sets().iter().map(ToString::to_string))?,
            paths: texts(explained.paths.texts())?,
        })
    }
}

/// Returns a value as a signed column stores it: missing and too large ones are negative.
pub fn wide(value: Option<u64>) -> i64 {
    value.and_then(|v| i64::try_from(v).ok()).unwrap_or(-1)
}
