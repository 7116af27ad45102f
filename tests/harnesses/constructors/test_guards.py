"""Gate and guard against their definitions, and the three-action rule that gives a guard its thresholds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import Costs, Reviewer, difference, gate, guard, timeout
from harnesses.constructors.catalogue import parse_part
from harnesses.constructors.guards import check
from harnesses.guard.region import Thresholds
from harnesses.guard.thresholds import thresholds
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import distributions, pomdps

ONE, HALF = Fraction(1), Fraction(1, 2)
models = pomdps(min_states=2, max_states=2, min_actions=2, max_actions=2, max_observations=2)
shares = st.sampled_from([Fraction(0), Fraction(1, 3), HALF, ONE])
charges = st.sampled_from([Fraction(0), HALF, Fraction(2)])
TAU_ESC, TAU_ACT = Fraction(1, 4), Fraction(3, 4)
REPORTS = (Fraction(0), TAU_ESC, HALF, TAU_ACT, ONE)  # both ties among them


@st.composite
def checks(draw: st.DrawFn) -> dict[str, Any]:
    """State 0 is allowed, state 1 is not; a report kernel, costs and a reviewer."""
    names = ("ask", "miss", "escalate", "wrong")
    return {
        "report": [{REPORTS[k]: p for k, p in draw(distributions(5)).items()} for _ in range(2)],
        "costs": {name: draw(charges) for name in names},
        "reviewer": {"e0": draw(shares), "e1": draw(shares), "r": draw(charges)},
        "fresh": draw(st.booleans()),
    }


def apply(model: POMDP, given: dict[str, Any]) -> POMDP:
    """The guard of action 0 with these arguments."""
    report = dict(zip(model.states, given["report"], strict=True))
    costs, reviewer = Costs(**given["costs"]), Reviewer(**given["reviewer"])
    return guard(model, "0", "0", report, TAU_ESC, TAU_ACT, costs, reviewer, given["fresh"])


def submissions(oracle: Any, model: POMDP, check: dict[str, Any]) -> Any:
    """Every answer with its probability and cost, spelt out; it is kept until the state changes, as permission does."""
    rules, over = oracle.rules(model), oracle.absorbing(model)
    costs, reviewer = check["costs"], check["reviewer"]

    def draws(s: int) -> Any:
        allowed = s == 0
        for p, w in check["report"][s].items():
            if p >= TAU_ACT:
                yield "run", w, 0 if allowed else costs["wrong"]
            elif p >= TAU_ESC:
                approve = 1 - reviewer["e1"] if allowed else reviewer["e0"]
                yield "run", w * approve, costs["ask"] + (0 if allowed else costs["wrong"])
                yield (
                    "rejected",
                    w * (1 - approve),
                    costs["ask"] + (reviewer["r"] if allowed else costs["miss"]),
                )
            else:
                yield "escalated", w, costs["escalate"]

    def answers(state: Any) -> Any:
        s, held = state
        if held is None:
            return list(draws(s))
        return [(held[0], ONE, held[1])]

    def step(state: Any, a: str) -> Any:
        s, held = state
        if a != "0" or s in over:
            yield from (((t, held if t == s else None), o, p) for t, o, p in rules.step(s, a))
            return
        for answer, w, cost in answers(state):
            if answer == "run":
                yield from (((t, None), o, w * p) for t, o, p in rules.step(s, a))
            else:
                yield (s, None if check["fresh"] else (answer, cost)), answer, w

    def reward(state: Any, a: str) -> Fraction:
        s, _ = state
        if a != "0" or s in over:
            return rules.reward(s, a)
        return sum(
            w * ((rules.reward(s, a) if answer == "run" else 0) - cost) for answer, w, cost in answers(state)
        )

    return oracle.Rules({(s, None): p for s, p in rules.start.items()}, rules.actions, step, reward)


@given(models, checks())
def test_a_guard_is_its_definition(oracle: Any, model: POMDP, check: dict[str, Any]) -> None:
    """Act at p >= tau_act, ask at p >= tau_esc, else escalate, ties included."""
    assert oracle.process(apply(model, check), 3) == oracle.process(submissions(oracle, model, check), 3)


@given(models, charges, charges, charges, shares, shares, st.booleans())
def test_a_gate_is_the_guard_that_always_asks(
    model: POMDP, ask: Fraction, miss: Fraction, r: Fraction, e0: Fraction, e1: Fraction, fresh: bool
) -> None:
    gated = gate(model, "0", "1", ask, miss, r, e0, e1, fresh=fresh)
    guarded = guard(model, "0", "0", {"*": HALF}, 0, 1, Costs(ask, miss), Reviewer(e0, e1, r), fresh)
    assert difference(gated, guarded) is None


@given(models)
def test_a_guard_that_always_acts_is_the_identity(model: POMDP) -> None:
    assert (
        difference(model, guard(model, "0", "0", {"*": "1/2"}, 0, HALF, Costs(1, 1, 1), Reviewer(1, 1, 1)))
        is None
    )


def test_a_perfect_gate_lifts_tiger(oracle: Any) -> None:
    """attribution: a gate adds information, so part 1 has no sign: 2.72 becomes 17.625 at h = 3."""
    tiger = task("tiger").model
    assert oracle.best(tiger, ONE, 3) == Fraction(272, 100)
    assert oracle.best(gate(tiger, "open-left", "tiger-left", HALF), ONE, 3) == Fraction(17625, 1000)


def test_asking_again_tells_nothing_unless_each_review_is_fresh(oracle: Any) -> None:
    """A reviewer who errs half of the time on allowed calls and never on others: a second rejection is evidence."""
    tiger = task("tiger").model
    frozen, fresh = (
        gate(tiger, "open-left", "tiger-left", ask="1/10", e1="1/2", fresh=fresh) for fresh in (False, True)
    )
    assert oracle.best(frozen, ONE, 3) < oracle.best(fresh, ONE, 3)
    again = frozen.state_index("tiger-right/open-left-rejected")
    (o,) = frozen.exact.Z[1].row(again)
    assert frozen.exact.T[1].row(again) == {again: 1} and frozen.observations[o] == "rejected"


def three_actions(w: Fraction, a: Fraction, s: Fraction, e: Fraction) -> tuple[Fraction, Fraction]:
    """(tau_esc, tau_act) by T1 of the design of the guard, collapse included; w > s."""
    act = min(ONE, e / w, a / (w - s))
    ask = Fraction(0) if a > e else (e - a) / s if s else ONE
    return 1 - max(act, min(ONE, ask)), 1 - act


@pytest.mark.parametrize("costs", [(20, "1/2", 4, 3), (4, "5/2", 2, 1), (20, "12/5", 4, 3), (5, 1, 0, 2)])
def test_thresholds_of_the_three_action_rule_are_best_for_every_report(costs: tuple[Any, ...]) -> None:
    """thresholds: no other pair of thresholds pays less for one call with a calibrated report, collapse included."""
    w, a, s, e = (Fraction(c) for c in costs)
    tau_esc, tau_act = three_actions(w, a, s, e)
    grid = [Fraction(k, 8) for k in range(9)] + [tau_esc, tau_act]
    for p in grid:
        model = POMDP.build(
            states=["good", "bad", "end"],
            actions=["send"],
            observations=["-"],
            T=[[{2: 1}, {2: 1}, {2: 1}]],
            Z=[[{0: 1}] * 3],
            R=[[0, 0, 0]],
            start={0: p, 1: 1 - p},
        )

        def pays(low: Fraction, high: Fraction, model: POMDP = model, p: Fraction = p) -> Fraction:
            found = guard(model, "send", "good", {"*": p}, low, high, Costs(a, s, e, w))
            return sum(
                (m * found.exact.R.row(0).get(i, 0) for i, m in found.exact.start.items()), Fraction(0)
            )

        ours = pays(tau_esc, tau_act)
        assert all(pays(low, high) <= ours for low in grid for high in grid if low <= high)


WILD = Reviewer(e1="1/2", r=10)
SEED = Costs(ask="1/2", miss=4, escalate=3, wrong=20)
HALVES = {"tiger-left": {"3/8": "1/3", "31/32": "2/3"}, "tiger-right": {"1/4": "1/2", 1: "1/2"}}


def test_thresholds_left_out_are_those_that_the_costs_imply() -> None:
    """T1 and T5: 3/8 and 31/32 for a perfect reviewer; either threshold may still be given."""
    tiger, arguments = task("tiger").model, ("open-left", "tiger-right", HALVES)
    low, high = Fraction(3, 8), Fraction(31, 32)
    assert check(tiger, *arguments, costs=SEED).thresholds == Thresholds(high, low)
    assert check(tiger, *arguments, tau_act=1, costs=SEED).thresholds == Thresholds(1, low)
    assert check(tiger, *arguments, tau_esc=0, costs=SEED).thresholds == Thresholds(high, 0)
    judge = Reviewer(e0="1/10")
    implied = check(tiger, *arguments, costs=SEED, reviewer=judge).thresholds
    assert implied == thresholds(SEED, judge) == Thresholds(Fraction(139, 144), Fraction(31, 56))
    part = parse_part(
        {"name": "guard", "action": "open-left", "allowed": "tiger-right", "report": HALVES}
        | {"costs": {"ask": "1/2", "miss": 4, "escalate": 3, "wrong": 20}}
    )
    assert "tau" not in part.text and parse_part(part.text) == part
    assert difference(part.apply(tiger), guard(tiger, *arguments, low, high, SEED)) is None


def test_a_guard_that_never_acts_asks_about_certain_calls_too() -> None:
    tiger = task("tiger").model
    never, nearly = (
        guard(tiger, "open-left", "tiger-right", HALVES, "3/8", tau, SEED) for tau in ("never", 1)
    )
    assert difference(never, guard(tiger, "open-left", "tiger-right", HALVES, "3/8", None, SEED)) is None
    assert difference(never, nearly) is not None
    table = {"name": "guard", "action": "open-left", "allowed": "tiger-right", "report": HALVES}
    part = parse_part(table | {"tau_esc": "3/8", "tau_act": "never", "costs": {"ask": "1/2"}})
    assert parse_part(part.text) == part and '"tau_act": "never"' in part.text


def test_states_are_meant_with_all_their_bookkeeping() -> None:
    timed = timeout(task("tiger").model, "open-*", "1/2")
    assert "tiger-left/timeout" in timed.states
    found = gate(timed, "open-left", "tiger-left", 1)
    a = found.action_index("open-left")
    asked = {
        name: found.exact.T[a].row(s) for s, name in enumerate(found.states) if name.startswith("tiger-left")
    }
    assert all(
        [found.states[t] for t in row] == [f"{name}/open-left-rejected"]
        for name, row in asked.items()
        if "rejected" not in name
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda m: gate(m, "fly", "tiger-left"), "no action 'fly'"),
        (lambda m: gate(m, "listen", "lion"), "no state matches 'lion'"),
        (lambda m: gate(m, "listen", "tiger-left", ask=-1), "cost ask is -1"),
        (lambda m: guard(m, "listen", "tiger-left", {"*": 1}, 1, 0), "tau_esc 1 is above tau_act 0"),
        (lambda m: guard(m, "listen", "tiger-left", {"*": 1}), "give a cost wrong above 0"),
        (lambda m: guard(m, "listen", "tiger-left", {"*": 1}, "never", 1), "tau_esc"),
        (lambda m: guard(m, "listen", "tiger-left", {"*": 1}, 0, 2), "tau_act is 2, not a probability"),
        (lambda m: gate(m, "listen", "tiger-left", e0=2), "reviewer e0 is 2, not a probability"),
        (
            lambda m: guard(m, "listen", "tiger-left", {"*": 1}, costs=Costs(0.5, 0, 1, 20), reviewer=WILD),
            "no two thresholds are optimal",
        ),
        (lambda m: guard(m, "listen", "tiger-left", {"tiger-left": 1}, 0, 1), "no row for state tiger-right"),
        (lambda m: guard(m, "listen", "tiger-left", {"*": {"1/2": "1/2"}}, 0, 1), "sums to 1/2, not 1"),
    ],
)
def test_wrong_arguments_are_named(wrong: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        wrong(task("tiger").model)
