"""Cost of a request over ublk and over FUSE with a loop device, in a guest with one processor whose
clock counts instructions. `cost.py DISK_SERVER FOLDER` prints, as JSON, the instructions of a
request of each kind and front end, without those of the Python loop.

Requests come one at a time, so the processor never waits for a disk. The figures are those of an
emulated processor, without caches or branch prediction: compare them only with each other.
"""

import json
import mmap
import os
import sys
import time
from pathlib import Path

from work import content, served

REQUESTS = 500
BYTES = 4096
ROUNDS = 2


def measured(path: Path, flags: int) -> dict[str, float]:
    """Return the instructions of a read and of a write of 4 KiB."""
    file = os.open(path, os.O_RDWR | flags)
    page, into = content(b"x", BYTES), [mmap.mmap(-1, BYTES)]
    found = {}
    for name in ("write", "read"):
        begin_ns = time.monotonic_ns()
        for number in range(REQUESTS):
            if name == "write":
                os.pwrite(file, page, number * BYTES)
            else:
                os.preadv(file, into, number * BYTES)
        found[name] = (time.monotonic_ns() - begin_ns) / REQUESTS
    os.close(file)
    return found


def main() -> None:
    server, folder = sys.argv[1], Path(sys.argv[2])
    rounds: dict[str, list[dict[str, float]]] = {"fuse": [], "ublk": []}
    for number in range(ROUNDS):
        for front_end, found in rounds.items():
            room = folder / f"{front_end}-{number}"
            room.mkdir(parents=True)
            with served(server, front_end, room) as (_, node, _process):
                (Path("/sys/class/block") / node.name / "queue/scheduler").write_text("none")
                measured(node, os.O_DIRECT)
                found.append(measured(node, os.O_DIRECT))
    python = measured(Path("/dev/null"), 0)
    least = {
        front_end: {
            name: min(each[name] for each in found) - python[name] for name in ("write", "read")
        }
        for front_end, found in rounds.items()
    }
    print(json.dumps({"requests": REQUESTS, "bytes": BYTES} | least))


if __name__ == "__main__":
    main()
