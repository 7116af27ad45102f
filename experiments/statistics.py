"""Intervals and tests for studies: proportions, paired and clustered means, families, detectable effects.

Imports numpy, scipy and harnesses.guard.binomial. Every function returns a frozen record with the effect and its
interval before the p-value. A figure that the data do not define is None, never 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from harnesses.guard import binomial


class StatisticsError(ValueError):
    """Data that no figure can be computed from, with an example of data that would do."""


@dataclass(frozen=True)
class Proportion:
    """Share of successes and a confidence interval for it; estimate and ends are None without trials."""

    successes: int
    trials: int
    estimate: float | None
    lower: float | None
    upper: float | None
    level: float
    method: str


@dataclass(frozen=True)
class PairedProportions:
    """The same items under two arms: difference of the success shares and the exact McNemar test.

    `gained` items fail under the first arm and succeed under the second, `lost` the other way round; the rest
    are ties. `share` is gained / (gained + lost) with its Clopper-Pearson interval: 1/2 means no effect.
    """

    items: int
    both: int
    neither: int
    gained: int
    lost: int
    ties: int
    difference: float | None
    share: Proportion
    p_value: float | None


@dataclass(frozen=True)
class Mean:
    """A mean (or mean difference), its standard error, t interval and two-sided p-value against 0.

    `groups` independent units (pairs or clusters) leave `df` = groups - 1 degrees of freedom. With fewer than
    two units, or where all agree exactly, the error or the interval is undefined and None.
    """

    observations: int
    groups: int
    ties: int
    estimate: float | None
    standard_error: float | None
    df: int | None
    lower: float | None
    upper: float | None
    p_value: float | None
    level: float


@dataclass(frozen=True)
class HolmTest:
    """One test of a family: its p-value, the one adjusted by Holm, and whether it is rejected at `alpha`."""

    name: str
    p_value: float | None
    adjusted: float | None
    rejected: bool | None
    alpha: float


@dataclass(frozen=True)
class DetectableEffect:
    """The smallest true effect that a two-sided t test finds with probability `power`."""

    effect: float | None
    standard_error: float
    df: int
    level: float
    power: float


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Proportion:
    """Exact interval for a proportion: covers with probability at least `level` whatever the truth."""
    _check_counts(successes, trials, level)
    if trials == 0:
        return Proportion(0, 0, None, None, None, level, "clopper-pearson")
    lower, upper = binomial.clopper_pearson(successes, trials, level)
    return Proportion(successes, trials, successes / trials, lower, upper, level, "clopper-pearson")


def wilson(successes: int, trials: int, level: float = 0.95) -> Proportion:
    """Score interval for a proportion: narrower, for plots only; it covers below its level near 0 and 1."""
    _check_counts(successes, trials, level)
    if trials == 0:
        return Proportion(0, 0, None, None, None, level, "wilson")
    z = float(stats.norm.isf((1 - level) / 2))
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    lower = 0.0 if successes == 0 else centre - half
    upper = 1.0 if successes == trials else centre + half
    return Proportion(successes, trials, share, lower, upper, level, "wilson")


def mcnemar(first: Sequence[bool], second: Sequence[bool], level: float = 0.95) -> PairedProportions:
    """Exact two-sided McNemar test of the same items under two arms; ties are counted but carry no weight."""
    a, b = _booleans(first, "first"), _booleans(second, "second")
    if a.shape != b.shape:
        raise StatisticsError(
            f"first has {a.size} items and second {b.size}; both arms need the same items in order"
        )
    gained, lost = int(np.sum(~a & b)), int(np.sum(a & ~b))
    both, neither = int(np.sum(a & b)), int(np.sum(~a & ~b))
    discordant = gained + lost
    p_value = None
    if discordant:
        p_value = min(1.0, 2 * float(stats.binom.cdf(min(gained, lost), discordant, 0.5)))
    return PairedProportions(
        items=a.size,
        both=both,
        neither=neither,
        gained=gained,
        lost=lost,
        ties=both + neither,
        difference=(gained - lost) / a.size if a.size else None,
        share=clopper_pearson(gained, discordant, level),
        p_value=p_value,
    )


def paired_difference(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> Mean:
    """Mean of second - first over the same items, with a t interval on pairs - 1 degrees of freedom."""
    a, b = _numbers(first, "first"), _numbers(second, "second")
    if a.shape != b.shape:
        raise StatisticsError(
            f"first has {a.size} items and second {b.size}; both arms need the same items in order"
        )
    return clustered_mean(b - a, range(a.size), level)


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable], level: float = 0.95) -> Mean:
    """Mean of values that are dependent within a cluster: sandwich error over clusters, t on clusters - 1.

    For items repeated over seeds pass the item as the cluster, and differences as values to compare two arms.
    """
    x = _numbers(values, "values")
    labels = list(clusters)
    if len(labels) != x.size:
        raise StatisticsError(f"{x.size} values but {len(labels)} cluster labels; give one label per value")
    _check_level(level)
    ties = int(np.sum(x == 0))
    if x.size == 0:
        return Mean(0, 0, 0, None, None, None, None, None, None, level)
    mean = math.fsum(x) / x.size
    residuals: dict[Hashable, list[float]] = {}
    for label, value in zip(labels, x, strict=True):
        residuals.setdefault(label, []).append(float(value) - mean)
    groups = len(residuals)
    if groups < 2:
        return Mean(x.size, groups, ties, mean, None, None, None, None, None, level)
    total = math.fsum(math.fsum(part) ** 2 for part in residuals.values())
    error = math.sqrt(groups / (groups - 1) * total) / x.size
    df = groups - 1
    # Where all values agree the sum of residuals is rounding noise, not evidence of precision.
    if error == 0.0 or np.all(x == x[0]):
        return Mean(x.size, groups, ties, mean, 0.0, df, None, None, None, level)
    half = float(stats.t.isf((1 - level) / 2, df)) * error
    p_value = 2 * float(stats.t.sf(abs(mean) / error, df))
    return Mean(x.size, groups, ties, mean, error, df, mean - half, mean + half, p_value, level)


def holm(p_values: Mapping[str, float | None], alpha: float = 0.05) -> tuple[HolmTest, ...]:
    """Holm's step-down adjustment of a family; a test without a p-value stays undefined, not counted."""
    if not 0 < alpha < 1:
        raise StatisticsError(f"alpha is {alpha}; it must lie strictly between 0 and 1, such as 0.05")
    for name, p in p_values.items():
        if p is not None and not 0 <= p <= 1:
            raise StatisticsError(f"p-value of {name!r} is {p}; it must lie in [0, 1] or be None")
    defined = sorted((p, name) for name, p in p_values.items() if p is not None)
    adjusted: dict[str, float] = {}
    running = 0.0
    for rank, (p, name) in enumerate(defined):
        running = max(running, min(1.0, (len(defined) - rank) * p))
        adjusted[name] = running
    return tuple(
        HolmTest(name, p, adjusted.get(name), adjusted[name] <= alpha if name in adjusted else None, alpha)
        for name, p in p_values.items()
    )


