"""Promises of intervals, rules and the monitor over 10^5 data sets a cell, and the JAX rules against those of numpy."""

from __future__ import annotations

from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import stats

from harnesses.guard import coverage
from harnesses.guard.coverage import DATASETS
from harnesses.guard.demo import ClosedForm
from harnesses.guard.learn_then_test import share_threshold
from harnesses.guard.monitor import Monitor
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, cut
from harnesses.guard.selection import conformal_threshold, naive_threshold, pac_threshold
from harnesses.guard.tail import most_failures

ALPHA, DELTA = Fraction(1, 20), Fraction(1, 10)


def most(level: float, datasets: int = DATASETS) -> int:
    """The 99.9 % quantile of the violations of a promise that is kept exactly at its level."""
    return int(stats.binom.ppf(0.999, datasets, level))


def fits(found: Rate, chance: float) -> bool:
    """Whether a count lies within the central 99.8 % of its exact law."""
    low, high = stats.binom.ppf([0.001, 0.999], found.denominator, chance)
    return low <= found.numerator <= high


@pytest.mark.parametrize(("trials", "rate"), [(30, 0.02), (129, 0.03125)])
def test_every_interval_misses_at_most_as_often_as_it_says(trials: int, rate: float) -> None:
    """T8: Clopper-Pearson, one- and two-sided; the counts also match the exact sum over k."""
    found = coverage.interval_misses(trials, rate)
    k = np.arange(trials + 1)
    mass = stats.binom.pmf(k, trials, rate)
    # Which k miss, by tests of the rate instead of by ends: the oracle inverts nothing.
    high, low = stats.binom.cdf(k, trials, rate), stats.binom.sf(k - 1, trials, rate)
    for missed, outside, level in (
        (found.two_sided, np.minimum(high, low) < 0.025, 0.05),
        (found.upper, high < 0.05, 0.05),
        (found.lower, low < 0.05, 0.05),
    ):
        assert missed.denominator == DATASETS and missed.numerator <= most(level)
        assert fits(missed, float(mass[outside].sum()))


@pytest.mark.parametrize("disallowed", [59, 100])
def test_the_pac_rule_keeps_its_promise_and_the_naive_rule_does_not(disallowed: int) -> None:
    """T9: of N uniform ranks k or fewer below alpha is the event of failure, so that the rates are known exactly."""
    passing = coverage.allowances(disallowed, ALPHA, DELTA)
    found = coverage.order_violations(passing, disallowed, float(ALPHA))
    assert found["pac"].broken.numerator <= most(float(DELTA)) < found["naive"].broken.numerator
    for name, k in passing.items():
        assert found[name].broken.denominator == DATASETS
        assert fits(found[name].broken, float(stats.binom.cdf(k, disallowed, float(ALPHA))))
        # The UAR at the threshold is the (k+1)-th least of N uniform draws.
        expected = (k + 1) / (disallowed + 1)
        assert abs(found[name].mean - expected) <= 4 * found[name].se
    # The conformal rule promises the mean alone, and breaks alpha nearly as often as the naive one.
    assert found["conformal"].mean <= float(ALPHA) + 4 * found["conformal"].se
    assert found["conformal"].broken.numerator > most(float(DELTA))


def test_too_few_disallowed_items_choose_never_to_act() -> None:
    """T9 without an admissible k: no data set acts, and none is broken."""
    passing = coverage.allowances(44, ALPHA, DELTA)
    assert passing["pac"] == -1 and coverage.allowances(45, ALPHA, DELTA)["pac"] == 0
    found = coverage.order_violations({"pac": -1}, 44, float(ALPHA), datasets=100)["pac"]
    assert (found.broken.numerator, found.never.numerator, found.mean) == (0, 100, 0.0)


def test_numpy_and_jax_choose_the_same_threshold_from_every_data_set() -> None:
    """T9 in both, on 300 data sets; every second one is rounded so that reports tie."""
    rng = np.random.default_rng(9)
    rules = {
        "naive": lambda p, y: naive_threshold(p, y, ALPHA),
        "conformal": lambda p, y: conformal_threshold(p, y, ALPHA),
        "pac": lambda p, y: pac_threshold(p, y, ALPHA, DELTA),
    }
    for size in (10, 44, 120):
        passing = coverage.allowances(size, ALPHA, DELTA)
        p = ClosedForm(4.0).report(rng.random((100, size)) ** 0.25)
        p[::2] = np.round(p[::2], 2)
        with jax.enable_x64(True):
            k = jax.numpy.asarray(list(passing.values()))
            steps = max(passing.values()) + 1
            taus = np.asarray(jax.vmap(coverage.order_taus, (0, None, None))(p, k, steps))
        for row, chosen in zip(p, taus):
            for place, (name, rule) in enumerate(rules.items()):
                selection = rule(row, np.zeros(size))
                assert selection.k == (None if passing[name] < 0 else passing[name])
                # A threshold above 1 is met by no report, which numpy's rules write as None.
                assert selection.tau_act == (None if chosen[place] > 1 else chosen[place])


@pytest.mark.parametrize("method", ["fallback", "fixed-sequence"])
def test_numpy_and_jax_certify_the_same_share_threshold(method: str) -> None:
    """T9, Learn-then-Test, on 120 data sets; every second one is rounded so that reports meet the grid."""
    level = Fraction(1, 10)
    chain = coverage.Chain(level, DELTA, method=method)
    grid = np.array([float(cut(tau)) for tau in chain.grid])
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(11), 120)
        p, y = map(np.array, jax.vmap(coverage.items, (0, None, None))(keys, 250, 2.0))
        p[::2] = np.round(p[::2], 2)
        place = jax.vmap(coverage.chain_place, (0, 0, None, None, None))
        stops = method == "fixed-sequence"
        places = np.asarray(
            place(p, y, jax.numpy.asarray(grid), jax.numpy.asarray(chain.critical(250)), stops)
        )
    for reports, labels, found in zip(p, y, places):
        chosen = share_threshold(reports, labels, level, DELTA, chain.grid, method).tau_act
        assert chosen == (None if found == grid.size else grid[found])
    assert grid.size in places and len(set(places)) > 4


