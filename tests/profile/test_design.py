"""Designs of a sweep."""

from itertools import combinations

import numpy as np
import pytest

from fscost import profile
from fscost.errors import InputError


def _signs(factors: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Levels of a screening design as −1 and 1, read from the spellings alone."""
    spelling = "ext4 -o " + ",".join(f"f{number}={{0,1}}" for number in range(factors))
    found = profile.expand_all([spelling], "screening")
    return np.array(
        [
            [2.0 * int(word[-1]) - 1 for word in each.spelling.removeprefix("ext4 -o ").split(",")]
            for each in found
        ]
    )


@pytest.mark.parametrize(
    ("factors", "runs"), [(2, 4), (3, 8), (4, 8), (7, 16), (8, 16), (16, 32), (20, 64)]
)
def test_a_screening_design_is_small_and_of_resolution_iv(factors: int, runs: int) -> None:
    """Main effects are clear of each other and of every two-way interaction."""
    signs = _signs(factors)
    assert signs.shape == (runs, factors)
    assert len(np.unique(signs, axis=0)) == runs
    assert not signs.sum(axis=0).any()
    assert (signs.T @ signs == runs * np.eye(factors)).all()
    for one, other in combinations(range(factors), 2):
        product = signs[:, one] * signs[:, other]
        assert not np.delete(signs.T @ product, [one, other]).any()
    assert (signs[0] == -1).all(), "the first profile is the baseline: all first levels"


def test_what_no_screening_design_has_is_refused() -> None:
    with pytest.raises(InputError, match="commit has 3 levels"):
        profile.expand_all(["ext4 -o commit={1,5,30},{a,b}"], "screening")
    with pytest.raises(InputError, match="did you mean screening"):
        profile.expand_all(["ext4"], "screeming")
    with pytest.raises(InputError, match="has 21 factors"):
        _signs(21)


def test_a_spelling_without_choices_is_in_every_design() -> None:
    found = profile.expand_all(["xfs", "ext4 -o {a,b},{c,d},{e,f},{g,h}"], "screening")
    assert [each.spelling for each in found[:2]] == ["xfs", "ext4 -o a,c,e,g"]
    assert len(found) == 9
    assert found[0].levels == ()