def minimum_detectable_effect(
    standard_error: float, df: int, level: float = 0.95, power: float = 0.8
) -> DetectableEffect:
    """Smallest true effect found with probability `power` by the two-sided t test with this standard error.

    None where the standard error is 0 or no degree of freedom is left.
    """
    _check_level(level)
    if not 1 - level < power < 1:
        raise StatisticsError(
            f"power is {power}; it must lie strictly between {1 - level:g} and 1, such as 0.8"
        )
    if not (math.isfinite(standard_error) and standard_error >= 0):
        raise StatisticsError(f"standard error is {standard_error}; it must be a finite number >= 0")
    if standard_error == 0 or df < 1:
        return DetectableEffect(None, standard_error, df, level, power)
    threshold = float(stats.t.isf((1 - level) / 2, df))
    # The noncentral t as a mixture of normals over the estimated error; scipy's own gives NaN here and there.
    places, weights = np.polynomial.legendre.leggauss(400)
    ratios = threshold * np.sqrt(stats.chi2.ppf((places + 1) / 2, df) / df)

    def shortfall(shift: float) -> float:
        found = stats.norm.cdf(shift - ratios) + stats.norm.cdf(-shift - ratios)
        return float(weights @ found) / 2 - power

    high = threshold + 1.0
    while shortfall(high) < 0:
        high *= 2
    shift = optimize.brentq(shortfall, 0.0, high, xtol=1e-10)
    return DetectableEffect(float(shift) * standard_error, standard_error, df, level, power)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise StatisticsError(f"level is {level}; it must lie strictly between 0 and 1, such as 0.95")


def _check_counts(successes: int, trials: int, level: float) -> None:
    _check_level(level)
    if not 0 <= successes <= trials:
        raise StatisticsError(
            f"{successes} successes in {trials} trials; counts need 0 <= successes <= trials"
        )


def _booleans(values: Sequence[bool], name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or not np.all(np.isin(array, (0, 1))):
        raise StatisticsError(f"{name} must be a flat sequence of outcomes such as [True, False, True]")
    return array.astype(bool)


def _numbers(values: Sequence[float], name: str) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.all(np.isfinite(array)):
        raise StatisticsError(f"{name} must be a flat sequence of finite numbers such as [0.5, 1.25]")
    return array
