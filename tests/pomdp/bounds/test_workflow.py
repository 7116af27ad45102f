"""W_N, the best workflow that branches at named observations, against every policy that sees no others."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pomdp.bounds import feedback, solve, solve_open_loop
from pomdp.bounds.workflow import branching, solve_workflow
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

TINY = {"max_states": 3, "min_actions": 2, "max_actions": 2, "min_observations": 2, "max_observations": 3}
TIGHT = {"gap": 1e-9, "time_limit": 10.0}


def best_drawn(model: POMDP, named: tuple[str, ...], discount: Fraction, steps: int) -> Fraction:
    """The best W_N by trying every map from what the workflow has seen to an action, on the model itself."""
    seen = [name if name in named else None for name in model.observations]
    symbols = list(dict.fromkeys(seen))
    places = list(chain.from_iterable(product(symbols, repeat=t) for t in range(steps)))
    plans = product(range(model.num_actions), repeat=len(places))
    return max(drawn_return(model, dict(zip(places, plan)), seen, discount, steps) for plan in plans)


def drawn_return(model: POMDP, plan: dict, seen: list, discount: Fraction, steps: int) -> Fraction:
    """The expected return of one drawn workflow, forward over the joint distribution of state and what it saw."""
    exact = model.exact
    now = {(s, ()): p for s, p in exact.start.items()}
    total = Fraction(0)
    for t in range(steps):
        following: dict = {}
        for (s, path), p in now.items():
            a = plan[path]
            total += discount**t * p * exact.R.row(a).get(s, 0)
            for n, q in exact.T[a].row(s).items():
                for o, z in exact.Z[a].row(n).items():
                    key = n, (*path, seen[o])
                    following[key] = following.get(key, Fraction(0)) + p * q * z
        now = following
    return total


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(names, k) for k in range(len(names) + 1)))


@settings(max_examples=15)
@given(st.data())
def test_the_interval_holds_the_best_of_all_drawn_workflows(data):
    model = data.draw(pomdps(**TINY))
    named = data.draw(st.sampled_from(subsets(model.observations)))
    discount, steps = data.draw(st.sampled_from((Fraction(9, 10), Fraction(1)))), 2
    found = solve_workflow(model, Criterion(discount, steps), named, **TIGHT)
    best = best_drawn(model, named, discount, steps)
    assert found.interval.contains(best) and found.interval.width < 1e-8 and found.certified


@settings(max_examples=4)
@given(pomdps(**TINY | {"max_observations": 2}))
def test_so_it_does_over_three_steps(model):
    for named in subsets(model.observations):
        found = solve_workflow(model, Criterion(Fraction(1), 3), named, **TIGHT)
        assert found.interval.contains(best_drawn(model, named, Fraction(1), 3))


@settings(max_examples=12)
@given(st.data())
def test_more_branches_are_never_worse_and_lie_between_w_and_the_optimum(data):
    """Monotone in N; W where nothing is named and V* where all is. Values from the recursion, not the solver."""
    model = data.draw(pomdps(max_states=3, max_actions=2, min_observations=2, max_observations=3))
    criterion = Criterion(data.draw(st.sampled_from((Fraction(9, 10), Fraction(1)))), 3)
    found = {
        frozenset(named): solve_workflow(model, criterion, named, **TIGHT).interval
        for named in subsets(model.observations)
    }
    both = feedback(model, criterion, **TIGHT)
    assert found[frozenset()].meets(both.open_loop)
    assert found[frozenset(model.observations)].meets(both.optimal)
    for few, low in found.items():
        for many, high in found.items():
            if few <= many:
                assert low.lower <= high.upper


@settings(max_examples=6)
@given(pomdps(max_states=3, max_actions=2, min_observations=2, max_observations=2, discount=Fraction(1, 2)))
def test_discounted_for_ever_the_ends_are_the_open_and_the_closed_loop(model):
    criterion = Criterion.of(model)
    effort = {"gap": 1e-5, "time_limit": 10.0}
    none = solve_workflow(model, criterion, (), **effort).interval
    one = solve_workflow(model, criterion, model.observations[:1], **effort).interval
    every = solve_workflow(model, criterion, model.observations, **effort).interval
    assert none.meets(solve_open_loop(model, criterion, **effort).interval)
    assert every.meets(solve(model, criterion, **effort).interval)
    # Two observations of which one is named are told apart.
    assert one.meets(every)


def test_a_workflow_that_branches_at_test_results_alone_guesses_the_cause():
    """Two places, two causes: knowing the place leaves an even guess, 1/2 - 2c, between W = 1/5 and V* = 17/20."""
    repair = task("repo_repair")
    criterion = Criterion.of(repair.model, horizon=repair.horizon)
    at = {
        named: solve_workflow(repair.model, criterion, named, **TIGHT).interval
        for named in ((), ("fails-in-0",), ("fails-in-0", "fails-in-1"), ("fails-in-0", "cause-0"))
    }
    assert [at[n].contains(Fraction(v)) for n, v in zip(at, ("1/5", "2/5", "2/5", "17/20"))] == [True] * 4


def test_a_lookup_table_drawn_beforehand_makes_ticket_routing_a_workflow():
    """M1 E1.4: branching at the twelve categories loses nothing; at none of them, all that classifying is worth."""
    routing = task("ticket_routing")
    criterion = Criterion.of(routing.model, horizon=routing.horizon)
    categories = [name for name in routing.model.observations if name != "-"]
    best = Fraction(9, 10) + 2 * Fraction(1, 110) - Fraction(1, 20)
    assert solve_workflow(routing.model, criterion, categories, **TIGHT).interval.contains(best)
    assert solve_workflow(routing.model, criterion, (), **TIGHT).interval.contains(Fraction(1, 4))


def test_what_is_not_named_is_one_symbol_and_the_rest_is_as_it_was():
    model = task("repo_repair").model
    drawn = branching(model, ["passed", "fails-in-1"])
    assert drawn.observations == ("fails-in-1", "passed", "other")
    assert (drawn.states, drawn.actions, drawn.exact.T, drawn.exact.start) == (
        model.states,
        model.actions,
        model.exact.T,
        model.exact.start,
    )
    assert branching(model, model.observations).observations == model.observations
    assert branching(model, []).observations == ("other",)


def test_a_model_that_has_an_observation_other_keeps_it():
    rows = [[{0: 1}, {1: 1}]]
    model = POMDP.build(
        states=2, actions=1, observations=("other", "x", "y"), T=rows, Z=rows, R=[[0, 1]], discount="1/2"
    )
    assert branching(model, ["other"]).observations == ("other", "other-")


def test_an_unknown_observation_is_refused_with_near_names():
    with pytest.raises(ModelError, match="fails-in-2.*fails-in-"):
        branching(task("repo_repair").model, ["fails-in-2"])
