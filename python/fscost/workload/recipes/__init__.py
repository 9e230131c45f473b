"""Recipes for the files that a workload reads, one module each. The same request always makes the
same bytes."""

from collections.abc import Callable, Mapping
from pathlib import Path

from fscost.workload.recipes import (
    big_and_small,
    big_file,
    c_project,
    fio_jobs,
    repository,
    sql,
    tree,
)
from fscost.workload.recipes.request import Request

__all__ = ["RECIPES", "Request"]

RECIPES: Mapping[str, Callable[[Path, Request], None]] = {
    "big-and-small": big_and_small.make,
    "big-file": big_file.make,
    "c-project": c_project.make,
    "fio-jobs": fio_jobs.make,
    "repository": repository.make,
    "sql": sql.make,
    "tree": tree.make,
}
