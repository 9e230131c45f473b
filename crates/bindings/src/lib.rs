//! `fscost._native`: recordings for Python. Conversions only, no logic.

use pyo3::prelude::*;

/// The native half of fscost.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
