"""Q one step ahead: against recursion over histories; never above the optimum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.lookahead import Lookahead
from pomdp.belief import exact_measures
from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.testing import beliefs, pomdps


def optimal(model: POMDP, measure: dict[int, Fraction], left: int) -> list[Fraction]:
    """Q of each action by recursion."""
    return [
        sum((p * model.exact.R.row(a).get(s, Fraction(0)) for s, p in measure.items()), Fraction(0))
        + sum(
            max(optimal(model, m, left - 1)) for m in exact_measures(model, measure, a).values() if left > 1
        )
        for a in range(model.num_actions)
    ]


@settings(max_examples=20)
@given(data=st.data())
def test_the_best_action_value_at_the_start_is_the_optimum_and_none_is_above_its_own(
    data: st.DataObject,
) -> None:
    model = data.draw(pomdps(max_states=3, max_actions=2, max_observations=2))
    ahead = Lookahead.solved(model, Criterion(Fraction(1), 3), gap=1e-9, time_limit=5.0)
    exact = np.array([float(q) for q in optimal(model, dict(model.exact.start), 3)])
    found = ahead.q(model.start[None], 3)[0]
    assert np.all(found <= exact + 1e-9)
    assert found.max() == pytest.approx(exact.max(), abs=1e-6)
    measures = np.array([data.draw(beliefs(model)) for _ in range(3)])
    assert ahead.q(2 * measures, 2) == pytest.approx(2 * ahead.q(measures, 2))
    assert ahead.q(measures, 1) == pytest.approx(measures @ model.R.T)
