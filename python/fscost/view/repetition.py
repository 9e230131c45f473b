"""Range of write amplification between repetitions that are exact and those that vary."""

_APART = 2
"""Ratio of the two from which the assumption decides the answer."""


def span(varied_bytes: float, exact_bytes: float | None, host_bytes: float) -> str | None:
    """Say that the assumption decides the answer; None if it does not. Sizes are NAND bytes of one
    run of the workload."""
    if exact_bytes is None or not host_bytes or not varied_bytes or not exact_bytes:
        return None
    if 1 / _APART <= varied_bytes / exact_bytes <= _APART:
        return None
    return (
        "Assumed: each repetition writes other addresses of the same regions. If it wrote the same"
        f" addresses in the same order, WA would be {exact_bytes / host_bytes:.2f} instead of"
        f" {varied_bytes / host_bytes:.2f}."
    )
