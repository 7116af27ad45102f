"""The reliability diagram: bars and points are the counts, the cuts stand at the thresholds, bytes repeat."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import reliability_figure, style
from harnesses.guard.demo import demo_items
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, Thresholds

CUT = Thresholds(Fraction(31, 32), Fraction(3, 8))


def drawn(kappa: float = 1, thresholds: Thresholds = CUT, width: float = style.WIDE) -> Figure:
    scores = demo_items(kappa=kappa)
    with style.styled():
        return reliability_figure.draw_reliability(scores.p, scores.y, thresholds, width)


@pytest.mark.parametrize("kappa", [1.0, 4.0])
def test_bars_right_of_the_cut_are_what_is_sent(kappa: float) -> None:
    """Bars end at multiples of 1/32, so that the last one holds the sent items of the demo: 130 with 2, 212 with 10."""
    above = drawn(kappa).axes[0]
    bad, good = ([bar.get_height() for bar in bars] for bars in above.containers)
    assert (sum(bad), sum(good)) == (100, 300)
    assert (bad[-1] + good[-1], bad[-1]) == ((130, 2) if kappa == 1 else (212, 10))


def test_points_and_bars_of_the_curve_are_those_of_the_sorted_items() -> None:
    scores = demo_items()
    order = np.argsort(scores.p)
    (line, _, (ends,)) = drawn().axes[1].containers[0]
    for place, (x, y) in enumerate(zip(*line.get_data(), strict=True)):
        chosen = order[40 * place : 40 * place + 40]
        rate = Rate.of(int(scores.y[chosen].sum()), 40)
        assert (x, y) == pytest.approx((scores.p[chosen].mean(), rate.rate))
        assert ends.get_segments()[place][:, 1] == pytest.approx([rate.lower, rate.upper])


@pytest.mark.parametrize(
    ("thresholds", "places", "shown"),
    [
        (CUT, {31 / 32, 3 / 8}, ["act", "ask", "escalate"]),
        (Thresholds(None, "0.5"), {0.5}, ["ask", "escalate"]),
        (Thresholds("0.75", "0.75"), {0.75}, ["act", "escalate"]),
        (Thresholds("0.9", 0), {0.9, 0.0}, ["act", "ask"]),
    ],
)
def test_regions_are_cut_at_the_thresholds_and_named(
    thresholds: Thresholds, places: set[float], shown: list[str]
) -> None:
    figure = drawn(thresholds=thresholds)
    for axes in figure.axes:
        dashed = {float(line.get_xdata()[0]) for line in axes.lines if line.get_linestyle() == "--"}
        assert dashed == places
    assert [text.get_text() for text in figure.axes[0].texts] == shown


@pytest.mark.parametrize("width", style.WIDTHS)
def test_equal_scores_give_equal_files(width: float) -> None:
    with style.styled():
        first, second = (style.render(drawn(width=width), "pdf", {}) for _ in range(2))
    assert first == second


def test_a_single_item_is_drawn_and_none_is_refused() -> None:
    with style.styled():
        assert style.render(reliability_figure.draw_reliability([0.5], [1], CUT), "png", {})
        with pytest.raises(GuardError):
            reliability_figure.draw_reliability([], [], CUT)
