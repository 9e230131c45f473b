//! Model files: what is read, and what is refused with which words.
#![allow(missing_docs, clippy::unwrap_used)]

use fscost_latency::{Completion, Device, Model, Op, Request};

fn refused(text: &str) -> String {
    Model::parse("disk.toml", text).unwrap_err().to_string()
}

fn request(id: u64, op: Op, fua: bool) -> Request {
    Request {
        id,
        op,
        offset_bytes: 0,
        length_bytes: if op == Op::Flush { 0 } else { 4096 },
        fua,
    }
}

#[test]
fn a_value_may_name_its_source() {
    let plain = "[latency]\nmodel = \"constant\"\nread_us = 80";
    let sourced = "summary = \"x\"\n[wear]\nfoo = 1\n[latency]\n\
                   model = { value = \"constant\", source = \"a\" }\n\
                   read_us = { value = 80.0, source = \"data sheet\" }";
    assert_eq!(
        Model::parse("a", plain).unwrap(),
        Model::parse("b", sourced).unwrap()
    );
}

#[test]
fn errors_name_file_field_and_remedy() {
    for (text, part) in [
        ("= 1", "disk.toml: TOML parse error"),
        ("", "disk.toml: has no [latency] section"),
        ("latency = 3", "disk.toml: latency has the type integer"),
        (
            "[latency]",
            "disk.toml: latency.model: is missing; give one of: constant",
        ),
        ("[latency]\nmodel = 3", "latency.model: is not text"),
        (
            "[latency]\nmodel = \"hdd\"",
            "latency.model: is \"hdd\"; give one of: constant",
        ),
        (
            "[latency]\nmodel = \"constant\"\nread_ms = 1",
            "latency.read_ms: no such field; fields of this model: read_us, ",
        ),
        (
            "[latency]\nmodel = \"constant\"\nread_us = -1",
            "latency.read_us: is -1; give a number from 0 to 100000000",
        ),
        (
            "[latency]\nmodel = \"constant\"\nread_us = nan",
            "latency.read_us: is NaN; give a number",
        ),
        (
            "[latency]\nmodel = \"constant\"\nread_us = \"1\"",
            "latency.read_us: has the type string; give a number: microseconds that a read takes",
        ),
        (
            "[latency]\nmodel = \"constant\"\nread_us = { value = 1, sorce = \"\" }",
            "latency.read_us: is a table; write { value = …, source = \"…\" }",
        ),
    ] {
        let said = refused(text);
        assert!(said.contains(part), "{text:?}: {said}");
    }
}

#[test]
fn ram_completes_at_once_and_in_order() {
    assert!(Model::default().is_instant());
    let mut device = Device::new(&Model::default(), 1 << 30, 1);
    assert_eq!(device.next_ns(), None);
    device.submit(5, request(2, Op::Write, true));
    device.submit(5, request(1, Op::Flush, false));
    assert_eq!(device.next_ns(), Some(5));
    let mut done = Vec::new();
    device.advance(5, &mut done);
    let at_ns = 5;
    assert_eq!(
        done,
        [Completion { id: 2, at_ns }, Completion { id: 1, at_ns }]
    );
    assert_eq!(device.next_ns(), None);
}

#[test]
fn a_constant_device_takes_the_same_time_for_each_request_of_a_kind() {
    let text = "[latency]\nmodel = \"constant\"\nread_us = 3\nwrite_us = 1.5\n\
                fua_us = 2\nflush_us = 10\ndiscard_us = 4";
    let model = Model::parse("a", text).unwrap();
    assert!(!model.is_instant());
    let mut device = Device::new(&model, 1 << 30, 1);
    for (id, op, fua) in [
        (0, Op::Flush, false),
        (1, Op::Read, false),
        (2, Op::Write, false),
        (3, Op::Write, true),
        (4, Op::Discard, false),
    ] {
        device.submit(1000, request(id, op, fua));
    }
    let mut done = Vec::new();
    device.advance(4_999, &mut done);
    let found: Vec<(u64, u64)> = done.iter().map(|each| (each.id, each.at_ns)).collect();
    assert_eq!(found, [(2, 2_500), (3, 3_000), (1, 4_000)]);
    assert_eq!(device.next_ns(), Some(5_000));
    device.advance(u64::MAX, &mut done);
    assert_eq!(done.len(), 5);
}

#[test]
fn every_kind_lists_its_parameters() {
    for kind in Model::kinds() {
        let parameters = Model::parameters(kind);
        assert!(!parameters.is_empty(), "{kind}");
        for each in &parameters {
            assert!(
                each.default.is_none_or(|value| each.range.contains(&value)),
                "{kind}: {}",
                each.name
            );
        }
    }
    assert!(Model::parameters("tape").is_empty());
}
