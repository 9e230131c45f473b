"""Choice of the lab for a run, and the message about it."""

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fscost import host
from fscost.errors import HostError, InputError
from fscost.lab.native import NativeLab
from fscost.lab.vm import VmLab
from fscost.matrix import repetitions
from fscost.profile import resolve
from fscost.request.labs import choose_lab
from fscost.request.model import AUTO
from fscost.run import RunSpec
from fscost.workload import command

Choose = Callable[..., str]


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Choose:
    """Return the name of the lab chosen on a machine with the given abilities."""

    def choose(
        *types: str,
        name: str = AUTO,
        root: bool = True,
        guests: str | None = None,
        kernels: tuple[str, ...] = (),
        modules: tuple[str, ...] = (),
        script: str = "true",
    ) -> str:
        def check(_: NativeLab) -> None:
            if not root:
                raise HostError(
                    "root: this is user 1000; mounting needs root", "run it again with sudo"
                )

        monkeypatch.setattr(NativeLab, "check", check)
        monkeypatch.setattr(VmLab, "unavailable_reason", lambda _: guests)
        monkeypatch.setattr(VmLab, "unsupported_reason", lambda *_: None)
        monkeypatch.setattr(host, "kernel_has", lambda type_: type_ in ("ext4", "btrfs"))
        found = [resolve(type_) for type_ in types]
        profiles = tuple(
            replace(profile, kernel=kernel)
            for profile, kernel in zip(found, kernels or [""] * len(found), strict=True)
        )
        spec = RunSpec(profiles=profiles, workload=command([script]), folder=tmp_path)
        return choose_lab(
            name, spec, modules=modules, say=lambda line: print(line, file=sys.stderr)
        ).kind

    return choose


def test_native_where_it_can(choose: Choose, capsys: pytest.CaptureFixture[str]) -> None:
    assert choose("ext4", "btrfs") == "native"
    assert capsys.readouterr().err == ""


def test_guests_for_what_this_kernel_lacks(
    choose: Choose, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose("ext4", "f2fs") == "vm"
    assert "lab vm, because this kernel has no f2fs" in capsys.readouterr().err


def test_guests_for_who_is_not_root(choose: Choose, capsys: pytest.CaptureFixture[str]) -> None:
    assert choose("ext4", root=False) == "vm"
    assert "this is user 1000" in capsys.readouterr().err


def test_without_guests_the_native_lab_says_what_it_lacks(choose: Choose) -> None:
    assert choose("ext4", "f2fs", guests="`apt install qemu-system-x86`") == "native"


def test_neither_can(choose: Choose) -> None:
    with pytest.raises(HostError, match="user 1000") as error:
        choose("ext4", root=False, guests="`apt install qemu-system-x86`")
    assert "sudo" in str(error.value)
    assert "apt install qemu-system-x86" in str(error.value)


def test_who_names_a_kernel_wants_guests(choose: Choose) -> None:
    assert choose("ext4", kernels=("6.1",)) == "vm"
    assert choose("ext4", kernels=("/boot/vmlinuz",), modules=("/lib/modules/6.9",)) == "vm"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"name": "native", "kernels": ("6.1",)}, "--kernel 6.1 is for guests"),
        ({"kernels": ("/boot/vmlinuz",)}, "--kernel images: 1, --modules folders: 0"),
        (
            {"kernels": ("6.1",), "modules": ("/lib/modules/6.9",)},
            "--modules requires a --kernel that is an image",
        ),
        ({"name": "moon"}, "--lab 'moon' is unknown"),
    ],
)
def test_what_does_not_go_together(choose: Choose, how: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        choose("ext4", **how)


def test_a_kernel_that_is_unknown(tmp_path: Path) -> None:
    profile = replace(resolve("ext4"), kernel="5.4")
    spec = RunSpec(profiles=(profile,), workload=command(["true"]), folder=tmp_path)
    lab = choose_lab(AUTO, spec, say=print).make(print)
    with pytest.raises(InputError, match=r"unknown guest kernel '5\.4'"):
        lab.unsupported_reason(next(repetitions(spec.profiles, spec.workload, 0))[0])


@pytest.mark.parametrize(
    ("here", "script", "is_said"),
    [
        ("/home/u", "/home/u/job", True),
        ("/home/u/below", "/home/u/below/job", False),
        ("/home/u", "/usr/bin/job", False),
    ],
)
def test_a_command_in_a_home_that_guests_do_not_see_is_said(
    choose: Choose,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    here: str,
    script: str,
    is_said: bool,
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path(here))
    choose("ext4", name="vm", script=script)
    told = "guests do not see /home/u itself: start fscost in a folder below it"
    assert (told in capsys.readouterr().err) == is_said


@pytest.mark.parametrize("name", ["native", "vm", "fake:noise=0.25"])
def test_a_lab_is_data_until_it_is_made(tmp_path: Path, name: str) -> None:
    """Another machine makes the same lab from the pickled choice."""
    spec = RunSpec(profiles=(resolve("ext4"),), workload=command(["true"]), folder=tmp_path)
    chosen = choose_lab(name, spec, say=print)
    lab = pickle.loads(pickle.dumps(chosen)).make(print)
    assert lab.name == name.partition(":")[0]
    assert getattr(lab, "noise", 0.25) == 0.25
