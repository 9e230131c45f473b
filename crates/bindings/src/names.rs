//! Names in explanations, each with a one-line description.

use fscost_explain::{Cause, Structure};
use pyo3::prelude::*;

/// Return every structure: `[(name, meaning, whether it is part of a journal or log)]`.
#[pyfunction]
pub fn structures() -> Vec<(&'static str, &'static str, bool)> {
    let all = Structure::ALL.iter();
    all.map(|s| (s.name(), s.meaning(), s.is_journal()))
        .collect()
}

/// Return every cause: `[(name, meaning)]`.
#[pyfunction]
pub fn causes() -> Vec<(&'static str, &'static str)> {
    Cause::ALL.iter().map(|c| (c.name(), c.meaning())).collect()
}
