"""Calibrators against scikit-learn, their defining properties, and each other."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from harnesses.guard.calibrators import (
    CALIBRATORS,
    EDGE,
    Beta,
    Histogram,
    Isotonic,
    Platt,
    Temperature,
    calibrator,
)
from harnesses.guard.region import GuardError
from harnesses.guard.reliability import equal_mass
from harnesses.guard.tally import Tally

REPORTS = st.sampled_from([0.0, 1e-12, 0.001, 0.3, 0.5, 0.7, 0.97, 1 - 1e-12, 1.0])
# Two rows give both kinds of labels.
ROWS = st.tuples(REPORTS, REPORTS, st.lists(st.tuples(REPORTS, st.integers(0, 1)), max_size=30)).map(
    lambda found: [(found[0], 1), (found[1], 0), *found[2]]
)
GRID = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(0.001, 0.999, 400), [1 - 1e-6, 1 - 1e-12, 1.0]])
PARAMETRIC = [Temperature, Platt, Beta]
MONOTONE = [name for name in CALIBRATORS if name != "histogram"]


def sample(seed=0, size=2000):
    """An overconfident guard."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 0.5, size).clip(0.001, 0.999)
    return p, (rng.random(size) < special.expit(0.6 * special.logit(p) - 0.3)).astype(int)


def logs(p):
    inside = np.clip(p, EDGE, 1 - EDGE)
    return np.log(inside), np.log1p(-inside)


def columns(kind, p):
    low, high = logs(np.asarray(p, dtype=float))
    one = np.ones_like(low)
    return np.column_stack(
        {Temperature: [low - high], Platt: [low - high, one], Beta: [low, -high, one]}[kind]
    )


def platt_targets(y):
    y = np.asarray(y)
    return np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2))


@pytest.mark.parametrize("kind", PARAMETRIC)
def test_parametric_fits_agree_with_logistic_regression_on_platts_targets(kind):
    """Each row enters the peer twice, once per label, weighed by its target."""
    linear = pytest.importorskip("sklearn.linear_model", reason="an oracle")
    p, y = sample()
    x, target = columns(kind, p), platt_targets(y)
    peer = linear.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    peer.fit(
        np.concatenate([x, x]),
        np.repeat([1, 0], y.size),
        sample_weight=np.concatenate([target, 1 - target]),
    )
    assert dataclasses.astuple(kind.fit(p, y)) == pytest.approx(peer.coef_[0].tolist(), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("kind", PARAMETRIC)
@given(rows=ROWS)
def test_parametric_fits_have_the_least_loss_with_slopes_not_negative(kind, rows):
    """Against a quasi-Newton method with bounds: separable, contrary, single and extreme reports included."""
    p, y = map(np.array, zip(*rows))
    x, target = columns(kind, p), platt_targets(y)
    slopes = max(1, x.shape[1] - 1)

    def loss(w):
        return np.mean(np.logaddexp(0, x @ w) - target * (x @ w))

    def gradient(w):
        return x.T @ (special.expit(x @ w) - target) / y.size

    bounds = [(0, None)] * slopes + [(None, None)] * (x.shape[1] - slopes)
    options = {"ftol": 1e-15, "gtol": 1e-10}
    peer = optimize.minimize(
        loss, np.zeros(x.shape[1]), jac=gradient, bounds=bounds, method="L-BFGS-B", options=options
    )
    found = np.array(dataclasses.astuple(kind.fit(p, y)))
    assert np.isfinite(found).all()
    assert (found[:slopes] >= 0).all()
    assert loss(found) <= peer.fun + 1e-10


def test_platt_and_beta_say_on_average_what_platts_targets_say():
    p, y = sample(1)
    for kind in (Platt, Beta):
        assert kind.fit(p, y).predict(p).mean() == pytest.approx(platt_targets(y).mean(), abs=1e-9)


def test_identities():
    inside = GRID[(GRID >= EDGE) & (GRID <= 1 - EDGE)]
    for same in (Temperature(1.0), Platt(1.0, 0.0), Beta(1.0, 1.0, 0.0)):
        assert same.predict(inside) == pytest.approx(inside, rel=1e-12)
        assert same.predict([0.0, 1.0]) == pytest.approx([EDGE, 1 - EDGE], rel=1e-7)


def test_parametric_fits_find_the_parameters_of_a_large_sample():
    p, y = sample(2, 200000)
    assert dataclasses.astuple(Platt.fit(p, y)) == pytest.approx((0.6, -0.3), abs=0.03)
    assert dataclasses.astuple(Beta.fit(p, y)) == pytest.approx((0.6, 0.6, -0.3), abs=0.05)
    rng = np.random.default_rng(3)
    y = rng.random(p.size) < special.expit(special.logit(p) / 2)
    assert Temperature.fit(p, y).slope == pytest.approx(0.5, abs=0.02)


def test_a_contrary_guard_is_given_one_report_for_all():
    p, y = [0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1]
    for kind in PARAMETRIC:
        assert kind.fit(p, y).predict(p) == pytest.approx([0.5] * 4)


@pytest.mark.parametrize("name", MONOTONE)
@given(rows=ROWS)
def test_no_calibrator_turns_the_order_of_reports_round(name, rows):
    found = calibrator(name).fit(*zip(*rows)).predict(GRID)
    assert found.dtype == np.float64 and found.shape == GRID.shape
    assert (np.diff(found) >= -1e-15).all()


@pytest.mark.parametrize("name", CALIBRATORS)
@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_predictions_are_probabilities_whatever_the_order_of_rows(name, rows, random):
    other = rows[:]
    random.shuffle(other)
    found = calibrator(name).fit(*zip(*rows)).predict(GRID)
    assert (found >= 0).all() and (found <= 1).all()
    assert found.tolist() == calibrator(name).fit(*zip(*other)).predict(GRID).tolist()


@pytest.mark.parametrize("kind", [Histogram, Isotonic])
@given(rows=ROWS)
def test_step_functions_are_calibrated_on_their_own_items(kind, rows):
    """Among the items given a value that share is allowed, exactly: sums and counts are whole numbers."""
    p, y = map(np.array, zip(*rows))
    found = kind.fit(p, y).predict(p)
    for value in set(found.tolist()):
        assert value == y[found == value].sum() / (found == value).sum()


@given(rows=ROWS)
def test_isotonic_is_scikit_learns_at_the_calibration_reports(rows):
    isotonic = pytest.importorskip("sklearn.isotonic", reason="an oracle")
    p, y = map(np.array, zip(*rows))
    # The peer takes reports closer than float resolution for one; these reports are further apart.
    peer = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p, y)
    found = Isotonic.fit(p, y)
    assert found.predict(p) == pytest.approx(peer.predict(p), abs=1e-12)
    # Between reports the peer interpolates upwards.
    assert (found.predict(GRID) <= peer.predict(GRID) + 1e-12).all()


