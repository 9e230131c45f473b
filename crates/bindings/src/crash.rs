//! States after a power cut.

use crate::{error, recording::Recording, refused, working};
use fscost_crash::{
    Contents, Cut, Enumeration, Identities, Memory, Model, Requests, TooMany, choices, image,
};
use fscost_recording::{self as recording, Output};
use pyo3::{prelude::*, types::PyBytes};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// The requests of a recording, to cut the power at any instant.
#[pyclass(frozen, module = "fscost._native")]
pub struct Crash {
    shared: Arc<Shared>,
    requests: Arc<Requests>,
}

/// A recording, and what is read of its content when it is needed first.
struct Shared {
    recording: Arc<recording::Recording>,
    digests: OnceLock<Contents>,
    memory: OnceLock<Option<Memory>>,
}

impl Shared {
    fn digests(&self) -> recording::Result<&Contents> {
        found_or(&self.digests, || Contents::read(&self.recording))
    }

    fn memory(&self) -> recording::Result<Option<&Memory>> {
        found_or(&self.memory, || Memory::read(&self.recording)).map(Option::as_ref)
    }
}

/// Returns the value, which is read first if there is none.
fn found_or<T>(
    place: &OnceLock<T>,
    read: impl FnOnce() -> recording::Result<T>,
) -> recording::Result<&T> {
    if let Some(found) = place.get() {
        return Ok(found);
    }
    let found = read()?;
    Ok(place.get_or_init(|| found))
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
    /// Read a recording.
    #[new]
    fn new(py: Python<'_>, recording: &Recording) -> PyResult<Self> {
        let shared = Arc::new(Shared {
            recording: Arc::clone(recording.inner()),
            digests: OnceLock::new(),
            memory: OnceLock::new(),
        });
        Self::reading(py, shared, Vec::new())
    }

    /// Return the same recording without flushes of these numbers, for a control.
    fn without(&self, py: Python<'_>, flushes: Vec<u64>) -> PyResult<Self> {
        Self::reading(py, Arc::clone(&self.shared), flushes)
    }

    /// Hold the content of a small recording in memory, for this process and its forks.
    fn hold(&self, py: Python<'_>) -> PyResult<()> {
        let shared = Arc::clone(&self.shared);
        working(py, move || shared.memory().map(drop))
    }

    /// Return at most `most` instants, in nanoseconds, at which to cut the power.
    fn cuts(&self, begin_ns: u64, end_ns: u64, most: usize) -> Vec<u64> {
        self.requests.cuts(begin_ns, end_ns, most)
    }

    /// Return the numbers of the writes that had completed at an instant and that a power cut may
    /// lose, ascending.
    fn volatile(&self, at_ns: u64) -> Vec<u64> {
        self.requests.volatile(at_ns)
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
        let (shared, requests) = (Arc::clone(&self.shared), Arc::clone(&self.requests));
        working(py, move || {
            let digests = shared.digests()?;
            let cut = device.cut(&requests, at_ns);
            let identities = Identities::new(digests, &cut);
            let found = choices(&cut, device.model, most, seed);
            Ok(found
                .into_iter()
                .map(|choice| {
                    let same = identities.of(&choice.kept);
                    (choice.how, choice.kept, format!("{same:032x}"))
                })
                .collect())
        })
    }

    /// Return an enumeration of states, which takes at most `most_bytes` of memory.
    fn enumeration(&self, device: &str, most_bytes: usize) -> PyResult<States> {
        Ok(States {
            shared: Arc::clone(&self.shared),
            requests: Arc::clone(&self.requests),
            device: Device::named(device)?,
            found: Arc::new(Mutex::new(Enumeration::new(most_bytes))),
        })
    }

    /// Write a disk in one of these states, sparse, to the file behind a descriptor, in place of
    /// what it holds. `path` is used in errors.
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
        let (shared, requests) = (Arc::clone(&self.shared), Arc::clone(&self.requests));
        working(py, move || {
            let cut = device.cut(&requests, at_ns);
            match shared.memory()? {
                Some(memory) => memory.export(&cut, disk, &kept, out.file()),
                None => image(&shared.recording, &cut, disk, &kept)?.export(out.file()),
            }
        })
    }
}

impl Crash {
    fn reading(py: Python<'_>, shared: Arc<Shared>, without: Vec<u64>) -> PyResult<Self> {
        let inner = Arc::clone(&shared);
        let requests = working(py, move || Requests::read(&inner.recording, &without))?;
        Ok(Self {
            shared,
            requests: Arc::new(requests),
        })
    }
}

/// States of several cuts, each image once.
#[pyclass(frozen, module = "fscost._native")]
pub struct States {
    shared: Arc<Shared>,
    requests: Arc<Requests>,
    device: Device,
    found: Arc<Mutex<Enumeration>>,
}

#[pymethods]
impl States {
    /// Return at most `most` states of a cut: `[(number, how, kept)]`. One with the number of an
    /// earlier cut's state has its image, and takes its place. `kept` are places in `pending`, four
    /// bytes each. Raises ValueError if all states take too much memory.
    fn add<'py>(
        &self,
        py: Python<'py>,
        at_ns: u64,
        most: usize,
        seed: u64,
    ) -> PyResult<Vec<(u32, &'static str, Bound<'py, PyBytes>)>> {
        let (shared, requests) = (Arc::clone(&self.shared), Arc::clone(&self.requests));
        let (device, found) = (self.device, Arc::clone(&self.found));
        let new = working(py, move || {
            let digests = shared.digests()?;
            let cut = device.cut(&requests, at_ns);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(found.add(digests, &cut, device.model, most, seed))
        })?;
        let new = new.map_err(|error: TooMany| refused(error))?;
        let choices = new.into_iter().map(|(number, choice)| {
            let mut places = Vec::with_capacity(size_of_val(&choice.kept[..]));
            for place in choice.kept {
                places.extend_from_slice(&place.to_ne_bytes());
            }
            (number, choice.how, PyBytes::new(py, &places))
        });
        Ok(choices.collect())
    }

    /// Return how many states there were, and how many of them had different contents.
    fn counts(&self) -> (u64, usize) {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        (found.tried(), found.different())
    }
}
