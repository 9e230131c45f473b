"""Export of a recording's disks as files, by the native module alone."""

from pathlib import Path
from typing import Any


def export_image(
    recording: Any, disk: int, path: Path, *, at_ns: int | None = None, mark: str | None = None
) -> None:
    """Export the disk at an instant, at a mark, or at the end."""
    with path.open("w+b") as file:
        recording.export_image(disk, file.fileno(), str(path), lambda _: None, at_ns, mark)
