"""Twin: the guarded desk as a POMDP, made from what a decider reported on one split; imports constructors and guard.

An email comes: allowed, wrong, or stopped by a rule in code before any decider is asked. Its report is drawn from those
that emails of its kind got on the calibration split, and the guard's constructor stands between the call and the world.
Exact values of this POMDP are the desk's cost per case, unsafe-action rate and questions, before it has run; what a
split of n emails will show is predicted with both samples' uncertainty. Source: M14 §7, §8; guard design T1, T5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from harnesses.constructors.guards import Check, check
from harnesses.desk.decider import Decider
from harnesses.desk.evaluation import directly
from harnesses.desk.items import GuardItem
from harnesses.desk.measures import Guarded as Played
from harnesses.desk.policy import GUARD_COSTS, GUARD_THRESHOLDS
from harnesses.guard.costs import PERFECT, Costs, Reviewer, expected_costs
from harnesses.guard.guarded import Guarded
from harnesses.guard.region import REGIONS, GuardError, Region, Thresholds, region
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import Controller

ALLOWED, WRONG, STOPPED, DONE = "allowed", "wrong", "stopped", "done"
SEND, WAIT = "send-email", "wait"
MEASURES = ("cost_per_case", "uar", "questions")
"""What is predicted: the cost of an email, Eq. 7, and questions per email."""

DRAWS = 20_000
"""Of the predictive distribution: its quantiles are then known to about a hundredth of their width."""
PRIOR = 0.5
"""Weight of each cell before anything is counted (Jeffreys), so that what never happened on N emails may happen yet."""


@dataclass(frozen=True)
class Prediction:
    """An exact `value` of the twin; a split of `items` emails falls in [lower, upper] with probability `level`."""

    value: float
    lower: float
    upper: float
    level: float
    items: int

    def covers(self, seen: float | None) -> bool:
        """Whether what came lies in the interval; what is undefined does not."""
        return seen is not None and self.lower - 1e-12 <= seen <= self.upper + 1e-12

    def json(self) -> dict[str, Any]:
        """As data."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Twin:
    """The guarded desk as a POMDP. `reports`: of each kind of email, how often each report came; 0 where code decided.

    Raises GuardError without emails.
    """

    reports: Mapping[str, Counter[Fraction]]
    thresholds: Thresholds = GUARD_THRESHOLDS
    costs: Costs = GUARD_COSTS
    reviewer: Reviewer = PERFECT

    def __post_init__(self) -> None:
        """Refuse a twin of nothing."""
        if not self.size:
            raise GuardError(
                "a twin is made from emails with reports; give some, such as those of split('calibration')"
            )

    @classmethod
    def of(
        cls,
        decider: Decider,
        items: Sequence[GuardItem],
        thresholds: Thresholds = GUARD_THRESHOLDS,
        costs: Costs = GUARD_COSTS,
        reviewer: Reviewer = PERFECT,
        lifted: Sequence[str] = (),
    ) -> Twin:
        """From a decider's reports on emails with labels, the rules in code checked first."""
        return cls.from_records(directly(items, decider, thresholds, lifted), thresholds, costs, reviewer)

    @classmethod
    def from_records(
        cls,
        records: Sequence[Played],
        thresholds: Thresholds = GUARD_THRESHOLDS,
        costs: Costs = GUARD_COSTS,
        reviewer: Reviewer = PERFECT,
    ) -> Twin:
        """From records of emails. An allowed one that code stops counts as allowed with the report 0."""
        reports: dict[str, Counter[Fraction]] = {kind: Counter() for kind in (ALLOWED, WRONG, STOPPED)}
        for record in records:
            kind = ALLOWED if record.allowed else STOPPED if record.p is None else WRONG
            reports[kind][Fraction(0 if record.p is None else record.p)] += 1
        return cls(reports, thresholds, costs, reviewer)

    @property
    def size(self) -> int:
        """Emails counted."""
        return sum(counts.total() for counts in self.reports.values())

    @cached_property
    def task(self) -> POMDP:
        """One email, its kind hidden. Sending it ends the run and earns 1: what is earned counts what went out."""
        kinds = (ALLOWED, WRONG, STOPPED)
        stay = [[int(s == t) for t in range(4)] for s in range(4)]
        send = [[0, 0, 0, 1]] * 4
        share = [Fraction(self.reports[kind].total(), self.size) for kind in kinds]
        return POMDP.build(
            states=[*kinds, DONE],
            actions=[SEND, WAIT],
            observations=["sent", "nothing"],
            T=[send, stay],
            Z=[[[1, 0]] * 4, [[0, 1]] * 4],
            R=[[1, 1, 1, 0], [0] * 4],
            start=[*share, 0],
        )

    @cached_property
    def check(self) -> Check:
        """The guard's constructor around the task."""
        rows = {
            kind: {p: Fraction(n, counts.total()) for p, n in counts.items()} if counts else 0
            for kind, counts in self.reports.items()
        }
        return check(
            self.task,
            SEND,
            ALLOWED,
            rows,
            self.thresholds.tau_esc,
            self.thresholds.tau_act,
            self.costs,
            self.reviewer,
        )

    @property
    def model(self) -> POMDP:
        """The guarded desk."""
        return self.check.guarded

    @cached_property
    def guarded(self) -> Guarded:
        """Everything that one submission comes to, exactly."""
        model = self.model
        act = np.zeros((1, model.num_actions))
        act[0, model.action_index(SEND)] = 1.0
        successor = np.zeros((1, model.num_actions, model.num_observations), dtype=np.int64)
        policy = Controller(act=act, successor=successor, start=0)
        return Guarded.of(self.check, policy, Criterion(Fraction(1), 1))

    def exact(self) -> dict[str, Fraction | None]:
        """The three measures of the population that the calibration split stands for."""
        found = self.guarded
        return {"cost_per_case": found.cost, "uar": found.uar, "questions": found.questions}

    def counts(self) -> np.ndarray:
        """Emails by region and label `[3, 2]`, label 0 first."""
        table = np.zeros((len(REGIONS), 2), dtype=np.int64)
        for kind, reports in self.reports.items():
            for p, n in reports.items():
                table[REGIONS.index(region(p, self.thresholds)), int(kind == ALLOWED)] += n
        return table

    def predict(self, items: int, level: float = 0.95, seed: int = 0) -> dict[str, Prediction]:
        """What a split of so many emails will show, with its interval at `level`.

        Emails of both splits are independent and alike. Given the counts of the first, the shares of the six cells
        (region, label) have a Dirichlet law, and the counts of the second a multinomial one given the shares; quantiles
        of DRAWS draws with `seed` take in the uncertainty of both. Raises GuardError for a level outside (0, 1).
        """
        if not 0 < level < 1 or items < 1:
            raise GuardError(
                f"level {level} for {items} emails; give a level in (0, 1), such as 0.95, for 1 or more"
            )
        random = np.random.default_rng(seed)
        shares = random.dirichlet(self.counts().ravel() + PRIOR, size=DRAWS)
        drawn = random.multinomial(items, shares).reshape(DRAWS, len(REGIONS), 2)
        seen = measured(drawn, self.costs, self.reviewer)
        ends = {}
        for name, exact in self.exact().items():
            known = seen[name][np.isfinite(seen[name])]
            tails = [(1 - level) / 2, (1 + level) / 2]
            lower = float(np.quantile(known, tails[0], method="lower")) if known.size else 0.0
            upper = float(np.quantile(known, tails[1], method="higher")) if known.size else 1.0
            ends[name] = Prediction(
                float("nan") if exact is None else float(exact), lower, upper, level, items
            )
        return ends


