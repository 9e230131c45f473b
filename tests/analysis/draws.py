"""Random legal combinations of mkfs flags and mount options."""

import random
from pathlib import Path

MIB = 1 << 20
DISK_BYTES = {"ext": 64 * MIB, "xfs": 1024 * MIB, "btrfs": 256 * MIB}

# True if this kernel supports quotas at all. Without them, file systems that have quotas cannot be
# mounted.
QUOTA = Path("/proc/sys/fs/quota").exists()


def draw(family: str, rng: random.Random) -> str:
    """Return a random profile, in the spelling of the command line."""
    return {"ext": _ext, "xfs": _xfs, "btrfs": _btrfs}[family](rng)


def _some(rng: random.Random, *options: str, share: float = 0.3) -> list[str]:
    return [option for option in options if rng.random() < share]


def _ext(rng: random.Random) -> str:
    type_ = rng.choice(("ext2", "ext3", "ext4", "ext4", "ext4", "ext4", "ext4"))
    block = rng.choice((1024, 2048, 4096))
    inode = rng.choice((128, 256, 256, 512))
    words = [type_, "-b", str(block), "-I", str(inode)]
    words += rng.choice(([], ["-i", str(max(block, rng.choice((4096, 8192, 32768))))]))
    features = (
        _some(rng, "sparse_super2", "large_dir", "^dir_index", share=0.15)
        if type_ == "ext4"
        else []
    )
    options = [rng.choice(("strictatime", "noatime", "relatime", "lazytime"))]
    has_journal = type_ != "ext2" and (type_ == "ext3" or rng.random() < 0.8)
    if type_ == "ext4":
        extents = rng.random() < 0.85
        features += _some(rng, "^metadata_csum", "^flex_bg", "mmp", "ea_inode")
        if not extents:
            features += ["^extents", "^64bit"]
        else:
            features += _some(rng, "^64bit")
        if rng.random() < 0.3:
            features += ["meta_bg", "^resize_inode"]
        if extents and rng.random() < 0.2:
            features += ["bigalloc"]
            words += ["-C", str(block * rng.choice((2, 4, 16)))]
        if inode >= 256:
            features += _some(rng, "inline_data")
        if QUOTA:
            features += _some(rng, "quota", share=0.2)
        features += _some(rng, "fast_commit", "orphan_file") if has_journal else ["^has_journal"]
        options += _some(
            rng, "nodelalloc", "auto_da_alloc", *(["commit=1"] if has_journal else []), share=0.2
        )
    if has_journal:
        mode = rng.choice(("", "data=ordered", "data=writeback", "data=journal"))
        options += [mode] if mode else []
        if rng.random() < 0.15:
            words += ["-J", "device={disk.journal}"]
        elif rng.random() < 0.7:
            words += ["-J", f"size={max(4 * block // 4096, rng.choice((1, 2, 4, 8)))}"]
        if mode == "data=writeback":
            options += _some(rng, "journal_async_commit")
    if features:
        words += ["-O", ",".join(features)]
    return " ".join([*words, "-o", ",".join(options)])


def _xfs(rng: random.Random) -> str:
    block = rng.choice((1024, 2048, 4096, 4096))
    sector = rng.choice([size for size in (512, 1024, 4096) if size <= block])
    inode = rng.choice([size for size in (512, 1024, 2048) if size <= block // 2])
    words = [
        "xfs",
        "-b",
        f"size={block}",
        "-s",
        f"size={sector}",
        "-i",
        f"size={inode},sparse={rng.randrange(2)}",
    ]
    words += rng.choice(([], ["-d", f"agcount={rng.choice((2, 3, 5, 8))}"], ["-d", "su=64k,sw=2"]))
    words += rng.choice(([], ["-n", f"size={max(block, rng.choice((4096, 8192, 16384, 65536)))}"]))
    finobt = rng.randrange(2)
    words += [
        "-m",
        (
            f"finobt={finobt},rmapbt={rng.randrange(2)},reflink={rng.randrange(2)},bigtime={rng.randrange(2)},inobtcount={finobt & rng.randrange(2)}"
        ),
    ]
    log = rng.choice(("", "", "lazy-count=1", "su=32k", "logdev={disk.journal}"))
    words += ["-l", log] if log else []
    options = [
        rng.choice(("strictatime", "noatime", "relatime", "lazytime")),
        *_some(rng, "wsync", "allocsize=64k", "inode32", "discard", share=0.2),
    ]
    options += _some(rng, f"logbsize={rng.choice(('32k', '64k', '256k'))}")
    return " ".join([*words, "-o", ",".join(options)])


def _btrfs(rng: random.Random) -> str:
    words = ["btrfs"]
    free_space_tree = rng.random() < 0.7
    if rng.random() < 0.25:
        copies = rng.choice(("single", "dup"))
        words += ["--mixed", "-n", "4096", "-m", copies, "-d", copies]
    else:
        words += [
            "-n",
            str(rng.choice((4096, 8192, 16384, 32768, 65536))),
            "-m",
            rng.choice(("single", "dup")),
            "-d",
            rng.choice(("single", "single", "dup")),
        ]
    features = _some(rng, "^no-holes", "^extref", "^skinny-metadata", share=0.2)
    words += ["-O", ",".join(features)] if features else []
    runtime = [] if free_space_tree else ["^free-space-tree"]
    runtime += _some(rng, "quota", share=0.2)
    words += ["-R", ",".join(runtime)] if runtime else []
    words += ["--csum", rng.choice(("crc32c", "crc32c", "xxhash"))]
    options = [
        rng.choice(("strictatime", "noatime", "relatime")),
        "space_cache=v2" if free_space_tree else "space_cache=v1",
    ]
    options += rng.choice(
        (
            [],
            [],
            ["compress=zstd"],
            ["compress-force=lzo"],
            ["compress-force=zlib"],
            ["nodatacow"],
            ["nodatasum"],
        )
    )
    options += _some(
        rng,
        "notreelog",
        "flushoncommit",
        "autodefrag",
        f"max_inline={rng.choice((0, 512, 2048))}",
        "discard=async",
        share=0.2,
    )
    return " ".join([*words, "-o", ",".join(options)])
