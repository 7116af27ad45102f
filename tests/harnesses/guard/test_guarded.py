"""Guarded tasks: exact numbers against every history, against the constructor's J, and the theorems on their law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors.guards import Check, check
from harnesses.guard.bounds import share_bound, uar_bound
from harnesses.guard.costs import Costs, Reviewer
from harnesses.guard.guarded import Guarded
from harnesses.guard.region import GuardError, Region, Thresholds
from pomdp.criterion import Criterion
from pomdp.exact_value import evaluate_exact
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.policy import AlphaVectors, Controller, OpenLoop, Policy, as_controller
from pomdp.testing import controllers, criteria, distributions, open_loops, pomdps, reactives

ZERO, ONE = Fraction(0), Fraction(1)
TAU_ESC, TAU_ACT = Fraction(1, 4), Fraction(3, 4)
REPORTS = (ZERO, TAU_ESC, Fraction(1, 2), TAU_ACT, ONE)  # both ties among them
shares = st.sampled_from([ZERO, Fraction(1, 3), ONE])
charges = st.sampled_from([ZERO, Fraction(1, 2), Fraction(2), Fraction(5)])
models = pomdps(min_states=2, max_states=3, min_actions=2, max_actions=2, max_observations=2)


@st.composite
def checks(draw: st.DrawFn) -> Check:
    """The guard of action 0 of a small model; its first state, or two of them, allowed."""
    model = draw(models)
    report = {s: {REPORTS[k]: p for k, p in draw(distributions(5)).items()} for s in model.states}
    if draw(st.booleans()):
        report["1"] = report["0"]  # answers are kept between states that look alike
    return check(
        model,
        "0",
        draw(st.sampled_from([("0",), ("0", "1")])),
        report,
        TAU_ESC,
        draw(st.sampled_from([TAU_ACT, None])),
        Costs(*(draw(charges) for _ in range(4))),
        Reviewer(draw(shares), draw(shares), draw(charges)),
        draw(st.booleans()),
    )


def policies(model: POMDP) -> st.SearchStrategy[Policy]:
    """Any policy of finite memory."""
    return st.one_of(controllers(model, max_memory=2), reactives(model), open_loops(model))


@dataclass
class Histories:
    """Every history of a guarded task with its probability, spelt out from the definition, without the kernel."""

    given: Check
    controller: Controller
    discount: Fraction
    horizon: int
    judged: Counter[Any] = field(default_factory=Counter)
    repeated: Counter[Any] = field(default_factory=Counter)
    cost: Fraction = ZERO
    value: Fraction = ZERO

    def __post_init__(self) -> None:
        model = self.given.model
        self.over = {s for s in range(model.num_states) if self._earns_nothing(s)}
        for s, p in model.exact.start.items():
            self._go(0, p, self.controller.start, s, None)

    def _earns_nothing(self, s: int) -> bool:
        model, seen, todo = self.given.model, {s}, [s]
        while todo:
            t = todo.pop()
            for a in range(model.num_actions):
                if model.exact.R.row(a).get(t, 0):
                    return False
                todo += [u for u in model.exact.T[a].row(t) if u not in seen]
                seen |= set(model.exact.T[a].row(t))
        return True

    def _go(self, t: int, mass: Fraction, k: int, s: int, held: Any) -> None:
        if t == self.horizon or not mass:
            return
        row = [Fraction(repr(float(x))) for x in self.controller.act[k]]
        for a, weight in enumerate(row):
            if weight:
                self._act(t, mass * weight / sum(row), k, s, held, a)

    def _act(self, t: int, mass: Fraction, k: int, s: int, held: Any, a: int) -> None:
        names = self.given.guarded.observations
        if a != self.given.action or s in self.over:
            self.value += self.discount**t * mass * self._reward(s, a)
            for u, o, p in self._base(s, a):
                same = u not in self.over and self._looks(u) == self._looks(s)
                after = int(self.controller.successor[k, a, names.index(o)])
                self._go(t + 1, mass * p, after, u, held if same else None)
            return
        y = int(s in self.given.good)
        for answer, p, cost, report in [(held[0], ONE, held[1], None)] if held else self._answers(s):
            if report is None:
                self.repeated[answer, y] += mass * p
            else:
                self.judged[report, y] += mass * p
            self.cost += self.discount**t * mass * p * cost
            self.value -= self.discount**t * mass * p * cost
            if answer != "run":
                if not p:
                    continue
                after = int(self.controller.successor[k, a, names.index(answer)])
                self._go(t + 1, mass * p, after, s, None if self.given.fresh else (answer, cost))
                continue
            self.value += self.discount**t * mass * p * self._reward(s, a)
            for u, o, q in self._base(s, a):
                self._go(t + 1, mass * p * q, int(self.controller.successor[k, a, names.index(o)]), u, None)

    def _answers(self, s: int) -> Iterator[tuple[str, Fraction, Fraction, Fraction]]:
        costs, judge, allowed = self.given.costs, self.given.reviewer, s in self.given.good
        wrong = ZERO if allowed else costs.wrong
        for p, w in self.given.reports[s].items():
            if self.given.thresholds.tau_act is not None and p >= self.given.thresholds.tau_act:
                yield "run", w, wrong, p
            elif p >= self.given.thresholds.tau_esc:
                approve = 1 - judge.e1 if allowed else judge.e0
                yield "run", w * approve, costs.ask + wrong, p
                yield "rejected", w * (1 - approve), costs.ask + (judge.r if allowed else costs.miss), p
            else:
                yield "escalated", w, costs.escalate, p

    def _looks(self, s: int) -> Any:
        return s in self.given.good, sorted(self.given.reports[s].items())

    def _reward(self, s: int, a: int) -> Fraction:
        return self.given.model.exact.R.row(a).get(s, ZERO)

    def _base(self, s: int, a: int) -> Iterator[tuple[int, str, Fraction]]:
        model = self.given.model
        for t, p in model.exact.T[a].row(s).items():
            for o, q in model.exact.Z[a].row(t).items():
                yield t, model.observations[o], p * q


@given(st.data())
def test_numbers_are_those_of_every_history(data: st.DataObject) -> None:
    """Brute force in Fractions: submissions by report and label, repeats, cost, J with and without the guard."""
    given = data.draw(checks())
    policy = data.draw(policies(given.guarded))
    criterion = data.draw(criteria(max_horizon=3, discounted=False))
    found = Guarded.of(given, policy, criterion)
    assert criterion.horizon is not None
    controller = as_controller(policy, given.guarded, criterion.horizon)
    brute = Histories(given, controller, criterion.discount, criterion.horizon)
    assert {k: n for k, n in found.counted.judged.items() if n} == {
        k: n for k, n in brute.judged.items() if n
    }
    answers = {"rejected": Region.ASK, "escalated": Region.ESCALATE}
    assert found.counted.repeated == {(answers[a], y): n for (a, y), n in brute.repeated.items() if n}
    assert (found.cost, found.value) == (brute.cost, brute.value)
    assert found.earned == brute.value + brute.cost


@given(st.data())
def test_j_is_that_of_the_constructor(data: st.DataObject) -> None:
    """J from regions and prices equals J on the constructor's POMDP, with a horizon and without."""
    given = data.draw(checks())
    policy, criterion = data.draw(policies(given.guarded)), data.draw(criteria())
    assert Guarded.of(given, policy, criterion).value == evaluate_exact(given.guarded, policy, criterion)


