"""Files in `tests/golden` that a person has reviewed, compared with what the code prints today."""

import os
import re
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
DIGITS = 12
"""Significant digits that must agree. Python's exp and log are those of the C library it was built
with, which agree within a few units in the last of 17 digits; statistics add up some of these."""
_LONG = re.compile(r"-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?")


def check(name: str, text: str) -> None:
    """Compare with the file, or replace it if FSCOST_UPDATE_GOLDEN is set."""
    golden = GOLDEN / name
    if os.environ.get("FSCOST_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert rounded(text) == rounded(golden.read_text())


def rounded(text: str) -> str:
    """Round the numbers that have more digits than DIGITS."""
    return _LONG.sub(lambda found: _rounded(found[0]), text)


def _rounded(number: str) -> str:
    return number if len(number) <= DIGITS else f"{float(number):.{DIGITS}g}"
