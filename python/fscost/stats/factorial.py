"""Effects of the factors of a designed experiment.

**Method.** Ordinary least squares on the logarithms of all samples (on plain values if one of them
is not positive), with a term for each factor, each pair of factors and each repetition. Factors are
coded by deviations from their mean (± 1 for two levels), so a main effect is the mean over all
levels of the other factors, and a repetition's common disturbance cancels (Montgomery, *Design and
Analysis of Experiments*, ch. 5–8). The interaction of two levels is half the difference between the
effects that the one has at the other and at its first level. Intervals are Student's, from the
residuals: the spread of repetitions, and interactions of three and more factors.

**Limits.** A pair of factors that the design cannot tell from other effects is left out of the
model and named in `inseparable`; main effects then assume that the two do not interact, unless the
design keeps them apart. Intervals are not corrected for multiple comparisons.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from fscost.stats.interval import CONFIDENCE
from fscost.stats.ratio import MINIMUM_SIZE, Verdict
from fscost.stats.student import two_sided

Matrix: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
_TOLERANCE = 1e-8
_DIGITS = 12
_LARGEST = 20_000_000
"""Maximum number of entries of the model's matrix: 1,000 combinations, ten repetitions and a
thousand terms are half of that."""
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class Observation:
    """One sample: the level of each factor, and its repetition."""

    levels: Mapping[str, str]
    block: int
    value: float


@dataclass(frozen=True)
class Effect:
    """Effect of a level compared with the first level of its factor (`against`), or of two levels
    together. `size`, `low` and `high` are ratios, or differences if `Effects.is_ratio` is false.
    `at`: for two levels, the effect of the first one at each level of the second factor."""

    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    size: float
    low: float | None
    high: float | None
    verdict: Verdict
    at: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Effects:
    """Effects, the largest first. `degrees`: degrees of freedom of the intervals; `inseparable`:
    pairs of factors without an effect of their own; `unknown`: factors without one."""

    is_ratio: bool
    n: int
    degrees: int
    mean: float
    effects: tuple[Effect, ...]
    inseparable: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


def factorial(
    observations: Sequence[Observation], confidence: float = CONFIDENCE
) -> Effects | None:
    """Estimate all effects. None if no factor has two levels, or the design is too large."""
    factors = _factors(observations)
    if not factors or len(observations) * _terms(factors) > _LARGEST:
        return None
    values = np.array([each.value for each in observations])
    is_ratio = bool(values.min() > 0)
    whole = _Model(observations, factors, list(combinations(factors, 2)))
    pairs = [pair for pair in whole.pairs if whole.estimable[pair]]
    model = whole if len(pairs) == len(whole.pairs) else _Model(observations, factors, pairs)
    fit = _Fit(model, np.log(values) if is_ratio else values, confidence)
    mean = float(values.mean())
    known = [factor for factor in factors if model.estimable[(factor,)]]
    terms = [*((factor,) for factor in known), *pairs]
    found = [
        _effect(fit, term, chosen, is_ratio=is_ratio, least=MINIMUM_SIZE * abs(mean))
        for term in terms
        for chosen in model.contrasts(term)
    ]
    found.sort(key=lambda each: -abs(math.log(each.size) if is_ratio else each.size))
    return Effects(
        is_ratio,
        len(observations),
        fit.degrees,
        mean,
        tuple(found),
        tuple(pair for pair in whole.pairs if pair not in pairs),
        tuple(factor for factor in factors if factor not in known),
    )


def _factors(observations: Sequence[Observation]) -> dict[str, list[str]]:
    """Return the levels of each factor that has several, in order of first appearance."""
    levels: dict[str, dict[str, None]] = {}
    for each in observations:
        for factor, level in each.levels.items():
            levels.setdefault(factor, {})[level] = None
    return {factor: list(found) for factor, found in levels.items() if len(found) > 1}


def _terms(factors: Mapping[str, Sequence[str]]) -> int:
    free = [len(levels) - 1 for levels in factors.values()]
    return 1 + sum(free) + sum(one * other for one, other in combinations(free, 2))


class _Model:
    """The columns of the model, and the place of each term among them."""

    def __init__(
        self,
        observations: Sequence[Observation],
        factors: Mapping[str, Sequence[str]],
        pairs: Sequence[tuple[str, str]],
    ) -> None:
        self.factors = factors
        self.pairs = list(pairs)
        coded = {
            factor: _codes(levels)[[levels.index(each.levels[factor]) for each in observations]]
            for factor, levels in factors.items()
        }
        blocks = sorted({each.block for each in observations})
        columns = [np.ones((len(observations), 1))]
        columns.append(_codes(blocks)[[blocks.index(each.block) for each in observations]])
        self._places: dict[tuple[str, ...], slice] = {}
        at = 1 + columns[1].shape[1]
        for term in [*((factor,) for factor in factors), *self.pairs]:
            own = coded[term[0]]
            if len(term) == 2:
                own = np.einsum("ij,ik->ijk", own, coded[term[1]]).reshape(len(own), -1)
            columns.append(own)
            self._places[term] = slice(at, at := at + own.shape[1])
        self.matrix = np.hstack(columns)
        self.squares = self.matrix.T @ self.matrix
        self.inverse = np.linalg.pinv(self.squares, hermitian=True)
        projection = self.inverse @ self.squares
        self.estimable = {
            term: all(
                np.abs(weights @ projection - weights).max() < _TOLERANCE
                for weights in (self.contrast(term, each) for each in self.contrasts(term))
            )
            for term in self._places
        }
        """Terms whose effects the samples determine: their weights are combinations of the rows."""

    def contrasts(self, term: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the levels of the term's factors, as numbers, except for the first of each."""
        shape = [range(1, len(self.factors[factor])) for factor in term]
        if len(shape) == 1:
            yield from ((one,) for one in shape[0])
        else:
            yield from ((one, other) for one in shape[0] for other in shape[1])

    def contrast(self, term: tuple[str, ...], chosen: tuple[int, ...]) -> Matrix:
        """Return the weights of the parameters in the effect of the chosen levels."""
        codes = [_codes(self.factors[factor]) for factor in term]
        steps = [code[number] - code[0] for code, number in zip(codes, chosen, strict=True)]
        weights = np.zeros(self.matrix.shape[1])
        weights[self._places[term]] = steps[0] if len(term) == 1 else np.kron(*steps) / 2
        return weights

    def at_level(self, pair: tuple[str, ...], chosen: int, level: int) -> Matrix:
        """Return the weights of the effect of the first factor at a level of the second."""
        first, second = (_codes(self.factors[factor]) for factor in pair)
        step = first[chosen] - first[0]
        weights = np.zeros(self.matrix.shape[1])
        weights[self._places[pair[:1]]] = step
        weights[self._places[pair]] = np.kron(step, second[level])
        return weights


