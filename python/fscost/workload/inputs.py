"""Input files of a workload, made on the host once per run."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from fscost import files
from fscost.errors import HostError
from fscost.workload.model import Recipe, Workload
from fscost.workload.recipes import RECIPES, Request

_FORMAT = 1  # raise it when a recipe makes different bytes


def prepare(
    workload: Workload, folder: Path, on_progress: Callable[[str], None] = lambda text: None
) -> Path | None:
    """Return the folder for `{input}`, created now or complete from an earlier call; None if the
    workload reads no files.

    The folder is made under another name and renamed when complete, so an interrupted one is never
    mistaken for a complete one. The next call removes it.
    """
    recipe = workload.recipe
    if recipe is None:
        return None
    request = Request(dict(recipe.values), workload.seed, recipe.source, on_progress)
    try:
        target = folder / f"{recipe.name}-{_digest(recipe, workload.seed)}"
        if not target.is_dir():
            on_progress(f"preparing input: {recipe.name}")
            _make(target, recipe.name, request)
    except OSError as error:
        text = (
            f"the workload's input cannot be made in {folder}:"
            f" {error.strerror}{f' ({error.filename})' if error.filename else ''}"
        )
        raise HostError(
            text,
            "check that the folder has room and the workload's programs are installed (`fscost"
            " doctor`)",
        ) from error
    return target


def _make(target: Path, recipe: str, request: Request) -> None:
    partial = target.parent / f".{target.name}.partial"
    if partial.exists():
        shutil.rmtree(partial)
    files.make_folder(target.parent)
    partial.mkdir(mode=0o700)
    try:
        RECIPES[recipe](partial, request)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _digest(recipe: Recipe, seed: int) -> str:
    """Digest of everything that the input depends on."""
    source = ""
    if recipe.source is not None:
        status = recipe.source.stat()
        source = f"{recipe.source.resolve()} {status.st_size} {status.st_mtime_ns}"
    text = repr((_FORMAT, recipe.name, sorted(recipe.values), seed, source))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
