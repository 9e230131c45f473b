"""Fuzz targets for what Python reads from strangers, with Atheris (libFuzzer for Python):
`readers.py TARGET [libFuzzer's arguments]`. An input says how to damage a valid document. A damaged
document is read, or refused by an InputError: any other exception is a defect."""  # noqa: INP001 a script

import contextlib
import copy
import hashlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import atheris
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

with atheris.instrument_imports(include=["fscost", "tomllib"], enable_loader_override=False):
    from fscost import devices, latency, wear
    from fscost.cli import suite as suites
    from fscost.cli.output.emit import Outputs
    from fscost.errors import InputError
    from fscost.lab.cell.events import ProtocolError, parse
    from fscost.lab.cell.samples import samples as samples_of
    from fscost.lab.cell.transcript import Transcript
    from fscost.profile import plan_format, resolve
    from fscost.profile.design import expand_all
    from fscost.results import MANIFEST, SAMPLES, load
    from fscost.view.run import Choice
    from fscost.wear import counters

Data = atheris.FuzzedDataProvider
HERE = Path(__file__).parent
RUN = HERE.parent / "docs/atlas/runs/6.18-native/fsync-log"
CELLS = 2
"""Cells of the run that are kept: an input of a whole run would damage little else."""
MOST_EDITS = 6
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 70, 0.0, -0.5, 1e308),
    *("", "\x00", "\x1b[2J", "\u202e", "\ud800", "../../x", "/etc/shadow", "=1+1", "<b>", "ext4"),
    *([], {}, [[]], [None], {"": None}, "x" * 5000, "9" * 30, "1e400", "done", "failed", "bytes"),
]
TOML_VALUES = (
    *("''", "1", "-1", "0", "1e400", "nan", "-inf", "true", "[]", "[[]]", "{}", "{ value = [] }"),
    *("1979-05-27", "07:32:00", "9" * 30, "'\\u0000'", '"\\u001b[2J"', "'" + "x" * 5000 + "'"),
    *("[1, 'a']", "{ a = { b = 1 } }", "''''''", "0x7fffffffffffffff", "18446744073709551616"),
)
"""Values that a reader of TOML must expect."""
TOML_VALUE = re.compile(r"(?<== ).*$", re.MULTILINE)
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
DEVICES = [each.text for each in devices.catalogue()]
SMART = {
    "model_name": "an SSD",
    "user_capacity": {"bytes": 1 << 39},
    "power_on_time": {"hours": 7},
    "nvme_smart_health_information_log": {"percentage_used": 3, "data_units_written": 1 << 20},
    "ata_smart_attributes": {
        "table": [
            {"id": 177, "name": "Wear_Leveling_Count", "value": 97, "raw": {"value": 40}},
            {"id": 241, "name": "Total_LBAs_Written", "value": 99, "raw": {"value": 1 << 33}},
        ]
    },
    "ata_device_statistics": {
        "pages": [
            {"number": 7, "table": [{"name": "Percentage Used Endurance Indicator", "value": 3}]}
        ]
    },
}


def a_run() -> tuple[str, pa.Table]:
    """Return the manifest of the first cells of a published run, and their samples."""
    value = json.loads((RUN / MANIFEST).read_text())
    value["cells"] = value["cells"][:CELLS]
    kept = {cell["profile"] for cell in value["cells"]} | {value["baseline"]}
    value["profiles"] = [each for each in value["profiles"] if each["name"] in kept]
    value["skipped"] = []
    table = pq.read_table(RUN / SAMPLES)
    cells = pa.array([cell["cell"] for cell in value["cells"]])
    return json.dumps(value), table.filter(pc.is_in(table["cell"], cells))


def interval(name: str, *, measured: bool) -> dict[str, Any]:
    """Return an agent's event for one interval."""
    counts = ("read_requests", "read_bytes", "write_requests", "write_bytes")
    counts += ("discard_requests", "discard_bytes", "flush_requests")
    times = ("wall_ns", "command_ns", "settle_ns", "cpu_user_ns", "cpu_system_ns")
    event = {"event": "interval", "name": name, "measured": measured, **dict.fromkeys(times, 10**9)}
    event |= {"program_write_bytes": 6144, "program_read_bytes": 10, "sync_calls": 2}
    event |= {"sync_times_ns": [[1000, 1], [2000, 1]], "space_used_bytes": 1 << 20}
    event |= {"probe": {"interval_ms": 10, "pauses_ns": [5, 7]}}
    event |= {"counters": {"main": dict.fromkeys(counts, 4096)}}
    return event | {"settle_write_bytes": {"main": 1}, "unmount_write_bytes": {"main": 1}}


