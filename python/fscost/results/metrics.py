"""Every number that fscost measures: its unit, how phases add up to the total, what it means."""

from dataclasses import dataclass
from enum import StrEnum

from fscost.results.written import MEANINGS


class Combine(StrEnum):
    """How the values of a cell's measured phases become the value of `total`."""

    SUM = "sum"
    LAST = "last"
    MAX = "max"
    RATIO = "ratio"
    ONLY = "only"
    """No total can be computed from the phases' values; one measured phase alone is its own
    total."""
    GIVEN = "given"
    """The total comes with the values: a percentile of all phases is no sum of theirs."""


@dataclass(frozen=True)
class Metric:
    """`numerator` and `denominator` name the sums that a RATIO's total is computed from."""

    name: str
    unit: str
    combine: Combine
    meaning: str
    lower_is_better: bool = True
    numerator: str = ""
    denominator: str = ""
    waits: bool = False
    """Whether waiting for the disk is in it: by an emulated guest's virtual clock it says nothing
    of a disk."""

    @property
    def additive(self) -> bool:
        """Whether values of phases, and of disks, add up."""
        return self.combine is Combine.SUM


def _bytes(name: str, meaning: str) -> Metric:
    return Metric(name, "bytes", Combine.SUM, meaning)


def _count(name: str, meaning: str, *, lower_is_better: bool = True) -> Metric:
    return Metric(name, "count", Combine.SUM, meaning, lower_is_better)


def _given(name: str, unit: str, meaning: str, *, lower_is_better: bool = True) -> Metric:
    return Metric(name, unit, Combine.GIVEN, meaning, lower_is_better)


def _latencies(op: str) -> tuple[Metric, ...]:
    meaning = "of the times that the device models of its disks take for a"
    return tuple(
        _given(f"{op}_latency_ns_{name}", "ns", f"{words} {meaning} {op} request")
        for name, words in (("p50", "median"), ("p99", "99th percentile"))
    )


def _seconds(name: str, meaning: str, combine: Combine = Combine.SUM) -> Metric:
    return Metric(name, "s", combine, meaning, waits=not name.startswith("cpu_"))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _bytes("device_write_bytes", "written to the disk, zeroes included"),
        _bytes(
            "device_fresh_write_bytes",
            "the part of device_write_bytes that went to places never written before, mkfs included",
        ),
        _bytes(
            "settle_write_bytes",
            "the part of device_write_bytes after the command: in sync and unmount",
        ),
        _bytes("unmount_write_bytes", "the part of settle_write_bytes from the unmount on"),
        _bytes("device_read_bytes", "read from the disk"),
        _bytes("device_discard_bytes", "told to the disk as no longer needed (TRIM)"),
        _count("device_write_requests", "write requests to the disk"),
        _count("device_read_requests", "read requests to the disk"),
        _count("device_discards", "discard requests to the disk"),
        _count("device_flushes", "cache flushes sent to the disk"),
        _bytes("program_write_bytes", "handed to the kernel by the commands"),
        _bytes("program_read_bytes", "handed to the commands by the kernel"),
        Metric(
            "write_amplification",
            "ratio",
            Combine.RATIO,
            "device_write_bytes ÷ program_write_bytes",
            numerator="device_write_bytes",
            denominator="program_write_bytes",
        ),
        _seconds("wall_s", "from a phase's begin until it is settled"),
        _seconds("command_s", "the part of wall_s in the command"),
        _seconds("settle_s", "the part of wall_s in sync or unmount"),
        _seconds("cpu_s", "CPU of the commands and the kernel's threads, without the disk server"),
        _seconds("cpu_user_s", "CPU of the commands in user mode"),
        _seconds("cpu_system_s", "CPU of the commands in the kernel"),
        _seconds("cpu_kernel_threads_s", "CPU of the kernel's own threads"),
        _seconds(
            "cpu_disk_server_s",
            "CPU of the disk server: the price of recording, not of the file system",
        ),
        Metric(
            "space_used_bytes",
            "bytes",
            Combine.LAST,
            "used on the file system at the end of the phase",
        ),
        Metric(
            "metadata_used_bytes",
            "bytes",
            Combine.LAST,
            "used by metadata at the end of the phase (btrfs)",
        ),
        _count("sync_calls", "fsync, fdatasync and O_SYNC writes of the commands"),
        *(
            Metric(
                f"fsync_latency_ns_{name}",
                "ns",
                Combine.GIVEN,
                f"{words} of the times that the commands' fsync and fdatasync calls take",
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
        _count(
            "probe_operations", "directories made and removed by the probe", lower_is_better=False
        ),
        *(metric for op in ("read", "write", "flush") for metric in _latencies(op)),
        _given(
            "device_utilisation",
            "ratio",
            "share of the time in which a modelled disk has a request outstanding",
        ),
        _given(
            "queue_depth_mean",
            "count",
            "requests outstanding on modelled disks while there are any",
        ),
        _given("queue_depth_max", "count", "most requests outstanding on modelled disks"),
        _given(
            "reply_late_ns_p99",
            "ns",
            "99th percentile of how late after the model's completion a reply was sent: the error"
            " of modelled times",
        ),
        Metric(
            "least_wall_s",
            "s",
            Combine.SUM,
            "lower bound of the time on the device models of the disks: the requests of the run"
            " replayed, of which only flushes and FUA make others wait",
        ),
        Metric(
            "modelled_elapsed_s",
            "s",
            Combine.SUM,
            "what the phase takes on a modelled SSD, the program's own time left out",
        ),
        Metric("modelled_busy_s", "s", Combine.SUM, "how long the modelled SSD is busy"),
        _bytes("modelled_nand_write_bytes", "programmed by the modelled SSD"),
        Metric(
            "nand_write_bytes",
            "bytes",
            Combine.ONLY,
            "programmed by the device of --ssd for one run of the workload (docs/wear.md)",
        ),
        Metric(
            "lifetime_runs",
            "count",
            Combine.ONLY,
            "runs of the workload until a block of that device is worn out",
            lower_is_better=False,
        ),
        Metric(
            "lifetime_years",
            "years",
            Combine.ONLY,
            "life of that device if the workload runs as often as on the baseline",
            lower_is_better=False,
        ),
        *(_bytes(name, meaning) for name, meaning in MEANINGS.items()),
    )
}
"""By name. A new metric needs an entry here and samples of its name (lab/cell/samples.py,
run/explained.py); those of what was written come from the classifier's names."""
