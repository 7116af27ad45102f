"""T8: what counts at a fixed threshold certify and refute, exactly."""

from __future__ import annotations

from fractions import Fraction as F

import pytest

from harnesses.guard.binomial import lower_end, upper_end
from harnesses.guard.rate import Rate
from harnesses.guard.tail import at_most

PROMISE = F(1, 32)


@pytest.mark.parametrize(
    ("bad", "sent", "upper"),
    [(2, 129, 0.0480), (2, 130, 0.0476), (0, 30, 0.0950), (10, 211, 0.0791)],
)
def test_t8_upper_ends(bad: int, sent: int, upper: float) -> None:
    """T8: one-sided 95 % ends of the design, to the digits given."""
    assert upper_end(bad, sent, 0.95) == pytest.approx(upper, abs=5e-5)
    assert Rate.of(bad, sent).upper_at(0.95) == upper_end(bad, sent, 0.95)


def test_t8_lower_end() -> None:
    """T8: 10 of 211."""
    assert lower_end(10, 211, 0.95) == pytest.approx(0.0259, abs=5e-5)


@pytest.mark.parametrize(
    ("bad", "sent"), [(2, 129), (2, 130), (0, 94), (0, 95), (10, 211), (12, 211), (40, 211)]
)
def test_t8_an_end_decides_as_the_exact_test(bad: int, sent: int) -> None:
    """T8: an upper end at most 1/32 is a tail at most 1/20 at 1/32; a lower end mirrors it."""
    certified = at_most(bad, sent, PROMISE, F(1, 20))
    refuted = bad > 0 and at_most(sent - bad, sent, 1 - PROMISE, F(1, 20))
    assert (upper_end(bad, sent, 0.95) <= float(PROMISE)) == certified
    assert (lower_end(bad, sent, 0.95) >= float(PROMISE)) == refuted


def test_t8_the_demo_certifies_and_refutes_nothing() -> None:
    """T8: 2 of 129 does not certify 1/32, and 10 of 211 does not refute it; 0 of 95 certifies, 40 of 211 refutes."""
    assert upper_end(2, 129, 0.95) > PROMISE
    assert lower_end(10, 211, 0.95) < PROMISE < upper_end(10, 211, 0.95)
    assert upper_end(0, 95, 0.95) <= PROMISE < upper_end(0, 94, 0.95)
    assert lower_end(40, 211, 0.95) > PROMISE
