//! Counters and timers for the kernel tracepoints that this thread and its descendants pass, and
//! counters for system calls of all other processes.
//!
//! Events are read through perf_event_open(2). Unlike an instance of tracefs, an event ends with
//! its descriptor, so a killed process leaves nothing behind. Descendants inherit the events; only
//! [`OutsideCalls`] observes other processes.

mod durations;
mod names;
mod outside;
mod ring;
mod tracefs;

pub use durations::{Durations, Span, histogram};
pub use names::Names;
pub use outside::OutsideCalls;
pub use ring::Pass;
use ring::{Kind, Ring};
use std::io;
use std::os::fd::OwnedFd;

/// Error for a tracepoint that could not be observed.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub struct Error {
    doing: String,
    #[source]
    source: io::Error,
}

/// A `Result` with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    fn new(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self {
            doing: doing.into(),
            source: source.into(),
        }
    }
}

/// Observes tracepoints from its creation until it is dropped.
#[derive(Debug)]
pub struct Tracepoints {
    rings: Vec<Ring>,
    counted: u64,
}

/// Passes through the tracepoints since the previous [`Tracepoints::take`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Number of all passes.
    pub count: u64,
    /// The passes in the order of time. Fewer than `count` if the rings were full.
    pub each: Vec<Pass>,
}

impl Tracepoints {
    /// Starts observing the tracepoints `names` (such as `ext4/ext4_sync_file_enter`) in this
    /// thread and in every process that it starts from now on.
    pub fn observe(names: &[String]) -> Result<Self> {
        let mut rings = Vec::new();
        for name in names {
            let tracefs = tracefs()?;
            let inode = tracefs::field(&tracefs, name, "ino")
                .map_err(|e| Error::new(format!("read the fields of tracepoint {name}"), e))?;
            rings.extend(rings_of(name, Kind::Inodes { inode })?);
        }
        Ok(Self { rings, counted: 0 })
    }

    /// Returns the passes since the previous call.
    pub fn take(&mut self) -> Result<Passes> {
        let mut passes = Passes::default();
        for ring in &mut self.rings {
            // Read the count first: a pass between the two readings is then in the times of this
            // call and in the count of the next, and never lost.
            passes.count += ring.count()?;
            ring.take(|pass| passes.each.push(pass));
        }
        passes.each.sort_unstable_by_key(|pass| pass.at_ns);
        let counted = std::mem::replace(&mut self.counted, passes.count);
        passes.count -= counted;
        Ok(passes)
    }
}

/// Opens the rings of a tracepoint, one on each CPU: an inherited event has a ring only if it is
/// bound to one CPU (kernel/events/core.c, `perf_mmap`).
fn rings_of(name: &str, kind: Kind) -> Result<Vec<Ring>> {
    let id = tracefs::id(&tracefs()?, name)
        .map_err(|e| Error::new(format!("look up tracepoint {name}"), e))?;
    on_each_cpu(name, |cpu| Ring::open(id, cpu, kind))
}

fn tracefs() -> Result<OwnedFd> {
    tracefs::mount().map_err(|e| Error::new("mount tracefs", e))
}

/// Opens a ring on each CPU that is online.
fn on_each_cpu(what: &str, open: impl Fn(u32) -> io::Result<Ring>) -> Result<Vec<Ring>> {
    let path = "/sys/devices/system/cpu/online";
    let online =
        std::fs::read_to_string(path).map_err(|e| Error::new(format!("read {path}"), e))?;
    let on_cpu = |cpu| open(cpu).map_err(|e| Error::new(format!("observe {what} on CPU {cpu}"), e));
    cpu_list(&online).map(on_cpu).collect()
}

/// Parses a CPU list such as `0-3,8` (Documentation/admin-guide/cputopology.rst).
fn cpu_list(text: &str) -> impl Iterator<Item = u32> {
    text.trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) => first..last.saturating_add(1),
            _ => 0..0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-2,5\n").collect::<Vec<_>>(), [0, 1, 2, 5]);
        assert_eq!(cpu_list("7").collect::<Vec<_>>(), [7]);
        assert_eq!(cpu_list("").count(), 0);
    }
}
