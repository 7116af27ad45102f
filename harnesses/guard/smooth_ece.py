"""Smooth calibration error, which needs no bins and no choice of width; imports tally, numpy and scipy.

Source: J. Blasiok and P. Nakkiran, Smooth ECE: principled reliability diagrams via kernel smoothing, 2023.
"""

from __future__ import annotations

import numpy as np
from scipy import fft, optimize

from harnesses.guard.tally import Tally

CELLS = 2**15
"""Cells of the grid over [0, 1] to which reports are moved; widths below a few cells are not resolved."""


def smooth_ece(tally: Tally) -> float:
    """The width sigma in [0, 1] at which the smoothed error equals sigma: the one scale that the data choose.

    The smoothed error falls with the width and the width rises, so there is one such point; 0 where even the
    unsmoothed residuals cancel. With d the least mean distance of the reports to calibrated ones it lies between
    d / 2 and 2 sqrt(d). No multiple of d bounds it: reports 1/2 -+ 1/1000 with labels 1 and 0 give 0.02.
    """
    spectrum = _spectrum(tally)

    def excess(sigma: float) -> float:
        return _smoothed(spectrum, sigma) - sigma

    if excess(0.0) <= 0.0:
        return 0.0
    if excess(1.0) >= 0.0:
        return 1.0
    return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-10))


def smooth_ece_at(tally: Tally, sigma: float) -> float:
    """Integral over t in [0, 1] of |mean of K(p, t) (p - y)|, K the reflected Gaussian of width `sigma` >= 0."""
    return _smoothed(_spectrum(tally), sigma)


def _spectrum(tally: Tally) -> np.ndarray:
    """Cosine transform `[CELLS]` of the residuals, each shared by the two cells around its report."""
    residual = (tally.count * tally.report - tally.allowed) / tally.size
    place = np.clip(tally.report * CELLS - 0.5, 0, CELLS - 1)
    left = np.minimum(place.astype(np.int64), CELLS - 2)
    share = place - left
    grid = np.bincount(left, residual * (1 - share), CELLS) + np.bincount(left + 1, residual * share, CELLS)
    return fft.dct(grid, type=2)


def _smoothed(spectrum: np.ndarray, sigma: float) -> float:
    """Smoothing by a Gaussian that both ends reflect scales the k-th cosine by exp(-(pi k sigma)^2 / 2)."""
    decay = np.exp(-0.5 * (np.pi * sigma * np.arange(CELLS)) ** 2)
    return float(np.abs(fft.idct(spectrum * decay, type=2)).sum())
