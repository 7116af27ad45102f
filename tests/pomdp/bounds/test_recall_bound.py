"""The bound for policies that remember everything."""

from __future__ import annotations

import numpy as np
import pytest

from pomdp.bounds.recall_bound import RecallBound
from pomdp.criterion import Criterion
from pomdp.library import task


@pytest.mark.parametrize(
    "measure", [[0.5153536885352183, 0.710199863729409], [0.7298304715358329, 0.8116277355298529]]
)
def test_a_measure_whose_shares_round_to_another_key_than_its_unit_s_has_a_value(
    measure: list[float],
) -> None:
    tiger = task("tiger").model
    bound = RecallBound(tiger, Criterion.of(tiger))
    given = np.array(measure)
    unit = bound.value(None, given / given.sum())
    assert bound.value(None, given) == pytest.approx(given.sum() * unit, rel=1e-9)
    # No less than V*.
    assert bound.value(None, tiger.start) >= 19.37136836
