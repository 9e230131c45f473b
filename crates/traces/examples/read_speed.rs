//! Speed of reading a trace: `read_speed FILE [FORMAT]`. `benches/traces.py` runs it. Prints
//! requests, bytes written and seconds of CPU time of the thread, so that a busy machine changes
//! them little.

use fscost_traces::{Format, Kind, Result, Trace};
use rustix::time::{ClockId, clock_gettime};

#[allow(clippy::print_stdout)] // the result
fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let format = arguments.next().and_then(|name| Format::of_name(&name));
    let began = cpu_seconds();
    let mut trace = Trace::open(path.as_ref(), format)?;
    let (mut requests, mut device_write_bytes) = (0u64, 0u64);
    while let Some(request) = trace.next_request()? {
        requests += 1;
        if request.kind == Kind::Write {
            device_write_bytes += request.length_bytes;
        }
    }
    let seconds = cpu_seconds() - began;
    println!(
        "{} {requests} {device_write_bytes} {seconds}",
        trace.format().name()
    );
    Ok(())
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
