//! States after a power cut.

use crate::{error, recording::Recording, refused, working};
use fscost_crash::{Contents, Cut, Model, Requests, choices, identity, image};
use fscost_recording::{self as recording, Output};
use pyo3::prelude::*;
use std::{path::PathBuf, sync::Arc};

/// The requests of a recording, to cut the power at any instant.
#[pyclass(frozen, module = "fscost._native")]
pub struct Crash {
    recording: Arc<recording::Recording>,
    requests: Arc<Requests>,
    contents: Arc<Contents>,
}

/// A named device model: what it keeps of its cache, and in which order.
#[derive(Clone, Copy)]
struct Device {
    unit_bytes: u64,
    model: Model,
    is_protected: bool,
}

impl Device {
    fn named(name: &str) -> PyResult<Device> {
        let (unit_bytes, model, is_protected) = match name {
            "reorder-4k" => (4096, Model::Reorder, false),
            "reorder-512" => (512, Model::Reorder, false),
            "in-order" => (4096, Model::InOrder, false),
            "power-loss-protected" => (4096, Model::Reorder, true),
            other => return Err(refused(format!("unknown device model {other:?}"))),
        };
        Ok(Device {
            unit_bytes,
            model,
            is_protected,
        })
    }

    fn cut(self, requests: &Requests, at_ns: u64) -> Cut<'_> {
        requests.cut(at_ns, self.unit_bytes, self.is_protected)
    }
}

#[pymethods]
impl Crash {
    /// Read a recording. `without` are the numbers of flushes to leave out, for a control.
    #[new]
    #[pyo3(signature = (recording, without=Vec::new()))]
    fn new(py: Python<'_>, recording: &Recording, without: Vec<u64>) -> PyResult<Self> {
        let recording = Arc::clone(recording.inner());
        let inner = Arc::clone(&recording);
        let (requests, contents) = working(py, move || {
            Ok((Requests::read(&inner, &without)?, Contents::read(&inner)?))
        })?;
        Ok(Self {
            recording,
            requests: Arc::new(requests),
            contents: Arc::new(contents),
        })
    }

    /// Return at most `most` instants, in nanoseconds, at which to cut the power.
    fn cuts(&self, begin_ns: u64, end_ns: u64, most: usize) -> Vec<u64> {
        self.requests.cuts(begin_ns, end_ns, most)
    }

    /// Return what a power cut at an instant may lose: `[(event, disk, offset, length)]`.
    fn pending(&self, at_ns: u64, device: &str) -> PyResult<Vec<(u64, u16, u64, u64)>> {
        let device = Device::named(device)?;
        let cut = device.cut(&self.requests, at_ns);
        let fields = cut.pending.iter();
        Ok(fields
            .map(|unit| (unit.event, unit.disk, unit.offset, unit.length))
            .collect())
    }

    /// Return at most `most` states after a cut: `[(how, kept, identity)]`. `kept` are places in
    /// `pending`. States with the same `identity` have the same content.
    fn states(
        &self,
        py: Python<'_>,
        at_ns: u64,
        device: &str,
        most: usize,
        seed: u64,
    ) -> PyResult<Vec<(&'static str, Vec<u32>, String)>> {
        let device = Device::named(device)?;
        let (recording, requests) = (Arc::clone(&self.recording), Arc::clone(&self.requests));
        let contents = Arc::clone(&self.contents);
        working(py, move || {
            let cut = device.cut(&requests, at_ns);
            let found = choices(&cut, device.model, most, seed);
            Ok(found
                .into_iter()
                .map(|choice| {
                    let same = identity(&recording, &contents, &cut, &choice.kept);
                    (choice.how, choice.kept, format!("{same:032x}"))
                })
                .collect())
        })
    }

    /// Write a disk in one of these states, sparse, to the empty file behind a descriptor. `path`
    /// is used in errors.
    #[allow(clippy::too_many_arguments)] // They are the Python method's.
    fn export(
        &self,
        py: Python<'_>,
        at_ns: u64,
        device: &str,
        kept: Vec<u32>,
        disk: u16,
        descriptor: i32,
        path: PathBuf,
    ) -> PyResult<()> {
        let device = Device::named(device)?;
        let out = Output::of_descriptor(descriptor, &path).map_err(error)?;
        let (recording, requests) = (Arc::clone(&self.recording), Arc::clone(&self.requests));
        working(py, move || {
            let cut = device.cut(&requests, at_ns);
            image(&recording, &cut, disk, &kept)?.export(out.file())
        })
    }
}
