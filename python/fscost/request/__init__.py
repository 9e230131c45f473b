"""Requests of `fscost compare` and `fscost.compare`: validated, resolved, and given a lab."""

from fscost.request.hooks import around
from fscost.request.labs import AUTO, choose_lab, lock_of
from fscost.request.prepare import Place, Prepared, prepared
from fscost.request.request import (
    DEFAULT_PROFILES,
    DEFAULT_WORKLOAD,
    Request,
    absolute,
    absolute_images,
    most_cells,
    parse_options,
    resumed,
    to_spec,
    with_range,
)

__all__ = [
    "AUTO",
    "DEFAULT_PROFILES",
    "DEFAULT_WORKLOAD",
    "Place",
    "Prepared",
    "Request",
    "absolute",
    "absolute_images",
    "around",
    "choose_lab",
    "lock_of",
    "most_cells",
    "parse_options",
    "prepared",
    "resumed",
    "to_spec",
    "with_range",
]
