"""Where a run took place. The request is the caller's own note, of any shape."""

from pathlib import Path
from typing import Any

import pytest
from tests import manifests

from fscost.results import SCHEMA, RunResults
from fscost.view.run import conditions


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"aged": 3.5}, "disk of unknown size (prepared files 3.5 days old); "),
        ({"aged": "x"}, "disk of unknown size; "),
        ({"aged": [3], "kernel": 6}, "disk of unknown size; "),
    ],
)
def test_a_request_of_any_shape_is_described(request_: dict[str, Any], words: str) -> None:
    run = RunResults(Path("run"), manifests.made(request=request_), SCHEMA.empty_table())
    assert words in conditions(run)[0]
