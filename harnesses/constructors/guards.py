"""Gate and guard: a call that is checked before it is executed; imports base and, of harnesses.guard, the rule.

A guard reads a report p, the probability that the call is allowed, and acts, asks a reviewer or escalates. A gate
is the guard that always asks. Source: M14 Eq. 4, with the thresholds of the design of the guard, T1 and T5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from harnesses.constructors.base import ONE, ZERO, Base, chosen_states, distribution, probability
from harnesses.guard.costs import PERFECT, Costs, Reviewer
from harnesses.guard.region import GuardError, Region, Thresholds, region
from harnesses.guard.thresholds import thresholds
from harnesses.kernel import Kernel, Outcome, tabulate
from pomdp.model import POMDP, ModelError

REJECTED, ESCALATED = "rejected", "escalated"
FROM_COSTS, NEVER = "costs", "never"

Place = tuple[int, str | None]
"""A state of a guarded model: a state of its base, and the answer that a resubmission would meet, or None."""


def gate(
    model: POMDP,
    action: str,
    bad: str | Sequence[str],
    ask: Any = 0,
    miss: Any = 0,
    r: Any = 0,
    e0: Any = 0,
    e1: Any = 0,
    *,
    fresh: bool = False,
) -> POMDP:
    """A reviewer sees each call of `action` first; it is disallowed in the states `bad`. Each review costs `ask`.

    Approval executes the call. Rejection leaves the state, shows `rejected` and pays `miss` where the call was
    disallowed, `r` where it was allowed. `fresh`: as for `guard`.
    """
    refused = set(chosen_states(model, bad))
    return Check(
        model,
        model.action_index(action),
        frozenset(range(model.num_states)) - refused,
        ({ZERO: ONE},) * model.num_states,
        Thresholds(None, 0),
        *_exact(Costs(ask, miss), Reviewer(e0, e1, r)),
        fresh,
    ).guarded


def guard(
    model: POMDP,
    action: str,
    allowed: str | Sequence[str],
    report: Mapping[str, Any],
    tau_esc: Any = FROM_COSTS,
    tau_act: Any = FROM_COSTS,
    costs: Costs | None = None,
    reviewer: Reviewer | None = None,
    fresh: bool = False,
) -> POMDP:
    """A report p ~ G(.|s) decides on each call of `action`: act if p >= tau_act, ask if p >= tau_esc, else escalate.

    `allowed`: the states in which the call is allowed. `report`: {state pattern: p or {p: probability}}, the first
    pattern that matches a state counts. Acting executes the call; asking is `gate`; escalating leaves the state, shows
    `escalated` and pays for it. After a rejection or an escalation the same answer, at the same cost, meets every
    resubmission until the state comes to have another report or permission; with `fresh` each is judged anew, and
    then asking again tells the model about the state. A threshold "costs" is the best one for one call at these
    costs; tau_act "never" (or None) never acts. `costs.wrong`, which thresholds from costs need, is paid beside R(s,a).
    Raises ModelError unless 0 <= tau_esc <= tau_act <= 1.
    """
    return check(model, action, allowed, report, tau_esc, tau_act, costs, reviewer, fresh).guarded


def check(
    model: POMDP,
    action: str,
    allowed: str | Sequence[str],
    report: Mapping[str, Any],
    tau_esc: Any = FROM_COSTS,
    tau_act: Any = FROM_COSTS,
    costs: Costs | None = None,
    reviewer: Reviewer | None = None,
    fresh: bool = False,
) -> Check:
    """The arguments of `guard`, read for this model; `check(...).guarded` is `guard(...)`."""
    prices, judge = _exact(costs or Costs(), reviewer or PERFECT)
    rows: list[dict[Fraction, Fraction] | None] = [None] * model.num_states
    for pattern, given in report.items():
        row = _report(given, f"guard report[{pattern}]")
        for s in chosen_states(model, pattern):
            rows[s] = row if rows[s] is None else rows[s]
    over = Base(model).over
    missing = next((s for s, row in enumerate(rows) if row is None and s not in over), None)
    if missing is not None:
        raise ModelError(
            f"guard report has no row for state {model.states[missing]}; add one, or one for '*'"
        )
    return Check(
        model,
        model.action_index(action),
        frozenset(chosen_states(model, allowed)),
        tuple(row or {ZERO: ONE} for row in rows),
        _thresholds(tau_esc, tau_act, prices, judge),
        prices,
        judge,
        fresh,
    )


def _exact(costs: Costs, reviewer: Reviewer) -> tuple[Costs, Reviewer]:
    """Both in Fractions; ModelError naming the entry."""
    try:
        return costs.exact(), reviewer.exact()
    except GuardError as error:
        raise ModelError(str(error)) from None


def _thresholds(tau_esc: Any, tau_act: Any, costs: Costs, reviewer: Reviewer) -> Thresholds:
    """The thresholds given, "costs" standing for what the costs imply."""
    try:
        if FROM_COSTS in (tau_esc, tau_act):
            if not costs.wrong:
                raise ModelError(
                    "guard thresholds are to come from costs that let every call pass; give a cost wrong above 0, "
                    "such as 20, or tau_esc and tau_act"
                )
            best = thresholds(costs, reviewer)
            tau_esc = best.tau_esc if tau_esc == FROM_COSTS else tau_esc
            tau_act = best.tau_act if tau_act == FROM_COSTS else tau_act
        return Thresholds(None if tau_act == NEVER else tau_act, tau_esc)
    except GuardError as error:
        raise ModelError(f"guard: {error}") from None


def _report(given: Any, where: str) -> dict[Fraction, Fraction]:
    """The distribution of a report; one number is certain."""
    if not isinstance(given, Mapping):
        return {probability(given, where): ONE}
    row: dict[Fraction, Fraction] = {}
    for value, p in distribution(given, where).items():
        key = probability(value, where)
        row[key] = row.get(key, ZERO) + p
    return row


@dataclass(frozen=True)
class _Verdict:
    """Of one submission: probabilities of execution, rejection and escalation, and what it costs on average."""

    run: Fraction
    rejected: Fraction
    escalated: Fraction
    cost: Fraction
    rejection: Fraction  # the cost of a submission that is known to be rejected


@dataclass(frozen=True, eq=False)
class Check:
    """The check of one action of `model`, its numbers exact.

    `action`: its index; `good`: the states in which it is allowed; `reports` `[S]`: {p: probability} in each state.
    """

    model: POMDP
    action: int
    good: frozenset[int]
    reports: tuple[Mapping[Fraction, Fraction], ...]
    thresholds: Thresholds
    costs: Costs
    reviewer: Reviewer
    fresh: bool

    @cached_property
    def guarded(self) -> POMDP:
        """The reachable part of `kernel`: the guarded model."""
        return tabulate(self.kernel)

    @cached_property
    def over(self) -> frozenset[int]:
        """The states in which the run is over: nothing is checked there any more."""
        return self._base.over

    @cached_property
    def kernel(self) -> Kernel:
        """The joint kernel of the guarded model; its states are places (base state, answer held)."""
        base, checked, costs = self._base, self.action, self.costs
        verdicts = [self._verdict(s) for s in range(self.model.num_states)]

        def step(place: Place, a: int) -> Iterator[Outcome]:
            s, held = place
            if a != checked or s in base.over:
                for t, o, p in base.kernel.step(s, a):
                    yield (t, held if t not in base.over and self.alike(s, t) else None), o, p
                return
            if held is not None:
                yield place, held, ONE
                return
            verdict = verdicts[s]
            if verdict.run:
                yield from (((t, None), o, verdict.run * p) for t, o, p in base.kernel.step(s, a))
            yield (s, None if self.fresh else REJECTED), REJECTED, verdict.rejected
            yield (s, None if self.fresh else ESCALATED), ESCALATED, verdict.escalated

        def reward(place: Place, a: int) -> Fraction:
            s, held = place
            if a != checked or s in base.over:
                return base.kernel.reward(s, a)
            if held is not None:
                return -verdicts[s].rejection if held == REJECTED else -costs.escalate
            return verdicts[s].run * base.kernel.reward(s, a) - verdicts[s].cost

        def label(place: Place) -> str:
            name = self.model.states[place[0]]
            return name if place[1] is None else f"{name}/{self.model.actions[checked]}-{place[1]}"

        start = {(s, None): p for s, p in base.kernel.start.items()}
        return replace(base.kernel, start=start, step=step, reward=reward, label=label)

    def alike(self, s: int, t: int) -> bool:
        """Whether a call in state t meets the answer that one in state s has met."""
        return (s in self.good) == (t in self.good) and self.reports[s] == self.reports[t]

    @cached_property
    def _base(self) -> Base:
        return Base(self.model)

    def _verdict(self, s: int) -> _Verdict:
        """The three regions of the report in state s, averaged."""
        share = dict.fromkeys(Region, ZERO)
        for p, w in self.reports[s].items():
            share[region(p, self.thresholds)] += w
        good, ask, costs, judge = s in self.good, share[Region.ASK], self.costs, self.reviewer
        approves = 1 - judge.e1 if good else judge.e0
        run, rejected, escalated = (
            share[Region.ACT] + ask * approves,
            ask * (1 - approves),
            share[Region.ESCALATE],
        )
        price = judge.r if good else costs.miss
        cost = (
            ask * costs.ask
            + rejected * price
            + escalated * costs.escalate
            + (ZERO if good else run * costs.wrong)
        )
        return _Verdict(run, rejected, escalated, cost, costs.ask + price)
