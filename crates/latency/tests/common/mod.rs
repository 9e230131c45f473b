//! Runs of devices that several tests make.
#![allow(missing_docs, dead_code, clippy::unwrap_used)]

use fscost_latency::{Completion, Device, Model, Op, Request};

pub fn model(text: &str) -> Model {
    Model::parse("test.toml", &format!("[latency]\n{text}")).unwrap()
}

pub fn request(id: u64, op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
    Request {
        id,
        op,
        offset_bytes,
        length_bytes,
        fua: false,
    }
}

/// A request and when it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    pub submitted_ns: u64,
    pub completed_ns: u64,
}

impl Ran {
    pub fn latency_ns(&self) -> u64 {
        self.completed_ns - self.submitted_ns
    }
}

/// Keeps `depth` requests in flight, from an instant on: the next one is submitted when one
/// completes.
pub fn closed_loop(
    device: &mut Device,
    from_ns: u64,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Ran> {
    let mut ran: Vec<Ran> = Vec::new();
    let mut done: Vec<Completion> = Vec::new();
    let mut in_flight = 0;
    let mut now_ns = from_ns;
    for request in requests {
        while in_flight >= depth {
            in_flight -= wait(device, &mut now_ns, &mut done, &mut ran);
        }
        device.submit(
            now_ns,
            Request {
                id: ran.len() as u64,
                ..request
            },
        );
        ran.push(Ran {
            submitted_ns: now_ns,
            completed_ns: u64::MAX,
        });
        in_flight += 1;
    }
    while in_flight > 0 {
        in_flight -= wait(device, &mut now_ns, &mut done, &mut ran);
    }
    ran
}

/// Runs the device until something completes.
fn wait(
    device: &mut Device,
    now_ns: &mut u64,
    done: &mut Vec<Completion>,
    ran: &mut [Ran],
) -> usize {
    loop {
        *now_ns = device.next_ns().unwrap();
        device.advance(*now_ns, done);
        if !done.is_empty() {
            break;
        }
    }
    for completion in done.iter() {
        ran[completion.id as usize].completed_ns = completion.at_ns;
    }
    let found = done.len();
    done.clear();
    found
}

pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / f64::from(count)
}

/// Asserts that two numbers differ by at most a share of the second.
#[track_caller]
pub fn assert_near(found: f64, expected: f64, share: f64) {
    assert!(
        (found - expected).abs() <= share * expected.abs(),
        "{found} is not within {share} of {expected}"
    );
}
