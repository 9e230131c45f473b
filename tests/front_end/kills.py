"""Kills processes of a cell whose disks are ublk devices, and reports what is left. `kills.py AGENT
PLAN FOLDER` prints as JSON, for each process and instant, the agent's last event and the remains.

The plan's one step contains the word `TOKEN`. The script needs the standard library only.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOKEN = "fscost-kill-step"
LIMIT_S = 120
ENDLESS = f": {TOKEN}; while :; do dd if=/dev/zero of=file bs=64k count=4 conv=fsync; done"
SHORT = f": {TOKEN}; dd if=/dev/zero of=file bs=64k count=16 conv=fsync; sleep 1"
WHO: dict[str, Callable[[list[str]], bool]] = {
    "server": lambda words: words[0].endswith("fscost-disk") and words[1:2] == ["serve"],
    "guard": lambda words: words[1:2] == ["sweep"],
    "agent": lambda words: words[0].endswith("fscost-agent") and words[1:2] == ["run"],
    "init": lambda words: words[:2] == ["fscost-agent", "init"],
}
CASES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("server",), "devices"),
    (("agent",), "devices"),
    (("server",), "step"),
    (("agent",), "step"),
    (("init",), "step"),
    (("guard",), "step"),
    # Nothing is left to remove the devices: the next server does it.
    (("guard", "server"), "step"),
    (("init",), "step"),
)


def is_step(words: list[str]) -> bool:
    return any(TOKEN in word for word in words)


def processes(wanted: Callable[[list[str]], bool]) -> list[int]:
    """Return processes by their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if int(folder.name) != os.getpid() and len(words) > 1 and wanted(words):
            found.append(int(folder.name))
    return found


def devices() -> list[str]:
    return sorted(str(path) for path in Path("/dev").glob("ublk[bc][0-9]*"))


def left() -> list[str]:
    """Return the remains of a cell: devices, processes, mounts visible to this process."""
    found = devices()
    for name, wanted in {**WHO, "step": is_step}.items():
        found += [f"{name} {number}" for number in processes(wanted)]
    return found + Path("/proc/self/mountinfo").read_text().splitlines()


def awaited(condition: Callable[[], object], limit_s: float = LIMIT_S) -> bool:
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        # In a guest, a check takes longer than the wait.
        time.sleep(0.2)
    return True


def cell(agent: str, plan: dict[str, Any], room: Path, shell: str) -> "subprocess.Popen[bytes]":
    """Start a cell with a separate recording and log."""
    room.mkdir(parents=True)
    server = list(plan["disk_server"])
    server[server.index("--recording") + 1] = str(room / "recording")
    steps = [plan["steps"][0] | {"shell": shell}]
    own = {"parent_pid": os.getpid(), "log": str(room / "log")}
    own |= {"disk_server": server, "steps": steps}
    (room / "plan").write_text(json.dumps(plan | own))
    with (room / "plan").open() as told, (room / "events").open("wb") as events:
        return subprocess.Popen([agent, "run"], stdin=told, stdout=events)


def killed(
    agent: str, plan: dict[str, Any], room: Path, whom: tuple[str, ...], when: str
) -> dict[str, Any]:
    """Run a cell and kill its processes one after the other at the given instant."""
    before = left()
    process = cell(agent, plan, room, SHORT if whom == ("guard",) else ENDLESS)
    began = awaited(devices if when == "devices" else lambda: processes(is_step))
    hit = []
    for name in whom:
        hit += (victims := processes(WHO[name]))
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
    # A process that nobody waits for would stay forever.
    ended = awaited(lambda: process.poll() is not None)
    awaited(lambda: set(left()) <= set(before), 20)
    events = (room / "events").read_text().splitlines()
    return {
        "whom": "+".join(whom),
        "when": when,
        "began": began,
        "hit": len(hit),
        "ended": ended,
        "last": json.loads(events[-1]) if events else {},
        "left": sorted(set(left()) - set(before)),
        "devices": devices(),
    }


def main() -> None:
    agent, plan, room = sys.argv[1], json.loads(Path(sys.argv[2]).read_text()), Path(sys.argv[3])
    found = []
    for whom, when in CASES:
        found.append(killed(agent, plan, room / str(len(found)), whom, when))
        print(found[-1], flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
