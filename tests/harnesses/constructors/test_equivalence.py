"""Equivalence of two models against the enumeration of their histories."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import difference, select
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps


def doubled(model: POMDP) -> POMDP:
    """The model with each state twice and every move going to either twin: the same process, unlike states."""
    S, half = model.num_states, Fraction(1, 2)
    return POMDP.build(
        states=2 * S,
        actions=model.actions,
        observations=model.observations,
        T=[
            [{t + k * S: p * half for t, p in row.items() for k in (0, 1)} for row in [*T.rows()] * 2]
            for T in model.exact.T
        ],
        Z=[[*Z.rows()] * 2 for Z in model.exact.Z],
        R=[[model.exact.R.row(a).get(s % S, 0) for s in range(2 * S)] for a in range(model.num_actions)],
        start=model.exact.start,
        discount=model.exact.discount,
    )


@given(st.data())
def test_a_difference_is_a_shortest_history_after_which_the_processes_differ(
    oracle: Any, data: st.DataObject
) -> None:
    """Against all histories of up to 3 pairs; 2 + 2 states differ within 3 pairs or never."""
    sizes = {"max_states": 2, "min_actions": 2, "max_actions": 2, "max_observations": 2}
    one, other = data.draw(pomdps(**sizes)), data.draw(pomdps(**sizes))
    found = difference(one, other)
    ours, theirs = oracle.process(one, 3), oracle.process(other, 3)
    unlike = [h for h in ours.keys() | theirs.keys() if ours.get(h) != theirs.get(h)]
    assert (found is None) == (not unlike)
    if found is not None:
        assert found in unlike and len(found) == min(map(len, unlike))


@given(pomdps(max_states=3, max_actions=2, max_observations=2))
def test_a_model_with_every_state_twice_is_the_same_process(model: POMDP) -> None:
    assert difference(model, doubled(model)) is None


def test_models_with_other_actions_are_not_compared() -> None:
    tiger = task("tiger").model
    with pytest.raises(ModelError, match="compare what has the same"):
        difference(tiger, select(tiger, "listen"))
