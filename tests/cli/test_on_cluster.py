"""`--on-cluster` without a cluster: one clear error for each mistake, and --dry-run needs none."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost.errors import FscostError
from fscost.request.model import Place, Request
from fscost.request.prepare import prepared
from fscost.run import execute
from fscost.run.executor import ray

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device", "/dev/null"], "--device is about this machine"),
        (["--disk", "main=/dev/null"], "--disk with a device is about this machine"),
        (["--writable", "/tmp"], "--writable is about this machine"),
        (["--crash"], "--crash is about this machine"),
    ],
)
def test_options_about_this_machine_are_refused(
    fscost: Run, options: list[str], words: str
) -> None:
    refused = fscost("compare", "--on-cluster", "auto", *options, check=(2,))
    assert words in refused.stderr
    assert len(refused.stderr.splitlines()) == 2


def test_a_store_is_for_the_machines_of_a_cluster(fscost: Run) -> None:
    words = ("compare", "--lab", "fake:", "--on", "ext4", "--recordings-to")
    refused = fscost(*words, "file:///mnt/runs", "--", "true", check=(2,))
    assert "--recordings-to is about the machines of a cluster" in refused.stderr
    refused = fscost(*words, "runs", "--on-cluster", "auto", "--", "true", check=(2,))
    assert "runs is no URL" in refused.stderr


def test_doctor_fetches_no_kernel_elsewhere(fscost: Run) -> None:
    refused = fscost("doctor", "--on-cluster", "auto", "--fetch", "6.12", check=(2,))
    assert "--fetch is about this machine" in refused.stderr


def test_a_dry_run_asks_no_machine(fscost: Run) -> None:
    shown = fscost(
        "compare", "--on-cluster", "nowhere:1", "--lab", "fake:", "--on", "ext4", "--dry-run"
    )
    assert "mkfs.ext4" in shown.stdout


def test_ray_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    place = Place("fake:", tmp_path / "run", on_cluster="auto")
    found = prepared(Request(on=("ext4",)), place, print, [])
    with pytest.raises(FscostError, match="--on-cluster needs Ray") as caught:
        execute(found.spec, found.executor, lock=None)
    assert caught.value.remedy == "install it: pip install 'fscost[ray]'"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: cluster.each(len, "", within_s=1),
        lambda cluster: cluster.read_stored("one", "file:///mnt", "a.fscost", 0),
    ],
)
def test_doctor_and_fetch_without_ray(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[ray.RayCluster], object]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(FscostError, match="--on-cluster needs Ray"):
        ask(ray.RayCluster("auto", print))


@pytest.mark.parametrize("address", ["", "head", "head:", ":6379", "ray://head:1", "head:70000"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(FscostError, match="is not an address"):
        ray._check_answers(address)


def test_nobody_listens(unused_port: int) -> None:
    with pytest.raises(FscostError, match="Connection refused"):
        ray._check_answers(f"127.0.0.1:{unused_port}")


@pytest.fixture
def unused_port() -> Any:
    with socket.socket() as bound:  # it does not listen
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_machine_of_another_version_unpickles_nothing() -> None:
    answer = ray.same_version("0.0.0", pytest.fail, "it was called")
    assert "and this is fscost 0.0.0" in str(answer)


def test_machines_have_names_of_their_own() -> None:
    def node(id_: str, name: str, host: str, *, alive: bool = True) -> dict[str, Any]:
        of_ray = {"NodeID": id_, "NodeName": name, "NodeManagerAddress": "10.0.0.1"}
        return of_ray | {
            "NodeManagerHostname": host,
            "Alive": alive,
            "Resources": {"CPU": 4.0, "memory": 2.0},
        }

    found = ray._named(
        [
            node("a1", "10.0.0.1", "pi"),
            node("b2", "rack-7", "pi"),
            node("c3c3c3c3", "10.0.0.1", "pc"),
            node("d4d4d4d4", "10.0.0.1", "pc"),
            node("e5", "10.0.0.1", "gone", alive=False),
        ]
    )
    assert list(found) == ["pi", "rack-7", "pc-c3c3c3", "pc-d4d4d4"]
    assert found["pi"] == ray.Node("pi", "a1", 4.0, 2.0)
