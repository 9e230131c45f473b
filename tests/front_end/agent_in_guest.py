"""Stand-in for the agent: it runs the plan in a guest whose kernel has ublk_drv, and forwards the
events. `agent_in_guest.py AGENT ROOM run`, with the plan on standard input; ROOM is the folder that
the guest may write to."""

import json
import shlex
import sys
import tempfile
from pathlib import Path

from tests.front_end import guest

IN_GUEST = """\
import json, os, subprocess, sys
plan = json.load(open("plan.json")) | {"parent_pid": os.getpid()}
with open("events", "wb") as events:
    subprocess.run([sys.argv[1], "run"], input=json.dumps(plan).encode(), stdout=events)
"""


def main() -> None:
    agent, room = sys.argv[1], Path(sys.argv[2])
    plan = json.load(sys.stdin)
    (room / "plan.json").write_text(json.dumps(plan))
    with tempfile.TemporaryDirectory() as work:
        said = guest.run(shlex.join(["python3", "-c", IN_GUEST, agent]), room, Path(work))
    sys.stderr.write(said)
    sys.stdout.write((room / "events").read_text())


if __name__ == "__main__":
    main()
