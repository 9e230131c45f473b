"""All metrics of fscost: their units, how their phases combine into the total, and their
meanings."""

from dataclasses import dataclass
from enum import StrEnum

from fscost.results.written import MEANINGS


class Combine(StrEnum):
    """Ways to combine the values of a cell's measured phases into the value of `total`."""

    SUM = "sum"
    LAST = "last"
    MAX = "max"
    RATIO = "ratio"
    ONLY = "only"
    """No total can be computed from the values of several phases. If only one phase is measured,
    its value is the total."""
    GIVEN = "given"
    """The total is given with the values: a percentile over all phases cannot be computed from the
    percentiles of single phases."""


@dataclass(frozen=True)
class Metric:
    """A metric. `numerator` and `denominator` name the sums from which a RATIO's total is
    computed."""

    name: str
    unit: str
    combine: Combine
    meaning: str
    numerator: str = ""
    denominator: str = ""
    waits: bool = False
    """True if the value includes waiting for the disk. Measured by an emulated guest's virtual
    clock, such a value says nothing about a disk."""

    @property
    def is_time(self) -> bool:
        """True for times of any unit, which are comparable only within one run."""
        return self.unit in ("s", "ns")

    @property
    def additive(self) -> bool:
        """True if values of phases, and of disks, add up."""
        return self.combine is Combine.SUM


def _bytes(name: str, meaning: str) -> Metric:
    return Metric(name, "bytes", Combine.SUM, meaning)


def _last(name: str, meaning: str) -> Metric:
    return Metric(name, "bytes", Combine.LAST, meaning)


def _count(name: str, meaning: str) -> Metric:
    return Metric(name, "count", Combine.SUM, meaning)


def _given(name: str, unit: str, meaning: str) -> Metric:
    return Metric(name, unit, Combine.GIVEN, meaning)


def _latencies(op: str) -> tuple[Metric, ...]:
    meaning = "of the time that a modelled disk takes for a"
    return tuple(
        _given(f"{op}_latency_ns_{name}", "ns", f"{words} {meaning} {op} request")
        for name, words in (("p50", "median"), ("p99", "99th percentile"))
    )