@given(st.data())
def test_without_a_horizon_step_t_counts_discount_to_the_t(data: st.DataObject) -> None:
    """The discounted numbers of 12 steps lie below by at most the rest, discount^12 / (1 - discount)."""
    given = data.draw(checks())
    policy, half = data.draw(policies(given.guarded)), Fraction(1, 2)
    endless = Guarded.of(given, policy, Criterion(half)).counted.judged
    cut = Guarded.of(given, policy, Criterion(half, 12)).paid.judged
    assert sum(endless.values()) <= 2
    for key in endless.keys() | cut.keys():
        assert 0 <= endless.get(key, 0) - cut.get(key, 0) <= half**11


@given(st.data())
def test_rates_are_those_of_the_law(data: st.DataObject) -> None:
    """Share, UAR, held back and the cost of judged submissions, by regions here and by atoms in FiniteGuard."""
    given = data.draw(checks())
    criterion = Criterion(ONE, data.draw(st.integers(1, 3)))
    found = Guarded.of(given, data.draw(policies(given.guarded)), criterion)
    if not found.submissions:
        assert found.share is found.uar is found.held_back is None
        return
    tau = given.thresholds.tau_act
    rates = found.law.share(tau), found.law.uar(tau), found.law.held_back(tau)
    assert (found.share, found.uar, found.held_back) == rates
    per_call = found.law.cost(given.thresholds, given.costs, given.reviewer)
    if not found.counted.repeated:
        assert found.cost == found.submissions * per_call
    assert found.questions == found.submissions * found.law.asked(given.thresholds) + sum(
        n for (kind, _), n in found.counted.repeated.items() if kind is Region.ASK
    )


