"""Gate and guard: a call that is checked before it is executed; imports base.

A guard reads a report p, the probability that the call is allowed, and acts, asks a reviewer or escalates. A gate
is the guard that always asks. Source: M14 Eq. 4, with the thresholds of the design of the guard, T1 and T5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harnesses.constructors.base import (
    ONE,
    ZERO,
    Base,
    charge_of,
    chosen_states,
    distribution,
    probability,
)
from harnesses.kernel import Outcome
from pomdp.model import POMDP, ModelError

REJECTED, ESCALATED = "rejected", "escalated"


@dataclass(frozen=True)
class Costs:
    """What a checked call costs beside its reward: `ask` a review, `miss` a disallowed call rejected, `escalate`.

    `wrong` is paid where a disallowed call is executed; 0 where R(s,a) says already what that costs.
    """

    ask: Any = 0
    miss: Any = 0
    escalate: Any = 0
    wrong: Any = 0


@dataclass(frozen=True)
class Reviewer:
    """Approves a disallowed call with probability `e0`, rejects an allowed one with `e1`, at cost `r`."""

    e0: Any = 0
    e1: Any = 0
    r: Any = 0


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
    good = [s for s in range(model.num_states) if s not in set(chosen_states(model, bad))]
    return _checked(
        model,
        action,
        frozenset(good),
        [{ZERO: ONE}] * model.num_states,
        (ZERO, ONE),
        Costs(ask, miss),
        Reviewer(e0, e1, r),
        fresh,
    )


def guard(
    model: POMDP,
    action: str,
    allowed: str | Sequence[str],
    report: Mapping[str, Any],
    tau_esc: Any,
    tau_act: Any,
    costs: Costs | None = None,
    reviewer: Reviewer | None = None,
    fresh: bool = False,
) -> POMDP:
    """A report p ~ G(.|s) decides on each call of `action`: act if p >= tau_act, ask if p >= tau_esc, else escalate.

    `allowed`: the states in which the call is allowed. `report`: {state pattern: p or {p: probability}}, the first
    pattern that matches a state counts. Acting executes the call; asking is `gate`; escalating leaves the state, shows
    `escalated` and pays for it. After a rejection or an escalation the same answer, at the same cost, meets every
    resubmission until the state comes to have another report or permission; with `fresh` each is judged anew, and
    then asking again tells the model about the state. Raises ModelError unless 0 <= tau_esc <= tau_act <= 1.
    """
    low, high = probability(tau_esc, "guard tau_esc"), probability(tau_act, "guard tau_act")
    if low > high:
        raise ModelError(
            f"guard tau_esc {low} is above tau_act {high}; where asking never pays they are equal"
        )
    rows: list[dict[Fraction, Fraction] | None] = [None] * model.num_states
    for pattern, given in report.items():
        row = _report(given, f"guard report[{pattern}]")
        for s in chosen_states(model, pattern):
            rows[s] = row if rows[s] is None else rows[s]
    base = Base(model)
    missing = next((s for s, row in enumerate(rows) if row is None and s not in base.over), None)
    if missing is not None:
        raise ModelError(
            f"guard report has no row for state {model.states[missing]}; add one, or one for '*'"
        )
    good = frozenset(chosen_states(model, allowed))
    reports = [row or {ZERO: ONE} for row in rows]
    return _checked(
        model, action, good, reports, (low, high), costs or Costs(), reviewer or Reviewer(), fresh
    )


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
class _Verdicts:
    """Of one submission: probabilities of execution, rejection and escalation, and what it costs on average."""

    run: Fraction
    rejected: Fraction
    escalated: Fraction
    cost: Fraction
    rejection: Fraction  # the cost of a submission that is known to be rejected


def _verdicts(
    report: Mapping[Fraction, Fraction],
    good: bool,
    taus: tuple[Fraction, Fraction],
    costs: Costs,
    reviewer: Reviewer,
) -> _Verdicts:
    """The three regions of the report, averaged."""
    act = sum((w for p, w in report.items() if p >= taus[1]), ZERO)
    ask = sum((w for p, w in report.items() if taus[0] <= p < taus[1]), ZERO)
    approves = 1 - reviewer.e1 if good else reviewer.e0
    run, rejected, escalated = act + ask * approves, ask * (1 - approves), 1 - act - ask
    price = reviewer.r if good else costs.miss
    cost = (
        ask * costs.ask
        + rejected * price
        + escalated * costs.escalate
        + (ZERO if good else run * costs.wrong)
    )
    return _Verdicts(run, rejected, escalated, cost, costs.ask + price)


def _checked(
    model: POMDP,
    action: str,
    good: frozenset[int],
    reports: Sequence[Mapping[Fraction, Fraction]],
    taus: tuple[Fraction, Fraction],
    given: Costs,
    judge: Reviewer,
    fresh: bool,
) -> POMDP:
    """States are (base state, the answer that a resubmission would meet, or None)."""
    base, checked = Base(model), model.action_index(action)
    costs = Costs(
        *(charge_of(getattr(given, name), f"cost {name}") for name in ("ask", "miss", "escalate", "wrong"))
    )
    reviewer = Reviewer(
        probability(judge.e0, "reviewer e0"),
        probability(judge.e1, "reviewer e1"),
        charge_of(judge.r, "reviewer r"),
    )
    verdicts = [_verdicts(reports[s], s in good, taus, costs, reviewer) for s in range(model.num_states)]

    def alike(s: int, t: int) -> bool:
        return (s in good) == (t in good) and reports[s] == reports[t]

    def step(state: tuple[int, str | None], a: int) -> Iterator[Outcome]:
        s, held = state
        if a != checked or s in base.over:
            for t, o, p in base.kernel.step(s, a):
                yield (t, held if t not in base.over and alike(s, t) else None), o, p
            return
        if held is not None:
            yield state, held, ONE
            return
        verdict = verdicts[s]
        if verdict.run:
            yield from (((t, None), o, verdict.run * p) for t, o, p in base.kernel.step(s, a))
        yield (s, None if fresh else REJECTED), REJECTED, verdict.rejected
        yield (s, None if fresh else ESCALATED), ESCALATED, verdict.escalated

    def reward(state: tuple[int, str | None], a: int) -> Fraction:
        s, held = state
        if a != checked or s in base.over:
            return base.kernel.reward(s, a)
        if held is not None:
            return -verdicts[s].rejection if held == REJECTED else -costs.escalate
        return verdicts[s].run * base.kernel.reward(s, a) - verdicts[s].cost

    def label(state: tuple[int, str | None]) -> str:
        name = model.states[state[0]]
        return name if state[1] is None else f"{name}/{action}-{state[1]}"

    return base.build(step, reward, start={(s, None): p for s, p in base.kernel.start.items()}, label=label)
