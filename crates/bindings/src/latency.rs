//! Latency models of devices.

use crate::refused;
use fscost_latency::Model;
use pyo3::prelude::*;

/// Check the section [latency] of a device file; a ValueError describes the problem.
#[pyfunction]
pub fn latency_check(file: &str, text: &str) -> PyResult<()> {
    Model::parse(file, text).map(drop).map_err(refused)
}

/// Return the name, meaning, default, smallest and largest value of each parameter of a kind of
/// model.
#[pyfunction]
pub fn latency_parameters(kind: &str) -> Vec<(&'static str, &'static str, Option<f64>, f64, f64)> {
    let parameters = Model::parameters(kind).into_iter();
    parameters
        .map(|each| {
            let (least, most) = each.range.into_inner();
            (each.name, each.meaning, each.default, least, most)
        })
        .collect()
}
