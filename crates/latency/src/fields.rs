//! Fields of a model file. The code that reads the fields also lists the permitted ones.

use crate::Error;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// A parameter of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Name of the parameter in the file.
    pub name: &'static str,
    /// Meaning of the parameter, with its unit.
    pub meaning: &'static str,
    /// Value used if the file does not set the parameter; `None` if the parameter is required.
    pub default: Option<f64>,
    /// Smallest and largest value.
    pub range: RangeInclusive<f64>,
}

/// Largest value of a field in microseconds: 100 s, so that no sum of times overflows.
const MOST_US: f64 = 1e8;
/// Largest value of a field in bytes: 1 PiB, which `f64` represents exactly.
const MOST_BYTES: f64 = (1u64 << 50) as f64;

/// The fields of a section.
pub(crate) struct Fields<'a> {
    file: &'a str,
    /// Table to read from. If `None`, fields are only described, and each has its smallest value.
    table: Option<&'a Table>,
    pub(crate) known: Vec<Parameter>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(file: &'a str, table: Option<&'a Table>) -> Fields<'a> {
        let known = Vec::new();
        Fields { file, table, known }
    }

    /// Reads a time in microseconds and returns it in whole nanoseconds.
    pub(crate) fn us(&mut self, name: &'static str, meaning: &'static str) -> Result<u64, Error> {
        let us = self.number(name, None, 0.0..=MOST_US, meaning)?;
        Ok((us * 1e3).round() as u64)
    }

    /// Reads a time that is 0 by default.
    pub(crate) fn optional_us(
        &mut self,
        name: &'static str,
        meaning: &'static str,
    ) -> Result<u64, Error> {
        let us = self.number(name, Some(0.0), 0.0..=MOST_US, meaning)?;
        Ok((us * 1e3).round() as u64)
    }

    /// Reads a number of bytes.
    pub(crate) fn bytes(
        &mut self,
        name: &'static str,
        default: Option<u64>,
        least: u64,
        meaning: &'static str,
    ) -> Result<u64, Error> {
        let default = default.map(|bytes| bytes as f64);
        let bytes = self.number(name, default, least as f64..=MOST_BYTES, meaning)?;
        self.whole(name, bytes)
    }

    /// Reads a number of bytes that is 0 by default.
    pub(crate) fn optional_bytes(
        &mut self,
        name: &'static str,
        meaning: &'static str,
    ) -> Result<u64, Error> {
        self.bytes(name, Some(0), 0, meaning)
    }

    /// Reads a whole number.
    pub(crate) fn count(
        &mut self,
        name: &'static str,
        default: u32,
        range: RangeInclusive<u32>,
        meaning: &'static str,
    ) -> Result<u32, Error> {
        let range = f64::from(*range.start())..=f64::from(*range.end());
        let found = self.number(name, Some(f64::from(default)), range, meaning)?;
        self.whole(name, found).map(|found| found as u32)
    }

    /// Reads a Boolean.
    pub(crate) fn flag(
        &mut self,
        name: &'static str,
        default: bool,
        meaning: &'static str,
    ) -> Result<bool, Error> {
        self.known.push(Parameter {
            name,
            meaning,
            default: Some(f64::from(u8::from(default))),
            range: 0.0..=1.0,
        });
        match self.value(name)? {
            None => Ok(default),
            Some(Value::Boolean(found)) => Ok(*found),
            Some(found) => {
                let what = format!("has the type {}; give true or false", found.type_str());
                Err(self.wrong(name, &what))
            }
        }
    }

    /// Reads a number.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        default: Option<f64>,
        range: RangeInclusive<f64>,
        meaning: &'static str,
    ) -> Result<f64, Error> {
        let (least, most) = (*range.start(), *range.end());
        self.known.push(Parameter {
            name,
            meaning,
            default,
            range: range.clone(),
        });
        let found = match self.value(name)? {
            Some(Value::Integer(found)) => *found as f64,
            Some(Value::Float(found)) => *found,
            Some(found) => {
                let found = found.type_str();
                let what = format!("has the type {found}; give a number: {meaning}");
                return Err(self.wrong(name, &what));
            }
            None if self.table.is_none() => return Ok(default.unwrap_or(least)),
            None => {
                return default
                    .ok_or_else(|| self.wrong(name, &format!("is missing; add it: {meaning}")));
            }
        };
        if !range.contains(&found) {
            let what = format!("is {found}; give a number from {least} to {most}: {meaning}");
            return Err(self.wrong(name, &what));
        }
        Ok(found)
    }

    /// Rejects fields that were never read.
    pub(crate) fn end(&self, also: &[&str]) -> Result<(), Error> {
        let unknown = self.table.into_iter().flat_map(Table::keys).find(|key| {
            !also.contains(&key.as_str()) && !self.known.iter().any(|known| known.name == **key)
        });
        let Some(key) = unknown else {
            return Ok(());
        };
        let names: Vec<&str> = self.known.iter().map(|known| known.name).collect();
        let names = names.join(", ");
        Err(self.wrong(
            key,
            &format!("no such field; fields of this model: {names}"),
        ))
    }

    pub(crate) fn wrong(&self, name: &str, what: &str) -> Error {
        Error::of_field(self.file, name, what)
    }

    fn whole(&self, name: &str, found: f64) -> Result<u64, Error> {
        if found.fract() != 0.0 {
            return Err(self.wrong(name, &format!("is {found}; give a whole number")));
        }
        Ok(found as u64)
    }

    /// Returns the value of a field, given either directly or as `{ value = …, source = "…" }`.
    fn value(&self, name: &str) -> Result<Option<&'a Value>, Error> {
        let Some(found) = self.table.and_then(|table| table.get(name)) else {
            return Ok(None);
        };
        value_of(found)
            .map(Some)
            .ok_or_else(|| self.wrong(name, "is a table; write { value = …, source = \"…\" }"))
    }
}

/// Returns a value without its source.
pub(crate) fn value_of(found: &Value) -> Option<&Value> {
    let Value::Table(table) = found else {
        return Some(found);
    };
    let is_sourced = table.keys().all(|key| key == "value" || key == "source")
        && table.get("source").is_none_or(Value::is_str);
    table.get("value").filter(|_| is_sourced)
}
