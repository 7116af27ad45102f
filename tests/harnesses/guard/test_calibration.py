"""The record of a guard's calibration: scores against scikit-learn, and nothing undefined passed off as a number."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.guard.calibration import Calibration, auc, brier, certain_and_wrong, log_loss
from harnesses.guard.region import GuardError
from harnesses.guard.tally import Tally

REPORTS = st.sampled_from([0.0, 1e-300, 0.3, 0.5, 0.7, 0.97, 1 - 2**-53, 1.0])
ROWS = st.lists(st.tuples(REPORTS, st.integers(0, 1)), min_size=1, max_size=25)


def sample(seed=0, size=2000):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(2, 0.5, size), 2).clip(0.01, 0.99)
    return p, (rng.random(size) < p).astype(int)


def numbers(value):
    """All numbers in nested JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [found for entry in value for found in numbers(entry)]
    return [value] if isinstance(value, (int, float)) else []


def test_scores_agree_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="an oracle")
    p, y = sample()
    tally = Tally.of(p, y)
    assert brier(tally) == pytest.approx(metrics.brier_score_loss(y, p), rel=1e-12)
    assert log_loss(tally) == pytest.approx(metrics.log_loss(y, p), rel=1e-12)
    assert auc(tally) == pytest.approx(metrics.roc_auc_score(y, p), rel=1e-12)


@given(ROWS)
def test_scores_are_means_over_the_rows(rows):
    tally = Tally.of(*zip(*rows))
    assert brier(tally) == pytest.approx(sum((p - y) ** 2 for p, y in rows) / len(rows), abs=1e-15)
    wrong = sum((p, y) in ((0, 1), (1, 0)) for p, y in rows)
    assert certain_and_wrong(tally) == wrong
    if wrong:
        assert log_loss(tally) == math.inf
    else:
        loss = sum(-math.log(p) if y else -math.log1p(-p) for p, y in rows) / len(rows)
        assert log_loss(tally) == pytest.approx(loss, rel=1e-12, abs=1e-15)
    pairs = [(p > q) + (p == q) / 2 for p, y in rows for q, z in rows if y > z]
    assert auc(tally) == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


@settings(max_examples=30)
@given(ROWS, st.sampled_from([None, 0, "97/100", 1]), st.integers(1, 5))
def test_the_record_is_plain_json_and_prints(rows, tau, bins):
    record = Calibration.of(*zip(*rows), tau_act=tau, bins=bins)
    found = record.json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(math.isfinite(value) for value in numbers(found))
    assert (found["log_loss"] is None) == (found["certain_and_wrong"] > 0)
    assert (found["acting"] is None) == (tau is None)
    assert found["items"] == sum(row["count"] for row in found["equal_width"])
    text = "\n".join(record.lines())
    assert "nan" not in text
    assert "inf" not in text.replace("infinite", "")


@settings(max_examples=15)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_record_does_not_depend_on_the_order_of_rows(rows, random):
    other = rows[:]
    random.shuffle(other)
    assert Calibration.of(*zip(*rows), "1/2", bins=3) == Calibration.of(*zip(*other), "1/2", bins=3)


def test_a_calibrated_guard_has_a_small_error_and_an_overconfident_one_shows_it_where_it_acts():
    p, y = sample(7, 20000)
    calibrated = Calibration.of(p, y, tau_act="9/10")
    assert calibrated.smooth_ece < 0.02
    assert calibrated.debiased < 0.02
    assert calibrated.acting.lower < 0 < calibrated.acting.upper
    bold = Calibration.of(1 - (1 - p) / 4, y, tau_act="9/10")
    assert bold.smooth_ece > 0.1
    assert bold.acting.lower > 0.02
    assert bold.acting.disallowed.rate > 0.1 - 0.02


def test_a_million_rows_pass():
    rng = np.random.default_rng(1)
    p = rng.random(10**6)
    assert Calibration.of(p, rng.random(10**6) < p, tau_act="31/32").ece_mass < 0.005


def test_a_bad_row_is_named():
    with pytest.raises(GuardError, match="label 2"):
        Calibration.of([0.5, 0.5], [1, 3])
