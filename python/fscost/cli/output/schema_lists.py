"""What the commands that list something print with --json."""

from typing import Any

from fscost.cli.output.schema_base import Document, Object, Pairs


class Since(Object):
    """What changed since an earlier run of the same name, lab and profiles: the bytes written by
    each profile relative to it."""

    run: str
    ratios: dict[str, float | None]


class ListedRun(Object):
    """A run in a folder. If it cannot be read, the answer is the reason."""

    folder: str
    title: str
    started_utc: str
    lab: str
    profiles: list[str]
    is_readable: bool
    answer: str
    since: Since | None


class Runs(Document):
    """`fscost ls --json`."""

    runs: list[ListedRun]


class NamedProfile(Object):
    """A profile of the catalogue."""

    name: str
    type: str
    mkfs_flags: list[str]
    mount_options: str
    summary: str


class Profiles(Document):
    """`fscost profiles --json`."""

    profiles: list[NamedProfile]


class Option(Object):
    """An option of a workload (`--set NAME=VALUE`)."""

    value: Any
    summary: str
    choices: list[str]
    scaled: bool


class Step(Object):
    """A step of a workload."""

    name: str
    measured: bool
    shell: str


class Workload(Object):
    """A built-in workload, at its default size."""

    name: str
    summary: str
    write_bytes_estimate: int
    disk_bytes: int
    programs: list[str]
    types: list[str]
    """The only file systems that it runs on; empty for all."""
    options: dict[str, Option]
    steps: list[Step]


class Workloads(Document):
    """`fscost workloads --json`."""

    workloads: list[Workload]


class Device(Object):
    """A device of the catalogue."""

    name: str
    aliases: list[str]
    kind: str
    sections: list[str]
    summary: str
    wear: Pairs | None
    latency: Pairs | None


class Devices(Document):
    """`fscost devices --json`."""

    devices: list[Device]


class Check(Object):
    """Something that a lab needs."""

    name: str
    ok: bool
    required: bool
    detail: str
    remedy: str


class Lab(Object):
    """A lab, and what it needs."""

    machine: str
    """Machine of a cluster; empty for this one."""
    lab: str
    can_run: bool
    checks: list[Check]


class Doctor(Document):
    """`fscost doctor --json`."""

    labs: list[Lab]


class Scale(Object):
    """A size of a study."""

    name: str
    summary: str


class Study(Object):
    """A published experiment."""

    name: str
    summary: str
    scales: list[Scale]


class Studies(Document):
    """`fscost study list --json`."""

    studies: list[Study]