def calibrated(model: POMDP, cells: list[int], off: Fraction = ZERO) -> Check:
    """State 0 alone allowed; each state reports the mean label of its cell under the start, plus `off`."""
    start = model.exact.start
    mass = [sum((start.get(t, ZERO) for t in range(len(cells)) if cells[t] == c), ZERO) for c in cells]
    allowed = [start.get(0, ZERO) if cells[0] == c else ZERO for c in cells]
    report = {s: min(ONE, allowed[i] / mass[i] + off) if mass[i] else ONE for i, s in enumerate(model.states)}
    return check(model, model.actions[0], model.states[0], report, TAU_ESC, TAU_ACT)


@given(
    st.data(),
    pomdps(min_states=3, max_states=4, min_actions=2, max_actions=2, max_observations=2, density="dense"),
)
def test_calibrated_submissions_satisfy_the_bounds(data: st.DataObject, model: POMDP) -> None:
    """T2, T3: with reports calibrated on what is submitted, share <= 1 - tau and UAR <= (1 - tau) m / pi0."""
    cells = [data.draw(st.integers(0, 1)) for _ in model.states]
    given = calibrated(model, cells)
    found = Guarded.of(given, OpenLoop((0,), ()), Criterion(ONE, 1))
    if not found.submissions:  # where no reward is given the run is over at once
        return
    law = found.law
    assert law.is_calibrated
    for tau in (TAU_ACT, *law.reports):
        assert share_bound(law, tau).holds and (law.share(tau) is None or law.share(tau) <= 1 - tau)
        assert uar_bound(law, tau).applies and uar_bound(law, tau).holds


def test_an_overconfident_guard_breaks_one_minus_tau() -> None:
    """T2 without calibration: reports 1/4 too high act on half of the disallowed calls; the bound with error holds."""
    tiger = task("tiger").model
    given = calibrated(tiger, [0, 0], off=Fraction(1, 4))
    law = Guarded.of(given, OpenLoop((0,), ()), Criterion(ONE, 1)).law
    assert law.law == {(TAU_ACT, 1): Fraction(1, 2), (TAU_ACT, 0): Fraction(1, 2)}
    assert law.share(TAU_ACT) == Fraction(1, 2) > 1 - TAU_ACT
    assert share_bound(law, TAU_ACT).holds and share_bound(law, TAU_ACT).bound == Fraction(1, 2)
    assert not uar_bound(law, TAU_ACT).applies


