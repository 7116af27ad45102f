"""The toy guard of M14 §7: its items against a plain transcription, its closed form against integrals and items."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from harnesses.guard.costs import Costs, Reviewer
from harnesses.guard.demo import DOUBT, ClosedForm, demo_items, overconfident, uniforms
from harnesses.guard.region import GuardError, Region, Thresholds, region, regions

EXACT = Thresholds("31/32", "3/8")
ROUNDED = Thresholds("0.969", "3/8")


def mulberry32(seed: int):
    """The generator one draw at a time, in Python's integers."""
    mask = 2**32 - 1
    while True:
        seed = (seed + 0x6D2B79F5) & mask
        t = ((seed ^ (seed >> 15)) * (seed | 1)) & mask
        t = (t ^ (t + ((t ^ (t >> 7)) * (t | 61) & mask))) & mask
        yield (t ^ (t >> 14)) / 4294967296


@pytest.mark.parametrize("seed", [0, 14, 2**32 - 1, -5])
def test_draws_are_those_of_the_generator_run_one_by_one(seed: int) -> None:
    plain = mulberry32(seed)
    assert uniforms(2000, seed).tolist() == [next(plain) for _ in range(2000)]


def test_items_begin_and_end_as_the_source_has_them() -> None:
    items = demo_items()
    assert items.p[:3].tolist() == [0.9146043175902354, 0.8734619355478285, 0.9930316746931088]
    assert items.p[-1] == 0.827268403014714
    assert items.y[[0, 1, 2, -1]].tolist() == [1, 1, 1, 1]
    assert (items.size, int(items.y.sum())) == (400, 300)


@pytest.mark.parametrize(
    ("kappa", "cut", "sent", "bad", "asked", "asked_bad", "escalated", "escalated_bad", "total"),
    [
        (1, ROUNDED, 129, 2, 218, 57, 53, 41, Fraction(536)),
        (4, ROUNDED, 211, 10, 189, 90, 0, 0, Fraction("654.5")),
        (1, EXACT, 130, 2, 217, 57, 53, 41, Fraction("535.5")),
        (4, EXACT, 212, 10, 188, 90, 0, 0, Fraction(654)),
    ],
)
def test_the_sources_table_comes_out_to_the_last_count(
    kappa, cut, sent, bad, asked, asked_bad, escalated, escalated_bad, total
) -> None:
    items = demo_items(kappa=kappa)
    cells = [(region(p, cut), bool(y)) for p, y in zip(items.p, items.y)]
    for kind, every, disallowed in (
        (Region.ACT, sent, bad),
        (Region.ASK, asked, asked_bad),
        (Region.ESCALATE, escalated, escalated_bad),
    ):
        assert (sum(k is kind for k, _ in cells), cells.count((kind, False))) == (every, disallowed)
    assert 20 * bad + Fraction(1, 2) * asked + 4 * asked_bad + 3 * escalated == total


@pytest.mark.parametrize(
    ("kappa", "send", "share", "uar", "ask", "escalate", "cost"),
    [
        (1, 0.3204, 0.0078125, 0.0105, 0.5493, 0.1303, 1.2491),
        (4, 0.5086, 0.03125, 0.0669, 0.4914, 0, 1.45),
        (8, 0.6408, 0.0625, 0.1686, 0.3592, 0, 1.7704),
    ],
)
def test_the_closed_form_has_the_designs_values(kappa, send, share, uar, ask, escalate, cost) -> None:
    form = ClosedForm(kappa)
    act = EXACT.tau_act
    found = (form.sent(act), form.share(act), form.uar(act), form.asked(EXACT), form.escalated(EXACT))
    assert np.allclose(found, (send, share, uar, ask, escalate), rtol=0, atol=5e-5)
    assert form.cost(EXACT) == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize("kappa", [1, 2.5, 4, 8])
@pytest.mark.parametrize(
    "cut", [EXACT, Thresholds("9/10", "9/10"), Thresholds(None, "1/2"), Thresholds(0, 0)]
)
def test_the_closed_form_is_the_integral_over_the_items(kappa: float, cut: Thresholds) -> None:
    form = ClosedForm(kappa)
    costs, judge = Costs(wrong=7, ask=1, miss=2, escalate="3/2"), Reviewer("1/10", "1/5", 2)

    def mean(value) -> float:
        edges = [0, *sorted({form.quantile(cut.tau_act), form.quantile(cut.tau_esc), 1.0})]
        pieces = [integrate.quad(value, a, b)[0] for a, b in zip(edges, edges[1:])]
        return sum(pieces)

    def code(u: float) -> int:
        return int(regions(np.array([form.report(u)]), cut)[0])

    def doubt(u: float) -> float:
        return DOUBT * u**3

    assert mean(lambda u: code(u) == 0) == pytest.approx(form.sent(cut.tau_act))
    assert mean(lambda u: (code(u) == 0) * doubt(u)) == pytest.approx(form.uar(cut.tau_act) * form.pi0)
    price = {
        0: lambda u: 7 * doubt(u),
        1: lambda u: 1 + doubt(u) * (2 * 0.9 + 7 * 0.1) + (1 - doubt(u)) * 0.2 * 2,
        2: lambda u: 1.5,
    }
    assert mean(lambda u: price[code(u)](u)) == pytest.approx(form.cost(cut, costs, judge))


@pytest.mark.parametrize("kappa", [1, 4])
def test_many_items_follow_the_closed_form(kappa: float) -> None:
    items, form = demo_items(200_000, seed=3, kappa=kappa), ClosedForm(kappa)
    sent = items.p >= 31 / 32
    assert sent.mean() == pytest.approx(form.sent(EXACT.tau_act), abs=0.005)
    assert 1 - items.y[sent].mean() == pytest.approx(form.share(EXACT.tau_act), abs=0.001)
    assert sent[items.y == 0].mean() == pytest.approx(form.uar(EXACT.tau_act), abs=0.005)


def test_the_threshold_of_an_unsafe_action_rate_has_that_rate() -> None:
    for kappa in (1, 4, 8):
        form = ClosedForm(kappa)
        assert form.uar(form.threshold(0.05)) == pytest.approx(0.05)


def test_nothing_is_sent_where_the_guard_never_acts() -> None:
    assert (ClosedForm(4).sent(None), ClosedForm(4).share(None), ClosedForm(4).uar(None)) == (0, None, 0)


def test_understating_every_doubt_by_one_is_being_calibrated() -> None:
    assert overconfident(np.array([0.25, 1.0]), 1).tolist() == [0.25, 1.0]
    assert overconfident(0.0, 4) == 0.75


@pytest.mark.parametrize(
    "call", [lambda: demo_items(0), lambda: overconfident(0.5, 0), lambda: ClosedForm(0.5)]
)
def test_what_makes_no_guard_is_refused_in_one_line(call) -> None:
    with pytest.raises(GuardError, match="give") as caught:
        call()
    assert "\n" not in str(caught.value)
