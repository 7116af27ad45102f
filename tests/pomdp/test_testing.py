"""The strategies produce what they advertise, and shrink to the plainest example."""

from __future__ import annotations

import doctest
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import pomdp.testing
from pomdp.belief import exact_history
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import check_fits
from pomdp.testing import (
    alpha_vectors,
    beliefs,
    controllers,
    criteria,
    exact_beliefs,
    histories,
    open_loops,
    pomdps,
    reactives,
)

SHRINKING = settings(max_examples=2000, derandomize=True, database=None)
FINDING = settings(SHRINKING, phases=[Phase.generate])


def reached(model: POMDP) -> np.ndarray:
    """Mask of the states that some action sequence reaches from the start."""
    seen = model.start > 0
    for _ in model.states:
        for T in model.T:
            seen = seen | (T.T @ seen > 0)
    return seen


def impossible(model: POMDP) -> bool:
    """Whether an observation has probability 0 after some action in every state."""
    return any((Z.sum(axis=0) == 0).any() for Z in model.Z)


def partial(model: POMDP) -> bool:
    """Whether an observation is possible after an action in some states and not in others."""
    return any(((Z.toarray() == 0).any(axis=0) & (Z.toarray() > 0).any(axis=0)).any() for Z in model.Z)


@pytest.mark.parametrize(
    ("strategy", "feature"),
    [
        (pomdps(), lambda m: not reached(m).all()),
        (pomdps(), impossible),
        (pomdps(), partial),
        (pomdps(), lambda m: m.terminal.any()),
        (pomdps(), lambda m: any((T.diagonal() == 1).any() for T in m.T) and not m.terminal.any()),
        (pomdps(), lambda m: m.num_states == 4),
        (pomdps(), lambda m: m.num_actions == 3 and m.num_observations == 3),
        (pomdps(), lambda m: max(m.exact.T[0].denominators) > 4),
        (pomdps(), lambda m: (m.R < 0).any() and (m.R > 0).any()),
        (pomdps(), lambda m: m.exact.discount == Fraction(19, 20)),
        (pomdps(discount=st.sampled_from([None, Fraction(1)])), lambda m: m.discount is None),
        (pomdps(discount=st.sampled_from([None, Fraction(1)])), lambda m: m.discount == 1),
    ],
)
def test_each_advertised_feature_occurs(strategy, feature):
    assert feature(find(strategy, feature, settings=FINDING))


@given(pomdps(density="dense", discount=None))
def test_a_dense_model_has_no_zero(model):
    assert all((M.toarray() > 0).all() for M in (*model.T, *model.Z)) and (model.start > 0).all()
    assert model.discount is None


@given(pomdps(density="sparse", min_states=3, max_states=9))
def test_a_sparse_model_has_at_most_two_entries_a_row(model):
    assert all((np.diff(M.indptr) <= 2).all() for M in (*model.T, *model.Z))
    assert 3 <= model.num_states <= 9


@given(pomdps(terminal=True, unreachable=True, impossible=True, discount=Fraction(1, 3)))
def test_features_that_are_asked_for_are_there(model):
    assert model.terminal[-1]
    assert not reached(model)[0]
    assert all(Z[:, [-1]].sum() == 0 for Z in model.Z)
    assert model.exact.discount == Fraction(1, 3)


def test_a_model_shrinks_to_the_plainest():
    small = pomdps(max_states=3, max_actions=2, max_observations=2)
    model = find(small, lambda m: True, settings=SHRINKING)
    assert (model.num_states, model.num_actions, model.num_observations) == (1, 1, 1)
    assert model.R.tolist() == [[0.0]] and model.discount == 0.0
    two = find(small, lambda m: m.num_states >= 2, settings=SHRINKING)
    assert (
        two.num_states == 2
        and two.T[0].toarray().tolist() == [[1, 0], [1, 0]]
        and two.start.tolist() == [1, 0]
    )


@given(st.data())
def test_histories_are_possible_and_beliefs_are_beliefs(data):
    model = data.draw(pomdps())
    history = data.draw(histories(model, max_length=3))
    assert len(history) <= 3 and exact_history(model, history)[1] > 0
    assert sum(data.draw(exact_beliefs(model)).values()) == 1
    belief = data.draw(beliefs(model))
    assert belief.shape == (model.num_states,) and (belief >= 0).all() and abs(belief.sum() - 1) < 1e-12


@given(st.data())
def test_policies_fit_the_model_they_are_drawn_for(data):
    model = data.draw(pomdps())
    for strategy in (open_loops, controllers, reactives, alpha_vectors):
        check_fits(data.draw(strategy(model)), model)
    plan = data.draw(open_loops(model, length=3))
    assert len(plan.prefix) == 3 and plan.cycle == ()
    certain = data.draw(controllers(model, max_memory=2, deterministic=True))
    assert certain.num_nodes <= 2 and set(certain.act.ravel()) <= {0.0, 1.0}


TWO_ACTIONS = POMDP.build(
    states=2, actions=2, observations=2, T=[np.eye(2)] * 2, Z=[np.eye(2)] * 2, R=[[0, 0]] * 2
)


@pytest.mark.parametrize(
    ("strategy", "feature"),
    [
        (controllers(TWO_ACTIONS, deterministic=False), lambda c: (c.act[0] > 0).all() and c.num_nodes == 3),
        (
            controllers(TWO_ACTIONS),
            lambda c: c.num_nodes > 1 and np.isin(c.act, [0, 1]).all() and c.start > 0,
        ),
        (reactives(TWO_ACTIONS), lambda p: (p.pi[0] > 0).all() and (p.first != p.pi[0]).any()),
        (open_loops(TWO_ACTIONS), lambda p: len(p.prefix) == 3 and len(p.cycle) == 3),
        (histories(TWO_ACTIONS), lambda h: len(h) == 4 and h[0][1] == 1 and {a for a, _ in h} == {0, 1}),
        (criteria(), lambda c: c.horizon is None and c.discount > 0),
        (criteria(), lambda c: c.horizon == 4 and c.discount == 1),
        (beliefs(TWO_ACTIONS), lambda b: (b > 0).all() and b[0] != b[1]),
    ],
)
def test_policies_histories_and_criteria_vary(strategy, feature):
    assert feature(find(strategy, feature, settings=FINDING))


@given(criteria(finite=False), criteria(discounted=False, max_horizon=2))
def test_criteria_keep_to_their_kind(discounted: Criterion, finite: Criterion):
    assert discounted.horizon is None
    assert finite.horizon in (1, 2)


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda: pomdps(density="thick"), "density 'thick'"),
        (lambda: pomdps(max_states=2, terminal=True, unreachable=True), "max_states >= 3, not 2"),
        (lambda: pomdps(max_observations=1, impossible=True), "max_observations >= 2, not 1"),
        (lambda: criteria(discounted=False, finite=False), "discounted=True"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(make, fragment):
    with pytest.raises(ValueError, match=fragment):
        find(make(), lambda _: True, settings=FINDING)


def test_the_example_in_the_documentation_runs():
    result = doctest.testmod(pomdp.testing)
    assert result.attempted >= 4 and not result.failed