def agent_events() -> list[dict[str, Any]]:
    """Return the events of a complete cell."""
    mount = {"mountinfo": "36 1 7:0 / /mnt rw - ext4 /dev/loop9 rw", "options": "rw"}
    queue = {"logical_block_size": 512}
    return [
        {"event": "attached", "disk": "main", "device": "/dev/loop9", "queue": queue},
        interval("mkfs", measured=False),
        {"event": "mounted", "super_options": "rw", "type": "ext4", **mount},
        interval("mount", measured=False),
        {"event": "inspected", "name": "superblock", "output": "features: has_journal"},
        interval("build", measured=True),
        {"event": "done", "recording": {"requests": 12}},
    ]


MANIFEST_TEXT, SAMPLES_TABLE = a_run()
EVENTS_TEXT = json.dumps(agent_events())


def as_parquet(table: pa.Table) -> bytes:
    """Return a table as the content of a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def bound(value: Any, samples_bytes: bytes) -> bytes:
    """Return a manifest that names the digest of these samples, so that they are read."""
    if isinstance(value, dict):
        value["samples_sha256"] = hashlib.sha256(samples_bytes).hexdigest()
    return as_json(value)


def drawn(data: Data) -> Any:
    """Draw a value of any JSON type."""
    match data.ConsumeIntInRange(0, 3):
        case 0:
            return data.ConsumeUnicode(data.ConsumeIntInRange(0, 16))
        case 1:
            return data.ConsumeInt(9)
        case 2:
            return data.ConsumeFloat()
    return copy.deepcopy(data.PickValueInList(VALUES))


def damaged_json(data: Data, document: str) -> Any:
    """Replace, remove, repeat, rename or move values anywhere in a JSON document."""
    root = [json.loads(document)]
    taken: Any = None
    for _ in range(data.ConsumeIntInRange(1, MOST_EDITS)):
        place: Any = root
        key: Any = 0
        # Down from the root: a field of the first level is as likely as any of a cell.
        while isinstance(place[key], dict | list) and place[key] and data.ConsumeIntInRange(0, 7):
            place = place[key]
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = keys[data.ConsumeIntInRange(0, len(keys) - 1)]
        match data.ConsumeIntInRange(0, 5):
            case 0 if place is not root:
                taken = place.pop(key)
            case 1:
                taken, place[key] = place[key], taken
            case 2 if isinstance(place, dict):
                place[data.ConsumeUnicode(8)] = copy.deepcopy(place[key])
            case 2 if place is not root:
                place.append(copy.deepcopy(place[key]))
            case _:
                place[key] = drawn(data)
    return root[0]


def damaged_toml(data: Data, text: str) -> bytes:
    """Replace values, and remove, repeat, cut or change lines."""
    for _ in range(data.ConsumeIntInRange(1, MOST_EDITS)):
        lines = text.splitlines(keepends=True) or [""]
        at = data.ConsumeIntInRange(0, len(lines) - 1)
        match data.ConsumeIntInRange(0, 5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(data.ConsumeIntInRange(0, len(lines)), lines[at])
            case 2:
                cut = data.ConsumeIntInRange(0, len(lines[at]))
                added = data.ConsumeUnicode(data.ConsumeIntInRange(0, 16))
                lines[at] = lines[at][:cut] + added + lines[at][cut:]
            case 3:
                lines[at] = lines[at][: data.ConsumeIntInRange(0, len(lines[at]))]
            case _:
                value = TOML_VALUES[data.ConsumeIntInRange(0, len(TOML_VALUES) - 1)]
                lines[at] = TOML_VALUE.sub(lambda _, value=value: value, lines[at])
        text = "".join(lines)
    return text.encode(errors="surrogatepass")


def as_json(value: Any) -> bytes:
    """Return JSON as a stranger may write it: with what is not JSON, and half a letter."""
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")


def suite(folder: Path, data: Data) -> None:
    """Suite file."""
    file = folder / "suite.toml"
    file.write_bytes(damaged_toml(data, SUITE))
    suites.requests(suites.load(file), file)


def device(folder: Path, data: Data) -> None:
    """Device file, as one that wears and as one that takes time."""
    file = folder / "device.toml"
    text = DEVICES[data.ConsumeIntInRange(0, len(DEVICES) - 1)]
    file.write_bytes(damaged_toml(data, text))
    found = devices.find(str(file))
    for model in (wear.of_file, latency.of_file):
        with contextlib.suppress(InputError):
            model(found)


def now(folder: Path, data: Data) -> None:
    """Counters of a device, as smartctl prints them."""
    file = folder / "smart.json"
    file.write_bytes(as_json(damaged_json(data, json.dumps(SMART))))
    read = counters.read(file)
    json.dumps([asdict(read), read.left, read.left_bytes, read.amplification(1e12)], default=vars)


def profile(folder: Path, data: Data) -> None:
    """Spelling of profiles."""
    del folder
    text = data.ConsumeUnicode(data.remaining_bytes())
    for each in expand_all([text]):
        plan_format(resolve(each.spelling), 1 << 30, 7)


def manifest(folder: Path, data: Data) -> None:
    """Manifest of a run with its samples, and the tables made of both."""
    value = damaged_json(data, MANIFEST_TEXT)
    shown(folder, data, bound(value, SAMPLES_BYTES), SAMPLES_BYTES)


def samples(folder: Path, data: Data) -> None:
    """Samples of a run: values, rows and columns that no run would write."""
    table = SAMPLES_TABLE
    for _ in range(data.ConsumeIntInRange(1, MOST_EDITS)):
        name = table.column_names[data.ConsumeIntInRange(0, table.num_columns - 1)]
        at = table.column_names.index(name)
        match data.ConsumeIntInRange(0, 4):
            case 0 if table.num_columns > 1:
                table = table.drop_columns([name])
            case 1:
                table = table.slice(data.ConsumeIntInRange(0, table.num_rows))
            case 2:
                table = pa.concat_tables([table, table.slice(0, 3)])
            case _:
                column = table.column(name).to_pylist()
                for _ in range(data.ConsumeIntInRange(1, 8) if column else 0):
                    column[data.ConsumeIntInRange(0, len(column) - 1)] = drawn(data)
                kind = table.schema.field(name).type if data.ConsumeBool() else None
                try:
                    changed = pa.array(column, kind)
                except (pa.ArrowException, OverflowError, UnicodeError):
                    continue
                table = table.set_column(at, name, changed)
    content = as_parquet(table)
    shown(folder, data, bound(json.loads(MANIFEST_TEXT), content), content)


def shown(folder: Path, data: Data, manifest_bytes: bytes, samples_bytes: bytes) -> None:
    """Load a run, and make its tables or its JSON."""
    (folder / MANIFEST).write_bytes(manifest_bytes)
    (folder / SAMPLES).write_bytes(samples_bytes)
    run = load(folder)
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
        Outputs(data.ConsumeBool(), None, None, Choice(is_wide=data.ConsumeBool())).emit(run)


def events(folder: Path, data: Data) -> None:
    """Events of a guest's agent."""
    del folder
    transcript = Transcript(["mkfs", "mount", "build"], ["main"], ["superblock"], lambda _: None)
    transcript.begin()
    stream = damaged_json(data, EVENTS_TEXT)
    for event in stream if isinstance(stream, list) else [stream]:
        transcript.hear(parse(as_json(event)))
    transcript.check_complete()
    samples_of(transcript.intervals)
    json.dumps(transcript.facts(), ensure_ascii=False, allow_nan=False).encode()


SAMPLES_BYTES = as_parquet(SAMPLES_TABLE)
TARGETS: dict[str, Callable[[Path, Data], None]] = {
    each.__name__: each for each in (suite, device, now, profile, manifest, samples, events)
}


def main() -> None:
    """Fuzz the target that the first argument names."""
    target = TARGETS[sys.argv[1]]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:

        def run(given: bytes) -> None:
            with contextlib.suppress(InputError, ProtocolError):
                target(Path(folder), Data(given))

        atheris.Setup([sys.argv[0], *sys.argv[2:]], run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
