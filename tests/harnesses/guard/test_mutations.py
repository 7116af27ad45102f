"""Each mutation of the guard design is caught by the kit, and its original is not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import find

import harnesses.guard.finite as finite
import harnesses.guard.testing as kit
from harnesses.guard.costs import Costs
from harnesses.guard.finite import Atom
from harnesses.guard.region import Region, region
from harnesses.guard.selection import naive_threshold, pac_threshold
from harnesses.guard.thresholds import thresholds

F = Fraction
ALPHA, DELTA = F(1, 2), F(1, 8)
DEMO = Costs(ask=F(1, 2), miss=4, escalate=3, wrong=20)
LIMITS = thresholds(DEMO)


def acted(p: np.ndarray, tau: float, strict: bool) -> np.ndarray:
    return p > tau if strict else p >= tau


def ratio(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def share(p: np.ndarray, y: np.ndarray, tau: float, strict: bool = False) -> float | None:
    sent = acted(p, tau, strict)
    return ratio((sent & (y == 0)).sum(), sent.sum())


def uar(p: np.ndarray, y: np.ndarray, tau: float, strict: bool = False) -> float | None:
    return ratio((acted(p, tau, strict) & (y == 0)).sum(), (y == 0).sum())


def ece(p: np.ndarray, y: np.ndarray, tau: float, merge: bool = True) -> float:
    """Mean |p - eta| over the items at p >= tau; unmerged, each item is an atom and its label its eta."""
    eta = np.array([y[p == x].mean() for x in p]) if merge else y
    return float((np.abs(p - eta) * (p >= tau)).mean())


MEASURES = {
    "share": (share, "share"),
    "uar": (uar, "uar"),
    "ece": (ece, "ece"),
}
WRONG_MEASURES = {
    "share, > for >=": (lambda p, y, tau: share(p, y, tau, strict=True), "share"),
    "uar, > for >=": (lambda p, y, tau: uar(p, y, tau, strict=True), "uar"),
    "share with the denominator of the UAR": (uar, "share"),
    "UAR with the denominator of the share": (share, "uar"),
    "unmerged atoms": (lambda p, y, tau: ece(p, y, tau, merge=False), "ece"),
    "held back among all": (lambda p, y, tau: ratio(((p < tau) & (y == 1)).sum(), len(p)), "held_back"),
}


@pytest.mark.parametrize(("measure", "quantity"), MEASURES.values(), ids=MEASURES)
def test_a_right_measure_passes(measure, quantity) -> None:
    kit.assert_measured(measure, quantity, max_examples=100)


@pytest.mark.parametrize(("measure", "quantity"), WRONG_MEASURES.values(), ids=WRONG_MEASURES)
def test_a_mutated_measure_is_caught(measure, quantity) -> None:
    """Swapped denominators, ties on the wrong side and unmerged atoms."""
    with pytest.raises(AssertionError, match=f"{quantity} at tau = .*, and the function gives "):
        kit.assert_measured(measure, quantity)


def test_unmerged_atoms_are_no_calibrated_guard(monkeypatch) -> None:
    """Contexts that the guard cannot tell apart have one eta; kept apart, a calibrated guard looks wrong."""

    def unmerged(atoms) -> tuple[Atom, ...]:
        found = sorted((Atom(F(p), allowed, bad) for p, allowed, bad in atoms))
        return tuple(atom for atom in found if atom.mass)

    monkeypatch.setattr(finite, "merged", unmerged)
    monkeypatch.setattr(finite.FiniteGuard, "__post_init__", lambda self: None)
    guard = find(kit.calibrated_guards(), lambda g: not g.is_calibrated, settings=kit.SEARCH)
    assert len(guard.atoms) > len(set(guard.reports))


RULES = {
    "ties to asking": lambda p: Region.ASK if p == LIMITS.tau_act else region(p, LIMITS),
    "ties to escalating": lambda p: Region.ESCALATE if p == LIMITS.tau_esc else region(p, LIMITS),
    "asks and escalates swapped": lambda p: {
        Region.ACT: Region.ACT, Region.ASK: Region.ESCALATE, Region.ESCALATE: Region.ASK
    }[region(p, LIMITS)],
    "doubt for report": lambda p: region(1 - p, LIMITS),
    "never escalates": lambda p: "act" if p >= LIMITS.tau_act else "ask",
}  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_mutated_rule_is_caught(rule, exact: bool) -> None:
    """T1: ties to the less autonomous region, and regions in the wrong place."""
    with pytest.raises(AssertionError, match="the rule is not optimal: at p = "):
        kit.assert_rule_optimal(rule, DEMO, exact=exact)


@pytest.mark.parametrize("check", [kit.assert_share_bound, kit.assert_uar_bound])
def test_a_threshold_just_below_the_promise_is_caught(check) -> None:
    """T2, T3: a promise about p >= tau that is kept at tau and broken a millionth below."""
    check(LIMITS.tau_act, LIMITS.tau_act, max_examples=60)
    with pytest.raises(AssertionError, match=r"theorem T[23]"):
        check(LIMITS.tau_act - F(1, 10**6), LIMITS.tau_act)


def reports_at(p: np.ndarray, y: np.ndarray, more: int = 0) -> float | None:
    """b_{k+1}, and with `more` one for a larger k, from the shipped selection's k."""
    k = pac_threshold(p, y, ALPHA, DELTA).k
    disallowed = np.sort(p[y == 0])[::-1]
    return None if k is None else float(disallowed[min(k + more, disallowed.size - 1)])


def above(value: float | None) -> float | None:
    return None if value is None else float(np.nextafter(value, 2))


SELECTIONS = {
    ">= for >": lambda p, y: reports_at(p, y),
    "k one too large": lambda p, y: above(reports_at(p, y, more=1)),
    "the naive rule": lambda p, y: naive_threshold(p, y, ALPHA).tau_act,
    "among acted-on items": lambda p, y: min((t for t in p if (share(p, y, t) or 0) <= ALPHA), default=None),
    "no k is taken for k = 0": lambda p, y: above(float(p[y == 0].max())),
}


@pytest.mark.parametrize("select", SELECTIONS.values(), ids=SELECTIONS)
def test_a_mutated_selection_is_caught(select) -> None:
    """T9: `>=` for `>` fails on ties; k too large, the observed rate and another denominator fail as well."""
    with pytest.raises(AssertionError, match="UAR exceeds alpha = 1/2 with probability .*theorem T9"):
        kit.assert_selection_valid(select, ALPHA, DELTA)


def test_the_selection_that_is_mutated_passes() -> None:
    """T9: the same code, strict and with its own k."""
    kit.assert_selection_valid(lambda p, y: above(reports_at(p, y)), ALPHA, DELTA, max_examples=60)
