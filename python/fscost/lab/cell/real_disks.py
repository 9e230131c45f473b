"""Real devices behind recorded disks: what the kernel counted of them, beside the recording."""

import math
from collections.abc import Mapping
from typing import Any


def differences(recording: Any) -> list[str]:
    """Where the devices did not receive what was recorded; `recording`: the disk server's last
    words. Reads may be more than recorded: other programs look at devices, too."""
    if not isinstance(recording, Mapping):
        return []
    found = []
    for disk, account in recording.get("devices", {}).items():
        totals, kernel = recording["totals"][disk], account["kernel"]
        changed = totals["write_bytes"] + totals["zero_bytes"]
        discarded = totals["discard_bytes"] + totals["punch_bytes"]
        # A request that a device refuses is counted all the same: zeroes that are then written
        # once more, and discards that are not repeated.
        bounds = {
            "read": (totals["read_bytes"], math.inf),
            "write": (changed, changed + totals["zero_bytes"]),
            "discard": (discarded if account["accepts_discards"] else 0, discarded),
        }
        for kind, (least, most) in bounds.items():
            if not least <= (counted := kernel[f"{kind}_bytes"]) <= most:
                found.append(
                    f"disk {disk}: {least} bytes to {kind} in the recording, "
                    f"{counted} by the kernel's counter of {account['device']}"
                )
    return found
