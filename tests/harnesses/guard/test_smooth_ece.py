"""Smooth calibration error against closed forms, a direct sum over mirror images, and its authors' package."""

import numpy as np
import pytest
from scipy import stats

from harnesses.guard.smooth_ece import smooth_ece, smooth_ece_at
from harnesses.guard.tally import Tally


def sample(seed, size):
    """Reports away from 0 and 1, with an error that changes its sign."""
    rng = np.random.default_rng(seed)
    p = 0.05 + 0.9 * rng.random(size)
    return p, (rng.random(size) < np.clip(p + 0.2 * np.sin(2 * np.pi * p), 0, 1)).astype(int)


@pytest.mark.parametrize("sigma", [0.01, 0.05, 0.3, 1.0])
def test_the_smoothed_error_is_the_integral_of_reflected_gaussians(sigma):
    p, y = sample(0, 40)
    p[:4] = [0.0, 0.001, 0.999, 1.0]
    t = (np.arange(4000) + 0.5) / 4000
    smoothed = np.zeros(4000)
    for image in range(-8, 9):
        for place in (p + 2 * image, -p + 2 * image):
            smoothed += ((p - y) @ stats.norm.pdf(t - place[:, None], scale=sigma)) / p.size
    assert smooth_ece_at(Tally.of(p, y), sigma) == pytest.approx(np.abs(smoothed).mean(), rel=2e-4)


@pytest.mark.parametrize("sigma", [0.0, 1e-4, 0.02, 0.5])
def test_residuals_of_one_sign_are_only_moved_about(sigma):
    """A guard that is overconfident everywhere has the same smoothed error at every width, its mean residual."""
    p = np.array([0.0, 0.5, 0.5, 1.0, 0.999])
    y = np.array([0, 0, 0, 0, 0])
    tally = Tally.of(p, y)
    assert smooth_ece_at(tally, sigma) == pytest.approx(p.mean(), rel=1e-12)
    assert smooth_ece(tally) == pytest.approx(p.mean(), rel=1e-9)


def test_one_report_alone_has_its_own_error():
    assert smooth_ece(Tally.of([0.9] * 10, [1] * 6 + [0] * 4)) == pytest.approx(0.3, rel=1e-9)


def test_a_report_at_an_end_keeps_its_whole_weight():
    """Half the items are certain and right, half are said 0.5 where 0.3 are allowed: the error is 0.1.

    relplot 1.0.3 counts what lies in the last cell of its grid half (its mirror image leaves out the end point),
    which makes 0.133 of this; it is an oracle for reports away from 0 and 1 only.
    """
    p, y = [1.0] * 10 + [0.5] * 10, [1] * 10 + [1] * 3 + [0] * 7
    assert smooth_ece(Tally.of(p, y)) == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("size", [50, 400, 5000])
def test_agrees_with_its_authors_package_away_from_the_ends(size):
    relplot = pytest.importorskip("relplot", reason="an oracle")
    p, y = sample(size, size)
    # The package searches widths in steps of 1/1024 and integrates over 200 points.
    assert smooth_ece(Tally.of(p, y)) == pytest.approx(relplot.smECE(p, y), abs=2e-3)
    assert smooth_ece_at(Tally.of(p, y), 0.05) == pytest.approx(relplot.smECE_sigma(p, y, 0.05), rel=0.02)


def test_it_is_its_own_width():
    for seed in range(5):
        tally = Tally.of(*sample(seed, 300))
        found = smooth_ece(tally)
        assert smooth_ece_at(tally, found) == pytest.approx(found, abs=1e-9)


def test_more_smoothing_leaves_less():
    tally = Tally.of(*sample(9, 300))
    found = [smooth_ece_at(tally, sigma) for sigma in np.linspace(0, 1, 60)]
    assert all(a >= b - 1e-15 for a, b in zip(found, found[1:]))


def test_naming_the_other_label_changes_nothing():
    p, y = sample(11, 200)
    assert smooth_ece(Tally.of(p, y)) == pytest.approx(smooth_ece(Tally.of(1 - p, 1 - y)), rel=1e-9)


def test_certain_and_right_is_no_error_and_certain_and_wrong_the_greatest():
    assert smooth_ece(Tally.of([0, 1, 1], [0, 1, 1])) == 0
    assert smooth_ece(Tally.of([1, 1], [0, 0])) == pytest.approx(1)


def test_it_is_far_from_proportional_to_the_distance_from_calibration():
    """Reports d below and above 1/2 with the wrong labels are calibrated once moved by d."""
    for d in (1e-2, 1e-3, 1e-4):
        found = smooth_ece(Tally.of([0.5 - d, 0.5 + d], [1, 0]))
        assert 0.6 * np.sqrt(d) < found < 2 * np.sqrt(d)
