"""T9: thresholds for the unsafe-action rate, by exact enumeration of samples in Fractions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as F
from itertools import combinations_with_replacement
from math import comb, factorial, nextafter, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harnesses.guard.demo import ClosedForm, demo_items
from harnesses.guard.region import GuardError, regions
from harnesses.guard.selection import Selection, conformal_threshold, naive_threshold, pac_threshold

ATOMS = (0.0, 0.25, 0.5, nextafter(0.5, 1.0), 0.75, 1.0)
Rule = Callable[[Sequence[float], Sequence[int]], Selection]


def multisets(atoms: int, size: int, weights: Sequence[F]) -> Iterator[tuple[tuple[int, ...], F]]:
    """All samples of iid atoms up to order, with their exact probabilities."""
    for chosen in combinations_with_replacement(range(atoms), size):
        counts = [chosen.count(i) for i in range(atoms)]
        orders = factorial(size) // prod(factorial(c) for c in counts)
        yield chosen, orders * prod((w**c for w, c in zip(weights, counts)), start=F(1))


def true_uar(tau: float | None, reports: Sequence[float], weights: Sequence[F]) -> F:
    return F(0) if tau is None else sum((w for p, w in zip(reports, weights) if p >= tau), F(0))


def law_of_uar(rule: Rule, reports: Sequence[float], weights: Sequence[F], size: int) -> list[tuple[F, F]]:
    """Exact (UAR of the chosen threshold, probability) over all samples of disallowed items."""
    out = []
    for chosen, chance in multisets(len(reports), size, weights):
        if chance:
            found = rule([reports[i] for i in chosen], [0] * size)
            out.append((true_uar(found.tau_act, reports, weights), chance))
    return out


def violation(law: list[tuple[F, F]], alpha: F) -> F:
    return sum((chance for uar, chance in law if uar > alpha), F(0))


@st.composite
def laws(draw: st.DrawFn) -> tuple[list[float], list[F]]:
    """Reports of disallowed items with atoms: distinct, next to one another, 0 and 1 among them."""
    reports = draw(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4, unique=True))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(reports), max_size=len(reports)))
    return reports, [F(w, sum(weights)) for w in weights]


LEVELS = st.sampled_from([F(1, 10), F(1, 5), F(1, 4), F(1, 3), F(1, 2), F(2, 3)])


@given(laws(), st.integers(1, 6), LEVELS, LEVELS)
def test_t9_pac_holds_for_every_law_with_atoms(
    law: tuple[list[float], list[F]], size: int, alpha: F, delta: F
) -> None:
    """T9: P(UAR > alpha) <= delta exactly, whatever the law of the disallowed reports."""
    found = law_of_uar(lambda p, y: pac_threshold(p, y, alpha, delta), *law, size)
    assert sum(chance for _, chance in found) == 1
    assert violation(found, alpha) <= delta


@given(laws(), st.integers(1, 6), LEVELS)
def test_t9_conformal_keeps_the_mean_rate(law: tuple[list[float], list[F]], size: int, alpha: F) -> None:
    """T9: E[UAR] <= alpha exactly, over the draw of the data."""
    found = law_of_uar(lambda p, y: conformal_threshold(p, y, alpha), *law, size)
    assert sum((uar * chance for uar, chance in found), F(0)) <= alpha


@pytest.mark.parametrize("eta", [(F(9, 10), F(1, 2), F(1, 10)), (F(1, 10), F(1, 2), F(9, 10))])
def test_t9_pac_holds_over_labelled_samples_calibrated_or_not(eta: tuple[F, ...]) -> None:
    """T9: the number of disallowed items may be random; reports may be right or upside down."""
    reports, mass, size, alpha, delta = (0.9, 0.5, 0.1), F(1, 3), 5, F(1, 2), F(1, 4)
    items = [(p, y) for p in reports for y in (0, 1)]
    weights = [mass * (e if y else 1 - e) for e in eta for y in (0, 1)]
    pi0 = sum(w for (_, y), w in zip(items, weights) if y == 0)
    failed, total, chosen_some = F(0), F(0), F(0)
    for chosen, chance in multisets(len(items), size, weights):
        p, y = zip(*(items[i] for i in chosen))
        tau = pac_threshold(p, y, alpha, delta).tau_act
        bad = sum(w for (r, label), w in zip(items, weights) if label == 0 and tau is not None and r >= tau)
        total += chance
        failed += chance if bad / pi0 > alpha else 0
        chosen_some += chance if tau is not None else 0
    assert total == 1 and failed <= delta and chosen_some > F(1, 2)


def test_t9_the_bound_is_met_and_one_more_failure_breaks_it() -> None:
    """T9: a law whose top atom has mass just above alpha fails almost as often as delta allows."""
    alpha, delta, size = F(1, 4), F(1, 3), 6
    weights = [alpha + F(1, 10**6), 1 - alpha - F(1, 10**6)]
    found = law_of_uar(lambda p, y: pac_threshold(p, y, alpha, delta), (0.75, 0.25), weights, size)
    k = pac_threshold([0.5] * size, [0] * size, alpha, delta).k
    assert k == 0
    chance = [comb(size, i) * weights[0] ** i * weights[1] ** (size - i) for i in range(size + 1)]
    assert violation(found, alpha) == chance[0] and delta / 2 < chance[0] <= delta
    assert chance[0] + chance[1] > delta  # with k + 1, the atom passes when it was seen at most once


def test_t9_acting_at_the_order_statistic_itself_fails_on_an_atom() -> None:
    """T9: with one report for all, `p >= b_{k+1}` acts on everything, always; the strict rule on nothing."""
    found = pac_threshold([0.5] * 60, [0] * 60, "0.05", "0.05")
    assert found.b == 0.5 and true_uar(found.tau_act, (0.5,), (F(1),)) == 0
    assert true_uar(found.b, (0.5,), (F(1),)) == 1


def test_t9_naive_fails_more_often_than_delta() -> None:
    """T9: exactly, on a small law and, for 100 items without ties, in more than half of the draws."""
    weights = [F(1, 9)] * 9
    reports = [i / 16 for i in range(9)]
    failed = violation(law_of_uar(lambda p, y: naive_threshold(p, y, "1/4"), reports, weights, 4), F(1, 4))
    assert failed > F(1, 2)
    assert naive_threshold(np.linspace(0, 0.99, 100), [0] * 100, "0.05").k == 5
    assert stats.binom.cdf(5, 100, 0.05) > 0.6  # of a law without ties: P(b_6 has more than alpha above it)


def test_t9_conformal_fails_more_often_than_delta_but_not_on_average() -> None:
    """T9: the marginal rule is no PAC rule, and one rank more breaks even the mean."""
    reports, weights, alpha = [i / 16 for i in range(8)], [F(1, 8)] * 8, F(1, 4)
    law = law_of_uar(lambda p, y: conformal_threshold(p, y, alpha), reports, weights, 3)
    assert violation(law, alpha) > F(1, 10)

    def one_more(p: Sequence[float], y: Sequence[int]) -> Selection:
        return conformal_threshold(p, y, alpha + F(1, 4))

    more = law_of_uar(one_more, reports, weights, 3)
    assert sum((uar * chance for uar, chance in more), F(0)) > alpha


def test_t9_violations_on_the_demo_population() -> None:
    """T9: 2,000 data sets of 400 items of M14's generator, whose UAR is known: PAC holds, naive does not."""
    form, alpha, delta, sets = ClosedForm(), 0.05, 0.1, 2000
    data = demo_items(400 * sets, seed=5)
    failed = {"pac": 0, "naive": 0}
    for i in range(sets):
        p, y = data.p[400 * i : 400 * (i + 1)], data.y[400 * i : 400 * (i + 1)]
        for found in (pac_threshold(p, y, alpha, delta), naive_threshold(p, y, alpha)):
            failed[found.rule] += form.uar(found.tau_act) > alpha
    assert failed["pac"] <= stats.binom.ppf(0.999, sets, delta)
    assert failed["naive"] > 0.4 * sets


