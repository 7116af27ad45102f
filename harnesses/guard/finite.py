"""FiniteGuard: the exact joint law of report and label of a finite guard; imports costs, region, pomdp.rational.

All quantities of theorems T2 to T7 are methods here, in Fractions without tolerance, None where undefined (a share
among nothing). `bad` stands for y = 0, not allowed. Calls with equal reports are one atom, whatever made them: the
guard cannot tell them apart, and only their mean label eta(p) = E[y | p] counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from harnesses.guard.costs import PERFECT, Costs, Reviewer, expected_costs
from harnesses.guard.region import REGIONS, GuardError, Region, Thresholds, at_least, probability, region

ZERO = Fraction(0)


class Atom(NamedTuple):
    """One report `p` and the masses P(report = p, y = 1) and P(report = p, y = 0)."""

    p: Fraction
    allowed: Fraction
    bad: Fraction

    @property
    def mass(self) -> Fraction:
        """P(report = p), above 0."""
        return self.allowed + self.bad

    @property
    def eta(self) -> Fraction:
        """E[y | report = p]."""
        return self.allowed / self.mass


@dataclass(frozen=True)
class FiniteGuard:
    """Atoms of distinct reports, ascending, of positive mass, together 1. Build one by `of` or `from_...`.

    A threshold `tau` is an exact number in [0, 1], read as `region` reads it, or None: never act. Where a method
    conditions on an event of mass 0 it gives None. Raises GuardError for atoms that are no such law.
    """

    atoms: tuple[Atom, ...]

    def __post_init__(self) -> None:
        before = None
        for atom in self.atoms:
            probability(atom.p, "report p")
            if atom.allowed < 0 or atom.bad < 0 or atom.mass == 0:
                raise GuardError(
                    f"report {atom.p} has masses {atom.allowed}, {atom.bad}; give 0 or more, not both 0"
                )
            if before is not None and atom.p <= before:
                raise GuardError(
                    f"report {atom.p} after {before}: atoms ascend, equal ones merged as `of` does"
                )
            before = atom.p
        total = sum((atom.mass for atom in self.atoms), ZERO)
        if total != 1:
            raise GuardError(f"masses sum to {total}, not 1; such as {{(0.9, 1): 3/4, (0.9, 0): 1/4}}")

    @classmethod
    def of(cls, mass: Mapping[tuple[Any, int], Any]) -> FiniteGuard:
        """From {(p, y): P(report = p, label = y)}; numbers as `read_rational` reads them. Equal reports merge."""
        return cls(
            merged(
                (p, *by_label(y, at_least(0, m, f"mass of ({p}, {y})", "1/4"))) for (p, y), m in mass.items()
            )
        )

    @classmethod
    def from_atoms(cls, atoms: Iterable[tuple[Any, Any, Any]]) -> FiniteGuard:
        """From triples (p, eta, weight), weights in any unit. Atoms of equal p merge before eta(p) is computed."""
        read = [
            (p, probability(eta, f"eta of report {p}"), at_least(0, w, f"weight of report {p}", "1/4"))
            for p, eta, w in atoms
        ]
        total = sum((w for *_, w in read), ZERO)
        if total == 0:
            raise GuardError(
                "no atom has a weight above 0; give triples (p, eta, weight) such as (0.9, 3/4, 1)"
            )
        return cls(merged((p, eta * w / total, (1 - eta) * w / total) for p, eta, w in read))

    @classmethod
    def from_scores(cls, p: Any, y: Any) -> FiniteGuard:
        """The empirical law of reports `[N]` and labels `[N]`, 0 or 1; a float report is its shortest decimal.

        For laws that are looked at exactly; `report` counts files of a million scores.
        """
        reports, labels = np.asarray(p), np.asarray(y)
        if reports.ndim != 1 or reports.shape != labels.shape or reports.size == 0:
            raise GuardError(
                f"{reports.shape} reports and {labels.shape} labels; give as many of one as of the other"
            )
        wrong = np.flatnonzero((labels != 0) & (labels != 1))
        if wrong.size:
            raise GuardError(f"row {wrong[0] + 1}: y is {labels[wrong[0]]}; a label is 0 or 1")
        values, where = np.unique(reports, return_inverse=True)
        allowed = np.bincount(where[labels == 1], minlength=values.size).tolist()
        bad = np.bincount(where[labels == 0], minlength=values.size).tolist()
        size = reports.size
        return cls(merged((v, Fraction(a, size), Fraction(b, size)) for v, a, b in zip(values, allowed, bad)))

    @property
    def reports(self) -> tuple[Fraction, ...]:
        """The reports of positive mass, ascending."""
        return tuple(atom.p for atom in self.atoms)

    @property
    def law(self) -> dict[tuple[Fraction, int], Fraction]:
        """{(p, y): mass}, zero masses left out: what `of` reads."""
        pairs = (((a.p, y), m) for a in self.atoms for y, m in ((1, a.allowed), (0, a.bad)))
        return {key: m for key, m in pairs if m}

    @property
    def pi0(self) -> Fraction:
        """P(y = 0), the share of calls that are not allowed."""
        return sum((atom.bad for atom in self.atoms), ZERO)

    def mass(self, p: Any) -> Fraction:
        """P(report = p)."""
        found = self._at(p)
        return ZERO if found is None else found.mass

    def eta(self, p: Any) -> Fraction | None:
        """E[y | report = p]."""
        found = self._at(p)
        return None if found is None else found.eta

    def sent(self, tau: Any) -> Fraction:
        """P(p >= tau): the calls acted on alone."""
        return sum((atom.mass for atom in self._sent(tau)), ZERO)

    def bad(self, tau: Any) -> Fraction:
        """P(y = 0, p >= tau)."""
        return sum((atom.bad for atom in self._sent(tau)), ZERO)

    def doubted(self, tau: Any) -> Fraction:
        """E[(1 - p) 1{p >= tau}], which is `bad` where reports are calibrated."""
        return sum(((1 - atom.p) * atom.mass for atom in self._sent(tau)), ZERO)

    def share(self, tau: Any) -> Fraction | None:
        """P(y = 0 | p >= tau), among *acted-on* calls. Source: M14 Eq. 5."""
        return _ratio(self.bad(tau), self.sent(tau))

    def uar(self, tau: Any) -> Fraction | None:
        """P(p >= tau | y = 0), the unsafe-action rate, among *disallowed* calls. Source: M14 Eq. 7."""
        return _ratio(self.bad(tau), self.pi0)

    def held_back(self, tau: Any) -> Fraction | None:
        """P(p < tau | y = 1), among *allowed* calls."""
        allowed = 1 - self.pi0
        return _ratio(allowed - self.sent(tau) + self.bad(tau), allowed)

    def masses(self, thresholds: Thresholds) -> dict[Region, tuple[Fraction, Fraction]]:
        """P(region, y = 1) and P(region, y = 0) of each region."""
        found = dict.fromkeys(REGIONS, (ZERO, ZERO))
        for atom in self.atoms:
            kind = region(atom.p, thresholds)
            allowed, bad = found[kind]
            found[kind] = allowed + atom.allowed, bad + atom.bad
        return found

    def asked(self, thresholds: Thresholds) -> Fraction:
        """P(ask)."""
        return sum(self.masses(thresholds)[Region.ASK], ZERO)

    def escalated(self, thresholds: Thresholds) -> Fraction:
        """P(escalate)."""
        return sum(self.masses(thresholds)[Region.ESCALATE], ZERO)

    def cost(self, thresholds: Thresholds, costs: Costs, reviewer: Reviewer = PERFECT) -> Fraction:
        """Expected cost per call under these thresholds, in the unit of the costs."""
        if_allowed, if_bad = expected_costs(1, costs, reviewer), expected_costs(0, costs, reviewer)
        found = self.masses(thresholds).items()
        return sum((allowed * if_allowed[kind] + bad * if_bad[kind] for kind, (allowed, bad) in found), ZERO)

    def best_cost(self, costs: Costs, reviewer: Reviewer = PERFECT) -> Fraction:
        """Expected cost per call of the best rule on these reports, which knows eta(p)."""
        return sum((a.mass * min(expected_costs(a.eta, costs, reviewer).values()) for a in self.atoms), ZERO)

    def ece(self, tau: Any = 0) -> Fraction:
        """E[|p - eta(p)| 1{p >= tau}]: the L1 calibration error, of all reports unless `tau` says otherwise."""
        return sum((abs(atom.p * atom.mass - atom.allowed) for atom in self._sent(tau)), ZERO)

    def excess(self, tau: Any) -> Fraction | None:
        """The largest (p - eta(p))^+ with p >= tau: overconfidence where the guard acts alone."""
        return max((max(ZERO, atom.p - atom.eta) for atom in self._sent(tau)), default=None)

    @property
    def is_calibrated(self) -> bool:
        """Whether eta(p) = p for every report."""
        return all(atom.p * atom.mass == atom.allowed for atom in self.atoms)

    def recalibrated(self) -> FiniteGuard:
        """The guard that reports eta(p) instead of p: calibrated; reports of equal eta become one."""
        return FiniteGuard(merged((atom.eta, atom.allowed, atom.bad) for atom in self.atoms))

    def __str__(self) -> str:
        return "; ".join(f"p {a.p}: allowed {a.allowed}, not {a.bad}" for a in self.atoms)

    def _at(self, p: Any) -> Atom | None:
        wanted = probability(p, "report p")
        return next((atom for atom in self.atoms if atom.p == wanted), None)

    def _sent(self, tau: Any) -> Iterable[Atom]:
        if tau is None:
            return ()
        least = probability(tau, "threshold tau")
        return (atom for atom in self.atoms if atom.p >= least)


def merged(atoms: Iterable[tuple[Any, Fraction, Fraction]]) -> tuple[Atom, ...]:
    """Atoms of triples (p, allowed mass, bad mass), ascending, equal reports added up, those of mass 0 dropped."""
    read = [Atom(probability(p, "report p"), allowed, bad) for p, allowed, bad in atoms]
    # Sorted, not hashed: the hash of a Fraction is dearer than the comparisons.
    read.sort(key=lambda atom: atom.p)
    found: list[Atom] = []
    for atom in read:
        if found and found[-1].p == atom.p:
            found[-1] = Atom(atom.p, found[-1].allowed + atom.allowed, found[-1].bad + atom.bad)
        else:
            found.append(atom)
    return tuple(atom for atom in found if atom.allowed or atom.bad)


def by_label(y: Any, mass: Fraction) -> tuple[Fraction, Fraction]:
    """A mass as (allowed, bad). Raises GuardError for a label that is neither 1 nor 0."""
    if y not in (0, 1):
        raise GuardError(f"label {y!r}; a label is 1 (allowed) or 0")
    return (mass, ZERO) if y == 1 else (ZERO, mass)


def _ratio(part: Fraction, whole: Fraction) -> Fraction | None:
    return part / whole if whole else None