@pytest.mark.parametrize("method", ["fallback", "fixed-sequence"])
def test_learn_then_test_keeps_the_share(method: str) -> None:
    """T9 for the share of an overconfident guard, the grid around the threshold at which the share is alpha."""
    fine = tuple(1 - Fraction(step, 200) for step in range(4, 14))
    found = coverage.chain_violations(coverage.Chain(ALPHA, DELTA, fine, method), 150, 4.0)
    assert found.broken.denominator == DATASETS and found.broken.numerator <= most(float(DELTA))
    assert found.never.numerator < DATASETS


def test_critical_counts_are_those_of_the_exact_tail() -> None:
    """Ties included: none of two fails at rate 1/2 with probability exactly 1/4."""
    for rate, bound in ((ALPHA, DELTA), (Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 2), Fraction(1, 2))):
        exact = [most_failures(m, rate, bound) for m in range(60)]
        expected = [-1 if k is None else k for k in exact]
        assert coverage.critical_counts(59, rate, bound).tolist() == expected


def test_closed_forms_agree_with_those_of_the_demo() -> None:
    with jax.enable_x64(True):
        for kappa in (1.0, 4.0, 8.0):
            form = ClosedForm(kappa)
            for tau in (0.5, 0.9, 31 / 32, 0.999):
                assert float(coverage.closed_uar(tau, kappa)) == pytest.approx(form.uar(tau), rel=1e-12)
                assert float(coverage.closed_share(tau, kappa)) == pytest.approx(form.share(tau), rel=1e-12)
        assert float(coverage.closed_uar(np.inf, 1.0)) == 0.0


def test_the_drawn_items_follow_the_demo() -> None:
    """Sent, bad and reports of disallowed items of one large data set, against the closed form."""
    form, size, tau = ClosedForm(4.0), 200_000, 0.95
    with jax.enable_x64(True):
        p, y = map(np.asarray, coverage.items(jax.random.key(1), size, 4.0))
        bad = np.asarray(coverage.disallowed_reports(jax.random.key(2), size, 4.0))
        sent, allowed = map(np.asarray, coverage.items(jax.random.key(3), size, 4.0, form.quantile(tau)))
    share = form.share(tau)
    assert share is not None and sent.min() >= tau
    assert fits(Rate.of(int((p >= tau).sum()), size), form.sent(tau))
    assert fits(Rate.of(int((~y & (p >= tau)).sum()), size), form.pi0 * form.uar(tau))
    assert fits(Rate.of(int((bad >= tau).sum()), size), form.uar(tau))
    assert fits(Rate.of(int((~allowed).sum()), size), share)


def test_a_cell_depends_on_its_seed_and_not_on_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    first = coverage.interval_misses(40, 0.1, datasets=700)
    assert coverage.interval_misses(40, 0.1, datasets=700, seed=1) != first
    monkeypatch.setattr(coverage, "BATCH_ITEMS", 123)
    coverage._failures.clear_cache()
    assert coverage.interval_misses(40, 0.1, datasets=700) == first
    coverage._failures.clear_cache()


@pytest.mark.parametrize("against", ["report", "1/32"])
def test_the_monitor_alarms_at_the_same_time_in_numpy_and_jax(against: str) -> None:
    """T10 on 300 streams of an overconfident guard; at the loose level the money that still waits matters."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(10), 300)
        reach = ClosedForm(8).quantile(Fraction(31, 32))
        p, allowed = map(np.asarray, jax.vmap(coverage.items, (0, None, None, None))(keys, 120, 8.0, reach))
        doubts = 1 - p if against == "report" else np.full(p.shape, 1 / 32)
        alarm_time = jax.jit(jax.vmap(coverage.alarm_time, (0, 0, None)))
        found = {
            delta: np.asarray(alarm_time(doubts, ~allowed, 1 / float(delta)))
            for delta in (Fraction(1, 20), Fraction(9, 10))
        }
    for delta, times in found.items():
        watch = Monitor(delta, against)
        for reports, labels, time in zip(p, allowed, times):
            alarm = watch.run(reports, labels)[0].alarm
            assert time == (0 if alarm is None else alarm.time)
    strict = found[Fraction(1, 20)]
    assert 0 in strict and (strict > 0).sum() > 50


def test_false_alarms_at_any_time_stay_below_delta_and_an_overconfident_guard_is_found_out() -> None:
    """T10: 10^5 streams of a calibrated guard, looked at after every send; kappa 8 is found out in most."""
    calm = coverage.alarm_times(1, "31/32", "0.1", 100)
    assert calm.size == DATASETS and 0 < (calm > 0).sum() <= most(0.1)
    wrong = coverage.alarm_times(8, "31/32", "0.1", 100)
    assert (wrong > 0).mean() > 0.75


def test_impossible_cells_are_refused() -> None:
    for call in (
        lambda: coverage.interval_misses(0, 0.5),
        lambda: coverage.interval_misses(10, 1.5),
        lambda: coverage.order_violations({"all": 10}, 10, 0.05),
        lambda: coverage.alarm_times(1, "31/32", 0.05, 5000),
        lambda: coverage.Chain(ALPHA, DELTA, method="holm"),
        lambda: coverage.alarm_times(1, "31/32", 5, 50),
    ):
        with pytest.raises(GuardError):
            call()
