"""Suites and device files with damage anywhere: each is read, or refused by one error that names
it."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fscost import devices, latency, wear
from fscost.cli import suite
from fscost.errors import InputError

VALUES = (
    *("''", "1", "-1", "0", "1e400", "nan", "-inf", "true", "[]", "[[]]", "{}", "{ value = [] }"),
    *("1979-05-27", "07:32:00", "9" * 30, "'\\u0000'", '"\\u001b[2J"', "'" + "x" * 5000 + "'"),
    *("[1, 'a']", "{ a = { b = 1 } }", "''''''", "0x7fffffffffffffff", "18446744073709551616"),
)
VALUE = re.compile(r"(?<== ).*$", re.MULTILINE)
"""The values of a TOML file that has one key on a line."""

SUITE = """version = 1
name = "night"
profiles = ["ext4", "xfs -m reflink=0"]
baseline = "ext4"
seed = 7
size = "2G"
settle = "sync"
ssd = "nvme"

[stop]
min_repetitions = 3
max_minutes = 20

[workloads.build]
builtin = "small-files"
scale = 0.5

[workloads.own]
command = ["sh", "-c", "echo x >f"]
prepare = ["true"]
env = {A = "b"}
"""
BOTH = [device for device in devices.catalogue() if {"wear", "latency"} <= device.sections.keys()]


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Replace a value, remove, repeat or cut a line, or change a character, up to three times."""
    for _ in range(draw(st.integers(1, 3))):
        lines = text.splitlines(keepends=True) or [""]
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["value", "value", "remove", "repeat", "cut", "character"])):
            case "value":
                value = draw(st.sampled_from(VALUES))
                lines[at] = VALUE.sub(lambda _, value=value: value, lines[at])
            case "remove":
                del lines[at]
            case "repeat":
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "character":
                place = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:place] + draw(st.characters()) + lines[at][place + 1 :]
        text = "".join(lines)
    return text


def refused(path: Path, error: InputError) -> None:
    assert path.stem in error.what
    assert len(error.what) < 10_000
    assert error.remedy


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "file.toml"


@given(text=damaged(SUITE))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_suite_is_an_input_error_or_harmless(file: Path, text: str) -> None:
    file.write_bytes(text.encode(errors="surrogatepass"))
    try:
        suite.requests(suite.load(file), file)
    except InputError as error:
        refused(file, error)


@given(text=st.sampled_from(BOTH).flatmap(lambda device: damaged(device.text)))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_device_is_an_input_error_or_harmless(file: Path, text: str) -> None:
    file.write_bytes(text.encode(errors="surrogatepass"))
    try:
        found = devices.find(str(file))
    except InputError as error:
        refused(file, error)
        return
    for model in (wear.of_file, latency.of_file):
        try:
            model(found)
        except InputError as error:
            refused(file, error)
