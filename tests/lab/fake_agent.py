"""An agent that runs nothing: it keeps its plan and prints the test's prepared output.

    fake_agent.py run

With FSCOST_FAKE=FOLDER it writes FOLDER/plan.json, prints FOLDER/events, and then does what
FOLDER/then specifies: a Python expression for the exit status, or "sleep" to stay until killed.
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
