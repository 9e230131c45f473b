//! Recorded requests on an SSD model, as dictionaries and columns.

use crate::Explanation;
use fscost_recording::Recording;
use fscost_ssd::{
    Association, Collection, Error, LogBlocks, Mapping, Options, PageMapOptions, Replay,
    Separation, Spec, Timing, UNATTRIBUTED, Wear,
};
use fscost_traces::{ErrorKind, Format};
use fscost_wear::{By, DISCARDS, Group, OTHERS, Wanted, of_recording, of_trace};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict},
};
use std::path::PathBuf;

/// Device parameters, as checked by `fscost.wear.device`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Device {
    capacity_bytes: u64,
    spare: f64,
    unit_bytes: u32,
    page_bytes: u32,
    block_bytes: u64,
    mapping: String,
    collection: String,
    choices: u32,
    hot_cold: bool,
    reserved_blocks: u32,
    levelling_gap: Option<u32>,
    open_blocks: u32,
    log_blocks: u32,
    buffer_bytes: u64,
    power_loss_protection: bool,
    seed: u64,
    read_us: u32,
    program_us: u32,
    erase_us: u32,
    parallel_pages: u32,
}

impl Device {
    pub fn spec(&self) -> PyResult<Spec> {
        Ok(Spec {
            capacity_bytes: self.capacity_bytes,
            spare: self.spare,
            unit_bytes: self.unit_bytes,
            page_bytes: self.page_bytes,
            block_bytes: self.block_bytes,
            mapping: self.mapping()?,
            buffer_bytes: self.buffer_bytes,
            is_power_loss_protected: self.power_loss_protection,
        })
    }

    pub fn timing(&self) -> Timing {
        let seconds = |micros: u32| f64::from(micros) / 1e6;
        Timing {
            read_s: seconds(self.read_us),
            program_s: seconds(self.program_us),
            erase_s: seconds(self.erase_us),
            parallel_pages: self.parallel_pages,
        }
    }

    fn mapping(&self) -> PyResult<Mapping> {
        let log = |association| {
            Mapping::Log(LogBlocks {
                association,
                log_blocks: self.log_blocks,
            })
        };
        Ok(match self.mapping.as_str() {
            "page" => Mapping::Page(PageMapOptions {
                collection: self.collection()?,
                separation: if self.hot_cold {
                    Separation::Collected
                } else {
                    Separation::Mixed
                },
                streams: 1,
                reserved_blocks: self.reserved_blocks,
                levelling_gap: self.levelling_gap,
                seed: self.seed,
            }),
            "block" => Mapping::Block {
                open_blocks: self.open_blocks,
            },
            "bast" => log(Association::Block),
            "fast" => log(Association::Full),
            other => return Err(unknown("mapping", other)),
        })
    }

    fn collection(&self) -> PyResult<Collection> {
        Ok(match self.collection.as_str() {
            "greedy" => Collection::Greedy,
            "fifo" => Collection::Fifo,
            "random" => Collection::Random,
            "choices" => Collection::Choices(self.choices),
            other => return Err(unknown("collection", other)),
        })
    }
}

fn unknown(field: &str, value: &str) -> PyErr {
    PyValueError::new_err(format!("{field} {value:?} is unknown"))
}

