"""Wear of a file system whose cleaner moves what it keeps."""

from fscost import study
from fscost.study import Outcome
from fscost.study.formula import Reference
from fscost.study.judge import judge
from fscost.study.measure import Numbers


def test_wear_is_what_is_written_until_the_first_block_is_worn_out() -> None:
    """nilfs2's blocks wear as evenly as ext4's here, but it writes twice as much."""
    samples = {}
    for short in ("nilfs2_round", "ext4_round"):
        doubled = 2 if short == "nilfs2_round" else 1
        for phase, metric, value in (
            ("round", "freed_segments", 200.0),
            ("round", "freed_oldest_segments", 199.0),
            ("total", "nand_write_bytes", 1e6 * doubled),
            ("total", "lifetime_runs", 1000.0 / doubled),
        ):
            samples[Reference(short, phase, metric)] = {0: value, 1: value * 1.001}
    found = study.load("nine-filesystems")
    judged = {
        claim.text: judge(claim, Numbers(samples, {}), found.published) for claim in found.claims
    }
    level = judged["… deleting the oldest first, which should level wear"]
    assert [entry.outcome for entry in level.criteria] == [Outcome.HOLDS, Outcome.FAILS]
    opposite = judged["… and does not achieve the exact opposite"]
    assert [entry.outcome for entry in opposite.criteria] == [Outcome.REVERSED, Outcome.OPEN]
