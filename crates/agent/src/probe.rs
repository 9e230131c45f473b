//! Probe that measures how long the file system makes other processes wait. It creates and removes
//! a small directory at a fixed interval beside the command.

use crate::error::{Context, Result};
use crate::event::ProbeResult;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const NAME: &str = ".fscost-probe";

/// A running probe.
#[derive(Debug)]
pub struct Probe {
    stop: Sender<()>,
    thread: JoinHandle<ProbeResult>,
}

impl Probe {
    /// Starts the probe in `dir`, the root of the file system under test.
    pub fn start(dir: &Path, interval_ms: u64) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(dir, flags, Mode::empty())
            .internal(|| "open the probe's directory")?;
        let (stop, stopped) = channel();
        let run = move || {
            let mut result = ProbeResult {
                interval_ms,
                pauses_ns: Vec::new(),
                failures: 0,
            };
            let interval = Duration::from_millis(interval_ms);
            let mut next = Instant::now();
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                if !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout)) {
                    return result;
                }
                match pause(&root) {
                    Ok(pause) => result
                        .pauses_ns
                        .push(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX)),
                    Err(_) => result.failures += 1,
                }
                // A pause longer than the interval is one pause, not many.
                next = (next + interval).max(Instant::now());
            }
        };
        let thread = std::thread::Builder::new()
            .name("probe".into())
            .spawn(run)
            .internal(|| "start the probe")?;
        Ok(Self { stop, thread })
    }

    /// Ends the probe; returns its results.
    pub fn end(self) -> Option<ProbeResult> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// Times mkdir and rmdir. Neither follows a symbolic link that the workload may have put there.
fn pause(root: &OwnedFd) -> rustix::io::Result<Duration> {
    let start = Instant::now();
    rustix::fs::mkdirat(root, NAME, Mode::RWXU)?;
    rustix::fs::unlinkat(root, NAME, AtFlags::REMOVEDIR)?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_MS: u64 = 5;

    /// Runs the probe, longer each time, until `is_enough`: its thread may not be scheduled. It
    /// makes at most one attempt in each interval.
    fn run(dir: &Path, is_enough: impl Fn(&ProbeResult) -> bool) -> ProbeResult {
        for ms in [100, 1_000, 10_000, 60_000] {
            let start = Instant::now();
            let probe = Probe::start(dir, INTERVAL_MS).unwrap();
            std::thread::sleep(Duration::from_millis(ms));
            let result = probe.end().unwrap();
            let attempts = result.pauses_ns.len() as u128 + u128::from(result.failures);
            let most = start.elapsed().as_millis() / u128::from(INTERVAL_MS) + 1;
            assert!(attempts <= most, "{most}: {result:?}");
            if is_enough(&result) {
                return result;
            }
        }
        panic!("the probe does not run");
    }

    #[test]
    fn pauses_are_measured_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let result = run(dir.path(), |result| {
            assert_eq!(result.failures, 0, "{result:?}");
            result.pauses_ns.len() >= 2
        });
        assert!(result.pauses_ns.iter().all(|pause| *pause > 0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp/elsewhere", dir.path().join(NAME)).unwrap();
        run(dir.path(), |result| {
            assert!(result.pauses_ns.is_empty(), "{result:?}");
            result.failures > 0
        });
        assert!(dir.path().join(NAME).is_symlink());
    }
}