@given(
    st.lists(st.tuples(st.sampled_from(ATOMS), st.integers(0, 1)), min_size=1, max_size=30),
    LEVELS,
    LEVELS,
)
def test_the_rule_is_the_definition(items: list[tuple[float, int]], alpha: F, delta: F) -> None:
    """Act iff p > b_{k+1} by sorting and exact tails; tau_act says the same as `p >= tau_act`, also in regions."""
    p, y = zip(*items)
    found = pac_threshold(p, y, alpha, delta)
    bad = sorted((r for r, label in items if label == 0), reverse=True)
    n = len(bad)
    fits = [
        k
        for k in range(n)
        if sum(comb(n, i) * alpha**i * (1 - alpha) ** (n - i) for i in range(k + 1)) <= delta
    ]
    acted = [bool(fits) and r > bad[max(fits)] for r in p]
    assert (found.n, found.k) == (n, max(fits, default=None))
    assert (regions(np.array(p), found.thresholds("0.1")) == 0).tolist() == acted
    assert found.sent == sum(acted) == found.share.denominator
    assert found.uar.numerator == found.share.numerator == sum(a and label == 0 for a, label in zip(acted, y))
    assert (found.tau_act is None) == (found.why is not None)


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_items_does_not_matter(order: int) -> None:
    data = demo_items(2000)
    p, y = data.p[::order], data.y[::order]
    assert pac_threshold(p, y, 0.05, 0.1).tau_act == 0.9268451095395887


