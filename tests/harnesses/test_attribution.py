"""Attribution: the identity in exact rationals, the signs and where they fail, Shapley shares over all orders."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.attribution import (
    Attribution,
    attribute,
    changed_parts,
    interaction,
    mixed,
    rank_reversals,
    shapley,
)
from harnesses.case import Case, Effort
from harnesses.spec import parse_spec
from pomdp.interval import Interval
from pomdp.model import ModelError

EFFORT = Effort(seconds=10.0)
PARTS = ("tools_control_loop", "context", "model")


def case(**entries: object) -> Case:
    return Case(
        parse_spec({"task": "library:tiger", "horizon": 3, "discount": 1, "context": "last:1", **entries}),
        EFFORT,
    )


reals = st.floats(-50, 50, allow_nan=False)


def interval(pair: tuple[float, float]) -> Interval:
    return Interval(min(pair), max(pair))


@given(st.lists(st.tuples(reals, reals), min_size=4, max_size=4))
def test_parts_at_the_midpoints_sum_to_the_total_exactly(pairs: list[tuple[float, float]]) -> None:
    """attribution: the identity holds in rationals for any four base intervals."""
    found = Attribution(*(interval(pair) for pair in pairs))
    at = found.at_midpoints()
    assert at["total"] == sum(at[name] for name in PARTS)
    assert found.context.lower >= 0 and found.model.lower >= 0


def summed(found: Attribution) -> Interval:
    return found.tools_control_loop + found.context + found.model


def test_bounds_that_cross_by_their_width_still_sum_to_the_total() -> None:
    """attribution: for any intervals around J <= Vo <= V*(M_0), whichever end is above whichever."""
    rng = random.Random(3)
    for _ in range(2000):
        achieved, best, inner = sorted(rng.randint(-3, 3) for _ in range(3))
        task = rng.randint(-3, 3)
        ends = [
            Interval(float(v - rng.randint(0, 3)), float(v + rng.randint(0, 3)))
            for v in (task, inner, best, achieved)
        ]
        stub = SimpleNamespace(
            task=SimpleNamespace(interval=ends[0]),
            inner=SimpleNamespace(interval=ends[1]),
            best=SimpleNamespace(interval=ends[2]),
            achieved=ends[3],
        )
        found = attribute(stub)  # type: ignore[arg-type]
        total = summed(found)
        assert total.lower <= found.total.lower and found.total.upper <= total.upper, ends
        assert found.total.contains(float(task - achieved)), ends
        assert found.context.contains(float(inner - best)) and found.model.contains(float(best - achieved)), (
            ends
        )


SPECS: dict[str, dict[str, object]] = {
    "plain": {},
    "whole": {"context": "full"},
    "naive": {"model": "naive"},
    "timeout": {"control": ["timeout:*:1/10"], "model": "bayes"},
    "select": {"tools": ["select:listen,open-left"], "model": {"kind": "bayes", "temperature": 1}},
    "malformed": {"loop": ["malformed:1/10"], "model": "random"},
}


@pytest.mark.parametrize("which", SPECS)
def test_the_sum_of_the_parts_holds_the_interval_of_the_total(which: str) -> None:
    """attribution: interval sums contain the total's interval; parts 2 and 3 are never negative."""
    one = case(**SPECS[which])
    found = attribute(one)
    total = summed(found)
    assert total.lower <= found.total.lower and found.total.upper <= total.upper
    assert min(found.context.lower, found.model.lower) >= 0
    assert found.stateless.upper <= found.inner.upper and found.achieved.upper <= found.stateless.upper
    at = found.at_midpoints()
    assert at["total"] == sum(at[name] for name in PARTS)
    assert found.json()["midpoints"] == {name: float(value) for name, value in at.items()}


def test_what_windows_cost_on_the_tiger() -> None:
    """Horizon 3: nothing is lost with all pairs in view; without the doors 2.72 falls to -3."""
    whole = attribute(case(context="full"))
    for part in (whole.tools_control_loop, whole.context, whole.model, whole.total):
        assert part.upper == pytest.approx(0, abs=1e-6)
    assert whole.task.contains(Fraction(68, 25)) and whole.certified
    listen = attribute(case(tools=["select:listen"]))
    assert listen.tools_control_loop.lower == pytest.approx(5.72, abs=1e-6)
    assert listen.context.upper == pytest.approx(0, abs=1e-6)
    said: list[str] = []
    attribute(case(), said.append)
    assert len(said) == 4


