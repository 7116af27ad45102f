"""`solve`: what it refuses before it begins."""

import pytest

from pomdp.bounds import solve
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError


def coin(reward: str) -> POMDP:
    """One state, one action that earns `reward`."""
    return POMDP.build(
        states=1, actions=1, observations=1, T=[[[1]]], Z=[[[1]]], R=[[reward]], discount="1/2"
    )


def test_rewards_beyond_doubles_are_refused_with_the_remedy() -> None:
    model = coin("1e200")
    with pytest.raises(ModelError, match="scale the rewards down"):
        solve(model, Criterion.of(model))


def test_large_rewards_below_the_limit_are_solved() -> None:
    model = coin("1e100")
    interval = solve(model, Criterion.of(model), gap=1e90).interval
    assert interval.lower <= 2e100 <= interval.upper


@pytest.mark.parametrize("given", [{"gap": -1.0}, {"gap": float("nan")}, {"time_limit": 0.0}])
def test_numbers_out_of_range_are_refused(given: dict[str, float]) -> None:
    model = coin("1")
    with pytest.raises(ModelError, match="give one such as|not a positive number"):
        solve(model, Criterion.of(model), **given)
