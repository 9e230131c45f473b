"""The studies' own data are complete and packaged, and errors in them name the file."""

import csv
from importlib import resources
from pathlib import Path

import pytest

from fscost import study
from fscost.errors import HostError, InputError
from fscost.study.formula import Reference
from fscost.study.load import read
from fscost.study.measure import published_value
from fscost.study.model import Need
from fscost.study.spec import missing

FOLDER = resources.files("fscost.study") / "published"
TOML = (FOLDER / "journal-tax" / "study.toml").read_text("utf-8")
CSV = (FOLDER / "journal-tax" / "published.csv").read_text("utf-8")
MIB = 1 << 20


NAMES = ["external-journal", "journal-tax", "nine-filesystems", "noatime-raid", "snapshot-atime"]


def test_there_are_five() -> None:
    assert [found.name for found in study.catalogue()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_says_where_its_figures_are_from_and_has_three_scales(name: str) -> None:
    found = study.load(name)
    assert found.url.startswith("https://")
    assert set(found.scales) == {"small", "medium", "full"}
    assert len(
        list(csv.DictReader((FOLDER / name / "published.csv").read_text("utf-8").splitlines()))
    ) == len(found.published.values)


def test_all_four_blocks_of_the_source_are_there() -> None:
    found = study.load("journal-tax")
    assert len(found.published.values) == 24
    assert found.published.values[Reference("strict", "clean", "device_write_bytes")] == 14.6 * MIB
    assert [
        (found.profiles[entry.with_].name, found.profiles[entry.without].name)
        for entry in found.comparisons
    ] == [
        ("ext4-strictatime", "ext4-nojournal-strictatime"),
        ("ext4-noatime", "ext4-nojournal-noatime"),
        ("ext4-relatime", "ext4-nojournal-relatime"),
        ("ext3-strictatime", "ext2-strictatime"),
    ]


def test_the_steps_come_in_the_published_order_on_one_file_system(tmp_path: Path) -> None:
    found = study.load("journal-tax")
    spec = study.plan(found, study.scale_of(found, "small"), tmp_path / "run")
    assert [step.name for step in spec.workload.steps] == [
        "clone",
        "make",
        "clean",
        "read",
        "read-again",
        "neighbour",
        "counter",
        "mutt",
        "tmpreaper",
    ]
    assert len(spec.profiles) == 9
    found = study.load("snapshot-atime")
    spec = study.plan(found, study.scale_of(found, "small"), tmp_path / "run")
    assert [(step.name, step.measured) for step in spec.workload.steps] == [
        ("unpack", False),
        ("find", True),
        ("read", True),
    ]
    assert spec.probe_interval_ms is not None


def test_the_published_figures_of_members_meet_the_rules_made_of_them(tmp_path: Path) -> None:
    found = study.load("noatime-raid")
    formulas = {claim.text: claim.criteria[0] for claim in found.claims}
    nine, one = (
        next(rule for text, rule in formulas.items() if text.startswith(begin))
        for begin in ("Random writes", "One member")
    )
    published = [published_value(rule.formula, found.published) for rule in (nine, one)]
    assert published == [pytest.approx(9, rel=0.01), pytest.approx(0.964)]
    spec = study.plan(found, study.scale_of(found, "small"), tmp_path / "run")
    assert spec.ssd == "first-generation-block-map-32gb"
    assert all(each.array is not None and each.array.members == 3 for each in spec.profiles)


def test_no_verdict_is_in_the_data() -> None:
    for name in NAMES:
        text = (FOLDER / name / "study.toml").read_text("utf-8").lower()
        text = text.replace("measured = false", "")
        for word in ("reproduced", "verdict =", "measured ="):
            assert word not in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('metric = "device_write_bytes"', "", "'metric' is missing"),
        ('strict = "ext4-strictatime"', 'strict = "ext5"', "ext5"),
        (
            "strict.clean / strict_nj.clean",
            "strikt.clean / strict_nj.clean",
            "no profile is called 'strikt'",
        ),
        ("strict.clean / strict_nj.clean", "strict.clean ** 2", "formula"),
        ('with = "ext3"', 'with = "ext9"', "no profile is called 'ext9'"),
        (", at_least = 0.5, neutral = 0, precondition", ", precondition", "has no bound"),
        ("factor = 2", "faktor = 2", "does not match the fields of a study"),
        ("factor = 2", "faktor = 2", "faktor"),
        ("[profiles]", "[profiles", "study.toml"),
    ],
)
def test_a_wrong_study_names_its_file_and_what_is_wrong(old: str, new: str, message: str) -> None:
    assert old in TOML
    with pytest.raises(InputError, match="mine") as error:
        read("mine", TOML.replace(old, new, 1), CSV)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("profile,phase", "profil,phase", "columns"),
        ("strict,clone", "nobody,clone", "nobody"),
        ("strict_nj,clone", "strict,clone", "occurs twice"),
        ("367.7,MB", "367.7,parsec", "the unit is not one of"),
    ],
)
def test_a_wrong_table_of_published_figures_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read("mine", TOML, CSV.replace(old, new, 1))


def test_an_unknown_study_and_scale_name_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=(
            "studies: external-journal, journal-tax, nine-filesystems, noatime-raid, snapshot-atime"
        ),
    ):
        study.load("")
    with pytest.raises(InputError, match="did you mean journal-tax"):
        study.load("journaltax")
    with pytest.raises(InputError, match="small or medium or full"):
        study.scale_of(study.load("journal-tax"), "huge")


def test_what_the_host_lacks_is_named_with_the_package_that_brings_it(tmp_path: Path) -> None:
    here, gone = Need("b", path=f"{tmp_path}/*.here"), Need("c", path=f"{tmp_path}/*.gone")
    (tmp_path / "x.here").touch()
    assert missing([Need("a", tool="sh"), Need("d", tool="no-such-tool"), here, gone]) == [
        Need("d", tool="no-such-tool"),
        gone,
    ]


def test_the_full_scale_refuses_with_one_command_that_installs_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = study.load("journal-tax")
    monkeypatch.setattr("fscost.study.spec.missing", list)
    with pytest.raises(
        HostError, match="apt install linux-source bc flex bison libelf-dev libssl-dev"
    ):
        study.plan(found, study.scale_of(found, "full"), tmp_path)


def test_each_scale_says_which_claims_it_leaves_open() -> None:
    tax = study.load("journal-tax")
    assert [len(tax.left_open(scale)) for scale in tax.scales.values()] == [8, 2, 2]
    hardware = tax.left_open(tax.scales["full"])[-1]
    assert hardware.startswith("First-generation SSDs"), "nothing measures it, at any scale"
    files = [
        (FOLDER / "journal-tax" / name).read_text("utf-8")
        for name in ("study.toml", "published.csv")
    ]
    with pytest.raises(InputError, match="'No such claim' does not begin exactly one"):
        read("journal-tax", files[0].replace('"noatime removes"', '"No such claim"'), files[1])