def test_stopping_early_helps_where_all_rewards_are_losses() -> None:
    """attribution: no sign for budgets without R >= 0: -1 a step, gamma 9/10, step_limit(2): -10 becomes -1.9."""
    folder_task = {
        "task": "library:tiger",
        "context": "last:1",
        "discount": "9/10",
        "tools": ["select:listen"],
    }
    plain = Case(parse_spec(folder_task), EFFORT)
    limited = Case(parse_spec({**folder_task, "control": ["step_limit:2"]}), EFFORT)
    assert plain.inner.interval.contains(Fraction(-10))
    assert limited.inner.interval.upper == pytest.approx(-1.9, abs=1e-6)


def test_a_perfect_gate_adds_information_and_has_no_sign() -> None:
    """attribution: ask 1/2, miss 0, on opening the left door at h = 3 lifts 2.72 to 17.625."""
    gated = case(control=[{"name": "gate", "action": "open-left", "bad": "tiger-left", "ask": "1/2"}])
    found = attribute(gated)
    assert found.inner.lower == pytest.approx(17.625, abs=1e-6)
    assert found.tools_control_loop.upper < 0


def test_an_error_that_costs_nothing_is_a_free_wait_for_a_fixed_model() -> None:
    """attribution: `select` loses its sign where a model may try what is not exposed and R < 0: the error is free."""
    rules = {"kind": "rules", "otherwise": "open-left"}
    found = attribute(case(tools=["select:listen"], model=rules, horizon=1))
    assert found.inner.lower == pytest.approx(0, abs=1e-9) and found.task.contains(Fraction(-1))
    assert found.tools_control_loop.upper < 0


# Gains of sets of players, with an interaction that no sum of single gains explains.
games = st.integers(1, 4).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(-9, 9), min_size=2**n, max_size=2**n))
)


def value_of(n: int, table: list[int], taken: frozenset) -> Fraction:
    return Fraction(table[sum(1 << i for i in range(n) if i in taken)])


@given(games)
def test_shapley_shares_are_mean_gains_over_all_orders_and_sum_to_the_difference(
    game: tuple[int, list[int]],
) -> None:
    n, table = game
    shares = shapley(lambda taken: value_of(n, table, taken), range(n))
    orders = list(itertools.permutations(range(n)))
    for player in range(n):
        gains = [
            value_of(n, table, before | {player}) - value_of(n, table, before)
            for order in orders
            for before in [frozenset(order[: order.index(player)])]
        ]
        assert shares[player] == sum(gains, Fraction(0)) / len(orders)
    assert sum(shares.values()) == table[-1] - table[0]


def test_equal_players_share_alike_and_one_who_adds_nothing_has_nothing() -> None:
    shares = shapley(lambda taken: Fraction(len(taken & {"a", "b"}) == 2), ("a", "b", "dummy"))
    assert shares == {"a": Fraction(1, 2), "b": Fraction(1, 2), "dummy": 0}
    assert shapley(lambda taken: Fraction(7), ()) == {}
    with pytest.raises(ModelError, match="12"):
        shapley(lambda taken: Fraction(0), range(13))


def test_changed_parts_are_swapped_one_by_one() -> None:
    one, other = case().spec.harness, case(context="last:2", loop=["malformed:1/2"]).spec.harness
    assert changed_parts(one, other) == ("loop", "context")
    assert changed_parts(one, one) == ()
    half = mixed(one, other, ["loop"])
    assert (half.loop, half.context) == (other.loop, one.context)
    assert mixed(one, other, ["loop", "context"]).json() == other.json()


def test_interaction_is_the_difference_of_differences() -> None:
    returns = np.array([[1.0, 2.0, 5.0], [1.0, 4.0, 5.0]])
    assert interaction(returns).tolist() == [[2.0, 0.0]]


def test_ranks_reverse_only_where_both_differences_are_sure() -> None:
    low, mid, high = Interval(0, 1), Interval(0.5, 2), Interval(3, 4)
    assert rank_reversals([[low, high], [high, low]]) == [(1, 0, 0, 1)]
    assert rank_reversals([[high, low], [low, high]]) == [(0, 1, 0, 1)]
    assert rank_reversals([[low, high], [mid, low]]) == []
    assert rank_reversals([[low, low], [high, high]]) == []
    assert rank_reversals([[low, high, low], [high, low, high]]) == [(1, 0, 0, 1), (0, 1, 1, 2)]
