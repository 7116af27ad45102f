"""The factored product chain against the one assembled by definition, in each of its forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp import product
from pomdp.model import POMDP
from pomdp.policy import Controller, as_controller
from pomdp.testing import controllers, open_loops, pomdps, reactives


def by_definition(model: POMDP, controller: Controller, values: np.ndarray) -> np.ndarray:
    """`[K, S]` expectation one step later, one term at a time."""
    result = np.zeros_like(values)
    for k, s in np.ndindex(values.shape):
        for a, weight in enumerate(controller.act[k] / controller.act[k].sum()):
            for reached, p in enumerate(model.T[a].toarray()[s]):
                for o, q in enumerate(model.Z[a].toarray()[reached]):
                    result[k, s] += weight * p * q * values[controller.successor[k, a, o], reached]
    return result


@pytest.mark.parametrize("dense_share", [0.0, 2.0], ids=["dense T", "sparse T"])
@pytest.mark.parametrize(
    ("gather_cost", "at_once"), [(1000, 0), (1000, 1 << 16), (0, 0)], ids=["streamed", "at once", "gathered"]
)
@given(data=st.data())
def test_factored_and_assembled_products_follow_the_definition(dense_share, gather_cost, at_once, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product, "DENSE_SHARE", dense_share)
        patch.setattr(product, "GATHER_COST", gather_cost)
        patch.setattr(product, "AT_ONCE", at_once)
        model = data.draw(pomdps(max_states=3))
        policy = data.draw(data.draw(st.sampled_from([controllers, reactives, open_loops]))(model))
        controller = as_controller(policy, model)
        chain = product.ProductChain(model, controller)
        entry = st.integers(-9, 9)
        values = np.array(
            [[data.draw(entry) for _ in model.states] for _ in range(controller.num_nodes)], float
        )
        expected = by_definition(model, controller, values)
        np.testing.assert_allclose(chain.apply(values), expected, atol=1e-12)
        np.testing.assert_allclose(
            (chain.assembled @ values.ravel()).reshape(values.shape), expected, atol=1e-12
        )
        assert chain.assembled.nnz <= chain.size_assembled


def test_gathering_takes_place_where_states_show_few_of_many_observations():
    S = 12
    model = POMDP.build(states=S, actions=1, observations=S, T=[np.eye(S)], Z=[np.eye(S)], R=[[0] * S])
    controller = Controller(np.ones((S, 1)), np.tile(np.arange(S), (S, 1, 1)))
    (branch,) = product.ProductChain(model, controller)._branches
    assert len(branch.gather) == 1
    # All nodes share their successors, so that one row of W serves them all.
    assert len(branch.successor) == 1


def test_observations_that_no_node_tells_apart_are_one():
    model = POMDP.build(
        states=2, actions=1, observations=3, T=[np.eye(2)], Z=[[[0.5, 0.25, 0.25]] * 2], R=[[0, 0]]
    )
    controller = Controller(np.ones((2, 1)), [[[0, 1, 1]], [[1, 0, 0]]])
    (branch,) = product.ProductChain(model, controller)._branches
    assert branch.successor.shape == (2, 2)
    assert sorted(branch.likelihood.toarray()[0]) == [0.5, 0.5]
