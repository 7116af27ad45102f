"""Eq. 5 in the tail: with P6 in code the promise holds, without it breaks although the calibration error is small."""

from __future__ import annotations

import pytest

from harnesses.desk.generator import LARGE, guard_item
from harnesses.desk.tail import ARMS, IN_CODE, LEFT_TO_MODEL, LIFTED, tail
from harnesses.guard.report import CERTIFIED, REFUTED

ITEMS = [guard_item(LARGE, number) for number in range(6000)]


def test_with_p6_in_code_the_promise_of_eq_5_is_certified() -> None:
    found = tail(IN_CODE, ITEMS)
    assert found.guard.verdict == CERTIFIED and found.guard.share_upper < 1 / 32
    assert found.guard.items == sum(item.on_record for item in ITEMS)


@pytest.mark.parametrize("arm", [LEFT_TO_MODEL, LIFTED])
def test_without_it_the_promise_is_refuted(arm: str) -> None:
    found = tail(arm, ITEMS)
    assert found.guard.items == len(ITEMS)
    assert found.guard.verdict == REFUTED and found.guard.share_lower > 1 / 32


def test_a_decider_that_was_fitted_on_such_emails_has_a_small_calibration_error_all_the_same() -> None:
    found = tail(LEFT_TO_MODEL, ITEMS)
    assert found.ece < 0.05 < found.guard.share.rate + 0.03
    assert found.json()["arm"] == LEFT_TO_MODEL


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(ValueError, match=f"name one of {', '.join(ARMS)}"):
        tail("sometimes", ITEMS[:1])
