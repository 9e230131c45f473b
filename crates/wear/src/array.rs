//! Workloads of the members of an array that a recorded disk stands for.

use crate::{
    UNEXPLAINED, check,
    members::{Next, OnArray, for_each_request},
    part_of,
};
use fscost_raid::Operation;
use fscost_recording::{Recording, Result};
use fscost_ssd::{Spec, Workload};

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
    let mut part = part_of("before", measured);
    let mut steps = 0;
    for_each_request(recording, Some(array), |next| {
        let request = match next {
            Next::Request(request, _) => request,
            Next::Interval(name) => {
                part = part_of(&name, measured);
                return Ok(());
            }
        };
        let (offset, bytes) = (request.offset, request.bytes);
        if let Some(workload) = workloads.get_mut(request.member) {
            match request.operation {
                Operation::Write => workload.write(part, offset, [(bytes, UNEXPLAINED)]),
                Operation::Discard => workload.trim(part, offset, bytes, UNEXPLAINED),
                Operation::Flush => workload.flush(part, UNEXPLAINED),
                Operation::Read | Operation::Preread => return Ok(()),
            }
            steps += 1;
        }
        check(steps)
    })?;
    Ok(workloads)
}
