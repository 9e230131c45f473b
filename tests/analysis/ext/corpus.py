"""Generator of the recordings in `crates/explain/tests/data/ext`, to be run as root:
`.venv/bin/python tests/analysis/ext/corpus.py`."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from fscost import capture, profile
from fscost.lab.base import Lab, LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

OUT = Path(__file__).parents[3] / "crates/explain/tests/data/ext"
PROFILES = {
    "ext4": "ext4 -b 1024 -J size=1 -o strictatime",
    "ext4-data-journal": (
        "ext4 -b 1024 -J size=1 -O inline_data,orphan_file -I 256 -o data=journal,strictatime"
    ),
    "ext4-meta-bg": (
        "ext4 -b 1024 -g 1024 -J size=1 -O meta_bg,^resize_inode,^flex_bg,sparse_super2,mmp -o"
        " strictatime"
    ),
    "ext3": "ext3 -b 1024 -J size=1 -o strictatime",
    "ext2": "ext2 -b 1024 -o strictatime",
    "ext4-nojournal": "ext4 -b 1024 -O ^has_journal,bigalloc -C 4096 -o strictatime",
}
MAKE = """set -e
mkdir d e
for i in $(seq 40); do head -c $((i * 150)) /dev/zero | tr '\\0' x > d/file-with-a-name-of-some-length-$i; done
for i in $(seq 60); do dd if=/dev/zero of=e/holes bs=1k count=1 seek=$((i * 3)) conv=notrunc status=none; done
ln -s $(head -c 200 /dev/zero | tr '\\0' l) e/link
ln d/file-with-a-name-of-some-length-1 e/second
sync -f ."""
CHANGE = """set -e
for i in $(seq 12); do head -c 900 /dev/zero | tr '\\0' y | dd of=log bs=900 oflag=append conv=notrunc,fsync status=none; done
mv d/file-with-a-name-of-some-length-2 e/moved
rm d/file-with-a-name-of-some-length-1*
truncate -s 20k e/holes
chmod 600 e/moved
mkdir f; for i in $(seq 30); do echo $i > f/$i; done"""
REMOVE = "cat f/* d/* > /dev/null; rm -r d f"


def make(spelled: str, disk_bytes: int, out: Path) -> None:
    """Record the steps on this profile, and pack the recording."""
    steps = (
        Step("make", MAKE),
        Step("change", CHANGE, settle="remount"),
        Step("remove", REMOVE, drop_caches=True),
    )
    record(
        NativeLab(find_binaries()),
        spelled,
        disk_bytes,
        Workload("mine", steps, disk_bytes=1 << 20),
        out,
    )


def record(
    lab: Lab, spelled: str, disk_bytes: int, workload: Workload, out: Path, kernel: str = ""
) -> None:
    """Run the workload on this profile, and pack the recording. `kernel` is a guest's kernel, if it
    is not the default."""
    with tempfile.TemporaryDirectory() as folder:
        cell = Cell(replace(profile.resolve(spelled), kernel=kernel), workload, 0, 7, 0)
        options = LabOptions(cell_dir=Path(folder) / "cell", disk_size_bytes=disk_bytes)
        result = lab.run(cell, options, lambda name: None)
        if result.recording is None:
            raise SystemExit(f"{spelled}: {result.because}")
        shutil.copyfile(result.recording, out)
        capture.pack(out, 19)


def main() -> None:
    for name, spelled in PROFILES.items():
        make(spelled, 8 << 20, OUT / f"{name}.fscost")


if __name__ == "__main__":
    main()
