"""Filling of the disk before the workload begins."""

from dataclasses import replace

from fscost.errors import InputError
from fscost.workload.model import Step, Workload

NAME = "fill"
_FILE = ".fscost-fill"


def filled(workload: Workload, text: str) -> Workload:
    """Prepend an unmeasured step that allocates a file of this share of the free space, such as
    `90%`."""
    number = text.strip().removesuffix("%").strip()
    if not number.isdecimal() or not 1 <= int(number) <= 99:
        raise InputError(
            f"--fill {text!r} is not a percentage from 1% to 99%", "for example: --fill 90%"
        )
    # On file systems without fallocate(2) (ext2, nilfs2, vfat), the file is written out.
    shell = (
        f"n=$(($(df --output=avail --block-size=4096 . | tail -n 1) * {number} / 100 * 4096)); "
        f'fallocate -l "$n" {_FILE} 2>/dev/null || head -c "$n" /dev/zero > {_FILE}'
    )
    return replace(workload, steps=(Step(NAME, shell, measured=False), *workload.steps))
