"""Contrasts of an ablation: differences, main effects, interactions, and whether each was applied; imports statistics.

A contrast is a weighted sum of returns of arms. Where every arm in it is exact so is the contrast, without error,
interval or p-value; else its seeds are pairs, because all arms draw the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from experiments.ablation_design import FACTORIAL, Factor, label
from experiments.statistics import holm, minimum_detectable_effect, paired_difference

YES, NOT_APPLIED, UNCHECKED, IN_PART = "yes", "not applied", "unchecked", "in part"
# Equal returns that were summed in another order differ beyond this place.
PLACES = 12


@dataclass(frozen=True)
class Measured:
    """One arm's outcome: `returns` J of each seed, one number where exact; `fingerprint` of what its run was."""

    changes: Mapping[str, str]
    returns: tuple[float, ...]
    exact: bool
    fingerprint: str


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of arms' returns: `weights` by arm label, and the pairs of arms that it compares."""

    name: str
    kind: str
    weights: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Found:
    """A contrast's value; the rest is None where it is exact, undefined, or the change was not applied.

    `effect` is None where nothing was applied: two equal arms measure nothing. `p_holm` is adjusted over the family.
    """

    contrast: Contrast
    applied: str
    exact: bool
    effect: float | None = None
    standard_error: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    detectable: float | None = None


def differences(arms: Sequence[Mapping[str, str]]) -> list[Contrast]:
    """Each arm minus the baseline, which is the first."""
    base = label(arms[0])
    return [
        Contrast(label(arm), "difference", {label(arm): 1.0, base: -1.0}, ((label(arm), base),))
        for arm in arms[1:]
    ]


def effects(design: str, factors: Sequence[Factor], arms: Sequence[Mapping[str, str]]) -> list[Contrast]:
    """Main effects and two-way interactions of a factorial; the differences of any other design.

    A main effect is the mean, over all settings of the other factors, of the change from the factor's baseline
    level; an interaction the mean of how much one such change differs between two levels of another factor.
    """
    if design != FACTORIAL:
        return differences(arms)
    found = []
    for one in factors:
        for level in one.others:
            pairs = _pairs(arms, {one.name: level})
            found.append(_mean(f"{one.name}={level}", "main effect", pairs, pairs))
    for one, other in combinations(factors, 2):
        for level in one.others:
            for second in other.others:
                high = _pairs(arms, {one.name: level}, {other.name: second})
                low = _pairs(arms, {one.name: level}, {other.name: None})
                across = [
                    pair
                    for held in (level, None)
                    for pair in _pairs(arms, {other.name: second}, {one.name: held})
                ]
                crossed = [*high, *((b, a) for a, b in low)]
                name = f"{one.name}={level} x {other.name}={second}"
                found.append(_mean(name, "interaction", crossed, high + low + across))
    return found


def evaluate(contrasts: Sequence[Contrast], arms: Mapping[str, Measured], alpha: float = 0.05) -> list[Found]:
    """The contrasts whose arms were all measured, with p-values adjusted by Holm over the applied ones."""
    found = [
        _value(one, arms)
        for one in contrasts
        if all(name in arms for name in (*one.weights, *sum(one.pairs, ())))
    ]
    adjusted = {test.name: test.adjusted for test in holm({f.contrast.name: f.p_value for f in found}, alpha)}
    return [_with_holm(one, adjusted[one.contrast.name]) for one in found]


def verdict(pairs: Sequence[tuple[str, str]], arms: Mapping[str, Measured]) -> str:
    """Manipulation check: whether the arms of each pair differ in what the model saw, could do or did.

    An exact and a sampled arm cannot be compared this way.
    """
    checks = [_differ(arms[a], arms[b]) for a, b in pairs]
    if None in checks:
        return UNCHECKED
    changed = sum(map(bool, checks))
    if changed == len(checks):
        return YES
    return NOT_APPLIED if not changed else f"{IN_PART} ({changed} of {len(checks)})"


def arm_verdict(arm: Mapping[str, str], arms: Mapping[str, Measured]) -> str:
    """The verdict on one arm against the baseline; where one of its changes is idle there, it is named."""
    whole = verdict([(label(arm), label({}))], arms)
    if whole != YES or len(arm) < 2:
        return whole
    idle = []
    for name in arm:
        rest = label({other: level for other, level in arm.items() if other != name})
        if rest in arms and _differ(arms[label(arm)], arms[rest]) is False:
            idle.append(f"{name}={arm[name]}")
    return f"{NOT_APPLIED}: {', '.join(idle)}" if idle else YES


def _differ(one: Measured, other: Measured) -> bool | None:
    return one.fingerprint != other.fingerprint if one.exact == other.exact else None


def _value(one: Contrast, arms: Mapping[str, Measured]) -> Found:
    used = {name: arms[name] for name, weight in one.weights.items() if weight}
    exact = all(arm.exact for arm in used.values())
    applied = verdict(one.pairs, arms)
    if one.kind == "interaction" and applied.startswith(IN_PART):
        applied = _both(one, arms)
    if applied == NOT_APPLIED:
        return Found(one, applied, exact)
    if exact:
        total = sum(one.weights[name] * arm.returns[0] for name, arm in used.items())
        return Found(one, applied, True, round(total, PLACES) + 0.0)
    seeds = max(len(arm.returns) for arm in used.values())
    sides = [np.zeros(seeds), np.zeros(seeds)]
    for name, arm in used.items():
        sides[int(one.weights[name] > 0)] += abs(one.weights[name]) * np.array(arm.returns)
    mean = paired_difference(sides[0].tolist(), sides[1].tolist())
    error, df = mean.standard_error, mean.df
    detectable = None if error is None or not df else minimum_detectable_effect(error, df).effect
    return Found(
        one, applied, False, mean.estimate, error, mean.lower, mean.upper, mean.p_value, None, detectable
    )


def _both(one: Contrast, arms: Mapping[str, Measured]) -> str:
    """An interaction is not applied where either of its two changes is idle in every setting."""
    half = len(one.pairs) // 2
    sides = [verdict(one.pairs[:half], arms), verdict(one.pairs[half:], arms)]
    return NOT_APPLIED if NOT_APPLIED in sides else verdict(one.pairs, arms)


def _with_holm(one: Found, adjusted: float | None) -> Found:
    return replace(one, p_holm=adjusted)


def _pairs(
    arms: Sequence[Mapping[str, str]], change: Mapping[str, str], held: Mapping[str, str | None] | None = None
) -> list[tuple[str, str]]:
    """(with, without) of one change, in every setting of the other factors that has the `held` levels.

    A level None is the baseline's.
    """
    (name, level), held = next(iter(change.items())), held or {}
    found = []
    for arm in arms:
        if arm.get(name) == level and all(arm.get(other) == wanted for other, wanted in held.items()):
            rest = {other: kept for other, kept in arm.items() if other != name}
            found.append((label(arm), label(rest)))
    return found


def _mean(
    name: str, kind: str, weighted: Sequence[tuple[str, str]], compared: Sequence[tuple[str, str]]
) -> Contrast:
    """The mean of differences (with - without); of a difference of differences, both halves count once."""
    share = 1.0 / (len(weighted) if kind == "main effect" else len(weighted) / 2)
    weights: dict[str, float] = {}
    for plus, minus in weighted:
        weights[plus] = weights.get(plus, 0.0) + share
        weights[minus] = weights.get(minus, 0.0) - share
    return Contrast(name, kind, weights, tuple(compared))
