"""Run folders that are truncated, altered, or made by somebody else: one clear error that names
file and field."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fscost.errors import InputError
from fscost.results import MANIFEST, SAMPLES, SCHEMA, load


def refused(run: Path, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        load(run)
    for word in (*words,):
        assert word in caught.value.what
    assert caught.value.remedy


def changed(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = run / MANIFEST
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.pop("seed"), "seed is missing"),
        (lambda m: m.update(seed="1"), "seed is a string, not a whole number"),
        (lambda m: m.update(seed=True), "seed is true or false"),
        (lambda m: m.update(seed=1 << 70), "seed does not fit"),
        (lambda m: m.update(format=2), "format is 2"),
        (lambda m: m.update(elapsed_s="x"), "elapsed_s is a string"),
        (lambda m: m.update(elapsed_s=10**400), "elapsed_s is not a finite number"),
        (lambda m: m.update(state="asleep"), "state is 'asleep'"),
        (lambda m: m.update(baseline="zfs"), "baseline is 'zfs'"),
        (lambda m: m.update(command_line=["a", 1]), "command_line[1] is a number"),
        (lambda m: m.update(cells={}), "cells is an object, not a list"),
        (lambda m: m.update(cells=[3]), "cells[0] is a number, not an object"),
        (lambda m: m["cells"][0].pop("order"), "cells[0].order is missing"),
        (lambda m: m["cells"][0].update(profile="zfs"), "cells[0].profile is 'zfs'"),
        (lambda m: m["cells"].append(m["cells"][0]), "cells[2].cell names 'ext4.0' a second time"),
        (
            lambda m: m["cells"][0].update(recording="/etc/shadow"),
            "cells[0].recording is '/etc/shadow', which leads out",
        ),
        (lambda m: m["cells"][0].update(output="cells/../../x"), "cells[0].output"),
        (lambda m: m["profiles"][0].pop("name"), "profiles[0].name is missing"),
        (lambda m: m["profiles"][0].update(disks=5), "profiles[0].disks is a number, not a list"),
        (lambda m: m["profiles"][0].update(disks=[5]), "profiles[0].disks[0] is a number"),
        (
            lambda m: m["profiles"][0].update(disks=[{"name": "main", "model": 5}]),
            "profiles[0].disks[0].model is a number, not a string",
        ),
        (lambda m: m["workload"].update(options=[["a", 1, 2]]), "workload.options[0]"),
        (lambda m: m["workload"].update(options=[["a", {}]]), "workload.options[0][1]"),
        (lambda m: m["workload"].pop("name"), "workload.name is missing"),
        (
            lambda m: m["cells"][1].update(status="done"),
            "cell 'xfs.0' is done in manifest.json but has no samples",
        ),
    ],
)
def test_each_wrong_field_is_named(
    run: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    changed(run, change)
    refused(run, words)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"format": NaN}', b"[" * 100_000, b"null", b"1" * 10_000],
)
def test_what_is_no_manifest_is_refused(run: Path, content: bytes) -> None:
    (run / MANIFEST).write_bytes(content)
    refused(run, MANIFEST)


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "holds no run")
    refused(tmp_path / "nowhere", "holds no run")


def rewritten(run: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = run / SAMPLES
    pq.write_table(change(pq.read_table(path)), path)


def set_column(name: str, values: pa.Array) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop_columns(["seed"]), "column seed is missing"),
        (lambda t: t.append_column("seed", t["seed"]), "column seed is missing or duplicated"),
        (set_column("value", pa.array(["1", "2"])), "column value is string, not double"),
        (set_column("value", pa.array([1.0, None])), "column value has empty values"),
        (
            set_column("value", pa.array([1.0, float("nan")])),
            "column value holds something that is not a finite number",
        ),
        (set_column("value", pa.array([1.0, -1e308])), "column value holds a number beyond 1e+100"),
        (
            set_column("profile", pa.array(["xfs", "xfs"])),
            "cell 'ext4.0' belongs to profile 'xfs' here",
        ),
        (lambda t: pa.concat_tables([t, t]), "two samples have the same cell"),
        (lambda t: t.slice(0, 0), "cell 'ext4.0' is done in manifest.json but has no samples"),
    ],
)
def test_each_wrong_column_is_named(
    run: Path, change: Callable[[pa.Table], pa.Table], words: str
) -> None:
    rewritten(run, change)
    refused(run, SAMPLES, words)


def test_a_word_that_no_row_has_is_no_sample(run: Path) -> None:
    """The dictionary of a column in a Parquet file may have words that no row has."""
    changed(run, lambda m: m["cells"].append({**m["cells"][0], "cell": "ext4.1"}))
    words, rows = pa.array(["ext4.0", "ext4.1"]), pa.array([0, 0], pa.int32())
    cells = pa.DictionaryArray.from_arrays(rows, words)
    table = set_column("cell", cells)(pq.read_table(run / SAMPLES))
    pq.write_table(table, run / SAMPLES, store_schema=False)
    refused(run, SAMPLES, "cell 'ext4.1' is done in manifest.json but has no samples")


@pytest.mark.parametrize("name", [MANIFEST, SAMPLES])
@pytest.mark.parametrize("kind", ["fifo", "link", "link to an endless device", "folder"])
def test_what_is_no_regular_file_is_refused_unopened(run: Path, name: str, kind: str) -> None:
    (run / name).rename(run / "moved")
    match kind:
        case "fifo":
            os.mkfifo(run / name)
        case "folder":
            (run / name).mkdir()
        case _:
            (run / name).symlink_to("moved" if kind == "link" else "/dev/zero")
    refused(
        run, name, {"fifo": "is a FIFO", "folder": "is a folder"}.get(kind, "is a symbolic link")
    )


def test_an_endless_manifest_is_refused(run: Path) -> None:
    os.truncate(run / MANIFEST, 1 << 40)
    refused(run, MANIFEST, "is larger than 96 MiB")


def a_bomb(rows: int, text_bytes: int) -> pa.Table:
    """Samples from finding M3 of the review: one long text, stored once."""
    values = {
        field.name: pa.array([1] * rows, field.type)
        for field in SCHEMA
        if field.type not in (pa.string(), pa.bool_())
    }
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array(["x" * text_bytes])
    )
    flags = pa.array([True] * rows)
    return pa.table(
        {
            field.name: values.get(field.name, flags if field.type == pa.bool_() else texts)
            for field in SCHEMA
        }
    )


def memory_kib() -> int:
    return int(
        next(
            line.split()[1]
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("VmHWM")
        )
    )


@pytest.mark.parametrize(
    ("rows", "text_bytes", "words"),
    [
        (60_000, 100_000, "a string of more than 4096 bytes"),
        (60_000, 4096, "its strings have"),
        (3, 60_000_000, "unpacks to"),
    ],
)
def test_samples_that_would_fill_memory_are_refused(
    run: Path, rows: int, text_bytes: int, words: str
) -> None:
    table = a_bomb(rows, text_bytes)
    pq.write_table(table, run / SAMPLES, compression="zstd", store_schema=False)
    assert (run / SAMPLES).stat().st_size < 400_000
    before = memory_kib()
    refused(run, SAMPLES, words)
    assert memory_kib() - before < 256 << 10


def test_missing_samples_are_refused(run: Path) -> None:
    (run / SAMPLES).unlink()
    refused(run, SAMPLES)


def test_columns_of_another_type_do_not_end_the_program(run: Path) -> None:
    """pyarrow 26 aborts where it compares a column's type with the column's statistics. In the
    footer, BYTE_ARRAY is 6 and INT64 is 2, both doubled (parquet.thrift, compact protocol)."""
    path = run / SAMPLES
    pq.write_table(a_bomb(3, 10), path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    places = [at for at in range(footer, len(whole) - 8) if whole[at] == 12]
    program = [
        "import sys; from pathlib import Path",
        "from fscost.errors import InputError",
        "from fscost.results import load",
        "path, *places = map(Path, sys.argv[1:]); whole = path.read_bytes()",
        "for at in (int(str(place)) for place in places):",
        "    path.write_bytes(whole[:at] + bytes([4]) + whole[at + 1 :])",
        "    try: load(path.parent)",
        "    except InputError: pass",
    ]
    command = [sys.executable, "-c", "\n".join(program), str(path), *map(str, places)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert len(places) > 8
    assert done.returncode == 0, done.stderr[-500:]


@given(data=st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=150,
)
def test_damage_anywhere_is_an_input_error_or_harmless(run: Path, data: st.DataObject) -> None:
    path = run / data.draw(st.sampled_from([MANIFEST, SAMPLES]))
    whole = path.read_bytes()
    try:
        if data.draw(st.booleans()):
            path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        else:
            at = data.draw(st.integers(0, len(whole) - 1))
            path.write_bytes(whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :])
        said = str(run)
        try:
            load(run)
        except InputError as error:
            said = error.what
    finally:
        path.write_bytes(whole)
    assert str(run) in said
