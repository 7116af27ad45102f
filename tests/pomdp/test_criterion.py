"""What is maximised: which discounts and horizons have a value, and who decides when both are given."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from pomdp.criterion import MAX_HORIZON, Criterion
from pomdp.model import ModelError
from pomdp.testing import criteria


@pytest.mark.parametrize(
    ("own", "discount", "horizon", "expected"),
    [
        ("0.95", None, None, (Fraction(19, 20), None)),
        ("0.95", None, 3, (Fraction(19, 20), 3)),  # a horizon keeps the model's discount
        ("0.95", "0.9", None, (Fraction(9, 10), None)),
        ("0.95", 1, 3, (Fraction(1), 3)),
        ("0.95", 0, None, (Fraction(0), None)),
        (None, "0.9", None, (Fraction(9, 10), None)),
        (None, None, 3, (Fraction(1), 3)),  # and without any means 1
        (1, None, 3, (Fraction(1), 3)),
    ],
)
def test_the_discount_is_the_one_given_else_the_models_else_one(tiger, own, discount, horizon, expected):
    criterion = Criterion.of(tiger(discount=own), discount, horizon)
    assert (criterion.discount, criterion.horizon) == expected


@pytest.mark.parametrize(
    ("own", "discount", "horizon", "words"),
    [
        (None, None, None, "tiger has no discount; give --discount"),
        (1, None, None, "discount 1 without a horizon"),
        ("0.95", 1, None, "discount 1 without a horizon"),
        ("0.95", "1.1", None, "outside"),
        ("0.95", "-0.1", 3, "outside"),
        ("0.95", "nan", 3, "discount"),
        ("0.95", "fast", None, "discount"),
        ("0.95", None, 0, "horizon 0"),
        ("0.95", None, -1, "horizon -1"),
        ("0.95", None, MAX_HORIZON + 1, "horizon"),
    ],
)
def test_what_has_no_value_is_refused_in_one_line(tiger, own, discount, horizon, words):
    with pytest.raises(ModelError, match=words) as caught:
        Criterion.of(tiger(discount=own), discount, horizon)
    assert "\n" not in str(caught.value)


@given(criteria())
def test_the_scale_is_the_sum_of_the_weights(criterion):
    steps = 2000 if criterion.horizon is None else criterion.horizon
    weights = [criterion.gamma**t for t in range(steps)]
    assert criterion.scale == pytest.approx(sum(weights))
    assert criterion.tail(2) == pytest.approx(sum(weights[2:]))


def test_the_text_tells_criteria_apart():
    assert Criterion(Fraction(19, 20)).text() == "discount 19/20"
    assert Criterion(Fraction(1), 10).text() == "discount 1, horizon 10"


def test_a_discount_that_rounds_to_1_is_refused_without_a_horizon() -> None:
    near = Fraction(1) - Fraction(1, 10**20)
    with pytest.raises(ModelError, match="too close to 1"):
        Criterion(near)
    assert Criterion(near, 3).horizon == 3
