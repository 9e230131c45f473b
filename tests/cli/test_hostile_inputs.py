"""Hostile texts in recordings, traces, suites, device files and names of files: no terminal,
spreadsheet or page obeys them. `test_escapes.py` does the same with the folder of a run."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path

import pytest
from tests import recordings
from tests.recordings import Body, event

from fscost import devices

from .conftest import Ended

ESCAPE = "\x1b]8;;http://x\x07\x1b]52;c;aGk=\x07\x1b[2J\u202e\u200b<b>"
"""Makes a link, writes the clipboard, clears the screen, turns the text around, has no width, and
is markup."""
HOSTILE = "=x" + ESCAPE
TRACES = {
    "msr": f"128166372003061629,{HOSTILE},0,Write,4096,4096,1\n",
    "fio": f"fio version 3 iolog\n1 {HOSTILE} add\n2 {HOSTILE} open\n3 {HOSTILE} write 4096 4096\n"
    f"4 {HOSTILE} close\n",
    "bad": f"128166372003061629,mds,0,{HOSTILE},4096,4096,1\n",
}
IN_TOML = json.dumps(HOSTILE)
DEVICE = re.sub('source = "[^"]*"', "source = SOURCE", devices.find("nvme").text)
DEVICE = re.sub("(?m)^(summary|kind) = .*$", r"\1 = SOURCE", DEVICE)
_SHOWN = re.compile(r"x(�|\\x1b|\\u001b|\\u\{1b\})\]8")
"""The text, made harmless in one of the ways of doing so."""


def recording(path: Path) -> None:
    names = ("setup", HOSTILE, "other", "end")
    write = Body(
        [event(recordings.WRITE, 4096 * number, 4096, 4096 * number) for number in range(4)],
        bytes(16384),
    )
    bodies = []
    for name in names:
        mark = {"name": name, "detail": {"measured": name == HOSTILE, HOSTILE: HOSTILE}}
        bodies += [(1, recordings.mark_of(mark)), (1, write)]
    recordings.write(path, [*bodies[:-1]])


INPUTS: Mapping[str, Callable[[Path], object]] = {
    "r": recording,
    **{f"{name}.trace": lambda path, name=name: path.write_text(TRACES[name]) for name in TRACES},
    "suite.toml": lambda path: path.write_text(
        f"version = 1\nprofiles = ['ext4']\n"
        f"[workloads.w]\ncommand = {IN_TOML}\nsetup = [{IN_TOML}]\n"
    ),
    "field.toml": lambda path: path.write_text(f"version = 1\n{IN_TOML} = 1\n"),
    "answers.toml": lambda path: path.write_text(f"{IN_TOML} = 1\n"),
    "value.toml": lambda path: path.write_text(
        f"version = 1\nprofiles = ['ext4']\nlab = {IN_TOML}\n[workloads.w]\ncommand = 'true'\n"
    ),
    "device.toml": lambda path: path.write_text(DEVICE.replace("SOURCE", IN_TOML)),
    "key.toml": lambda path: path.write_text(f"[latency]\nmodel = 'constant'\n{IN_TOML} = 1\n"),
    "model.toml": lambda path: path.write_text(f"[latency]\nmodel = {IN_TOML}\n"),
    "now.json": lambda path: path.write_text(
        json.dumps(
            {"model_name": HOSTILE, "nvme_smart_health_information_log": {"percentage_used": 3}}
        )
    ),
    HOSTILE.replace("/", "_"): recording,
}
NAMED = HOSTILE.replace("/", "_")
OUT = "out"
COMMANDS: list[tuple[str, ...]] = [
    ("recording", "info", "r"),
    ("recording", "info", "r", "--json"),
    ("explain", "r"),
    ("explain", "r", "--by", "structure"),
    ("explain", "r", "--json"),
    ("explain", "r", "--phase", HOSTILE),
    ("replay", "r", "--disk", f"{HOSTILE}=hdd-7200"),
    ("wear", "r", "--ssd", "sd-card-32gb", "--by", "step"),
    ("wear", "r", "--ssd", "sd-card-32gb", "--by", "step", "--csv", OUT),
    ("wear", "r", "--ssd", "nvme", "--now", "now.json"),
    ("wear", "r", "--ssd", "device.toml"),
    *[("wear", f"{name}.trace", "--ssd", "nvme") for name in ("msr", "fio")],
    *[("explain", f"{name}.trace") for name in ("msr", "fio")],
    ("explain", "bad.trace", "--format", "msr"),
    ("wear", "bad.trace", "--ssd", "nvme", "--format", "msr"),
    ("wear", "msr.trace", "--ssd", "nvme", "--csv", OUT),
    ("wear", "msr.trace", "--ssd", "nvme", "--disk", HOSTILE),
    *[("replay", f"{name}.trace", "--disk", "x=hdd-7200") for name in ("msr", "fio")],
    *[("run", f"{name}.toml", "--dry-run") for name in ("suite", "field", "value")],
    *[("devices", f"{name}.toml") for name in ("device", "key", "model")],
    ("study", "page", "run", "--answers", "answers.toml", "-o", OUT),
    ("devices", HOSTILE),
    ("explain", NAMED),
    ("recording", "info", NAMED),
    ("wear", NAMED, "--ssd", "nvme"),
    ("replay", NAMED, "--disk", "disk0=hdd-7200"),
    ("show", NAMED),
    ("diff", NAMED, NAMED),
    ("serve", NAMED),
    (HOSTILE,),
    ("explain", HOSTILE + "/x"),
    ("compare", "--on", "ext4", "--lab", "fake", "--dry-run", "--", "echo", HOSTILE),
    ("calibrate", f"/dev/{HOSTILE}"),
]


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for name, make in INPUTS.items():
        make(folder / name)
    return folder


def _title(arguments: tuple[str, ...]) -> str:
    return " ".join("x" if ESCAPE[:4] in each else each for each in arguments)


def is_raw(character: str) -> bool:
    return not character.isprintable() and character not in "\n\t"


@pytest.mark.parametrize("arguments", COMMANDS, ids=_title)
def test_no_output_has_a_strangers_text_raw(
    fscost: Callable[..., Ended], tmp_path: Path, inputs: Path, arguments: tuple[str, ...]
) -> None:
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    ended = fscost(*arguments, check=(0, 1, 2))
    out = tmp_path / OUT
    written = out.read_text() if out.exists() else ""
    told = ended.stdout + ended.stderr
    assert _SHOWN.search(told + written), told
    assert not sorted(filter(is_raw, {*told, *written})), f"{told}{written}"
    if "--csv" in arguments:
        cells = [cell for row in csv.reader(StringIO(written)) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
