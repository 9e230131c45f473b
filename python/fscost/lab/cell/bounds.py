"""Bounds of what an agent may say. A guest's agent is as trustworthy as its workload: none of its
lines may take much memory.

A line of JSON takes up to 25 times its length when it is parsed (`[],[],…`). So only intervals may
have long lines, and the long part
of these, the pauses of a probe, is read without the JSON parser.
"""

import re
from array import array

MIB = 1 << 20
LONG_BEGINNING = b'{"event":"interval"'
"""Events say first what they are (crates/agent/src/event.rs)."""
MAX_LONG_BYTES = 48 * MIB
"""An hour of pauses at 1 ms takes 30 MB."""
MAX_LINE_BYTES = MIB
MAX_BYTES = {
    "alive": 1 << 12,
    "bye": 1 << 12,
    "hello": 1 << 12,
    "attached": 1 << 16,
    "mounted": 1 << 16,
    "done": 1 << 16,
}
"""Of the kinds that need less."""
MAX_PAUSES = 1 << 22
"""Of one cell."""
MAX_INSPECTED_CHARACTERS = 1 << 16
"""Kept of what a tool says about a file system."""
_PAUSES = b'"pauses_ns":['
_NUMBERS = re.compile(rb"(?:[0-9]{1,18},)*+[0-9]{1,18}")
_PART_BYTES = MIB


def limit_bytes(beginning: bytes | bytearray) -> int:
    """The longest line that may begin so."""
    return MAX_LONG_BYTES if beginning.startswith(LONG_BEGINNING) else MAX_LINE_BYTES


def take_pauses(line: bytes) -> tuple[bytes, "array[int]"]:
    """A line without its pauses, and these. ValueError when they are no list of counts, or too
    many."""
    begin = line.find(_PAUSES) + len(_PAUSES)
    end = line.find(b"]", begin)
    if begin < len(_PAUSES) or end < 0:
        return line, array("q")
    if line.count(b",", begin, end) >= MAX_PAUSES:
        raise ValueError(f"more than {MAX_PAUSES} pauses")
    pauses = array("q")
    if begin < end and _NUMBERS.fullmatch(line, begin, end) is None:
        raise ValueError("the pauses are no list of counts")
    while begin < end:
        cut = line.find(b",", min(begin + _PART_BYTES, end), end)
        cut = end if cut < 0 else cut
        pauses.extend(map(int, line[begin:cut].split(b",")))
        begin = cut + 1
    return line[: line.find(_PAUSES) + len(_PAUSES)] + line[end:], pauses
