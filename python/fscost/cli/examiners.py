"""Where the states of a run are examined: on this kernel, or in guests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fscost import host
from fscost.errors import HostError, InputError
from fscost.lab.base import Site
from fscost.profile.model import Profile
from fscost.request.model import AUTO

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fscost.crash.guests import Guest
    from fscost.crash.in_guests import RecordedGuest
    from fscost.crash.programs import About, Examine
    from fscost.lab.vm import StateDisk, VmLab


@dataclass(frozen=True)
class Examined:
    """What the examination of a profile depends on. `kernel`: of the guest, if it names one."""

    name: str
    type: str
    kernel: str = ""
    is_array: bool = False

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Return what it is of a profile."""
        return cls(profile.name, profile.type, profile.kernel, profile.array is not None)


Examiners = Callable[[Examined], "Examine"]
"""Returns what examines the states of a profile; raises an error if nothing does."""


def examiners_of(site: Site, folder: Path) -> Examiners:
    """Examine where the run in `folder` was made."""
    from fscost.lab.vm import VmLab

    return in_guests(site) if isinstance(site, VmLab) else natively(folder)


def natively(folder: Path) -> Examiners:
    """Examine on this kernel. Programs mount over `folder`."""
    from fscost.crash.programs import here
    from fscost.lab.cell.binaries import find_binaries

    def chosen(profile: Examined) -> "Examine":
        refuse_natively(profile)
        return here(folder, find_binaries().disk)

    return chosen


def in_guests(lab: "VmLab", kernel: str = "") -> Examiners:
    """Examine in guests of this kernel, else of the profile's."""
    from fscost.crash.guests import Site as Guests
    from fscost.crash.in_guests import inside

    def chosen(profile: Examined) -> "Examine":
        profile = replace(profile, kernel=kernel or profile.kernel)
        refuse_in_guests(profile, lab)
        guests = Guests(
            lambda about: _started(lab, profile, about), lab.side_by_side, lab.interrupt
        )
        return inside(guests, lambda *asked: _recorded(lab, profile, *asked))

    return chosen


def chosen_lab(
    asked: str, profiles: Sequence[Examined], kernels: Sequence[str], *, is_own: bool = True
) -> str:
    """Return the lab that examines these profiles. Disks of a stranger are for guests: a mount of
    them could attack the kernel."""
    from fscost.crash.explore import TYPES

    if asked != AUTO:
        return asked
    is_here = all(each.type in TYPES and not each.is_array for each in profiles)
    return "native" if is_own and is_here and not any(kernels) else "vm"


def refuse_natively(profile: Examined) -> None:
    """Raise an error if this kernel does not examine the states of a profile."""
    from fscost.crash.explore import TYPES

    if profile.type not in TYPES:
        raise InputError(
            f"{profile.name}: this kernel cannot examine states of {profile.type}",
            f"give --lab vm, or name profiles of {', '.join(TYPES)}",
        )
    if profile.is_array:
        raise InputError(
            f"{profile.name} is on an md array, which guests assemble, not this kernel",
            "give --lab vm, or name profiles on disks of their own",
        )
    _refuse(profile)


def refuse_in_guests(profile: Examined, lab: "VmLab") -> None:
    """Raise an error if no guest examines the states of a profile."""
    from fscost.crash.families import FAMILIES, family

    if family(profile.type) not in FAMILIES:
        raise InputError(
            f"{profile.name}: states of {profile.type or 'no file system'} cannot be examined",
            "name other profiles",
        )
    if because := lab.unmountable_reason(profile.type, profile.kernel):
        raise InputError(f"{profile.name}: {because}", "name other profiles")
    _refuse(profile)


def _refuse(profile: Examined) -> None:
    from fscost.crash.families import programs

    tools = [*programs(profile.type), *(["mdadm"] if profile.is_array else [])]
    if missing := host.missing_tools(tools):
        raise HostError(
            f"{profile.name}: {missing[0]} is missing", f"`{host.install_command(missing)}`"
        )


def _started(lab: "VmLab", profile: Examined, about: "About") -> "AbstractContextManager[Guest]":
    from fscost.crash.guests import PROGRAM
    from fscost.lab.vm import examining

    disks = _disks([*about["disks"], *about.get("spares", ())])
    return examining(lab.guests, profile.kernel or None, PROGRAM, disks)


def _recorded(
    lab: "VmLab", profile: Examined, about: "About", images: Sequence[int], recording: Path
) -> "AbstractContextManager[RecordedGuest]":
    from fscost.crash.guests import PROGRAM
    from fscost.lab.vm import recovering

    disks = _disks(about["disks"])
    return recovering(lab.guests, profile.kernel or None, PROGRAM, disks, images, recording)


def _disks(disks: "Sequence[Mapping[str, Any]]") -> "list[StateDisk]":
    from fscost.lab.vm import StateDisk

    return [
        StateDisk(disk["name"], disk["size_bytes"], disk.get("sector_bytes", 512)) for disk in disks
    ]
