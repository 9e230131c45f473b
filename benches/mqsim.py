"""MQSim (https://github.com/CMU-SAFARI/MQSim) beside the SSD model, on the same trace.

A device of 4 GiB of NAND is filled in order and then written at random, a page of 8 KiB at a time,
with greedy collection. Both programs read the same file, and their whole CPU time counts. MQSim
also computes the time of each operation, which the model does not. The ratio shows the gain from
leaving that out.
"""

import os
import random
import re
import resource
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PAGE_BYTES = 8192
PAGES_PER_BLOCK = 256
BLOCKS_PER_PLANE = 128
CHANNELS = 8
PLANES = 2
BLOCKS = CHANNELS * PLANES * BLOCKS_PER_PLANE
SPARE = 0.28
LOGICAL_PAGES = int(BLOCKS * PAGES_PER_BLOCK * (1 - SPARE))
RANDOM_WRITES = 500_000
GAP_NS = 1_000_000
"""Nanoseconds between requests: MQSim stops with an error if many requests overlap (`locking an
LPA`)."""
_SECTORS = PAGE_BYTES // 512
_WRITE = 0
"""MQSim's code for a write."""
_MOST_CPU_S = 600
"""Maximum CPU seconds of MQSim. It takes 10 s for this trace, and hangs in some versions and
settings."""
_LEAST_SERVICED = 0.99
"""Minimum share of requests serviced: MQSim ends with some requests in flight."""
_SERVICED = re.compile(r"total requests generated: (\d+) total requests serviced:(\d+)")

_CHANGES = {
    "Enabled_Preconditioning": "false",
    "Ideal_Mapping_Table": "true",
    "GC_Block_Selection_Policy": "GREEDY",
    "Overprovisioning_Ratio": SPARE,
    "Flash_Channel_Count": CHANNELS,
    "Chip_No_Per_Channel": 1,
    "Die_No_Per_Chip": 1,
    "Plane_No_Per_Die": PLANES,
    "Block_No_Per_Plane": BLOCKS_PER_PLANE,
    "Page_No_Per_Block": PAGES_PER_BLOCK,
    "Page_Capacity": PAGE_BYTES,
}
"""Differences from MQSim's defaults, which it uses for settings missing from the file."""
_HOST = ("PCIe_Lane_Count", 4)
_FLASH = (
    "Die_No_Per_Chip",
    "Plane_No_Per_Die",
    "Block_No_Per_Plane",
    "Page_No_Per_Block",
    "Page_Capacity",
)
_FLOW = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "TURNED_OFF",
    "Channel_IDs": ",".join(map(str, range(CHANNELS))),
    "Chip_IDs": "0",
    "Die_IDs": "0",
    "Plane_IDs": ",".join(map(str, range(PLANES))),
    "Initial_Occupancy_Percentage": 0,
    "Percentage_To_Be_Executed": 100,
    "Relay_Count": 1,
    "Time_Unit": "NANOSECOND",
}


class MQSimError(Exception):
    """Failure of MQSim to play the trace to its end; the text says how it ended."""


@dataclass(frozen=True)
class Played:
    """Result of one program: CPU seconds, pages that the host wrote, pages programmed."""

    seconds: float
    host_pages: int
    programmed_pages: int

    @property
    def speed(self) -> float:
        """Return host pages a second of CPU time."""
        return self.host_pages / self.seconds

    @property
    def amplification(self) -> float:
        """Return the write amplification of the whole trace, the fill included."""
        return self.programmed_pages / self.host_pages


def write_trace(file: Path, random_writes: int = RANDOM_WRITES, seed: int = 1) -> None:
    """Write `time device sector sectors operation`, a line for each request."""
    rng = random.Random(seed)
    pages = [*range(LOGICAL_PAGES), *(rng.randrange(LOGICAL_PAGES) for _ in range(random_writes))]
    with file.open("w", encoding="ascii") as out:
        out.writelines(
            f"{(at + 1) * GAP_NS} 0 {page * _SECTORS} {_SECTORS} {_WRITE}\n"
            for at, page in enumerate(pages)
        )