def test_isotonic_takes_the_value_below_between_reports_and_the_first_one_below_all():
    found = Isotonic.fit([0.2, 0.4, 0.4, 0.8], [0, 1, 0, 1])
    assert found == Isotonic((0.2, 0.4, 0.8), (0.0, 0.5, 1.0))
    assert found.predict([0.1, 0.39, 0.4, 0.79, 0.8, 1.0]).tolist() == [0, 0, 0.5, 0.5, 1, 1]


def test_histogram_values_are_the_rates_of_the_equal_mass_table():
    p, y = sample(4, 500)
    p = np.round(p, 2)
    found = Histogram.fit(p, y, bins=7)
    table = equal_mass(Tally.of(p, y), 7)
    assert found.starts == tuple(row.lower for row in table)
    assert found.values == pytest.approx(tuple(row.allowed.rate for row in table))


@pytest.mark.parametrize("name", [name for name in CALIBRATORS if not name.startswith("venn")])
@pytest.mark.parametrize("label, kind", [(1, "allowed"), (0, "disallowed")])
def test_labels_of_one_kind_calibrate_nothing(name, label, kind):
    with pytest.raises(GuardError, match=f"all 3 labels say {kind}"):
        calibrator(name).fit([0.5, 0.6, 0.7], [label] * 3)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_bad_reports_are_named(name):
    with pytest.raises(GuardError, match="report 2 is 1.5"):
        calibrator(name).fit([0.5, 1.5], [0, 1])
    with pytest.raises(GuardError, match="report 1 is nan"):
        calibrator(name).fit([0.5, 0.6], [0, 1]).predict([float("nan")])


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        GuardError, match="'spline'.*temperature, platt, beta, histogram, isotonic, venn_abers"
    ):
        calibrator("spline")


def test_parameters_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Temperature(1.0).slope = 2.0