fn refused(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Requests of one disk, in the units of a device. Tags are indices into `groups`.
#[pyclass(frozen, module = "fscost._native")]
pub struct Workload {
    inner: fscost_ssd::Workload,
    groups: Vec<Group>,
}

impl Workload {
    /// Returns the workload of a member of an array, without charges.
    pub fn of_member(inner: fscost_ssd::Workload) -> Self {
        Self {
            inner,
            groups: Vec::new(),
        }
    }
}

/// Returns the requests of one disk. `measured` names the intervals that are repeated. With an
/// explanation, charges are kept by `cause`, `structure`, `path` or `step`.
pub fn workload(
    py: Python<'_>,
    recording: &Recording,
    disk: u16,
    device: &Device,
    measured: &[String],
    explanation: Option<&Explanation>,
    by: Option<&str>,
) -> PyResult<Workload> {
    let by = match by {
        None | Some("cause") => By::Cause,
        Some("structure") => By::Structure,
        Some("path") => By::Path,
        Some("step") => By::Step,
        Some(other) => return Err(unknown("by", other)),
    };
    let disks = &recording.header().disks;
    let disk_bytes = disks.get(usize::from(disk)).map_or(0, |d| d.size_bytes);
    let wanted = Wanted {
        disk,
        unit_bytes: device.spec()?.unit_bytes_for(disk_bytes),
        measured,
    };
    let explained = explanation.map(|found| (&found.table, by));
    let (inner, groups) = py
        .detach(|| of_recording(recording, explained, &wanted))
        .map_err(crate::error)?;
    Ok(Workload { inner, groups })
}

/// Name of the format; name, requests and duration of each disk.
type Traced = (&'static str, Vec<(String, Workload, f64)>);

/// Read the disks of another tool's trace as workloads: the format's name and `[(name, Workload,
/// seconds)]`. `form` is the format's name; without it, the content decides.
#[pyfunction]
#[pyo3(signature = (path, device, form=None))]
pub fn trace_workloads(
    py: Python<'_>,
    path: PathBuf,
    device: Device,
    form: Option<&str>,
) -> PyResult<Traced> {
    let spec = device.spec()?;
    let format = form
        .map(|name| Format::of_name(name).ok_or_else(|| unknown("format", name)))
        .transpose()?;
    let (format, disks) = py
        .detach(|| of_trace(&path, format, &spec))
        .map_err(unreadable)?;
    let mut found = Vec::new();
    for disk in disks {
        let inner = disk.workload;
        if spec.unit_bytes_for(inner.disk_bytes) != inner.unit_bytes {
            let text = format!(
                "{}: a request ends at byte {}, beyond what {}-byte units can address",
                disk.name, inner.disk_bytes, inner.unit_bytes
            );
            return Err(PyValueError::new_err(text));
        }
        let workload = Workload {
            inner,
            groups: Vec::new(),
        };
        found.push((disk.name, workload, disk.duration_ns as f64 / 1e9));
    }
    Ok((format.name(), found))
}

/// Converts an error in the same way as for a recording: the message and the kind.
fn unreadable(error: fscost_traces::Error) -> PyErr {
    let kind = match error.kind {
        ErrorKind::Io => "io",
        ErrorKind::Format => "format",
        ErrorKind::Malformed => "malformed",
    };
    crate::RecordingError::new_err((error.to_string(), kind))
}

#[pymethods]
impl Workload {
    /// Return the demands of one pass on the device: `{"unit_bytes", "disk_bytes", "write_bytes",
    /// "write_units", "trim_bytes", "flushes"}`.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = PyDict::new(py);
        info.set_item("unit_bytes", self.inner.unit_bytes)?;
        info.set_item("disk_bytes", self.inner.disk_bytes)?;
        info.set_item("write_bytes", self.inner.write_bytes)?;
        info.set_item("write_units", self.inner.cycle_units())?;
        info.set_item("trim_bytes", self.inner.trim_bytes)?;
        info.set_item("flushes", self.inner.flushes)?;
        Ok(info)
    }

    /// Return the same requests on a disk that has only the units that the workload writes, packed
    /// together in the same order.
    fn footprint(&self, py: Python<'_>) -> Workload {
        Workload {
            inner: py.detach(|| self.inner.footprint()),
            groups: self.groups.clone(),
        }
    }

    /// Play the workload on a device of the disk's size until its write amplification is steady.
    /// Counts cover `counted_passes` passes; `erases` (u32, by block) covers all `passes`. With
    /// `by_tag`, `charges` holds columns, little-endian: `{"name": i32, "home": i32, "write_bytes":
    /// u64 (one pass), "written_units": u64, "padded_units", "moved_units", "caused_units"}`.
    /// `name` is among the explanation's names, or -1 for none, -2 for the rest, -3 for discards,
    /// -4 for data that the workload did not write.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        device: Device,
        fill: f64,
        max_rounds: u32,
        by_tag: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let spec = device.spec()?;
        let options = Options {
            fill,
            max_rounds,
            by_tag,
        };
        let found = py
            .detach(|| fscost_ssd::replay(&spec, &self.inner, &options))
            .map_err(refused)?;
        let result = told(py, &found)?;
        if by_tag {
            result.set_item("charges", self.charges(py, &found)?)?;
        }
        Ok(result)
    }
}

