"""Check of real devices behind recorded disks: the kernel's counters against the recording."""

import math
from collections.abc import Mapping
from typing import Any


def differences(recording: Any) -> list[str]:
    """List the devices whose traffic differs from the recording. `recording`: the disk server's
    final totals. The kernel may count more reads than recorded, because other programs read from
    devices, too."""
    if not isinstance(recording, Mapping):
        return []
    found = []
    for disk, account in recording.get("devices", {}).items():
        totals, kernel = recording["totals"][disk], account["kernel"]
        changed = totals["write_bytes"] + totals["zero_bytes"]
        discarded = totals["discard_bytes"] + totals["punch_bytes"]
        # The kernel also counts requests that a device refuses: zeroes that are then written again,
        # and discards that are not repeated.
        bounds = {
            "read": (totals["read_bytes"], math.inf),
            "write": (changed, changed + totals["zero_bytes"]),
            "discard": (discarded if account["accepts_discards"] else 0, discarded),
        }
        for kind, (least, most) in bounds.items():
            if not least <= (counted := kernel[f"{kind}_bytes"]) <= most:
                found.append(
                    f"disk {disk}: {least} bytes of {kind} requests in the recording, "
                    f"{counted} by the kernel's counter of {account['device']}"
                )
    return found
