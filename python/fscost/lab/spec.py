"""Choice of a lab as data, made into a lab on the machine where its cells run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from fscost.lab.base import Lab
from fscost.lab.fake import FakeLab
from fscost.lab.native import NativeLab, RealDevice
from fscost.lab.vm import VmLab


@dataclass(frozen=True)
class LabSpec:
    """Lab of a run, without anything of the machine on which it was chosen.

    `images`: each kernel named by its image, and the folder of its modules. `fake`: options of the
    fake lab.
    """

    kind: Literal["native", "vm", "fake"]
    images: tuple[tuple[str, Path], ...] = ()
    fake: str = ""

    def make(
        self,
        say: Callable[[str], None] = lambda _: None,
        device: RealDevice | None = None,
        real_disks: Mapping[str, RealDevice] = MappingProxyType({}),
    ) -> Lab:
        """Make the lab on this machine. Real devices belong to one machine, so they are given
        here."""
        if self.kind == "fake":
            return FakeLab.from_text(self.fake)
        if self.kind == "vm":
            return VmLab(images=dict(self.images), say=say)
        return NativeLab(device=device, real_disks=real_disks)
