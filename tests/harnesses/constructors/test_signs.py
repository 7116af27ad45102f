"""The signs of the first part of the attribution: what no constructor of a kind can do to V*, and the exceptions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import (
    call_budget,
    coarsen,
    deny,
    garble,
    malformed,
    merge,
    retry,
    select,
    stall,
    step_limit,
    timeout,
)
from pomdp.criterion import Criterion
from pomdp.exact_value import evaluate_exact
from pomdp.model import POMDP
from pomdp.policy import OpenLoop
from pomdp.testing import distributions, pomdps

ONE, THIRD = Fraction(1), Fraction(1, 3)
Constructor = Callable[[POMDP], POMDP]
models = pomdps(max_states=2, min_actions=2, max_actions=2, min_observations=2, max_observations=2)
discounts = st.sampled_from([Fraction(1, 2), ONE])

# Each never raises V* where charges are not negative and a run may end or pays nothing less than 0.
CONTROLS: dict[str, Constructor] = {
    "deny": lambda m: deny(m, "0"),
    "deny, charged": lambda m: deny(m, "0", 1),
    "timeout": lambda m: timeout(m, "0", THIRD, THIRD, THIRD),
    "timeout of all": lambda m: timeout(m, "*", THIRD, ONE),
    "malformed": lambda m: malformed(m, THIRD, THIRD),
    "malformed, hidden": lambda m: malformed(m, THIRD, visible=False),
    "step_limit": lambda m: step_limit(m, 2),
    "call_budget": lambda m: call_budget(m, 1, "0"),
    "stall": lambda m: stall(m, 1, 2),
}


@given(st.data(), discounts)
def test_fewer_actions_and_less_seen_never_help(oracle: Any, data: st.DataObject, discount: Fraction) -> None:
    """attribution: select, merge, coarsen and garble never raise V*, whatever the rewards."""
    model = data.draw(models)
    best = oracle.best(model, discount, 3)
    rows = {o: {str(k): p for k, p in data.draw(distributions(2)).items()} for o in model.observations}
    group = dict(zip(model.actions, (THIRD, 1 - THIRD), strict=True))
    for found in (
        select(model, "0"),
        merge(model, {"any": group}),
        coarsen(model, {"1": {"*": "0"}}),
        garble(model, {"*": rows}),
    ):
        assert oracle.best(found, discount, 3) <= best


@pytest.mark.parametrize("name", CONTROLS)
@given(model=models, discount=discounts)
def test_controls_never_help_where_rewards_are_not_negative(
    oracle: Any, name: str, model: POMDP, discount: Fraction
) -> None:
    """attribution: with R >= 0."""
    task = oracle.nonnegative(model)
    assert oracle.best(CONTROLS[name](task), discount, 3) <= oracle.best(task, discount, 3)


@pytest.mark.parametrize("name", CONTROLS)
@given(model=pomdps(max_states=2, min_actions=2, max_actions=2, max_observations=2), discount=discounts)
def test_controls_never_help_where_a_run_can_wait_and_finish(
    oracle: Any, name: str, model: POMDP, discount: Fraction
) -> None:
    """attribution: with a free `wait` and an absorbing `finish`, whatever the rewards."""
    task = oracle.leavable(model)
    assert oracle.best(CONTROLS[name](task), discount, 2) <= oracle.best(task, discount, 2)


@given(models, discounts)
def test_retrying_never_helps_beyond_a_tool_that_never_times_out(
    oracle: Any, model: POMDP, discount: Fraction
) -> None:
    """attribution, for retry: action 0 is made a second look, which changes nothing and may be repeated."""
    T = [[{s: 1} for s in range(model.num_states)], model.exact.T[1]]
    R = [[abs(model.exact.R.row(a).get(s, 0)) for s in range(model.num_states)] for a in range(2)]
    look = POMDP.build(
        states=model.states,
        actions=["0", "1"],
        observations=2,
        T=T,
        Z=model.exact.Z,
        R=R,
        start=model.exact.start,
    )
    best, timed = oracle.best(look, discount, 3), oracle.best(timeout(look, "0", THIRD), discount, 3)
    retried = oracle.best(retry(look, "0", 2, p=THIRD), discount, 3)
    assert timed <= retried <= best
    assert oracle.best(retry(look, "0", 2, p=THIRD, charge=1), discount, 3) <= retried


def treadmill() -> POMDP:
    """One state, one action, reward -1 a step, discount 9/10."""
    return POMDP.build(
        states=["s"],
        actions=["go"],
        observations=["-"],
        T=[[[1]]],
        Z=[[[1]]],
        R=[[-1]],
        discount="9/10",
        name="treadmill",
    )


def test_stopping_early_helps_where_every_step_costs() -> None:
    """attribution: without R >= 0 and without a way to finish, step_limit(2) lifts -10 to -1.9."""
    criterion = Criterion(Fraction(9, 10))
    go = OpenLoop((), (0,))
    assert evaluate_exact(treadmill(), go, criterion) == -10
    for limited in (step_limit(treadmill(), 2), call_budget(treadmill(), 2)):
        assert evaluate_exact(limited, go, criterion) == Fraction(-19, 10)
    assert evaluate_exact(stall(treadmill(), 1, 3), go, criterion) == Fraction(-19, 10)


@pytest.mark.parametrize("name", ["deny", "timeout", "malformed"])
def test_failing_helps_where_every_step_costs(oracle: Any, name: str) -> None:
    """attribution: a call that fails for less than it costs is a gain, if the model has no way to wait."""
    failing: dict[str, Constructor] = {
        "deny": lambda m: deny(m, "go"),
        "timeout": lambda m: timeout(m, "go", THIRD),
        "malformed": lambda m: malformed(m, THIRD),
    }
    assert oracle.best(failing[name](treadmill()), ONE, 3) > oracle.best(treadmill(), ONE, 3)
