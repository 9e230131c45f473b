//! Recorded requests on an SSD model, as dictionaries and columns.

use crate::{RecordingError, interruptible::interruptible, refused};
use fscost_ssd::{
    Association, Collection, LogBlocks, Mapping, Options, PageMapOptions, Repeat, Replay,
    Separation, Spec, Timing, UNATTRIBUTED, Wear,
};
use fscost_traces::{ErrorKind, Format};
use fscost_wear::{By, DISCARDS, Group, OTHERS, of_trace};
use pyo3::{
    prelude::*,
    types::{IntoPyDict as _, PyDict},
};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

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

fn repeat_of(name: &str) -> PyResult<Repeat> {
    Ok(match name {
        "exact" => Repeat::Exact,
        "varied" => Repeat::Varied,
        "roaming" => Repeat::Roaming,
        other => return Err(unknown("repeat", other)),
    })
}

fn unknown(field: &str, value: &str) -> PyErr {
    refused(format!("{field} {value:?} is unknown"))
}

/// Requests of one disk, in the units of a device. Tags are indices into `groups`.
#[pyclass(frozen, module = "fscost._native")]
pub struct Workload {
    inner: Arc<fscost_ssd::Workload>,
    groups: Vec<Group>,
}

impl Workload {
    pub fn new(inner: fscost_ssd::Workload, groups: Vec<Group>) -> Self {
        let inner = Arc::new(inner);
        Self { inner, groups }
    }

    /// Returns a workload without groups to charge.
    pub fn unexplained(inner: fscost_ssd::Workload) -> Self {
        Self::new(inner, Vec::new())
    }
}

/// Returns the column by which rows are grouped.
pub fn grouping(by: Option<&str>) -> PyResult<By> {
    Ok(match by {
        None | Some("cause") => By::Cause,
        Some("structure") => By::Structure,
        Some("path") => By::Path,
        Some("step") => By::Step,
        Some(other) => return Err(unknown("by", other)),
    })
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
    let format = format_of(form)?;
    let (format, disks) =
        interruptible(py, move |_| of_trace(&path, format, &spec))?.map_err(unreadable)?;
    let mut found = Vec::new();
    for disk in disks {
        let inner = disk.workload;
        if spec.unit_bytes_for(inner.disk_bytes) != inner.unit_bytes {
            let text = format!(
                "{}: a request ends at byte {}, beyond what {}-byte units can address",
                disk.name, inner.disk_bytes, inner.unit_bytes
            );
            return Err(refused(text));
        }
        let seconds = disk.duration_ns as f64 / 1e9;
        found.push((disk.name, Workload::unexplained(inner), seconds));
    }
    Ok((format.name(), found))
}

/// Returns the format with this name.
pub fn format_of(name: Option<&str>) -> PyResult<Option<Format>> {
    name.map(|name| Format::of_name(name).ok_or_else(|| unknown("format", name)))
        .transpose()
}

/// Converts an error in the same way as for a recording: the message and the kind.
pub fn unreadable(error: fscost_traces::Error) -> PyErr {
    let kind = match error.kind {
        ErrorKind::Io => "io",
        ErrorKind::Format => "format",
        ErrorKind::Malformed => "malformed",
        ErrorKind::TooLarge => "too-large",
    };
    RecordingError::new_err((error.to_string(), kind))
}

