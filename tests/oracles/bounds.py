"""How much of a family's tagged bytes may be without owner, or wrong, and why. What is not here is not allowed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Shares of the bytes compared."""

    doubtful: float
    wrong: float
    reason: str


BOUNDS = {
    "ext": Bound(0.9, 0.9, "F1, F2 of issue 11 are open"),
    "xfs": Bound(0.6, 0.6, "F2, F3 of issue 11 are open"),
    "btrfs": Bound(0.6, 0.1, "F3 of issue 11 is open"),
}
