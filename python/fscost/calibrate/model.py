"""Model parameters that reproduce measurements."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fscost import devices, latency
from fscost.calibrate.fio import (
    DEEP,
    LARGE_BYTES,
    OF_FLASH,
    OF_HARD_DISKS,
    SHORT_SHARE,
    Answer,
)
from fscost.calibrate.fio import SMALL_BYTES as SMALL

Value = int | float | bool
_DIES = 32
_SPARE = 4
"""Factor by which a part that must not be the bottleneck is faster than the measured rate."""
_UNBUFFERED = 2
_LEAST_US = 1.0
_MEAN_ROOT = 8 / 15
"""Mean square root of the distance between two random points on a line of length 1."""


KINDS = {"flash": OF_FLASH, "hard-disk": OF_HARD_DISKS}
"""Read-only jobs of each kind of model."""


@dataclass
class _Section:
    """Values with their sources. `measured` is the beginning of the source of each measurement."""

    measured: str
    values: dict[str, tuple[Value, str]] = field(default_factory=dict)

    def put(self, name: str, value: Value, how: str) -> None:
        rounded = round(value, 3) if isinstance(value, float) else value
        self.values[name] = (rounded, f"{self.measured}: {how}")

    def assume(self, name: str, value: Value, why: str) -> None:
        self.values[name] = (value, f"assumption: {why}")

    def text(self) -> list[str]:
        return [
            f"{name} = {{ value = {_spelled(value)}, source = {_quoted(source)} }}"
            for name, (value, source) in self.values.items()
        ]


def toml(
    kind: str,
    answers: Mapping[str, Answer],
    *,
    size_bytes: int,
    rpm: float,
    measured: str,
    summary: str,
) -> str:
    """Return a device file with a valid section [latency]. `measured`: the tool, device and date of
    the measurement."""
    section = _Section(measured)
    if kind == "flash":
        _flash(section, answers)
    else:
        _hard_disk(section, answers, size_bytes, rpm)
    label = "hard disk" if kind == "hard-disk" else "flash"
    head = [f"summary = {_quoted(summary)}", f"kind = {_quoted(label)}", "", "[latency]"]
    text = "\n".join([*head, f'model = "{kind}"', *section.text(), ""])
    latency.of_file(devices.parse("calibrated", "the calibrated model", text))
    return text


def _flash(section: _Section, answers: Mapping[str, Answer]) -> None:
    one, deep, large = (
        answers[name] for name in ("random-read", "deep-random-read", "sequential-read")
    )
    rate = int(large.bytes_per_s)
    per_read_us = SMALL / deep.bytes_per_s * 1e6
    is_queued = per_read_us < one.mean_us * 0.8
    command_us = per_read_us if is_queued else 0.0
    section.put(
        "queue_depth",
        DEEP if is_queued else 1,
        f"random reads of 4 KiB are{'' if is_queued else ' not'} faster at queue depth {DEEP}",
    )
    section.put(
        "command_us", command_us, f"random reads of 4 KiB at queue depth {DEEP}, time of each"
    )
    section.put("interface_bytes_per_s", rate, "sequential reads of 1 MiB at queue depth 8")
    section.assume("channels", _DIES, "as many as the queue, so that the controller limits reads")
    section.assume("channel_bytes_per_s", rate * _SPARE, "no bottleneck")
    page_us = (
        _reads(section, one, command_us, rate) if is_queued else _lone_reads(section, one, rate)
    )
    page_bytes = max(SMALL, _power_of_2(rate * _SPARE * page_us / 1e6 / _DIES))
    section.assume(
        "page_bytes", page_bytes, "large enough that the dies do not limit the interface"
    )
    if "random-write" in answers:
        _flash_writes(section, answers, command_us, rate)
    else:
        for name, value in (("program_bytes", 1 << 16), ("program_us", 1000.0)):
            section.assume(name, value, "writes were not measured (--write)")
        section.assume("buffer_bytes", 4 << 20, "writes were not measured (--write)")
    if "discard" in answers:
        discard_us = max(answers["discard"].median_us - command_us, 0.0)
        section.put("discard_us", discard_us, "discards of 1 MiB at queue depth 1, median")


def _reads(section: _Section, one: Answer, command_us: float, rate: int) -> float:
    """Add the time of a read to the dies, of which a queue keeps several busy."""
    moved_us = SMALL / (rate * _SPARE) * 1e6
    # A read uses the interface while its last part is on its channel.
    page_us = max(one.median_us - command_us - moved_us, 0.0)
    section.put("page_read_us", page_us, "random reads of 4 KiB at queue depth 1, median")
    return page_us


def _lone_reads(section: _Section, one: Answer, rate: int) -> float:
    """Add the time of a read to the controller. A larger request then takes longer by what the
    interface needs."""
    read_us = max(one.median_us - SMALL / rate * 1e6, 0.0)
    section.put("read_us", read_us, "random reads of 4 KiB at queue depth 1, median")
    section.assume("page_read_us", _LEAST_US, "part of read_us, because there is no queue")
    return _LEAST_US


def _flash_writes(
    section: _Section, answers: Mapping[str, Answer], command_us: float, rate: int
) -> None:
    one, synced, large = (
        answers[name] for name in ("random-write", "synced-write", "sequential-write")
    )
    moved_us = SMALL / rate * 1e6
    flush_us, how = synced.sync_median_us, "fdatasync after a random write of 4 KiB, median"
    is_volatile = one.median_us < _UNBUFFERED * flush_us
    if is_volatile:
        program_us = max(flush_us - command_us, _LEAST_US)
    else:
        # A write is durable once it completes, so that a flush has nothing to program. Programs go
        # on behind it: one at a time, they would limit writes in order to the rate of small ones.
        section.put("power_loss_protection", value=True, how="a flush takes no longer than a write")
        section.put("flush_us", max(flush_us - command_us, 0.0), "fdatasync after a write, median")
        program_us = max(_DIES * SMALL / large.bytes_per_s * 1e6, _LEAST_US)
        how = f"sequential writes of 1 MiB, if each of {_DIES} dies programs 4 KiB at once"
    section.put("program_us", program_us, how)
    write_us = max(one.median_us - command_us - moved_us, 0.0)
    section.put("write_us", write_us, "random writes of 4 KiB at queue depth 1, median")
    program_bytes = max(512, round(large.bytes_per_s * program_us / 1e6 / _DIES / 512) * 512)
    section.put(
        "program_bytes",
        program_bytes,
        f"sequential writes of 1 MiB at {large.bytes_per_s / 1e6:.1f} MB/s, on {_DIES} dies",
    )
    buffer_bytes = max(4 << 20, 2 * _DIES * program_bytes)
    section.assume("buffer_bytes", buffer_bytes, "two program operations for each die, or 4 MiB")


def _hard_disk(
    section: _Section, answers: Mapping[str, Answer], size_bytes: int, rpm: float
) -> None:
    outer, inner = (answers[f"{name}-read"].bytes_per_s for name in ("outer", "inner"))
    revolution_us = 60e6 / rpm
    same, short, whole = (
        answers[name].mean_us for name in ("same-read", "short-random-read", "random-read")
    )
    # Random reads wait for half a revolution; the rest is the seek.
    seek_us, short_seek_us = (mean_us - same - revolution_us / 2 for mean_us in (whole, short))
    # Outer tracks hold more, so the short range has a smaller share of the cylinders than of the
    # bytes.
    root = (SHORT_SHARE * (outer + inner) / (2 * outer)) ** 0.5
    slope_us = max(seek_us - short_seek_us, 0.0) / (_MEAN_ROOT * (1 - root))
    track_seek_us = max(seek_us - slope_us * _MEAN_ROOT, 0.0)
    section.put("capacity_bytes", size_bytes, "size of the device")
    section.assume("rpm", rpm, "--rpm; devices do not report it")
    section.assume("zones", 30, "usual")
    track_us = revolution_us + track_seek_us
    for name, rate in (("outer", outer), ("inner", min(inner, outer))):
        where = "beginning" if name == "outer" else "end"
        section.put(
            f"{name}_track_bytes",
            max(512, round(rate * track_us / 1e6)),
            f"sequential reads of 1 MiB at the {where}, {rate / 1e6:.1f} MB/s",
        )
    section.put(
        "track_seek_us",
        track_seek_us,
        f"random reads of 4 KiB in {SHORT_SHARE * 100:.0f} % of the device, mean",
    )
    section.put(
        "full_seek_us", track_seek_us + slope_us, "random reads of 4 KiB on the whole device, mean"
    )
    section.put("command_us", same, "reads of the same 4 KiB, from the buffer, mean")
    section.assume("interface_bytes_per_s", int(outer) * _SPARE, "no bottleneck")
    section.assume("queue_depth", DEEP, "Serial ATA: 32 queued commands")
    for name, count in (("read_segments", 16), ("read_segment_bytes", LARGE_BYTES)):
        section.assume(name, count, "as in the catalogue's hdd-7200")
    section.assume("read_ahead_bytes", LARGE_BYTES, "as much as a segment holds")
    section.assume("write_cache_bytes", 16 << 20, "as in the catalogue's hdd-7200")


def _power_of_2(number: float) -> int:
    """Return the next power of 2 above the number, at most 1 MiB."""
    return min(1 << max(0, int(number)).bit_length(), LARGE_BYTES)


def _spelled(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    """Quote a TOML string; unprintable characters are left out."""
    kept = "".join(each for each in text if each.isprintable())
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'
