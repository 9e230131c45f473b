"""Fuzzed agent output: the only error is ProtocolError, and the lab turns it into a failed cell."""

import contextlib
import json
import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fscost.lab.cell.events import Inspected, ProtocolError, parse
from fscost.lab.cell.samples import samples
from fscost.lab.cell.transcript import Transcript

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """Draw one fault: an action, its place and its value."""
    kind = draw(st.sampled_from(["bytes", "cut", "drop", "repeat", "swap", "field", "delete"]))
    return (
        kind,
        draw(st.integers(0, 1 << 16)),
        draw(json_values if kind == "field" else st.binary(min_size=1, max_size=8)),
    )


def apply(events: list[dict[str, Any]], fault: tuple[str, Any, Any]) -> bytes:
    """Return the stream with one fault in it."""
    kind, where, what = fault
    events = [dict(event) for event in events]
    chosen = where % len(events)
    match kind:
        case "drop":
            del events[chosen]
        case "repeat":
            events.insert(chosen, events[chosen])
        case "swap":
            events[chosen], events[-1] = events[-1], events[chosen]
        case "field" | "delete":
            names = sorted(events[chosen])
            name = names[where // len(events) % len(names)]
            if kind == "field":
                events[chosen][name] = what
            else:
                del events[chosen][name]
    stream = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    at = where % len(stream)
    if kind == "bytes":
        stream = stream[:at] + what + stream[at + len(what) :]
    return stream[:at] if kind == "cut" else stream


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=500)
def test_a_line_is_an_event_or_a_protocol_error(line: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        parse(line)


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"event":' * 50_000, b"9" * 100_000, b"\xff\xfe", b"NaN"]
)
def test_known_traps_of_json(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(line)


@pytest.mark.parametrize(
    "value",
    [
        b'"\\ud800"',
        b'{"\\uDc00": 1}',
        b'"\xed\xa0\x80"',
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"[[1e400]]",
    ],
)
def test_what_json_cannot_write_again_is_refused(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(b'{"event": "done", "recording": {"a": %s}}' % value)


def test_a_whole_surrogate_pair_is_a_letter() -> None:
    assert parse(b'{"event": "inspected", "name": "\\ud83d\\ude00", "output": ""}') == Inspected(
        "\U0001f600", ""
    )


@given(st.lists(mutations(), min_size=1, max_size=3))
@settings(
    max_examples=1000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_damaged_stream_never_raises_anything_else(
    stage: Any, faults: list[tuple[str, Any, Any]]
) -> None:
    """The events are read as in the lab, without the processes."""
    stream = apply(stage.good_events(), faults[0])
    for kind, where, what in faults[1:]:
        if stream and kind == "bytes":
            at = where % len(stream)
            stream = stream[:at] + what + stream[at:]
    transcript = Transcript(
        ["mkfs", "mount", "unpack", "build"], ["main"], ["superblock"], lambda _: None
    )
    transcript.begin()
    with contextlib.suppress(ProtocolError):
        for line in stream.splitlines():
            transcript.hear(parse(line))
    samples(transcript.intervals)
    json.dumps(transcript.facts(), ensure_ascii=False, allow_nan=False).encode()


@given(mutations())
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_damaged_stream_is_a_failed_cell_or_a_whole_one(
    stage: Any, fault: tuple[str, Any, Any]
) -> None:
    # The examples share one stage, but each cell needs a new folder.
    shutil.rmtree(stage.options.cell_dir, ignore_errors=True)
    stage.say(apply(stage.good_events(), fault))
    stage.record()
    result = stage.run()
    assert result.status in ("done", "failed")
    assert bool(result.because) is (result.status == "failed")
    assert bool(result.samples) is (result.status == "done")
