//! Sums of an explained recording as columns.

use crate::{
    arrow::{Batch, column, flags, named},
    detached,
    explanation::{Explanation, Names},
    refused,
};
use arrow_data::ArrayData;
use arrow_schema::DataType::{Int32, UInt8, UInt64};
use fscost_explain::{Chosen, Key, Sums, Table, sums};
use pyo3::prelude::*;

/// Sums the bytes of the chosen rows by each of several lists of columns.
pub fn batches(
    py: Python<'_>,
    explanation: &Explanation,
    names: &Names,
    several: &[Vec<String>],
    phases: Option<Vec<String>>,
    disks: Option<Vec<String>>,
) -> PyResult<Vec<Batch>> {
    let table = &explanation.table;
    let keys: Vec<Vec<Key>> = several
        .iter()
        .map(|columns| columns.iter().map(|name| key(name)).collect())
        .collect::<PyResult<_>>()?;
    let chosen = Chosen {
        phases: phases.map(|chosen| numbers(table.timeline.names(), &chosen).collect()),
        disks: disks.map(|chosen| {
            let numbers = numbers(&explanation.disks, &chosen);
            numbers.map(|number| number as u16).collect()
        }),
    };
    let found = detached(py, || sums(table, &chosen, &keys))?;
    let tables = found.iter().zip(several.iter().zip(&keys));
    tables
        .map(|(sums, (columns, keys))| {
            let mut batch = Vec::with_capacity(columns.len() + 1);
            for (name, key) in columns.iter().zip(keys) {
                batch.push((name.as_str(), values(sums, *key, table, names)?));
            }
            batch.push(("length_sum", column(UInt64, sums.bytes().collect::<Vec<_>>())?));
            Batch::new(batch)
        })
        .collect()
}

fn key(column: &str) -> PyResult<Key> {
    Key::of(column).ok_or_else(|| refused(format!("no sums by {column}")))
}

/// Returns the numbers of the chosen names.
fn numbers<'a>(all: &'a [String], chosen: &'a [String]) -> impl Iterator<Item = usize> + 'a {
    let named = all.iter().enumerate();
    named.filter_map(|(number, name)| chosen.contains(name).then_some(number))
}

/// Returns a column of the values of a key.
fn values(sums: &Sums, key: Key, table: &Table, names: &Names) -> PyResult<ArrayData> {
    let values = sums.values(key, table);
    let texts = match key {
        Key::AtimeAlone | Key::Doubtful => {
            let is_true: Vec<_> = values.map(|value| value == Some(1)).collect();
            return flags(&is_true);
        }
        Key::Copy => {
            let copies = values.map(|value| value.unwrap_or_default() as u8);
            return column(UInt8, copies.collect());
        }
        Key::Phase => &names.phases,
        Key::Disk => &names.disks,
        Key::Structure | Key::HomeStructure => &names.structures,
        Key::Cause => &names.causes,
        Key::Path => &names.paths,
    };
    let numbers = values.map(|value| value.and_then(|v| i32::try_from(v).ok()).unwrap_or(-1));
    named(Int32, numbers.collect::<Vec<_>>(), texts)
}
