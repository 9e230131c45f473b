"""Records the seeds of xfs and btrfs, as root, and those of `others` and `arrays` in guests:
`.venv/bin/python fuzz/make_seeds.py [FAMILY…]`. Those of ext are
`crates/explain/tests/data/ext`."""  # noqa: INP001 a script

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests/analysis/ext"))

import corpus  # noqa: E402

from fscost.lab.vm import VmLab, kernels  # noqa: E402
from fscost.workload.model import Step, Workload  # noqa: E402

MIB = 1 << 20
SEEDS = {
    "xfs": {
        "xfs": "xfs -m rmapbt=1 -o strictatime",
        "xfs-1k": "xfs -b size=1k -s size=512 -i size=512 -n size=8k -o strictatime",
        "xfs-old": "xfs -m reflink=0,finobt=0 -i nrext64=0 -o strictatime",
        "xfs-external-log": "xfs -l logdev={disk.journal} -o strictatime",
    },
    "btrfs": {
        "btrfs": "btrfs -n 4096 -o strictatime",
        "btrfs-mixed": (
            "btrfs --mixed -n 4096 -m single -d single -o compress-force=zstd,strictatime"
        ),
        "btrfs-old": (
            "btrfs -n 4096 -m single -R ^free-space-tree,quota --csum xxhash -o"
            " space_cache=v1,strictatime"
        ),
        "btrfs-raid1": "btrfs-raid1 -n 4096 -o strictatime",
    },
}


OTHERS = {
    "f2fs": ("f2fs", 64, ""),
    "f2fs-extra": ("f2fs -O extra_attr,flexible_inline_xattr,inode_checksum,inode_crtime", 64, ""),
    "nilfs2": ("nilfs2", 32, ""),
    "nilfs2-1k": ("nilfs2 -b 1024", 32, ""),
    "jfs": ("jfs", 16, ""),
    "reiserfs": ("reiserfs", 40, ""),
    "ntfs": ("ntfs3", 8, ""),
    "exfat": ("exfat", 8, ""),
    "vfat-16": ("vfat -F 16", 32, ""),
    "vfat-32": ("vfat -F 32 -s 1", 40, ""),
}
ARRAYS = {
    "linear": ("ext4 -b 1024 -J size=1 on md -l linear -n 2", 8, "6.1"),
    "raid0": ("ext4 -b 1024 -J size=1 on md -l 0 -n 2 -c 4", 8, ""),
    "raid1-bitmap": ("ext4 -b 1024 -J size=1 on md -l 1 -n 2 -b internal", 8, ""),
    "raid5": ("ext4 -b 1024 -J size=1 on md -l 5 -n 3 -c 4", 8, ""),
    "raid6": ("ext4 -b 1024 -J size=1 on md -l 6 -n 4 -c 8", 8, ""),
    "raid10": ("ext4 -b 1024 -J size=1 on md -l 10 -n 4 -c 4", 8, ""),
}
"""Of each, the profile, the MiB of a disk, and the guest's kernel where it is not the default."""


def out(family: str, name: str) -> Path:
    path = HERE / "seeds" / family / f"{name}.fscost"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def in_guests(family: str, seeds: Mapping[str, tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "tagged.py", folder)
        steps = tuple(
            Step(name, f"python3 {{input}}/tagged.py {name}", settle="remount")
            for name in ("make", "change", "remove")
        )
        work = Workload("mine", steps, disk_bytes=MIB, input=Path(folder))
        for name, (spelled, disk_mib, kernel) in seeds.items():
            kernels.fetch(kernel or kernels.DEFAULT)
            corpus.record(VmLab(), spelled, disk_mib * MIB, work, out(family, name), kernel)


def main() -> None:
    guests = {"others": OTHERS, "arrays": ARRAYS}
    wanted = sys.argv[1:] or [*SEEDS, *guests]
    for family, seeds in SEEDS.items():
        for name, spelled in seeds.items() if family in wanted else ():
            corpus.make(spelled, 300 * MIB if family == "xfs" else 128 * MIB, out(family, name))
    for family, in_guest in guests.items():
        if family in wanted:
            in_guests(family, in_guest)


if __name__ == "__main__":
    main()
