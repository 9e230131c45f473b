"""`fscost completion`: shell completion of options, profiles, workloads and metrics."""

import os
import sys
from typing import Annotated, Literal

import typer

from fscost.cli.app import COMPLETE


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(help="Shell to print the script for.")
    ],
) -> None:
    """Print the completion script of a shell: eval "$(fscost completion bash)"."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(get_completion_script(prog_name="fscost", complete_var=COMPLETE, shell=shell))


def prepare() -> None:
    """Let typer answer the completion script's queries. Anything else completes nothing."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    if os.environ[COMPLETE] == "complete_bash" and not os.environ.get("COMP_CWORD", "").isdecimal():
        sys.exit(2)

    completion_init()


def profiles(incomplete: str) -> list[str]:
    """Return matching profile names of the catalogue, and file-system types."""
    from fscost import profile
    from fscost.profile.families import formattable_types

    names = [*(found.name for found in profile.catalogue()), *formattable_types()]
    return _beginning(sorted(set(names)), incomplete)


def workloads(incomplete: str) -> list[str]:
    """Return matching names of built-in workloads."""
    from fscost import workload

    return _beginning([found.name for found in workload.catalogue()], incomplete)


def metrics(incomplete: str) -> list[str]:
    """Return matching names of metrics."""
    from fscost.results import METRICS

    return _beginning(list(METRICS), incomplete)


def _beginning(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