class _Fit:
    """Least squares of a model."""

    def __init__(self, model: _Model, values: Matrix, confidence: float) -> None:
        self.model = model
        self._parameters = model.inverse @ model.matrix.T @ values
        residuals = values - model.matrix @ self._parameters
        self.degrees = len(values) - int(np.linalg.matrix_rank(model.squares, hermitian=True))
        # Least squares leave noise in the last digits, which would be effects where there are none.
        largest = float(np.abs(values).max())
        self._decimals = _DIGITS - math.ceil(math.log10(largest)) if largest else _DIGITS
        self._deviation = self._quantile = None
        if self.degrees > 0:
            self._deviation = math.sqrt(float(residuals @ residuals) / self.degrees)
            self._quantile = two_sided(self.degrees, confidence)

    def value(self, weights: Matrix) -> float:
        return round(float(weights @ self._parameters), self._decimals) + 0.0

    def half_width(self, weights: Matrix) -> float | None:
        if self._deviation is None or self._quantile is None:
            return None
        variance = float(weights @ self.model.inverse @ weights)
        half = self._quantile * self._deviation * math.sqrt(max(0.0, variance))
        return round(half, self._decimals)


def _effect(
    fit: _Fit, term: tuple[str, ...], chosen: tuple[int, ...], *, is_ratio: bool, least: float
) -> Effect:
    model = fit.model
    weights = model.contrast(term, chosen)
    size, half = fit.value(weights), fit.half_width(weights)
    low, high = (None, None) if half is None else (size - half, size + half)
    at: list[tuple[str, float]] = []
    if len(term) == 2 and model.estimable[term[:1]]:
        at = [
            (level, fit.value(model.at_level(term, chosen[0], number)))
            for number, level in enumerate(model.factors[term[1]])
        ]
    is_small = abs(_exp(size) - 1) < MINIMUM_SIZE if is_ratio else abs(size) < least
    verdict = Verdict.LOWER if size < 0 else Verdict.HIGHER
    if low is None or high is None or low <= 0 <= high or is_small:
        verdict = Verdict.NOT_SHOWN
    shown = _exp if is_ratio else float
    return Effect(
        term,
        tuple(model.factors[f][n] for f, n in zip(term, chosen, strict=True)),
        tuple(model.factors[f][0] for f in term),
        shown(size),
        None if low is None else shown(low),
        None if high is None else shown(high),
        verdict,
        tuple((level, shown(value)) for level, value in at),
    )


def _codes(levels: Sequence[object]) -> Matrix:
    """Deviation coding: a row for each level, orthogonal to the mean. The first level is −1 in
    every column, so two levels are −1 and 1."""
    count = len(levels)
    return np.vstack([-np.ones((1, count - 1)), np.eye(count - 1)])


def _exp(value: float) -> float:
    return math.exp(max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, value)))