impl Workload {
    fn charges<'py>(&self, py: Python<'py>, found: &Replay) -> PyResult<Bound<'py, PyDict>> {
        let names = |of: fn(&Group) -> i32| {
            let name = move |tag: u16| match tag {
                UNATTRIBUTED => -4,
                DISCARDS => -3,
                OTHERS => -2,
                tag => self.groups.get(usize::from(tag)).map_or(-2, of),
            };
            let numbers = found
                .charges
                .iter()
                .flat_map(|&(tag, _)| name(tag).to_le_bytes());
            numbers.collect::<Vec<u8>>()
        };
        let bytes_of = |tag: u16| {
            let by_tag = &self.inner.write_bytes_by_tag;
            by_tag.get(usize::from(tag)).copied().unwrap_or(0)
        };
        let counts = |of: fn(&fscost_ssd::Charges) -> u64| {
            let each = found
                .charges
                .iter()
                .flat_map(|(_, each)| of(each).to_le_bytes());
            each.collect::<Vec<u8>>()
        };
        let written = found
            .charges
            .iter()
            .flat_map(|&(tag, _)| bytes_of(tag).to_le_bytes());
        let columns = PyDict::new(py);
        columns.set_item("name", PyBytes::new(py, &names(|group| group.name)))?;
        columns.set_item("home", PyBytes::new(py, &names(|group| group.home)))?;
        columns.set_item(
            "write_bytes",
            PyBytes::new(py, &written.collect::<Vec<u8>>()),
        )?;
        columns.set_item(
            "written_units",
            PyBytes::new(py, &counts(|c| c.written_units)),
        )?;
        columns.set_item(
            "padded_units",
            PyBytes::new(py, &counts(|c| c.padded_units)),
        )?;
        columns.set_item("moved_units", PyBytes::new(py, &counts(|c| c.moved_units)))?;
        columns.set_item(
            "caused_units",
            PyBytes::new(py, &counts(|c| c.caused_units)),
        )?;
        Ok(columns)
    }
}

fn told<'py>(py: Python<'py>, found: &Replay) -> PyResult<Bound<'py, PyDict>> {
    let (geometry, counted, wear) = (
        found.scaled.geometry,
        found.counted,
        Wear::of(&found.erases),
    );
    let result = PyDict::new(py);
    for (name, value) in [
        ("unit_bytes", u64::from(geometry.unit_bytes)),
        ("page_units", u64::from(geometry.units_per_page)),
        ("block_units", u64::from(geometry.units_per_block)),
        ("blocks", u64::from(geometry.blocks)),
        ("logical_units", u64::from(geometry.logical_units)),
        ("mapped_units", found.mapped_units),
        ("filled_units", found.filled_units),
        ("passes", found.passes),
        ("counted_passes", found.counted_passes),
        ("host_units", counted.host_units),
        ("trimmed_units", counted.trimmed_units),
        ("absorbed_units", counted.absorbed_units),
        ("written_units", counted.written_units),
        ("copied_units", counted.copied_units),
        ("levelled_units", counted.levelled_units),
        ("padded_units", counted.padded_units),
        ("programmed_units", counted.programmed_units()),
        ("erased_blocks", counted.erases),
        ("min_erases", u64::from(wear.min_erases)),
        ("max_erases", u64::from(wear.max_erases)),
        ("worst_block", u64::from(wear.worst_block)),
    ] {
        result.set_item(name, value)?;
    }
    result.set_item("mean_erases", wear.mean_erases)?;
    result.set_item("erases_variance", wear.variance)?;
    result.set_item("is_steady", found.is_steady)?;
    result.set_item("nominal_spare", found.nominal_spare)?;
    result.set_item("effective_spare", found.effective_spare)?;
    let erases: Vec<u8> = found
        .erases
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .collect();
    result.set_item("erases", PyBytes::new(py, &erases))?;
    Ok(result)
}
