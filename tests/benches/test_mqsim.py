"""MQSim beside the model: the benchmark's input for MQSim, and its reading of MQSim's output.

The stub checks its input as MQSim does and answers in MQSim's format. The numbers of the results
file come from a real run (CMU-SAFARI/MQSim 7ec40e3, 2026-11-23).
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
RESULTS = """<?xml version="1.0" encoding="us-ascii"?>
<MQSim_Results>
\t<Host>
\t\t<Host.IO_Flow>
\t\t\t\t <Name>Host.IO_Flow.Trace.t.trace</Name>
\t\t\t\t <Request_Count>877487</Request_Count>
\t\t</Host.IO_Flow>
\t</Host>
\t<SSDDevice>
\t\t<SSDDevice.FTL Issued_Flash_Program_CMD="1530899" Issued_Flash_Multiplane_Program_CMD="114630" \
Total_GC_Executions="5081" Average_Page_Movement_For_GC="173.762055" \
Total_WL_Executions="0" Average_Page_Movement_For_WL="-nan"/>
\t</SSDDevice>
</MQSim_Results>
"""
STUB = """#!{python}
import sys
from pathlib import Path
from xml.etree import ElementTree

_, i, config, w, workload = sys.argv
assert (i, w) == ("-i", "-w")
device = ElementTree.parse(config).getroot().find("Device_Parameter_Set")
assert device.findtext("Overprovisioning_Ratio") == "0.28"
assert device.findtext("Flash_Parameter_Set/Block_No_Per_Plane") == "128"
[flow] = ElementTree.parse(workload).getroot().findall("IO_Scenario/*")
assert flow.tag == "IO_Flow_Parameter_Set_Trace_Based"
before = 0
for line in Path(flow.findtext("File_Path")).read_text().splitlines():
    time, _, sector, sectors, write = map(int, line.split(" "))
    assert time > before and write == 0 and sectors == 16 and sector % 16 == 0
    before = time
print("Flow Host.IO_Flow.Trace.t.trace - total requests generated: 877487"
      " total requests serviced:{serviced}")
if {status}:
    sys.exit({status})
Path(workload[: -len(".xml")] + "_scenario_1.xml").write_text({results!r})
sys.stdin.read(1)  # MQSim waits for a key
"""


@pytest.fixture
def mqsim(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mqsim", BENCHES / "mqsim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mqsim", module)
    spec.loader.exec_module(module)
    return module


def stub(folder: Path, serviced: int = 877_274, status: int = 0, results: str = RESULTS) -> Path:
    program = folder / "MQSim"
    program.write_text(
        STUB.format(python=sys.executable, serviced=serviced, status=status, results=results)
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def trace(mqsim: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a short trace, because the stub reads all of it."""
    monkeypatch.setattr(mqsim, "LOGICAL_PAGES", 500)
    mqsim.write_trace(tmp_path / "trace", random_writes=200)
    return tmp_path / "trace"


def test_both_play_the_same_trace_and_the_ratio_of_their_speeds_is_told(
    mqsim: ModuleType, trace: Path, tmp_path: Path
) -> None:
    played = mqsim.play_mqsim(stub(tmp_path), trace, tmp_path)
    assert played.host_pages == 877_274
    # 5,081 collections of 173.762055 pages; the real run programmed 1,530,899 pages alone and
    # 2 × 114,630 in pairs.
    assert played.programmed_pages == 1_530_899 + 2 * 114_630
    assert 0 < played.seconds < 60

    model = tmp_path / "play_trace"
    model.write_text("#!/bin/sh\necho '700 units of the host, 840 units programmed'\n")
    model.chmod(0o755)
    ours = mqsim.play_model(model, trace)
    assert (ours.host_pages, ours.amplification) == (700, 1.2)

    table = mqsim.table(mqsim.Played(0.5, 1000, 1500), mqsim.Played(100.0, 1000, 2000))
    assert "this model is 200 times as fast as MQSim" in table
    assert [line.split()[-1] for line in table.splitlines()[1:3]] == ["1.500", "2.000"]


def test_the_trace_fills_the_device_and_goes_on_at_random(trace: Path) -> None:
    pages = [int(line.split()[2]) // 16 for line in trace.read_text().splitlines()]
    assert pages[:500] == list(range(500))
    assert len(pages) == 700
    assert len(set(pages[500:])) > 100


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"serviced": 400_000}, "it served 400,000 of 877,487 requests"),
        ({"status": 1}, "it exited with status 1; last output: Flow Host"),
        ({"results": "<MQSim_Results/>"}, "no SSDDevice.FTL"),
    ],
)
def test_a_simulator_that_stops_early_is_not_compared(
    mqsim: ModuleType, trace: Path, tmp_path: Path, changes: dict[str, object], says: str
) -> None:
    with pytest.raises(mqsim.MQSimError, match=says):
        mqsim.play_mqsim(stub(tmp_path, **changes), trace, tmp_path)  # type: ignore[arg-type]


def test_a_crash_is_named_by_its_signal(mqsim: ModuleType, trace: Path, tmp_path: Path) -> None:
    program = tmp_path / "MQSim"
    program.write_text("#!/bin/sh\nkill -SEGV $$\n")
    program.chmod(0o755)
    with pytest.raises(mqsim.MQSimError, match="SIGSEGV ended it"):
        mqsim.play_mqsim(program, trace, tmp_path)
