"""Intervals contain whatever they should: outward rounding against exact rationals."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pomdp.interval import Interval, round_down, round_up

RATIONALS = st.one_of(
    st.fractions(),
    st.fractions(max_denominator=7),
    st.floats(-1e15, 1e15).map(Fraction),
    st.floats(-1e-15, 1e-15).map(Fraction),
)


@st.composite
def around(draw):
    """An interval and an exact point of it."""
    ends = sorted((draw(RATIONALS), draw(RATIONALS)))
    share = draw(st.fractions(0, 1, max_denominator=5))
    return Interval.of(*ends), ends[0] + share * (ends[1] - ends[0])


@given(RATIONALS)
def test_rounding_is_outward_to_the_next_float(value):
    low, high = round_down(value), round_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert Fraction(math.nextafter(low, math.inf)) > value > Fraction(math.nextafter(high, -math.inf))


@given(around(), around(), st.fractions(max_denominator=1000))
def test_arithmetic_keeps_every_point(one, other, factor):
    (i, x), (j, y) = one, other
    assert i.contains(x)
    assert (i + j).contains(x + y) and (i - j).contains(x - y) and (-i).contains(-x)
    assert i.scale(factor).contains(x * factor)
    assert i.width >= Fraction(i.upper) - Fraction(i.lower)
    assert i.at_least(0.0).contains(max(x, Fraction(0)))


@given(around())
def test_the_printed_ends_contain_the_interval(pair):
    interval, _ = pair
    lower, upper = re.fullmatch(r"\[(.*), (.*)\]", str(interval)).groups()
    # Ten digits hold less than a float, and are read here as what they say.
    assert Fraction(lower) <= Fraction(interval.lower) and Fraction(interval.upper) <= Fraction(upper)


@given(around())
def test_json_holds_the_ends_exactly(pair):
    interval, _ = pair
    assert json.loads(json.dumps(interval.json())) == {"lower": interval.lower, "upper": interval.upper}


@pytest.mark.parametrize("ends", [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan)])
def test_crossed_ends_and_no_numbers_are_refused(ends):
    with pytest.raises(ValueError, match="empty"):
        Interval(*ends)


def test_a_result_is_certified_when_all_its_parts_are():
    yes, no = Interval(0.0, 1.0, certified=True), Interval(0.0, 1.0)
    assert (yes + yes).certified and (yes - yes).certified and yes.at_least(0.5).certified
    assert not (yes + no).certified and not (no - yes).certified and not no.scale(Fraction(2)).certified


def test_the_width_of_a_point_is_zero():
    assert Interval(0.1, 0.1).width == 0.0 and Interval(0.1, 0.1).middle == 0.1


def test_intervals_that_share_a_point_meet():
    assert Interval(0.0, 1.0).meets(Interval(1.0, 2.0)) and not Interval(0.0, 1.0).meets(Interval(1.5, 2.0))
    assert Interval(0.0, 3.0).meets(Interval(1.0, 2.0)) and Interval(1.0, 2.0).meets(Interval(0.0, 3.0))


def test_what_lies_below_a_floor_becomes_the_floor():
    assert Interval(-2.0, -1.0).at_least(0.0) == Interval(0.0, 0.0)
    assert Interval(-2.0, 1.0).at_least(0.0) == Interval(0.0, 1.0)
