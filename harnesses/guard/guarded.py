"""Guarded: what the check of one action does to a task under a policy, exactly; imports constructors.guards, finite.

A *submission* is a call of the checked action while the run is not over. It is *judged* where no answer is held: a
report p ~ G(.|s) is made and the guard acts, asks or escalates; y is 1 where the call is allowed in the state. It is
*repeated* where an answer is held: no report is made, the same answer comes back and is paid again as the constructor
charges it, so a repeated rejection is one more question. The law of (p, y), hence share, UAR and held back, is that of
the judged submissions; questions and costs count both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import flint
import numpy as np

from harnesses.constructors.guards import REJECTED, Check, Place
from harnesses.guard.costs import expected_costs
from harnesses.guard.finite import FiniteGuard
from harnesses.guard.region import GuardError, Region, region
from pomdp.criterion import Criterion
from pomdp.exact_value import MAX_UNKNOWNS
from pomdp.policy import Controller, Policy, as_controller
from pomdp.rational import read_rational

ZERO, ONE = Fraction(0), Fraction(1)

Calls = dict[tuple[Place, int], Fraction]
"""Expected number of times that each action is taken in each place of the guarded model."""

_Node = tuple[int, Place]  # of the policy's controller, and of the model
Measure = dict[_Node, Fraction]


@dataclass(frozen=True)
class Submissions:
    """Expected numbers of submissions: `judged` by (report, y), `repeated` by (region of the answer held, y)."""

    judged: Mapping[tuple[Fraction, int], Fraction]
    repeated: Mapping[tuple[Region, int], Fraction]

    @classmethod
    def of(cls, calls: Calls, check: Check) -> Submissions:
        """Those among the calls."""
        judged: dict[tuple[Fraction, int], Fraction] = {}
        repeated: dict[tuple[Region, int], Fraction] = {}
        for ((s, held), action), number in calls.items():
            if action != check.action or s in check.over:
                continue
            y = int(s in check.good)
            if held is not None:
                answer = Region.ASK if held == REJECTED else Region.ESCALATE
                repeated[answer, y] = repeated.get((answer, y), ZERO) + number
                continue
            for p, share in check.reports[s].items():
                judged[p, y] = judged.get((p, y), ZERO) + number * share
        return cls(judged, repeated)

    def cost(self, check: Check) -> Fraction:
        """What the guard charges for them."""
        costs, judge = check.costs, check.reviewer
        charged = {y: expected_costs(y, costs, judge) for y in (0, 1)}
        again = {
            (Region.ASK, 0): costs.ask + costs.miss,
            (Region.ASK, 1): costs.ask + judge.r,
            (Region.ESCALATE, 0): costs.escalate,
            (Region.ESCALATE, 1): costs.escalate,
        }
        first = (n * charged[y][region(p, check.thresholds)] for (p, y), n in self.judged.items())
        return sum(first, ZERO) + sum((n * again[key] for key, n in self.repeated.items()), ZERO)


@dataclass(frozen=True, eq=False)
class Guarded:
    """Expectations per run of `check.guarded` under a policy and a criterion, in exact Fractions.

    `counted`: submissions of the run's steps, each step counting 1; without a horizon step t counts discount^t, as in a
    run that ends with probability 1 - discount after each step. `paid`: the same, step t weighted discount^t. `earned`:
    J without the guard's costs.
    """

    check: Check
    counted: Submissions
    paid: Submissions
    earned: Fraction

    @classmethod
    def of(cls, check: Check, policy: Policy, criterion: Criterion) -> Guarded:
        """Of an open loop, controller or reactive policy on `check.guarded`.

        Its action probabilities are read by their shortest decimals and divided by their exact sum. Raises ModelError
        for a policy that does not fit or has no finite memory, GuardError where there is no horizon and more than
        MAX_UNKNOWNS pairs of memory and place are reached.
        """
        counted, paid = _calls(check, policy, criterion)
        submitted = Submissions.of(counted, check)
        if paid is counted:
            return cls(check, submitted, submitted, _earned(paid, check))
        return cls(check, submitted, Submissions.of(paid, check), _earned(paid, check))

    @property
    def submissions(self) -> Fraction:
        """Judged submissions per run."""
        return sum(self.counted.judged.values(), ZERO)

    @property
    def regions(self) -> dict[tuple[Region, int], Fraction]:
        """Judged submissions per run by region and label y."""
        found = {(kind, y): ZERO for kind in Region for y in (1, 0)}
        for (p, y), number in self.counted.judged.items():
            found[region(p, self.check.thresholds), y] += number
        return found

    @property
    def questions(self) -> Fraction:
        """Questions per run: asked about a judged submission, or asked again for a repeated one."""
        found, again = self.regions, self.counted.repeated
        return sum((found[Region.ASK, y] + again.get((Region.ASK, y), ZERO) for y in (0, 1)), ZERO)

    @property
    def cost(self) -> Fraction:
        """What the guard charges per run, discounted as rewards are."""
        return self.paid.cost(self.check)

    @property
    def value(self) -> Fraction:
        """J of the policy on the guarded model."""
        return self.earned - self.cost

    @cached_property
    def law(self) -> FiniteGuard:
        """The law of (report, y) of a judged submission, to which T2 to T7 apply. GuardError where there is none.

        Each run weighs as many times as it submits, so this is what the pooled submissions of many runs tend to. It
        depends on the policy: a guard whose reports are calibrated on one policy's submissions need not be so on
        another's.
        """
        total = self.submissions
        if not total:
            name = self.check.model.actions[self.check.action]
            raise GuardError(
                f"the policy never submits {name}, so its reports have no law; let it call {name}"
            )
        return FiniteGuard.of({key: number / total for key, number in self.counted.judged.items()})

    @property
    def share(self) -> Fraction | None:
        """Share of disallowed calls among those acted on alone; None where there are none. Source: M14 Eq. 5."""
        found = self.regions
        return _ratio(found[Region.ACT, 0], found[Region.ACT, 0] + found[Region.ACT, 1])

    @property
    def uar(self) -> Fraction | None:
        """Share of disallowed calls that are acted on alone; None where there are none. Source: M14 Eq. 7."""
        return _ratio(self.regions[Region.ACT, 0], self._labelled(0))

    @property
    def held_back(self) -> Fraction | None:
        """Share of allowed calls that are asked about or escalated; None where there are none."""
        allowed = self._labelled(1)
        return _ratio(allowed - self.regions[Region.ACT, 1], allowed)

    def _labelled(self, label: int) -> Fraction:
        return sum((number for (_, y), number in self.counted.judged.items() if y == label), ZERO)


def _ratio(part: Fraction, whole: Fraction) -> Fraction | None:
    return part / whole if whole else None


def _earned(calls: Calls, check: Check) -> Fraction:
    """Rewards of the base model for what is executed."""
    total = ZERO
    for ((s, held), action), number in calls.items():
        reward = check.model.exact.R.row(action).get(s, ZERO)
        if reward and action == check.action and s not in check.over:
            reward *= ZERO if held is not None else _executed(s, check)
        total += number * reward
    return total


def _executed(s: int, check: Check) -> Fraction:
    """Probability that a judged submission in state s is carried out."""
    approves = 1 - check.reviewer.e1 if s in check.good else check.reviewer.e0
    runs = {Region.ACT: ONE, Region.ASK: approves, Region.ESCALATE: ZERO}
    return sum((share * runs[region(p, check.thresholds)] for p, share in check.reports[s].items()), ZERO)


def _calls(check: Check, policy: Policy, criterion: Criterion) -> tuple[Calls, Calls]:
    """Calls per run, each step counting 1, and discounted; one and the same where there is no horizon."""
    chain, discount = (
        _Chain(check, as_controller(policy, check.guarded, criterion.horizon)),
        criterion.discount,
    )
    if criterion.horizon is None:
        calls = chain.calls(chain.discounted(discount))
        return calls, calls
    counted, paid, factor, measure = Calls(), Calls(), ONE, chain.start
    for _ in range(criterion.horizon):
        for key, number in chain.calls(measure).items():
            counted[key] = counted.get(key, ZERO) + number
            paid[key] = paid.get(key, ZERO) + factor * number
        measure, factor = chain.pushed(measure), factor * discount
    return counted, paid


class _Chain:
    """The Markov chain of a controller on the places of a guarded model, each row computed once."""

    def __init__(self, check: Check, controller: Controller) -> None:
        self._kernel, self._successor = check.kernel, controller.successor
        self._number = {name: o for o, name in enumerate(check.guarded.observations)}
        self._acts = exact_rows(controller.act)
        self._rows: dict[_Node, Measure] = {}
        self.start: Measure = {(controller.start, place): p for place, p in check.kernel.start.items()}

    def calls(self, visits: Measure) -> Calls:
        """What is called in these numbers of visits."""
        found: Calls = {}
        for (k, place), number in visits.items():
            for a, weight in self._acts[k].items():
                found[place, a] = found.get((place, a), ZERO) + number * weight
        return found

    def pushed(self, measure: Measure) -> Measure:
        """The measure one step later."""
        following: Measure = {}
        for node, mass in measure.items():
            for reached, p in self._row(node).items():
                following[reached] = following.get(reached, ZERO) + mass * p
        return following

    def discounted(self, discount: Fraction) -> Measure:
        """Expected discounted visits x = start + discount P' x, solved exactly."""
        nodes = list(self.start)
        index = {node: i for i, node in enumerate(nodes)}
        for node in nodes:  # grows while it is read
            for reached in self._row(node):
                if reached not in index:
                    index[reached] = len(nodes)
                    nodes.append(reached)
            if len(nodes) > MAX_UNKNOWNS:
                raise GuardError(
                    f"the policy reaches more than {MAX_UNKNOWNS} pairs of memory and place, too many for exact "
                    "numbers without a horizon; give one, such as 20"
                )
        system = flint.fmpq_mat(len(nodes), len(nodes))
        for i, node in enumerate(nodes):
            system[i, i] = system[i, i] + 1
            for reached, p in self._row(node).items():
                system[index[reached], i] = system[index[reached], i] - _flint(discount * p)
        begun = flint.fmpq_mat(len(nodes), 1, [_flint(self.start.get(node, ZERO)) for node in nodes])
        visits = system.solve(begun)
        return {node: Fraction(int(visits[i, 0].p), int(visits[i, 0].q)) for i, node in enumerate(nodes)}

    def _row(self, node: _Node) -> Measure:
        row = self._rows.get(node)
        if row is None:
            k, place = node
            row = self._rows[node] = {}
            for a, weight in self._acts[k].items():
                for reached, seen, p in self._kernel.step(place, a):
                    if p:
                        after = int(self._successor[k, a, self._number[seen]]), reached
                        row[after] = row.get(after, ZERO) + weight * p
        return row


def exact_rows(act: np.ndarray) -> list[dict[int, Fraction]]:
    """Action probabilities `[K, A]` by their shortest decimals, divided by their exact sum, zeros left out."""
    read = [{a: read_rational(p) for a, p in enumerate(row) if p} for row in act.tolist()]
    return [{a: p / sum(row.values(), ZERO) for a, p in row.items()} for row in read]


def _flint(value: Fraction) -> flint.fmpq:
    return flint.fmpq(value.numerator, value.denominator)