def play_mqsim(program: Path, trace: Path, folder: Path) -> Played:
    """Run MQSim on the trace; its files go to the folder."""
    config, workload = folder / "ssdconfig.xml", folder / "workload.xml"
    _write_xml(config, _configuration())
    _write_xml(workload, _workload(trace))
    command = [str(program), "-i", str(config), "-w", str(workload)]
    seconds, output = _run(command, folder)
    flows = _SERVICED.findall(output)
    generated, serviced = (sum(int(flow[at]) for flow in flows) for at in (0, 1))
    if not flows:
        raise MQSimError("it printed no line with the requests that it served")
    if serviced < _LEAST_SERVICED * generated:
        raise MQSimError(f"it served {serviced:,} of {generated:,} requests")
    found = ElementTree.parse(folder / "workload_scenario_1.xml").find(".//SSDDevice.FTL")
    if found is None:
        raise MQSimError("its results have no SSDDevice.FTL")
    copies = float(found.attrib["Total_GC_Executions"]) * _average(found, "GC")
    copies += float(found.attrib["Total_WL_Executions"]) * _average(found, "WL")
    return Played(seconds, serviced, serviced + round(copies))


def play_model(program: Path, trace: Path) -> Played:
    """Run `crates/ssd/examples/play_trace.rs` on the trace."""
    shape = (LOGICAL_PAGES, BLOCKS, PAGES_PER_BLOCK, PAGE_BYTES)
    seconds, output = _run([str(program), str(trace), *map(str, shape)], trace.parent)
    host, programmed = map(int, re.findall(r"\d+", output))
    return Played(seconds, host, programmed)


def table(model: Played, mqsim: Played) -> str:
    """Return a table of both, and the ratio of their speeds."""
    lines = [f"{'':10}{'CPU s':>10}{'k pages/s':>12}{'WA':>8}"]
    lines += [
        f"{name:10}{each.seconds:10.2f}{each.speed / 1e3:12.0f}{each.amplification:8.3f}"
        for name, each in (("this model", model), ("MQSim", mqsim))
    ]
    lines.append(f"this model is {model.speed / mqsim.speed:.0f} times as fast as MQSim")
    return "\n".join(lines)


def _average(found: ElementTree.Element, of: str) -> float:
    """Return an average; MQSim writes -nan if there was none."""
    value = float(found.attrib[f"Average_Page_Movement_For_{of}"])
    return value if value == value else 0.0


def _run(command: Sequence[str], folder: Path) -> tuple[float, str]:
    """Run a command; return its CPU seconds and its output."""
    with (folder / "output").open("w+b") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S + 1))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode < 0:
        raise MQSimError(f"{signal.Signals(-process.returncode).name} ended it")
    if process.returncode:
        last = (text.strip().splitlines() or ["nothing"])[-1]
        raise MQSimError(f"it exited with status {process.returncode}; last output: {last}")
    return usage.ru_utime + usage.ru_stime, text


def _configuration() -> ElementTree.Element:
    root = ElementTree.Element("Execution_Parameter_Set")
    host = ElementTree.SubElement(root, "Host_Parameter_Set")
    ElementTree.SubElement(host, _HOST[0]).text = str(_HOST[1])
    device = ElementTree.SubElement(root, "Device_Parameter_Set")
    flash = ElementTree.Element("Flash_Parameter_Set")
    for name, value in _CHANGES.items():
        ElementTree.SubElement(flash if name in _FLASH else device, name).text = str(value)
    device.append(flash)
    return root


def _workload(trace: Path) -> ElementTree.Element:
    root = ElementTree.Element("MQSim_IO_Scenarios")
    scenario = ElementTree.SubElement(root, "IO_Scenario")
    flow = ElementTree.SubElement(scenario, "IO_Flow_Parameter_Set_Trace_Based")
    for name, value in {**_FLOW, "File_Path": str(trace)}.items():
        ElementTree.SubElement(flow, name).text = str(value)
    return root


def _write_xml(file: Path, root: ElementTree.Element) -> None:
    ElementTree.ElementTree(root).write(file, encoding="us-ascii", xml_declaration=True)