def opener(found: Check, after: str) -> Controller:
    """Tiger: listen once; open the left door if `after` was heard, else listen for ever."""
    model = found.guarded
    listen, left = model.action_index("listen"), model.action_index("open-left")
    act = np.eye(model.num_actions)[[listen, left, listen]]
    successor = np.full((3, model.num_actions, model.num_observations), 2)
    successor[0, listen, model.observation_index(after)] = 1
    return Controller(act, successor)


def test_calibration_is_of_a_policys_submissions() -> None:
    """Reports calibrated for whoever opens at once are wrong for one who listened, and overconfident if fooled."""
    low, high = Fraction(1, 5), Fraction(4, 5)
    report = {"tiger-left": {high: low, low: high}, "tiger-right": {high: high, low: low}}
    given = check(task("tiger").model, "open-left", "tiger-right", report, low, high)
    at_once = Guarded.of(
        given, OpenLoop((given.guarded.action_index("open-left"),), ()), Criterion(ONE, 1)
    ).law
    assert at_once.is_calibrated and at_once.share(high) == low
    wise, fooled = (
        Guarded.of(given, opener(given, heard), Criterion(ONE, 2)).law
        for heard in ("tiger-right", "tiger-left")
    )
    assert wise.eta(high) == Fraction(68, 71) and wise.share(high) == Fraction(3, 71)
    assert fooled.eta(high) == Fraction(12, 29) and fooled.share(high) == Fraction(17, 29) > 1 - high
    assert all(share_bound(law, high).holds for law in (at_once, wise, fooled))


def test_tiger_with_a_guarded_door_by_hand() -> None:
    """Two openings in a row at the source's costs: the second meets the held answer, or a new tiger."""
    report = {"tiger-right": {1: "1/2", "1/4": "1/2"}, "tiger-left": {"1/2": 1}}
    costs = Costs(ask="1/2", miss=4, escalate=3, wrong=20)
    given = check(task("tiger").model, "open-left", "tiger-right", report, costs=costs)
    assert given.thresholds == Thresholds("31/32", "3/8")
    left = given.guarded.action_index("open-left")
    found = Guarded.of(given, OpenLoop((left, left), ()), Criterion(ONE, 2))
    # Allowed (1/2): acts half of the time and starts anew, else escalates, held. Disallowed: asked, rejected, held.
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    assert found.regions == {
        (Region.ACT, 1): quarter + quarter * quarter,
        (Region.ACT, 0): 0,
        (Region.ASK, 1): 0,
        (Region.ASK, 0): half + quarter * half,
        (Region.ESCALATE, 1): quarter + quarter * quarter,
        (Region.ESCALATE, 0): 0,
    }
    assert found.counted.repeated == {(Region.ESCALATE, 1): quarter, (Region.ASK, 0): half}
    assert found.questions == half + quarter * half + half
    assert found.cost == Fraction(9, 2) * found.questions + 3 * (quarter + quarter * quarter + quarter)
    assert found.earned == 10 * (quarter + quarter * quarter)
    assert (found.share, found.uar, found.held_back) == (0, 0, half)


def test_what_is_undefined_or_unfit_is_said() -> None:
    given = check(task("tiger").model, "open-left", "tiger-right", {"*": "1/2"}, 0, 1)
    listen = OpenLoop((), (given.guarded.action_index("listen"),))
    found = Guarded.of(given, listen, Criterion(Fraction(1, 2)))
    assert found.submissions == found.cost == 0 and found.earned == -2
    assert found.share is found.uar is found.held_back is None
    with pytest.raises(GuardError, match="never submits open-left"):
        _ = found.law
    with pytest.raises(ModelError, match="remember a belief"):
        vectors = AlphaVectors(np.zeros((1, given.guarded.num_states)), np.array([0]))
        Guarded.of(given, vectors, Criterion(ONE, 1))
    plan = OpenLoop((0,) * 600, (0,))
    with pytest.raises(GuardError, match="more than 1000 pairs"):
        Guarded.of(given, plan, Criterion(Fraction(1, 2)))
