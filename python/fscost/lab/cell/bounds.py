"""Limits on an agent's output. A guest's agent is no more trustworthy than its workload, so no line
may take much memory.

Parsing a line of JSON takes up to 25 times its length (`[],[],…`). Only intervals may therefore
have long lines, and their long part, the pauses of a probe, is read without the JSON parser.
"""

import re
from array import array

MIB = 1 << 20
LONG_BEGINNING = b'{"event":"interval"'
"""Beginning of a line that may be long. Each event starts with its kind
(crates/agent/src/event.rs)."""
MAX_LONG_BYTES = 48 * MIB
"""Limit of a long line; an hour of pauses at 1 ms takes 30 MB."""
MAX_LINE_BYTES = MIB
MAX_BYTES = {
    "alive": 1 << 12,
    "bye": 1 << 12,
    "hello": 1 << 12,
    "attached": 1 << 16,
    "mounted": 1 << 16,
    "done": 1 << 16,
}
"""Limits of the kinds of event that need less."""
MAX_PAUSES = 1 << 22
"""Maximum number of pauses of one cell."""
MAX_INSPECTED_CHARACTERS = 1 << 16
"""Number of characters kept of a tool's output about a file system."""
_PAUSES = b'"pauses_ns":['
_NUMBERS = re.compile(rb"(?:[0-9]{1,18},)*+[0-9]{1,18}")
_PART_BYTES = MIB


def limit_bytes(beginning: bytes | bytearray) -> int:
    """Return the maximum length of a line with this beginning."""
    return MAX_LONG_BYTES if beginning.startswith(LONG_BEGINNING) else MAX_LINE_BYTES


def take_pauses(line: bytes) -> tuple[bytes, "array[int]"]:
    """Split a line into the line without its pauses, and the pauses. ValueError if they are not a
    list of counts, or too many."""
    begin = line.find(_PAUSES) + len(_PAUSES)
    end = line.find(b"]", begin)
    if begin < len(_PAUSES) or end < 0:
        return line, array("q")
    if line.count(b",", begin, end) >= MAX_PAUSES:
        raise ValueError(f"more than {MAX_PAUSES} pauses")
    pauses = array("q")
    if begin < end and _NUMBERS.fullmatch(line, begin, end) is None:
        raise ValueError("the pauses are not a list of counts")
    while begin < end:
        cut = line.find(b",", min(begin + _PART_BYTES, end), end)
        cut = end if cut < 0 else cut
        pauses.extend(map(int, line[begin:cut].split(b",")))
        begin = cut + 1
    return line[: line.find(_PAUSES) + len(_PAUSES)] + line[end:], pauses
