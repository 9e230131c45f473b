"""Records the seeds of xfs and btrfs, as root: `.venv/bin/python fuzz/make_seeds.py`. Those of ext are `crates/analysis/tests/data/ext`, and `seeds/others` were
made in a virtual machine."""  # noqa: INP001 a script

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests/analysis/ext"))

import corpus  # noqa: E402

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
        "btrfs-mixed": "btrfs --mixed -n 4096 -m single -d single -o compress-force=zstd,strictatime",
        "btrfs-old": "btrfs -n 4096 -m single -R ^free-space-tree,quota --csum xxhash -o space_cache=v1,strictatime",
        "btrfs-raid1": "btrfs-raid1 -n 4096 -o strictatime",
    },
}


def main() -> None:
    for family, seeds in SEEDS.items():
        for name, spelled in seeds.items():
            out = HERE / "seeds" / family / f"{name}.fscost"
            out.parent.mkdir(parents=True, exist_ok=True)
            corpus.make(spelled, 300 * MIB if family == "xfs" else 128 * MIB, out)


if __name__ == "__main__":
    main()