def _seconds(name: str, meaning: str, combine: Combine = Combine.SUM) -> Metric:
    return Metric(name, "s", combine, meaning, waits=not name.startswith("cpu_"))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _bytes("device_write_bytes", "written to the disk, including zeros"),
        _bytes(
            "first_write_bytes",
            "the part of device_write_bytes that went to sectors never written before, not even by"
            " mkfs",
        ),
        _bytes(
            "settle_write_bytes",
            "the part of device_write_bytes after the command: during sync and unmount",
        ),
        _bytes("unmount_write_bytes", "the part of settle_write_bytes from the unmount on"),
        _bytes("device_read_bytes", "read from the disk"),
        _bytes("device_discard_bytes", "discarded (TRIM)"),
        _count("device_write_requests", "write requests to the disk"),
        _count("device_read_requests", "read requests to the disk"),
        _count("device_discards", "discard requests to the disk"),
        _count("device_flushes", "cache flushes sent to the disk"),
        _bytes("program_write_bytes", "passed to write(2) and similar calls by the commands"),
        _bytes("program_read_bytes", "returned by read(2) and similar calls to the commands"),
        Metric(
            "write_amplification",
            "ratio",
            Combine.RATIO,
            "device_write_bytes ÷ program_write_bytes",
            numerator="device_write_bytes",
            denominator="program_write_bytes",
        ),
        _seconds("wall_s", "from the beginning of a phase until it is settled"),
        _seconds("command_s", "the part of wall_s in the command"),
        _seconds("settle_s", "the part of wall_s in sync or unmount"),
        _seconds("cpu_s", "CPU of the commands and of kernel threads, without the disk server"),
        _seconds("cpu_user_s", "CPU of the commands in user mode"),
        _seconds("cpu_system_s", "CPU of the commands in the kernel"),
        _seconds("cpu_kernel_threads_s", "CPU of kernel threads"),
        _seconds(
            "cpu_disk_server_s",
            "CPU of the disk server: the cost of recording, not of the file system",
        ),
        _last("space_used_bytes", "used on the file system at the end of the phase, as df says"),
        _last(
            "space_taken_bytes",
            "size of the disks without the space available to users: overhead, reserve and used",
        ),
        _last(
            "space_overhead_bytes",
            "the part of space_taken_bytes that df does not count as the file system's size",
        ),
        _last("space_reserved_bytes", "the part of space_taken_bytes that is free for root only"),
        _last("metadata_used_bytes", "used by metadata at the end of the phase (btrfs)"),
        _count("sync_calls", "fsync, fdatasync and O_SYNC writes of the commands"),
        _count(
            "outside_sync_calls",
            "calls of sync(2) by programs outside the cell, which write back its file system too"
            " (native lab)",
        ),
        *(
            Metric(
                f"fsync_latency_ns_{name}",
                "ns",
                Combine.GIVEN,
                f"{words} of the duration of the commands' fsync and fdatasync calls",
                waits=True,
            )
            for name, words in (
                ("p50", "median"),
                ("p95", "95th percentile"),
                ("p99", "99th percentile"),
                ("max", "maximum"),
            )
        ),
        _seconds(
            "pause_s_p99",
            "99th percentile of the probe's pauses (making and removing a directory)",
            Combine.ONLY,
        ),
        _seconds("pause_s_max", "the probe's longest pause", Combine.MAX),
        _count("probe_operations", "directories made and removed by the probe"),
        *(metric for op in ("read", "write", "flush") for metric in _latencies(op)),
        _given(
            "device_utilisation",
            "ratio",
            "share of the time in which a modelled disk has a request outstanding",
        ),
        _given(
            "queue_depth_mean",
            "count",
            "mean of outstanding requests on modelled disks, idle time excluded",
        ),
        _given("queue_depth_max", "count", "most requests outstanding on modelled disks"),
        _given(
            "reply_late_ns_p99",
            "ns",
            "99th percentile of the delay between the model's completion and the reply: the error"
            " of modelled times",
        ),
        Metric(
            "least_wall_s",
            "s",
            Combine.SUM,
            "lower bound of the time on modelled disks: a replay of the requests in which only"
            " flushes and FUA make others wait, or wall_s if that is less",
        ),
        Metric(
            "modelled_s",
            "s",
            Combine.SUM,
            "like wall_s, with the disks' time taken from a replay on device models: each request"
            " waits for all that had completed before it",
        ),
        Metric(
            "modelled_least_s",
            "s",
            Combine.SUM,
            "lower bound of modelled_s: only flushes and FUA make requests wait, unless that takes"
            " longer",
        ),
        Metric(
            "modelled_elapsed_s",
            "s",
            Combine.SUM,
            "duration of the phase on a modelled SSD, without the program's own time",
        ),
        Metric("modelled_busy_s", "s", Combine.SUM, "time during which the modelled SSD is busy"),
        _bytes("modelled_nand_write_bytes", "NAND bytes programmed by the modelled SSD"),
        Metric(
            "nand_write_bytes",
            "bytes",
            Combine.ONLY,
            "NAND bytes programmed by the device of --ssd for one run of the workload"
            " (docs/wear.md)",
        ),
        Metric(
            "exact_nand_write_bytes",
            "bytes",
            Combine.ONLY,
            "the same if each run wrote the same addresses in the same order",
        ),
        Metric(
            "roaming_nand_write_bytes",
            "bytes",
            Combine.ONLY,
            "the same if each run placed what it writes once elsewhere on the disk",
        ),
        Metric(
            "lifetime_runs",
            "count",
            Combine.ONLY,
            "runs of the workload until a block of the --ssd device is worn out",
        ),
        Metric(
            "lifetime_years",
            "years",
            Combine.ONLY,
            "lifetime of the --ssd device, for runs back to back at the speed of the baseline",
        ),
        _count("freed_segments", "segments that a log-structured file system's cleaner freed"),
        _count(
            "freed_oldest_segments",
            "the part of freed_segments that was as old as the oldest equally many",
        ),
        _bytes("lifetime_counter_bytes", "growth of ext4's own counter of bytes written"),
        Metric(
            "outcome",
            "count",
            Combine.ONLY,
            "1 if the event that the step tests happened, otherwise 0",
        ),
        *(_bytes(name, meaning) for name, meaning in MEANINGS.items()),
    )
}
"""All metrics by name. A new metric needs an entry here and samples of its name
(lab/cell/samples.py, run/after/explained.py). Metrics of bytes written by structure or cause come
from the classifier's names."""
SAID = frozenset(("freed_oldest_segments", "freed_segments", "lifetime_counter_bytes", "outcome"))
"""Metrics that a step may print about itself."""
