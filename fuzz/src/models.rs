//! Untrusted model files, and requests on the devices that they describe.

use arbitrary::{Arbitrary, Unstructured};
use fscost_latency::{Device, Model, Op, Request};
use std::collections::HashSet;

const MOST_REQUESTS: u64 = 200;

#[derive(Debug, Arbitrary)]
struct Asked {
    gap_ns: u32,
    op: u8,
    offset_bytes: u64,
    length_bytes: u32,
    fua: bool,
}

/// Reads the text of a model, a zero byte, and requests.
pub(crate) fn run(input: &[u8]) {
    let end = input.iter().position(|&byte| byte == 0);
    let (text, rest) = input.split_at(end.unwrap_or(input.len()));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let model = match Model::parse("fuzz.toml", text) {
        Ok(model) => model,
        Err(error) => {
            assert!(error.to_string().starts_with("fuzz.toml: "));
            return;
        }
    };
    let mut source = Unstructured::new(rest.get(1..).unwrap_or_default());
    let capacity = u64::arbitrary(&mut source).unwrap_or_default();
    play(&mut Device::new(&model, capacity, 1), &mut source);
}

fn play(device: &mut Device, source: &mut Unstructured<'_>) {
    let (mut now_ns, mut sent, mut last_ns) = (0, 0, 0);
    let mut done = Vec::new();
    let mut seen = HashSet::new();
    while sent < MOST_REQUESTS
        && !source.is_empty()
        && let Ok(asked) = Asked::arbitrary(source)
    {
        now_ns += u64::from(asked.gap_ns);
        device.submit(now_ns, request(sent, &asked));
        sent += 1;
    }
    while let Some(next_ns) = device.next_ns() {
        now_ns = now_ns.max(next_ns);
        device.advance(now_ns, &mut done);
        for completion in done.drain(..) {
            assert!(completion.at_ns >= last_ns, "out of order");
            assert!(seen.insert(completion.id), "completed twice");
            last_ns = completion.at_ns;
        }
    }
    assert_eq!(seen.len() as u64, sent, "a request never completed");
}

fn request(id: u64, asked: &Asked) -> Request {
    Request {
        id,
        op: match asked.op % 5 {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Discard,
            3 => Op::WriteZeroes,
            _ => Op::Flush,
        },
        offset_bytes: asked.offset_bytes,
        length_bytes: u64::from(asked.length_bytes),
        fua: asked.fua,
    }
}
