"""Intervals and tests against statsmodels, scipy and exact sums over Fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from experiments.statistics import (
    Proportion,
    StatisticsError,
    clopper_pearson,
    clustered_mean,
    holm,
    mcnemar,
    minimum_detectable_effect,
    paired_difference,
    wilson,
)

counts = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def coverage(method: Callable[[int, int], tuple[float, float]], trials: int, p: Fraction) -> Fraction:
    """Exact probability that the interval of a binomial count contains p."""
    total = Fraction(0)
    for k in range(trials + 1):
        lower, upper = method(k, trials)
        if Fraction(lower) <= p <= Fraction(upper):
            total += math.comb(trials, k) * p**k * (1 - p) ** (trials - k)
    return total


def ends(method: Callable[[int, int], Proportion]) -> Callable[[int, int], tuple[float, float]]:
    def both(k: int, n: int) -> tuple[float, float]:
        found = method(k, n)
        assert found.lower is not None and found.upper is not None
        return found.lower, found.upper

    return both


def wald(k: int, n: int) -> tuple[float, float]:
    half = stats.norm.isf(0.025) * math.sqrt(k / n * (1 - k / n) / n)
    return k / n - half, k / n + half


@pytest.mark.parametrize(
    ("method", "expected"),
    [(wald, 0.635), (ends(wilson), 0.922), (ends(clopper_pearson), 0.982)],
    ids=["wald", "wilson", "clopper-pearson"],
)
def test_nominal_95_percent_intervals_cover_what_the_design_page_says(method, expected: float) -> None:
    assert round(float(coverage(method, 50, Fraction(98, 100))), 3) == expected


@pytest.mark.parametrize("trials", [1, 7, 30])
@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 3), Fraction(9, 10), Fraction(999, 1000)])
def test_clopper_pearson_never_covers_below_its_level(trials: int, p: Fraction) -> None:
    assert coverage(ends(clopper_pearson), trials, p) >= Fraction(95, 100)


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_proportion_intervals_equal_statsmodels(count: tuple[int, int], level: float) -> None:
    k, n = count
    for method, name in ((clopper_pearson, "beta"), (wilson, "wilson")):
        found = method(k, n, level)
        expected = proportion_confint(k, n, alpha=1 - level, method=name)
        assert (found.lower, found.upper) == pytest.approx(expected, abs=1e-9)
        assert found.lower <= found.estimate <= found.upper


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_mcnemar_equals_the_exact_binomial_sum(pairs: list[tuple[bool, bool]]) -> None:
    found = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    gained = sum(not a and b for a, b in pairs)
    lost = sum(a and not b for a, b in pairs)
    n = gained + lost
    assert (found.gained, found.lost, found.ties) == (gained, lost, len(pairs) - n)
    assert found.difference == pytest.approx((gained - lost) / len(pairs))
    if n == 0:
        assert found.p_value is None and found.share.estimate is None
        return
    tail = sum(Fraction(math.comb(n, k), 2**n) for k in range(min(gained, lost) + 1))
    assert found.p_value == pytest.approx(float(min(Fraction(1), 2 * tail)))
    table = [[found.both, found.lost], [found.gained, found.neither]]
    assert found.p_value == pytest.approx(sm_mcnemar(table, exact=True).pvalue)
    assert found.share.estimate == pytest.approx(gained / n)


@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.floats(-5, 5)).map(
            lambda pair: (round(pair[0], 3), round(pair[1], 3))
        ),
        min_size=2,
        max_size=40,
    )
)
def test_paired_difference_equals_scipys_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    found = paired_difference(first, second)
    assert found.estimate == pytest.approx(np.mean(second - first), abs=1e-12)
    if found.p_value is None:
        assert np.ptp(second - first) == 0
        return
    expected = stats.ttest_rel(second, first)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    interval = expected.confidence_interval(0.95)
    assert (found.lower, found.upper) == pytest.approx((interval.low, interval.high), rel=1e-9, abs=1e-9)
    assert found.df == len(pairs) - 1


@pytest.mark.parametrize("seed", range(8))
def test_clustered_errors_equal_statsmodels_sandwich(seed: int) -> None:
    draw = np.random.default_rng(seed)
    clusters = draw.integers(0, 6, size=50)
    values = draw.normal(size=50) + draw.normal(size=6)[clusters]
    found = clustered_mean(values, clusters.tolist())
    fit = sm.OLS(values, np.ones((50, 1))).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True}, use_t=True
    )
    assert found.standard_error == pytest.approx(fit.bse[0])
    assert (found.lower, found.upper) == pytest.approx(tuple(fit.conf_int()[0]))
    assert found.p_value == pytest.approx(fit.pvalues[0])
    assert found.df == len(np.unique(clusters)) - 1


def test_clusters_of_repeated_values_count_once() -> None:
    """Copying every item five times adds no information, so the interval must not shrink."""
    once = clustered_mean([1.0, 2.0, 4.0], ["a", "b", "c"])
    copied = clustered_mean([1.0, 2.0, 4.0] * 5, ["a", "b", "c"] * 5)
    assert (copied.lower, copied.upper) == pytest.approx((once.lower, once.upper))
    naive = clustered_mean([1.0, 2.0, 4.0] * 5, range(15))
    assert naive.upper - naive.lower < 0.5 * (once.upper - once.lower)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_holm_equals_statsmodels(size: int, alpha: float) -> None:
    # Cubed, so that some are small; rounded, so that some are equal.
    p_values = np.round(np.random.default_rng(size).uniform(size=size) ** 3, 2).tolist()
    found = holm({f"test {index}": p for index, p in enumerate(p_values)}, alpha)
    rejected, adjusted, _, _ = multipletests(p_values, alpha=alpha, method="holm")
    assert [test.adjusted for test in found] == pytest.approx(list(adjusted))
    assert [test.rejected for test in found] == list(rejected)


def test_holm_keeps_a_test_without_p_value_and_does_not_count_it() -> None:
    found = {test.name: test for test in holm({"a": 0.02, "no pairs": None, "b": 0.04})}
    assert found["no pairs"].adjusted is None and found["no pairs"].rejected is None
    assert found["a"].adjusted == pytest.approx(0.04)


@pytest.mark.parametrize("items", [4, 20, 200])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
def test_detectable_effect_equals_statsmodels_power(items: int, power: float) -> None:
    found = minimum_detectable_effect(1 / math.sqrt(items), items - 1, power=power)
    # Asked forwards: the root finder of statsmodels stops after six digits.
    assert TTestPower().power(found.effect, nobs=items, alpha=0.05) == pytest.approx(power, abs=1e-6)


def test_what_the_data_do_not_define_is_none() -> None:
    for method in (clopper_pearson, wilson):
        empty = method(0, 0)
        assert (empty.estimate, empty.lower, empty.upper) == (None, None, None)
    assert clustered_mean([], []).estimate is None
    one_cluster = clustered_mean([1.0, 3.0], ["a", "a"])
    assert one_cluster.estimate == 2.0
    assert (one_cluster.standard_error, one_cluster.lower, one_cluster.p_value) == (None, None, None)
    constant = paired_difference([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    assert (constant.estimate, constant.standard_error) == (1.0, 0.0)
    assert (constant.lower, constant.upper, constant.p_value) == (None, None, None)
    assert mcnemar([], []).difference is None
    assert minimum_detectable_effect(0.0, 10).effect is None
    assert minimum_detectable_effect(1.0, 0).effect is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: clopper_pearson(3, 2),
        lambda: wilson(1, 2, level=1.0),
        lambda: mcnemar([True], [True, False]),
        lambda: mcnemar([2], [1]),
        lambda: paired_difference([1.0], [1.0, 2.0]),
        lambda: clustered_mean([math.nan], ["a"]),
        lambda: clustered_mean([1.0], []),
        lambda: holm({"a": 1.5}),
        lambda: minimum_detectable_effect(-1.0, 5),
        lambda: minimum_detectable_effect(1.0, 5, power=0.01),
    ],
)
def test_bad_data_is_refused_in_one_line(call: Callable[[], object]) -> None:
    with pytest.raises(StatisticsError) as caught:
        call()
    assert "\n" not in str(caught.value)
