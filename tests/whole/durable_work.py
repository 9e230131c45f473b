"""Write a run's folder with real recordings, as fscost does. This is the work whose disk loses
power in test_power_cut.py. Arguments: folder, a dm-log-writes log."""

import sys
from pathlib import Path

from fscost import capture
from fscost.files import make_folder
from fscost.lab.base import LabOptions
from fscost.lab.fake import FakeLab
from fscost.matrix import Cell
from fscost.profile.model import Profile
from fscost.results import RunStore
from fscost.run import RunSpec, StoppingRule
from fscost.run import folder as run_folder
from fscost.run.executor import Ran
from fscost.run.record import record
from fscost.workload.model import Step, Workload


def main() -> None:
    folder, log = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    spec = RunSpec(
        (Profile("ext4", "ext4"),),
        Workload("work", (Step("work", "true"),)),
        folder,
        stopping=StoppingRule(1, 1),
    )
    lab = FakeLab()
    store: RunStore = run_folder.create(spec, lab, [])
    for repetition in range(3):
        cell = Cell(spec.profiles[0], spec.workload, repetition, 7, repetition)
        cell_dir = folder / "cells" / cell.id
        make_folder(cell_dir)
        result = lab.run(cell, LabOptions(cell_dir, 1 << 30), lambda name: None)
        result.recording = cell_dir / "recording.fscost"
        capture.import_dm_log_writes(log, result.recording)
        capture.write_requests(result.recording, cell_dir / "requests.parquet")
        if repetition != 1:  # one that fails conservation stays as it was recorded
            capture.Explaining(result.recording).pack()
        capture.export_image(result.recording, "main", cell_dir / "exported")
        store.add(*record(Ran(result, 1.0), folder))
    store.manifest.state = "finished"
    store.save()


main()
