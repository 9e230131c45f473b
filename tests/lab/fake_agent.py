"""An agent that runs nothing: it keeps the plan that it was given and says what the test wrote
down.

    fake_agent.py run    with FSCOST_FAKE=FOLDER: writes FOLDER/plan.json, says FOLDER/events, does
    what FOLDER/then says

`then` is a Python expression of a status to exit with, or "sleep": stay until killed.
"""

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    folder = Path(os.environ["FSCOST_FAKE"])
    (folder / "plan.json").write_text(json.dumps(json.load(sys.stdin)))
    (folder / "pid").write_text(str(os.getpid()))
    sys.stdout.buffer.write((folder / "events").read_bytes())
    sys.stdout.buffer.flush()
    then = (folder / "then").read_text()
    if then == "sleep":
        time.sleep(600)
    print("the agent's last words", file=sys.stderr)
    return int(then)


if __name__ == "__main__":
    sys.exit(main())
