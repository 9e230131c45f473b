"""Verdicts depend on samples: different samples give a different verdict."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from fscost import study
from fscost.errors import InputError
from fscost.stats import Interval
from fscost.study import Outcome, Report, Verdict
from fscost.study.formula import Formula
from fscost.study.judge import outcome, verdict
from fscost.study.measure import published_value
from fscost.study.model import Criterion

Reported = Callable[..., Report]
JOURNAL = ("strict_nj", "noatime_nj", "relatime_nj", "ext2")
STUDIES = ["external-journal", "journal-tax", "nine-filesystems", "snapshot-atime"]


def verdicts(report: Report) -> dict[str, Verdict]:
    return {judged.claim.text.split(":")[0]: judged.verdict for judged in report.findings[0].claims}


def the(report: Report, words: str) -> study.JudgedClaim:
    [found] = [judged for judged in report.findings[0].claims if words in judged.claim.text]
    return found


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.5, 2.5, Outcome.HOLDS),
        (1.6, 2.4, Outcome.HOLDS),
        (1.49, 2.4, Outcome.OPEN),
        (1.6, 2.51, Outcome.OPEN),
        (1.0, 3.0, Outcome.OPEN),
        (1.0, 1.49, Outcome.FAILS),
        (2.51, 3.0, Outcome.FAILS),
        (2.0, 2.0, Outcome.HOLDS),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, expected: Outcome) -> None:
    criterion = Criterion("", Formula.parse("a.b", "m"), at_least=1.5, at_most=2.5)
    assert outcome(criterion, Interval(3, (low + high) / 2, low, high)) is expected


@pytest.mark.parametrize(
    ("least", "most", "neutral", "low", "high", "expected"),
    [
        (1.5, 2.5, 1, 0.5, 0.98, Outcome.REVERSED),
        (1.5, 2.5, 1, 0.5, 0.99, Outcome.FAILS),
        (1.5, 2.5, 1, 2.6, 3.0, Outcome.FAILS),
        (1.5, 2.5, None, 0.5, 0.9, Outcome.FAILS),
        (None, 0.5, 1, 1.02, 2.0, Outcome.REVERSED),
        (None, 0.5, 1, 0.6, 2.0, Outcome.FAILS),
        (0.35, 0.7, 1, 1.1, 1.2, Outcome.REVERSED),
        (0.35, 0.7, 1, 0.1, 0.2, Outcome.FAILS),
        (0.035, 0.125, 0, -0.5, -0.02, Outcome.REVERSED),
        (None, 0.5, 1, 0.4, 2.0, Outcome.OPEN),
    ],
)
def test_the_opposite_effect_is_reversed(
    least: float | None,
    most: float | None,
    neutral: float | None,
    low: float,
    high: float,
    expected: Outcome,
) -> None:
    bounds = {"at_least": least, "at_most": most, "neutral": neutral}
    criterion = Criterion("", Formula.parse("a.b", "m"), **bounds)
    assert outcome(criterion, Interval(3, (low + high) / 2, low, high)) is expected


def test_one_repetition_and_none_decide_nothing() -> None:
    criterion = Criterion("", Formula.parse("a.b", "m"), at_least=1.5)
    assert outcome(criterion, Interval(1, 100.0, None, None)) is Outcome.OPEN
    assert outcome(criterion, None) is Outcome.OPEN


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ("hh", Verdict.REPRODUCED),
        ("ff", Verdict.NOT_REPRODUCED),
        ("rr", Verdict.REVERSED),
        ("fr", Verdict.NOT_REPRODUCED),
        ("hr", Verdict.PARTLY),
        ("ro", Verdict.INCONCLUSIVE),
        ("hf", Verdict.PARTLY),
        ("hfo", Verdict.PARTLY),
        ("ho", Verdict.INCONCLUSIVE),
        ("fo", Verdict.INCONCLUSIVE),
        ("oo", Verdict.INCONCLUSIVE),
        ("", Verdict.INCONCLUSIVE),
        ("cc", Verdict.NOT_TESTABLE),
        ("co", Verdict.INCONCLUSIVE),
    ],
)
def test_a_claim_is_what_its_criteria_are_together(outcomes: str, expected: Verdict) -> None:
    letters = {each.value[0]: each for each in Outcome}
    assert verdict([letters[letter] for letter in outcomes]) is expected


def test_a_verdict_is_the_one_left_whatever_open_criteria_would_show() -> None:
    decided = [Outcome.HOLDS, Outcome.FAILS, Outcome.REVERSED]
    for count in (1, 2, 3):
        for found in product([*decided, Outcome.OPEN], repeat=count):
            complete = product(*([each] if each in decided else decided for each in found))
            [only, *others] = {verdict(each) for each in complete}
            assert verdict(found) is (Verdict.INCONCLUSIVE if others else only), found


@pytest.mark.parametrize(
    ("seconds", "expected", "spread"),
    [
        ((100, 80, 120), Verdict.REPRODUCED, 0.4),
        ((100, 90, 110), Verdict.NOT_REPRODUCED, 0.2),
        ((100,), Verdict.INCONCLUSIVE, None),
    ],
)
def test_a_spread_is_judged_by_the_repetitions_themselves(
    reported: Reported, seconds: tuple[float, ...], expected: Verdict, spread: float | None
) -> None:
    def number(short: str, phase: str, metric: str, repetition: int) -> float:
        return seconds[repetition]

    claim = the(reported("noatime-raid", number, repetitions=len(seconds)), "The spread between")
    assert claim.verdict is expected
    for entry in claim.criteria:
        assert entry.published is None
        assert (entry.measured.interval and entry.measured.interval.low) == spread
        assert ("has no spread" in entry.measured.because) == (spread is None)


@pytest.mark.parametrize("name", STUDIES)
def test_the_published_figures_meet_the_rules_made_of_them(name: str) -> None:
    """The published figures are consistent with the rules derived from them; a failing rule would
    not say what the source says."""
    found = study.load(name)
    checked = 0
    for claim in found.claims:
        for criterion in claim.criteria:
            value = published_value(criterion.formula, found.published)
            if value is not None:
                checked += 1
                assert outcome(criterion, Interval(2, value, value, value)) is Outcome.HOLDS, (
                    claim.text,
                    criterion.label,
                    value,
                )
    assert checked >= 2


def test_the_published_figures_measured_again_reproduce_what_they_can_decide(
    reported: Reported,
) -> None:
    found = verdicts(reported("journal-tax"))
    assert list(found.values()).count(Verdict.REPRODUCED) == 7
    # No number was published for chattr +A, reading, ext3's stalls, the lifetime counter, erased
    # bytes, mutt and tmpwatch, so they have no verdict.
    assert list(found.values()).count(Verdict.INCONCLUSIVE) == 5
    assert list(found.values()).count(Verdict.NOT_TESTABLE) == 1


def test_a_journal_that_costs_nothing_reproduces_nothing(reported: Reported) -> None:
    def equal(short: str, phase: str, metric: str, repetition: int) -> float:
        return 1e8 * (1 + 0.001 * repetition)

    report = reported("journal-tax", equal)
    assert the(report, "nearly doubles").verdict is Verdict.NOT_REPRODUCED
    assert the(report, "12 % at most").verdict is Verdict.REPRODUCED
    assert the(report, "4 % at least").verdict is Verdict.NOT_REPRODUCED
    assert the(report, "ext3 looks like").verdict is Verdict.REPRODUCED
    assert the(report, "removes most").verdict is Verdict.INCONCLUSIVE
    assert "a divisor is zero" in the(report, "removes most").criteria[0].measured.because


def test_a_doubled_journal_is_seen_in_its_verdict(reported: Reported) -> None:
    def doubled(short: str, phase: str, metric: str, repetition: int) -> float:
        factor = 1 if short in JOURNAL else 2 if phase == "clean" else 1.08
        return 1e8 * factor * (1 + 0.001 * repetition)

    report = reported("journal-tax", doubled)
    assert the(report, "nearly doubles").verdict is Verdict.REPRODUCED
    assert the(report, "12 % at most").verdict is Verdict.REPRODUCED
    assert the(report, "4 % at least").verdict is Verdict.REPRODUCED
    for _, changes in report.findings[0].comparisons:
        of_with, of_without = next(
            change.measured[2:] for change in changes if change.phase == "clean"
        )
        assert of_with.interval is not None
        assert of_without.interval is not None
        assert (of_with.interval.median, of_without.interval.median) == (
            pytest.approx(0.5),
            pytest.approx(1.0),
        )


def test_noise_wider_than_the_bounds_is_inconclusive(reported: Reported) -> None:
    def noisy(short: str, phase: str, metric: str, repetition: int) -> float:
        return (
            1e6
            * (2 if short not in JOURNAL else 1)
            * (1 + (0.9 * repetition if short not in JOURNAL else 0))
        )

    assert the(reported("journal-tax", noisy), "nearly doubles").verdict is Verdict.INCONCLUSIVE


def test_with_and_without_are_paired_by_repetition(reported: Reported) -> None:
    """A repetition that writes three times as much on both sides does not change any quotient."""

    def drifting(short: str, phase: str, metric: str, repetition: int) -> float:
        return 1e6 * 3**repetition * (1 if short in JOURNAL else 1.9)

    judged = the(reported("journal-tax", drifting), "nearly doubles")
    assert judged.verdict is Verdict.REPRODUCED
    assert all(
        entry.measured.interval is not None and entry.measured.interval.high == pytest.approx(1.9)
        for entry in judged.criteria
    )


def test_a_repetition_that_one_side_lacks_makes_no_pair(reported: Reported) -> None:
    def half(short: str, phase: str, metric: str, repetition: int) -> float | None:
        return (
            None
            if short == "strict_nj" and repetition == 1
            else 1e6 * (1 if short in JOURNAL else 1.9 + 0.01 * repetition)
        )

    judged = the(reported("journal-tax", half), "nearly doubles")
    counts = [
        entry.measured.interval.n
        for entry in judged.criteria
        if entry.measured.interval is not None
    ]
    assert counts == [2, 3, 3, 3]


def test_a_skipped_profile_leaves_its_criteria_open_and_says_so(reported: Reported) -> None:
    report = reported("journal-tax", skip={"ext2": "no ext2"})
    judged = the(report, "nearly doubles")
    assert [entry.outcome for entry in judged.criteria] == [Outcome.HOLDS] * 3 + [Outcome.OPEN]
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.criteria[3].measured.because == "there is no measurement of ext2.clean"


def snapshots(
    noatime_growth: float, noatime_write: float, pause_s: float
) -> Callable[[str, str, str, int], float]:
    def number(short: str, phase: str, metric: str, repetition: int) -> float:
        jitter = 1 + 0.001 * repetition
        if metric == "metadata_used_bytes":
            grown = 20 if short != "noatime" else 1 + 19 * noatime_growth
            return 1e8 * jitter * (1 if phase == "unpack" else grown)
        if metric == "device_write_bytes":
            return 1e9 * jitter * (noatime_write if short == "noatime" else 1)
        if metric == "wall_s":
            return 700 * jitter
        return jitter * (0.001 if short == "noatime" else pause_s)

    return number


def test_snapshots_with_the_published_effect_reproduce_all_claims(reported: Reported) -> None:
    assert set(verdicts(reported("snapshot-atime", snapshots(0, 0.01, 150))).values()) == {
        Verdict.REPRODUCED
    }


def test_each_claim_on_snapshots_fails_by_its_own_numbers(reported: Reported) -> None:
    assert (
        the(
            reported("snapshot-atime", snapshots(0.5, 0.01, 150)), "noatime prevents the growth"
        ).verdict
        is Verdict.NOT_REPRODUCED
    )
    assert (
        the(reported("snapshot-atime", snapshots(0, 0.5, 150)), "All of the writes").verdict
        is Verdict.NOT_REPRODUCED
    )
    report = reported("snapshot-atime", snapshots(0, 0.01, 0.0011))
    assert the(report, "Meanwhile, other programs stall").verdict is Verdict.NOT_REPRODUCED
    assert the(report, "makes them stall").verdict is Verdict.NOT_REPRODUCED
    assert the(report, "unshares its metadata").verdict is Verdict.REPRODUCED


def test_bytes_per_file_count_the_files_of_every_snapshot(reported: Reported) -> None:
    report = reported("snapshot-atime", snapshots(0, 0.01, 150))
    options = dict(report.results.manifest.workload["options"])
    [line] = [
        line
        for _, lines in report.findings[0].tables
        for line in lines
        if line.line.label == "… per file visited, find"
    ]
    interval = line.measured["relatime"].interval
    assert interval is not None
    assert interval.median == pytest.approx(
        1e9 * 1.001 / (options["files"] * (options["snapshots"] + 1))
    )


def test_a_run_of_something_else_is_refused(reported: Reported) -> None:
    report = reported("journal-tax")
    other = replace(report.results.manifest, request={})
    with pytest.raises(InputError, match="is not a run of the study"):
        study.report(report.study, replace(report.results, manifest=other))


def nine(short: str, phase: str, metric: str, repetition: int) -> float:
    """nilfs2 keeps overwritten data and writes elsewhere; reiserfs packs and computes most; xfs is
    slow with many files."""
    jitter = 1 + 0.001 * repetition
    if metric == "space_used_bytes":
        big = 48 << 20
        small = (2 << 20) if short == "reiserfs" else 7 << 20
        return {"mount": 0, "write": big, "overwrite": big * (2 if short == "nilfs2" else 1)}.get(
            phase, big * (2 if short == "nilfs2" else 1) + small
        )
    if metric == "first_write_bytes":
        return 1e6 * (0.99 if short == "nilfs2" else 0.1)
    if metric in ("modelled_s", "modelled_least_s"):
        is_slow = (short.startswith("xfs") and phase in ("unpack-over", "delete")) or (
            short == "nilfs2" and phase.endswith("write")
        )
        return jitter * (
            90 if is_slow else 15 if short == "btrfs" and phase == "unpack-over" else 10
        )
    if metric.startswith("cpu_"):
        return jitter * {"reiserfs": 4, "btrfs": 3}.get(short, 1)
    return 1e6


def test_nine_file_systems_as_published_reproduce_what_can_be_told(reported: Reported) -> None:
    found = verdicts(reported("nine-filesystems", nine))
    others = {text: verdict for text, verdict in found.items() if verdict is not Verdict.REPRODUCED}
    assert set(others.values()) == {Verdict.INCONCLUSIVE}
    assert [text.split(",")[0] for text in others] == [
        "There are no big differences in space",
        "fsck of ext2 (and ext3?) takes ages on a big disk",
        "… deleting the oldest first",
        "… as the cleaner of 2011 did (our question",
        "… and does not achieve the exact opposite",
    ]


WITHOUT = dict.fromkeys(("jfs", "nilfs2", "reiserfs"), "not in this kernel")


def test_a_claim_fails_whatever_the_missing_file_systems_would_take(reported: Reported) -> None:
    """xfs is no slower than ext4, so it is not twice as slow as the slowest, whichever that is."""

    def equal(short: str, phase: str, metric: str, repetition: int) -> float:
        return nine("ext4", phase, metric, repetition)

    def slow(short: str, phase: str, metric: str, repetition: int) -> float:
        return nine(short, phase, metric, repetition)

    first = the(reported("nine-filesystems", equal, skip=WITHOUT), "xfs is by far").criteria[0]
    assert first.outcome is Outcome.FAILS
    assert first.measured.unknown == ("jfs", "nilfs2", "reiserfs")
    assert first.measured.bounds is not None
    assert (first.measured.bounds.low, first.measured.bounds.high) == (0, pytest.approx(1))
    # A missing one may be slower still, so this decides only the comparison of those measured.
    claim = the(reported("nine-filesystems", slow, skip=WITHOUT), "xfs is by far")
    assert claim.criteria[0].outcome is Outcome.OPEN
    assert claim.verdict is Verdict.INCONCLUSIVE
    assert claim.among is not None
    assert claim.among.missing == ("jfs", "nilfs2", "reiserfs")
    assert claim.among.verdict is Verdict.REPRODUCED


def test_a_claim_about_a_missing_file_system_has_no_second_verdict(reported: Reported) -> None:
    claim = the(reported("nine-filesystems", nine, skip=WITHOUT), "jfs has no particular")
    assert (claim.verdict, claim.among) == (Verdict.INCONCLUSIVE, None)


def test_missing_numbers_of_a_short_or_single_step_decide_nothing(reported: Reported) -> None:
    def short(name: str, phase: str, metric: str, repetition: int) -> float:
        return nine("ext4", phase, metric, repetition) / (
            100 if metric.startswith("modelled") else 1
        )

    for report in (
        reported("nine-filesystems", short, skip=WITHOUT),
        reported("nine-filesystems", nine, skip=WITHOUT, repetitions=1),
    ):
        claim = the(report, "xfs is by far")
        assert claim.criteria[0].outcome is Outcome.OPEN
        assert claim.among is None


def test_a_run_too_small_or_too_short_to_show_a_claim_is_not_judged_by_it(
    reported: Reported,
) -> None:
    """The ratios are the same, in steps of a hundredth of the time; only the durations differ."""

    def short(name: str, phase: str, metric: str, repetition: int) -> float:
        return nine(name, phase, metric, repetition) / (100 if metric.startswith("modelled") else 1)

    slow = the(reported("nine-filesystems", short), "xfs is by far")
    assert slow.verdict is Verdict.INCONCLUSIVE
    assert "too short" in slow.criteria[0].measured.because
    assert "s here, 1 s needed" in slow.criteria[0].measured.because
    space = the(reported("nine-filesystems", nine), "no big differences")
    assert "(48 MiB here, 1024 MiB needed)" in space.criteria[0].measured.because


def test_a_run_that_is_large_enough_only_in_some_repetitions_says_so(reported: Reported) -> None:
    def uneven(name: str, phase: str, metric: str, repetition: int) -> float:
        is_short = metric.startswith("modelled") and repetition == 0
        return nine(name, phase, metric, repetition) / (100 if is_short else 1)

    claim = the(reported("nine-filesystems", uneven), "xfs is by far")
    assert claim.verdict is Verdict.INCONCLUSIVE
    assert "too short" not in claim.criteria[0].measured.because
    assert "vary too much to show that" in claim.criteria[0].measured.because


def test_what_more_repetitions_may_decide_says_so(reported: Reported) -> None:
    report = reported("journal-tax", repetitions=1)
    because = {
        entry.measured.because
        for claim in report.findings[0].claims
        for entry in claim.criteria
        if entry.measured.interval
    }
    assert because == {"a single repetition has no interval"}


def test_virtual_times_tell_nothing_of_a_device_and_all_of_the_processor(
    reported: Reported,
) -> None:
    report = reported("snapshot-atime", snapshots(0, 0.01, 150), time_unit="virtual_s")
    stalls = the(report, "makes them stall")
    assert stalls.verdict is Verdict.INCONCLUSIVE
    assert all(
        "not a device's" in entry.measured.because and entry.measured.interval is not None
        for entry in stalls.criteria
    )
    # Times on device models take only the program's own time from that clock.
    report = reported("nine-filesystems", nine, time_unit="virtual_s")
    assert the(report, "xfs is by far").verdict is Verdict.REPRODUCED
    assert the(report, "above all with small files").verdict is Verdict.REPRODUCED


def journal_of(factor: float) -> Callable[[str, str, str, int], float]:
    def number(short: str, phase: str, metric: str, repetition: int) -> float:
        return 1e6 * (1 if short in JOURNAL else factor) * (1 + 0.001 * repetition)

    return number


def test_each_kernel_has_its_own_verdict_by_its_own_samples(reported: Reported) -> None:
    report = reported(
        "journal-tax", {"6.1": journal_of(2), "6.12": journal_of(1), "/boot/vmlinuz": journal_of(3)}
    )
    assert [findings.kernel for findings in report.findings] == ["6.1", "6.12", "vmlinuz"]
    medians = [findings.claims[0].criteria[0].measured.interval for findings in report.findings]
    assert [interval and round(interval.median, 6) for interval in medians] == [2, 1, 3]
    assert [findings.claims[0].verdict for findings in report.findings] == [
        Verdict.REPRODUCED,
        Verdict.NOT_REPRODUCED,
        Verdict.NOT_REPRODUCED,
    ]


def test_a_profile_that_one_kernel_lacks_leaves_the_others_alone(reported: Reported) -> None:
    def none(short: str, phase: str, metric: str, repetition: int) -> float | None:
        return None if short == "ext2" else journal_of(2)(short, phase, metric, repetition)

    report = reported("journal-tax", {"6.1": journal_of(2), "6.12": none})
    assert [findings.claims[0].verdict for findings in report.findings] == [
        Verdict.REPRODUCED,
        Verdict.INCONCLUSIVE,
    ]


def test_one_kernel_is_no_part_of_any_name(reported: Reported) -> None:
    report = reported("journal-tax", {"6.1": journal_of(2)})
    assert [profile["kernel"] for profile in report.results.manifest.profiles] == ["6.1"] * 9
    assert [(findings.kernel, findings.claims[0].verdict) for findings in report.findings] == [
        ("", Verdict.REPRODUCED)
    ]


@pytest.mark.parametrize("kernels", ["6.1", [6.1], ["6.1", "6.1"]])
def test_a_damaged_request_is_one_clear_error(reported: Reported, kernels: object) -> None:
    report = reported("journal-tax")
    damaged = replace(
        report.results.manifest, request={**report.results.manifest.request, "kernel": kernels}
    )
    with pytest.raises(InputError, match=r"request\.kernel is damaged|names one twice"):
        study.report(report.study, replace(report.results, manifest=damaged))
