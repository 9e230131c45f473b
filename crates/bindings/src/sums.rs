//! Sums of an explained recording as columns.

use crate::{
    arrow::{Batch, column, flags, named, nullable, texts},
    columns::{Names, wide},
    detached, refused,
};
use arrow_data::ArrayData;
use arrow_schema::DataType::{Int32, Int64, UInt8, UInt64};
use fscost_explain::{
    Chosen, Copied, Key, Logged, Share, Shared, Structure, Sums, Table, logged, sums,
};
use pyo3::prelude::*;

/// Sums the bytes of the chosen rows by each of several lists of columns.
pub fn batches(
    py: Python<'_>,
    table: &Table,
    names: &Names,
    several: &[Vec<String>],
    chosen: &Chosen,
) -> PyResult<Vec<Batch>> {
    let keys: Vec<Vec<Key>> = several
        .iter()
        .map(|columns| columns.iter().map(|name| key(name)).collect())
        .collect::<PyResult<_>>()?;
    if keys
        .iter()
        .any(|keys| keys.contains(&Key::Path) && keys.contains(&Key::Directory))
    {
        return Err(refused("no sums by path and directory at once"));
    }
    let found = detached(py, || sums(table, chosen, &keys))?;
    let tables = found.iter().zip(several.iter().zip(&keys));
    tables
        .map(|(sums, (columns, keys))| {
            let mut batch = Vec::with_capacity(columns.len() + 1);
            for (name, key) in columns.iter().zip(keys) {
                batch.push((name.as_str(), values(sums, *key, table, names)?));
            }
            batch.push((
                "length_sum",
                column(UInt64, sums.bytes().collect::<Vec<_>>())?,
            ));
            Batch::new(batch)
        })
        .collect()
}

/// Sums the chosen rows by transaction, and counts the copies of each block in the log.
pub fn of_log(
    py: Python<'_>,
    table: &Table,
    names: &Names,
    chosen: &Chosen,
) -> PyResult<(Batch, Batch)> {
    let (found, copied) = detached(py, || {
        let found = logged(table, chosen)?;
        let copied = found.copied();
        Ok((found, copied))
    })?;
    Ok((transactions(&found, names)?, copies(&copied)?))
}

fn transactions(found: &Logged, names: &Names) -> PyResult<Batch> {
    let shares = || found.shares().iter().map(|(share, _)| share);
    let sums = |of: fn(&Shared) -> u64| -> PyResult<ArrayData> {
        let sums = found.shares().iter().map(|(_, sums)| of(sums));
        column(UInt64, sums.collect())
    };
    let kinds = |of: fn(&Share) -> Option<Structure>| -> PyResult<ArrayData> {
        let numbers = shares().map(|share| of(share).map_or(-1, |kind| kind as i32));
        named(Int32, numbers.collect::<Vec<_>>(), &names.structures)
    };
    let numbers = shares().map(|share| wide(share.transaction));
    let is_alone: Vec<_> = shares().map(|share| share.is_atime_alone).collect();
    Batch::new([
        ("transaction", nullable(Int64, numbers.collect::<Vec<_>>())?),
        ("structure", kinds(|share| Some(share.structure))?),
        ("home_structure", kinds(|share| share.home)?),
        ("atime_alone", flags(&is_alone)?),
        ("rows", sums(|sums| sums.rows)?),
        ("length", sums(|sums| sums.bytes)?),
        ("first_ns", sums(|sums| sums.first_ns)?),
        ("last_ns", sums(|sums| sums.last_ns)?),
    ])
}

fn copies(copied: &[Copied]) -> PyResult<Batch> {
    let homes = copied.iter().map(|each| each.home as i64);
    Batch::new([
        (
            "home_offset",
            column(UInt64, copied.iter().map(|c| c.offset).collect())?,
        ),
        (
            "copies",
            column(UInt64, copied.iter().map(|c| c.transactions).collect())?,
        ),
        ("structure", column(Int64, homes.collect::<Vec<_>>())?),
    ])
}

/// Returns the choice of rows by names of phases, and of all disks.
pub fn choice(
    table: &Table,
    phases: Option<Vec<String>>,
    (all, disks): (&[String], Option<Vec<String>>),
) -> Chosen {
    let names = table.timeline.names();
    Chosen {
        phases: phases.map(|chosen| numbers(names, &chosen).collect()),
        disks: disks.map(|chosen| {
            let numbers = numbers(all, &chosen);
            numbers.map(|number| number as u16).collect()
        }),
    }
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
fn values(sums: &Sums<'_>, key: Key, table: &Table, names: &Names) -> PyResult<ArrayData> {
    let values = sums.values(key, table);
    let directories;
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
        Key::Directory => {
            directories = texts(sums.directories())?;
            &directories
        }
    };
    let numbers = values.map(|value| value.and_then(|v| i32::try_from(v).ok()).unwrap_or(-1));
    named(Int32, numbers.collect::<Vec<_>>(), texts)
}
