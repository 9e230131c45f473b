"""Values per operation of a workload, if the user gives the number of operations: `500:tx`."""

import re
from dataclasses import dataclass

from fscost.errors import InputError

_PER = re.compile(r"(\d{1,15})(?::([\w./ -]{1,20}))?")
_WORD = "operation"


@dataclass(frozen=True)
class Per:
    """A number of operations, and the word for one."""

    count: int
    word: str


def parse_per(text: str) -> Per:
    """Parse `500:tx`, or `500` alone."""
    found = _PER.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise InputError(
            f"--per {text!r} is not a number of operations",
            "give the number of operations, optionally with the name of one, as in --per 500:tx",
        )
    return Per(int(found[1]), (found[2] or _WORD).strip())
