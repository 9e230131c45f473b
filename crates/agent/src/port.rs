//! virtio-serial ports of a guest, found by name: their numbers follow the order of QEMU's command
//! line.

use crate::error::{CellError, Context, Kind, Result};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for devices and shares to appear: they are plugged in after the snapshot, some time after
/// the order.
const PLUG_LIMIT: Duration = Duration::from_secs(20);
const PLUG_PAUSE: Duration = Duration::from_millis(5);

/// Opens a port for reading and writing.
pub fn open_port(name: &str) -> Result<File> {
    let path = wait_for(&format!("port {name}"), || {
        fs::read_dir("/sys/class/virtio-ports")
            .ok()?
            .flatten()
            .find_map(|entry| {
                let found = fs::read_to_string(entry.path().join("name")).ok()?;
                (found.trim() == name).then(|| Path::new("/dev").join(entry.file_name()))
            })
    })?;
    File::options()
        .read(true)
        .write(true)
        .open(&path)
        .internal(|| format!("open {}", path.display()))
}

/// Calls `look` until it succeeds; fails after 20 s.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + PLUG_LIMIT;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            let seconds = PLUG_LIMIT.as_secs();
            return Err(CellError::new(
                Kind::Attach,
                format!("{what} did not appear within {seconds} s"),
            ));
        }
        std::thread::sleep(PLUG_PAUSE);
    }
}
