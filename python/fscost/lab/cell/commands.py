"""Commands that `run` would execute, as shell text to read and paste (--dry-run)."""

import re
import shlex
from collections.abc import Iterator, Sequence

from fscost.lab.base import LabOptions
from fscost.lab.cell import plan
from fscost.matrix import Cell
from fscost.profile.model import FormatPlan

_PLACEHOLDER = re.compile(r"((?<!\$)\{(?:dir|input|scratch|disk\.[^{}]+)\})")


def commands(
    cell: Cell,
    options: LabOptions,
    formatted: FormatPlan,
    place: plan.Place,
    servers: Sequence[str],
    over_ublk: bool = False,
) -> Iterator[str]:
    """Yield every command of one cell, in order. `servers` run in the background. Lines with
    `losetup` or `mount` stand for system calls that the agent makes itself. `over_ublk`: the disk
    server creates block devices, so no loop device is attached."""
    base = place.base
    values = {"{dir}": f"{base}/fs", "{input}": f"{base}/input", "{scratch}": f"{base}/scratch"}
    for server in servers:
        yield f"{server} &"
    for number, disk in enumerate(cell.profile.disks):
        values[f"{{disk.{disk.name}}}"] = f'"$disk_{disk.name}"'
        device = place.devices.get(disk.name)
        if device is not None:
            yield f"export disk_{disk.name}={shlex.quote(device)}"
        elif over_ublk:
            # The kernel chooses the number: the lowest free one.
            yield f"export disk_{disk.name}=/dev/ublkb{number}"
            yield f"echo none >/sys/block/ublkb{number}/queue/scheduler"
        else:
            # FUSE stands for the disk server's mount, which is attached to no folder: only the
            # agent can open the file.
            size = f"--sector-size {disk.logical_block_bytes}"
            loop = f"losetup --find --show --direct-io=on {size} FUSE/{disk.name}"
            yield f"export disk_{disk.name}=$({loop})"
    for command in formatted.mkfs:
        yield _argv(command, values)
    yield f"mount -t tmpfs tmpfs {base} && mkdir {base}/fs {base}/input {base}/scratch"
    if place.input is not None:
        yield f"mount --bind -o ro {shlex.quote(place.input)} {base}/input"
    mount, unmount = _mount(formatted, values), f"umount {values['{dir}']}"
    begin = [
        f'{_argv(command, values)} & background="$background $!"'
        for command in formatted.background
    ]
    end = ["kill $background; wait $background; background="] if begin else []
    yield mount
    for command in formatted.after_mount:
        yield _argv(command, values)
    yield from begin
    for _, command in formatted.inspect:
        yield _argv(command, values)
    last = len(cell.workload.steps) - 1
    for number, step in enumerate(cell.workload.steps):
        if plan.drop_caches(step, options):
            yield f"sync -f {values['{dir}']}; echo 3 > /proc/sys/vm/drop_caches"
        variables = " ".join(
            f"{name}={shlex.quote(value)}"
            for name, value in plan.step_environment(step, cell).items()
        )
        shell = _PLACEHOLDER.sub(
            lambda match: values.get(match[1], match[1]).strip('"'), step.shell
        )
        yield f"cd {base}/fs && {variables} sh -c {shlex.quote(shell)}"
        match plan.settle(step, options):
            case "sync":
                yield f"sync -f {values['{dir}']}"
            case "remount" if number != last:
                yield from (*end, f"{unmount} && {mount}", *begin)
        if number == last:
            yield from (*end, unmount)
    for command in formatted.after_unmount:
        yield _argv(command, values)


def _mount(formatted: FormatPlan, values: dict[str, str]) -> str:
    words = ["mount", "-t", formatted.mount_type]
    if formatted.mount_options:
        words += ["-o", formatted.mount_options]
    return _argv([*words, formatted.mount_device, "{dir}"], values)


def _argv(command: Sequence[str], values: dict[str, str]) -> str:
    return " ".join(_word(word, values) for word in command)


def _word(word: str, values: dict[str, str]) -> str:
    if not _PLACEHOLDER.search(word):
        return shlex.quote(word)
    return "".join(
        values.get(piece, shlex.quote(piece)) for piece in _PLACEHOLDER.split(word) if piece
    )
