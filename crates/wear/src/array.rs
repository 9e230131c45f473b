//! Workloads of the members of an array that a recorded disk stands for.

use crate::members::{Next, OnArray, for_each_request};
use fscost_raid::Operation;
use fscost_recording::{Recording, Result};
use fscost_ssd::{Part, Spec, Workload};

/// Tag of all requests: requests to members are not explained.
const ONLY: u16 = 0;

/// Returns the workload of each member, in the units of a device. The intervals named in `measured`
/// are the workload; requests of all others are its setup. Writes of an interval can wait in the
/// stripe cache until the next one begins, but no longer.
pub fn of_array(
    recording: &Recording,
    array: &OnArray,
    spec: &Spec,
    measured: &[String],
) -> Result<Vec<Workload>> {
    let of_member = |&bytes: &u64| Workload::new(spec.unit_bytes_for(bytes), bytes);
    let mut workloads: Vec<Workload> = array.geometry.member_bytes.iter().map(of_member).collect();
    let part = |name: &str| match measured.iter().any(|each| each == name) {
        true => Part::Cycle,
        false => Part::Setup,
    };
    let mut now = part("before");
    for_each_request(recording, Some(array), |next| {
        match next {
            Next::Interval(name) => now = part(&name),
            Next::Request(request) => {
                if let Some(workload) = workloads.get_mut(request.member) {
                    match request.operation {
                        Operation::Write => {
                            workload.write(now, request.offset, [(request.bytes, ONLY)])
                        }
                        Operation::Discard => {
                            workload.trim(now, request.offset, request.bytes, ONLY)
                        }
                        Operation::Flush => workload.flush(now, ONLY),
                        Operation::Read | Operation::Preread => {}
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(workloads)
}