def test_too_few_items_never_act_and_say_how_many_are_needed() -> None:
    """T9: no k is admissible with 58 disallowed items at .05 and .05, one is with 59."""
    few = pac_threshold([0.5] * 30 + [0.9], [0] * 30 + [1], "0.05", "0.05")
    assert few.tau_act is None and few.k is None and few.sent == 0 and few.share.rate is None
    assert few.why == "with 30 disallowed items no threshold can be certified; 59 are needed"
    assert few.thresholds("0.375").tau_act is None
    assert pac_threshold([0.5] * 58, [0] * 58, "0.05", "0.05").tau_act is None
    assert pac_threshold([0.5] * 59, [0] * 59, "0.05", "0.05").tau_act == nextafter(0.5, 1.0)
    assert pac_threshold([0.5], [1], "0.05", "0.05").why.startswith("with 0 disallowed items")
    assert conformal_threshold([0.5] * 18, [0] * 18, "0.05").why.endswith("19 are needed")
    assert conformal_threshold([0.5] * 19, [0] * 19, "0.05").k == 0
    assert naive_threshold([0.5], [1], "0.05").tau_act is None


def test_disallowed_items_of_report_one_never_act() -> None:
    """T9: b_{k+1} = 1 leaves no report above it."""
    found = pac_threshold([1.0] * 59, [0] * 59, "0.05", "0.05")
    assert (found.tau_act, found.b, found.k) == (None, 1.0, 0)
    assert found.why == "59 disallowed items have report 1, more than the 0 that may pass"


def test_the_ends_of_the_reports() -> None:
    """A largest disallowed report of 0, and of the float below 1."""
    low = pac_threshold([0.0] * 59 + [1e-300], [0] * 59 + [1], "0.05", "0.05")
    assert low.tau_act == 5e-324 and low.sent == 1
    assert regions(np.array([0.0, 5e-324]), low.thresholds(0)).tolist() == [1, 0]
    high = pac_threshold([nextafter(1.0, 0.0)] * 59 + [1.0], [0] * 59 + [1], "0.05", "0.05")
    assert high.tau_act == 1.0 and high.sent == 1


def test_a_larger_tau_esc_is_lowered_and_the_record_is_plain() -> None:
    data = demo_items(2000)
    found = pac_threshold(data.p, data.y, 0.05, 0.1)
    assert found.thresholds("0.99").collapsed
    assert found.thresholds("0.375").tau_esc == F(3, 8)
    told = json.loads(json.dumps(found.json(), allow_nan=False))
    assert told["tau_act"] == found.tau_act and told["k"] == 17 and told["uar"]["denominator"] == 491
    assert json.loads(json.dumps(conformal_threshold(data.p, data.y, 0.05).json()))["delta"] is None


@pytest.mark.parametrize(
    ("p", "y", "alpha", "delta", "words"),
    [
        ([0.5], [0], 0, 0.1, "alpha is 0"),
        ([0.5], [0], 0.05, 1, "delta is 1"),
        ([0.5], [0], "five", 0.1, "alpha: 'five' is not a number"),
        ([0.5, 1.5], [0, 1], 0.05, 0.1, "row 2"),
        ([0.5, 0.5], [0, 2], 0.05, 0.1, "row 2"),
        ([], [], 0.05, 0.1, "no rows"),
    ],
)
def test_what_is_no_sample_is_refused_in_one_line(
    p: list[float], y: list[int], alpha: object, delta: object, words: str
) -> None:
    with pytest.raises(GuardError, match=words) as caught:
        pac_threshold(p, y, alpha, delta)
    assert "\n" not in str(caught.value)
