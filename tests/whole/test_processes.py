"""Privileges of the processes of a cell, read while they run. This test checks the table in
docs/measuring.md."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.whole.residue import family
from tests.whole.test_vm_bad_guests import children, once_working

DOCUMENT = Path(__file__).parents[2] / "docs" / "measuring.md"
CAPABILITIES = re.findall(
    r"\w+",
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE"
    " NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO"
    " SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME"
    " SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG"
    " WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE",
)
"""By number (include/uapi/linux/capability.h)."""
Row = tuple[str, str, frozenset[str], bool]
"""Process, user, capabilities, and whether it has filters that its starter has not."""


def fields(status: str) -> dict[str, str]:
    """Parse `/proc/PID/status`."""
    lines = (line.partition(":") for line in status.splitlines())
    return {name: words.strip() for name, _, words in lines}


def capabilities(held: dict[str, str]) -> frozenset[str]:
    return frozenset(
        name for number, name in enumerate(CAPABILITIES) if int(held["CapEff"], 16) >> number & 1
    )


def row(process: str, status: str, starter: dict[str, str]) -> Row:
    """Return a row of the table. `starter`: the process that began it all."""
    held = fields(status)
    user = held["Uid"].split()[1]
    users = {"0": "root", "65534": "nobody"}
    has_more = int(held["Seccomp_filters"]) > int(starter["Seccomp_filters"])
    return process, users.get(user, user), capabilities(held), has_more


def documented(where: str, starter: dict[str, str]) -> set[Row]:
    """Return the rows of the table in docs/measuring.md. Nobody can have a capability that its
    starter lacks."""
    rows = re.findall(
        rf"^\| {where}: ([^|]+?) \| ([^|]+?) \| (all|none)(?: but ([^|]+?))? \| (yes|no) \|$",
        DOCUMENT.read_text(),
        re.MULTILINE,
    )
    all_ = capabilities(starter)
    return {
        (
            process,
            user,
            all_ - set(lost.split(", ")) if some == "all" else frozenset(),
            has == "yes",
        )
        for process, user, some, lost, has in rows
    }


def named(command: str) -> str:
    words = command.split()
    program = Path(words[0]).name
    if program == "fscost-agent":
        return f"`fscost-agent {words[1]}`"
    return f"`{program}`" if program.startswith("fscost") else "commands of a step"


@pytest.mark.root
def test_processes_of_a_native_cell(bench: Any, tmp_path: Path) -> None:
    own = fields(Path("/proc/self/status").read_text())
    ready, end = tmp_path / "ready", tmp_path / "end"
    for fifo in (ready, end):
        os.mkfifo(fifo)
    found: set[Row] = set()
    # An earlier test of this worker may have left a process.
    others = {process.pid for process in family(os.getpid())}

    def look() -> None:
        if ready.read_text() == "working\n":
            for process in family(os.getpid()):
                if process.pid in others:
                    continue
                status = Path(f"/proc/{process.pid}/status").read_text()
                found.add(row(named(process.command), status, own))
            end.write_text("end\n")

    with ThreadPoolExecutor(1) as pool:
        looked = pool.submit(look)
        step = f"echo working >{ready}; read line <{end}"
        try:
            result = bench.run(bench.cell("ext4", step), writable=(tmp_path,))
        finally:
            # A cell that never came to its step leaves a reader that waits.
            looked.done() or os.close(os.open(ready, os.O_RDWR))
    assert (result.status, result.because) == ("done", "")
    assert found == documented("native", own)


@pytest.mark.guest
@pytest.mark.root
def test_processes_of_a_guest_cell(guests: Any) -> None:
    own = fields(Path("/proc/self/status").read_text())
    beside: set[Row] = set()

    def look() -> None:
        for pid, program in children().items():
            status = Path(f"/proc/{pid}/status").read_text()
            beside.add(row(f"`{program}`", status, own))

    step = "sed 's/^/AGENT /' /proc/1/status; sed 's/^/STEP /' /proc/self/status; sleep 1; true"
    with once_working(guests, look):
        result = guests.done(guests.cell("ext4", step))
    assert beside == documented("beside a guest", own)
    said = result.output.read_text()
    agent, work = (
        "\n".join(re.findall(rf"^{word} (.*)$", said, re.MULTILINE)) for word in ("AGENT", "STEP")
    )
    inside = {("`fscost-agent guest`", agent), ("commands of a step", work)}
    first = fields(agent)
    assert {row(*each, first) for each in inside} == documented("in a guest", first)