#[pymethods]
impl Workload {
    /// Return the demands of one pass on the device: `{"unit_bytes", "disk_bytes", "write_bytes",
    /// "write_units", "trim_bytes", "flushes"}`.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        [
            ("unit_bytes", u64::from(self.inner.unit_bytes)),
            ("disk_bytes", self.inner.disk_bytes),
            ("write_bytes", self.inner.write_bytes),
            ("write_units", self.inner.cycle_units()),
            ("trim_bytes", self.inner.trim_bytes),
            ("flushes", self.inner.flushes),
        ]
        .into_py_dict(py)
    }

    /// Return the same requests on a disk that has only the units that the workload writes, packed
    /// together in the same order. The erase blocks of a device that maps blocks stay whole.
    fn footprint(&self, py: Python<'_>, device: Device) -> PyResult<Workload> {
        let together = device.spec()?.units_together(self.inner.unit_bytes);
        let inner = Arc::clone(&self.inner);
        let found = interruptible(py, move |_| inner.footprint(together))?;
        Ok(Workload::new(found, self.groups.clone()))
    }

    /// Return the same requests on a disk of another size, which must hold them.
    fn on_disk(&self, disk_bytes: u64) -> Workload {
        let inner = fscost_ssd::Workload {
            disk_bytes,
            ..(*self.inner).clone()
        };
        Workload::new(inner, self.groups.clone())
    }

    /// Play the workload on a device of the disk's size until its write amplification is steady.
    /// `repeat` says how passes differ (`exact`, `varied` or `roaming`); `varied_units` units do.
    /// Counts cover `counted_passes` passes; `erases` (u32, by block) covers all `passes`. With
    /// `by_tag`, `charges` lists `(name, home, write_bytes of one pass, written_units,
    /// padded_units, moved_units, caused_units)` of each group. `name` is an index into the explanation's names,
    /// or -1 for none, -2 for the rest, -3 for discards, -4 for data that the workload did not
    /// write; `home` is an index into the names of structures, or -1.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        device: Device,
        fill: f64,
        max_rounds: u32,
        by_tag: bool,
        repeat: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let spec = device.spec()?;
        let options = Options {
            fill,
            max_rounds,
            by_tag,
            repeat: repeat_of(repeat)?,
            seed: device.seed,
        };
        let inner = Arc::clone(&self.inner);
        let replay =
            move |is_stopped: &AtomicBool| fscost_ssd::replay(&spec, &inner, &options, is_stopped);
        let found = interruptible(py, replay)?.map_err(refused)?;
        let result = told(py, &found)?;
        if by_tag {
            result.set_item("charges", self.charges(&found))?;
        }
        Ok(result)
    }
}

/// Charges of a group: the numbers of its names, the bytes that one pass writes for it, and its
/// written, padded, moved and caused units.
type Charged = (i32, i32, u64, u64, u64, u64, u64);

impl Workload {
    fn charges(&self, found: &Replay) -> Vec<Charged> {
        let name = |tag: u16, of: fn(&Group) -> i32| match tag {
            UNATTRIBUTED => -4,
            DISCARDS => -3,
            OTHERS => -2,
            tag => self.groups.get(usize::from(tag)).map_or(-2, of),
        };
        let write_bytes = &self.inner.write_bytes_by_tag;
        let charged = found.charges.iter().map(|&(tag, units)| {
            (
                name(tag, |group| group.name),
                name(tag, |group| group.home),
                write_bytes.get(usize::from(tag)).copied().unwrap_or(0),
                units.written_units,
                units.padded_units,
                units.moved_units,
                units.caused_units,
            )
        });
        charged.collect()
    }
}

fn told<'py>(py: Python<'py>, found: &Replay) -> PyResult<Bound<'py, PyDict>> {
    let (geometry, counted) = (found.scaled.geometry, found.counted);
    let wear = Wear::of(&found.erases);
    let result = [
        ("unit_bytes", u64::from(geometry.unit_bytes)),
        ("page_units", u64::from(geometry.units_per_page)),
        ("block_units", u64::from(geometry.units_per_block)),
        ("blocks", u64::from(geometry.blocks)),
        ("logical_units", u64::from(geometry.logical_units)),
        ("mapped_units", found.mapped_units),
        ("filled_units", found.filled_units),
        ("varied_units", found.varied_units),
        ("roaming_units", found.roaming_units),
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
    ]
    .into_py_dict(py)?;
    result.set_item("cold_blocks", found.scaled.cold_blocks)?;
    result.set_item("mean_erases", wear.mean_erases)?;
    result.set_item("erases_variance", wear.variance)?;
    result.set_item("is_steady", found.is_steady)?;
    result.set_item("nominal_spare", found.nominal_spare)?;
    result.set_item("effective_spare", found.effective_spare)?;
    let erases = found.erases.iter().flat_map(|count| count.to_le_bytes());
    result.set_item("erases", erases.collect::<Vec<u8>>())?;
    Ok(result)
}
