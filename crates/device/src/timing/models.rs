//! Model files of the disks.

use fscost_latency::{Device, Model};
use fscost_recording::DiskInfo;
use std::path::PathBuf;

/// Read the model files that disks have been given by name. A disk that completes requests at once
/// has no model.
pub fn read(
    disks: &[DiskInfo],
    files: &[(String, PathBuf)],
    seed: u64,
) -> Result<Vec<Option<Device>>, Box<dyn std::error::Error>> {
    let mut devices: Vec<_> = disks.iter().map(|_| None).collect();
    for (name, path) in files {
        let found = disks.iter().position(|disk| disk.name == *name);
        let index = found.ok_or_else(|| format!("--model: no disk is called {name:?}"))?;
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let model = Model::parse(&shown, &text)?;
        // Each disk makes its own random choices.
        let seed = seed.wrapping_add(index as u64);
        let device = || Device::new(&model, disks[index].size_bytes, seed);
        devices[index] = (!model.is_instant()).then(device);
    }
    Ok(devices)
}