def measured(
    counts: np.ndarray, costs: Costs = GUARD_COSTS, reviewer: Reviewer = PERFECT
) -> dict[str, np.ndarray]:
    """The three measures `[...]` of counts `[..., 3, 2]` by region and label; UAR is NaN without disallowed emails."""
    price = np.array([[float(expected_costs(y, costs, reviewer)[kind]) for y in (0, 1)] for kind in REGIONS])
    total = counts.sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "cost_per_case": (counts * price).sum(axis=(-2, -1)) / total,
            "uar": counts[..., REGIONS.index(Region.ACT), 0] / counts[..., 0].sum(axis=-1),
            "questions": counts[..., REGIONS.index(Region.ASK), :].sum(axis=-1) / total,
        }


def seen(records: Sequence[Played], costs: Costs = GUARD_COSTS) -> dict[str, float | None]:
    """The three measures of emails that have run, from what came of each and nothing else; a person who never errs."""
    spent = Fraction(0)
    costs = costs.exact()
    for record in records:
        if record.sent:
            spent += 0 if record.allowed else costs.wrong
        elif record.asked:
            spent += costs.ask + (0 if record.allowed else costs.miss)
        else:
            spent += costs.escalate
    bad = [record for record in records if not record.allowed]
    return {
        "cost_per_case": float(spent / len(records)),
        "uar": sum(record.sent for record in bad) / len(bad) if bad else None,
        "questions": sum(record.asked for record in records) / len(records),
    }
