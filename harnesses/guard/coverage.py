"""Whether intervals, rules and the monitor keep their promises, counted over simulated data sets; imports JAX.

Every data set has its own key, the seed's key folded with the data set's number, so that a cell is the same whatever
the batch. Draws have 32 bits; reports, thresholds and wealth are float64, because rules decide on ties. The truth
about a threshold is the demo's closed form, so that no second sample blurs it. Imports demo, rate, monitor and tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from harnesses.guard.binomial import clopper_pearson, lower_end, upper_end
from harnesses.guard.demo import DOUBT, ClosedForm
from harnesses.guard.learn_then_test import GRID, METHODS
from harnesses.guard.monitor import KAPPAS, REPORT
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError, cut, probability
from harnesses.guard.tail import level, most_failures

DATASETS = 100_000
BATCH_ITEMS = 1 << 18
"""Items that are in memory at once: a few arrays of 2 MB, whatever the number of data sets."""


@dataclass(frozen=True)
class Misses:
    """How often a true rate lay outside: of the two-sided interval, above the upper, below the lower one-sided end."""

    two_sided: Rate
    upper: Rate
    lower: Rate


@dataclass(frozen=True)
class Violations:
    """`broken`: data sets on which the chosen threshold breaks alpha; `never`: those on which the rule never acts.

    `mean` is the average of the true rate (UAR or share) at the chosen threshold over all data sets, counting 0
    where the rule never acts; `se` is its standard error.
    """

    broken: Rate
    never: Rate
    mean: float
    se: float


@dataclass(frozen=True)
class Chain:
    """Learn-then-Test on the share: levels, grid and method as in `learn_then_test.share_threshold`.

    `method` is fallback or fixed-sequence, the two that go down the grid.
    """

    alpha: Any
    delta: Any
    grid: Sequence[Any] = GRID
    method: str = METHODS[0]

    def __post_init__(self) -> None:
        if self.method not in METHODS[:2]:
            raise GuardError(f"method is {self.method!r}; give {' or '.join(METHODS[:2])}")
        object.__setattr__(self, "alpha", level(self.alpha, "alpha"))
        object.__setattr__(self, "delta", level(self.delta, "delta"))
        taus = {probability(tau, "grid threshold") for tau in self.grid}
        object.__setattr__(self, "grid", tuple(sorted(taus, reverse=True)))

    def critical(self, count: int) -> np.ndarray:
        """Most bad ones `[R, count + 1]` with which a threshold that sends m is certified; -1 where none suffices.

        Row r is for r thresholds certified just before: fallback then spends (r + 1) / G of delta. A fixed sequence
        has one row, all of delta.
        """
        size = len(self.grid) if self.method == METHODS[0] else 1
        spent = [self.delta * (r + 1) / size for r in range(size)]
        return np.stack([critical_counts(count, self.alpha, part) for part in spent])


def critical_counts(count: int, rate: Fraction, bound: Fraction) -> np.ndarray:
    """`most_failures` of 0..count trials, -1 for none: int32 `[count + 1]`; only near ties need its exact sums."""
    trials = np.arange(count + 1)
    reached = stats.binom.ppf(float(bound), trials, float(rate))
    tail = stats.binom.cdf(reached, trials, float(rate))
    below = stats.binom.cdf(reached - 1, trials, float(rate))
    near = np.minimum(abs(tail - float(bound)), abs(below - float(bound))) <= 1e-9 * float(bound)
    found = np.where(trials > 0, reached - 1, -1).astype(np.int32)
    for m in trials[near & (trials > 0)]:
        exact = most_failures(int(m), rate, bound)
        found[m] = -1 if exact is None else exact
    return found


def allowances(disallowed: int, alpha: Any, delta: Any) -> dict[str, int]:
    """k of the naive, conformal and PAC rule: how many of so many disallowed items may pass; -1 where none acts."""
    rate = level(alpha, "alpha")
    pac = most_failures(disallowed, rate, level(delta, "delta"))
    return {
        "naive": math.floor(rate * disallowed),
        "conformal": math.floor(rate * (disallowed + 1)) - 1,
        "pac": -1 if pac is None else pac,
    }


def interval_misses(
    trials: int, rate: float, level: float = 0.95, datasets: int = DATASETS, seed: int = 0
) -> Misses:
    """Misses of the Clopper-Pearson ends at `level`, for `trials` items that fail with probability `rate`.

    The rate is rounded to a multiple of 2^-32, which is then the truth that the ends are held against.
    """
    bits = round(rate * 2**32)
    if trials < 1 or not 0 <= bits < 2**32:
        raise GuardError(
            f"{trials} trials at rate {rate}; give at least 1 and a rate from 0 to 1, such as 0.02"
        )
    truth, k = bits / 2**32, np.arange(trials + 1)
    low, high = clopper_pearson(k, trials, level)
    outside = np.stack(
        [
            (truth < low) | (truth > high),
            truth > upper_end(k, trials, level),
            truth < lower_end(k, trials, level),
        ]
    )
    with jax.enable_x64(True):
        counts = np.asarray(_failures(trials, datasets, seed, np.uint32(bits)))
    missed = outside[:, counts].sum(axis=1)
    return Misses(*(Rate.of(count, datasets) for count in missed))


def order_violations(
    allowances: dict[str, int],
    disallowed: int,
    alpha: float,
    kappa: float = 1.0,
    datasets: int = DATASETS,
    seed: int = 0,
) -> dict[str, Violations]:
    """Violations of UAR <= alpha of rules that act strictly above the (k+1)-th largest disallowed report.

    `allowances` holds k of each rule, negative where it never acts; all rules see the same data sets of `disallowed`
    reports. Their law among disallowed items: u has density 4 u^3, the report is 1 - c u^3 / kappa.
    """
    k = np.array(list(allowances.values()), dtype=np.int64)
    if disallowed < 1 or k.size == 0 or k.max() >= disallowed:
        raise GuardError(
            f"allowances {allowances} of {disallowed} disallowed items; each is below their number"
        )
    with jax.enable_x64(True):
        taus = _order_taus(disallowed, int(k.max()) + 1, datasets, seed, jnp.asarray(k), float(kappa))
        truth = np.asarray(closed_uar(taus, float(kappa)))
    return {name: _violations(truth[:, place], alpha) for place, name in enumerate(allowances)}


def chain_violations(
    chain: Chain, count: int, kappa: float = 1.0, datasets: int = DATASETS, seed: int = 0
) -> Violations:
    """Violations of share <= alpha of Learn-then-Test on data sets of `count` items, allowed or not."""
    critical = chain.critical(count)
    grid = np.array([float(cut(tau)) for tau in chain.grid])
    with jax.enable_x64(True):
        rows, stops = jnp.asarray(critical), len(critical) == 1
        places = _chain_places(count, datasets, stops, seed, jnp.asarray(grid), rows, float(kappa))
        taus = np.append(grid, np.inf)[np.asarray(places)]
        truth = np.asarray(closed_share(taus, float(kappa)))
    return _violations(truth, float(chain.alpha))


def disallowed_reports(key: Any, count: int, kappa: Any) -> Any:
    """Reports float64 `[count]` of disallowed items. The key is consumed."""
    u = jnp.sqrt(jnp.sqrt(_uniform(key, (count,))))
    return 1 - DOUBT * u * u * u / kappa


def items(key: Any, count: int, kappa: Any, reach: Any = 1.0) -> tuple[Any, Any]:
    """Reports float64 `[count]` and labels bool `[count]` of items whose u is below `reach`. The key is consumed."""
    u, v = _uniform(key, (2, count))
    u = reach * u
    doubt = DOUBT * u * u * u
    return 1 - doubt / kappa, v >= doubt


def order_taus(reports: Any, allowances: Any, steps: int) -> Any:
    """Thresholds `[R]` next above the (k+1)-th largest of `reports` `[N]`, for each k of `allowances` `[R]`.

    Infinite for k < 0. `steps` is the largest k + 1: so many distinct values are looked at, from the top, which is
    cheaper than sorting; with ties the (k+1)-th largest is met earlier.
    """

    def step(_: int, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        current, found = carry
        reached = jnp.sum(reports >= current) > allowances
        found = jnp.where((allowances >= 0) & reached & jnp.isinf(found), current, found)
        return jnp.max(jnp.where(reports < current, reports, -jnp.inf)), found

    start = (jnp.max(reports), jnp.full(allowances.shape, jnp.inf))
    return jnp.nextafter(jax.lax.fori_loop(0, steps, step, start)[1], jnp.inf)


def chain_place(reports: Any, allowed: Any, grid: Any, critical: Any, stops: bool) -> Any:
    """Place in the falling `grid` `[G]` of the last threshold that Learn-then-Test certifies; G where none is.

    `critical` int `[G, n + 1]` as in `Chain.critical`: row r holds after r rejections in a row. With `stops` it has
    one row, and the chain ends at the first threshold that sends something and is not rejected.
    """
    # An item is sent from the first threshold on that its report reaches: one histogram in place of G scans.
    first = grid.size - jnp.searchsorted(grid[::-1], reports, side="right")
    cells = jnp.zeros((grid.size + 1, 2), jnp.int32).at[first, allowed.astype(jnp.int32)].add(1)
    bad, good = jnp.cumsum(cells[:-1], axis=0).T

    def step(carry: tuple[Any, Any, Any], now: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any, Any], None]:
        run, ended, last = carry
        place, wrong, sent = now
        rejected = (wrong <= critical[0 if stops else run, sent]) & ~ended
        ended = ended | (stops & ~rejected & (sent > 0))
        return (jnp.where(rejected, run + 1, 0), ended, jnp.where(rejected, place, last)), None

    start = (jnp.int32(0), jnp.bool_(False), jnp.int32(grid.size))
    rows = (jnp.arange(grid.size, dtype=jnp.int32), bad, bad + good)
    return jax.lax.scan(step, start, rows)[0][2]


def closed_uar(tau: Any, kappa: float) -> Any:
    """UAR `[...]` of the demo's population at thresholds `[...]`; 0 at infinity."""
    return _reach(tau, kappa) ** 4


def closed_share(tau: Any, kappa: float) -> Any:
    """Bad share `[...]` of the demo's population at thresholds `[...]`; 0, where nothing is sent, stands for none."""
    return DOUBT * _reach(tau, kappa) ** 3 / 4


def _reach(tau: Any, kappa: float) -> Any:
    """u below which the report is at least tau."""
    return jnp.cbrt(jnp.clip(kappa * (1 - jnp.asarray(tau)) / DOUBT, 0, 1))


def alarm_times(
    kappa: float,
    tau: Any,
    delta: Any,
    horizon: int,
    against: Any = REPORT,
    datasets: int = DATASETS,
    seed: int = 0,
) -> np.ndarray:
    """Times int32 `[datasets]` of the monitor's alarm on streams of `horizon` calls sent at `tau`; 0 for none.

    Each stream draws calls that the demo's guard sends alone. `against` and the bets are those of `Monitor`. Money
    is a plain float64 here, which holds it while 2^horizon is one.
    """
    if not 1 <= horizon <= 1000:
        raise GuardError(f"horizon is {horizon}; give 1 to 1000 items, such as 500")
    reach = ClosedForm(kappa).quantile(probability(tau, "tau"))
    promise = -1.0 if against == REPORT else float(probability(against, "against"))
    need = 1 / float(level(delta, "delta"))
    with jax.enable_x64(True):
        return np.asarray(_alarm_times(horizon, datasets, seed, float(kappa), reach, promise, need))


def alarm_time(doubts: Any, bad: Any, need: Any) -> Any:
    """Time, counted from 1, at which all money, waiting money included, reaches `need`; 0 where it never does.

    `doubts` float64 `[T]` above 0 and `bad` bool `[T]`. Source: T10; bets and entries as in `wealth.grow`.
    """
    kappas = jnp.asarray(KAPPAS)
    bets = kappas.size

    def step(carry: tuple[Any, Any], now: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any], None]:
        money, found = carry
        time, doubt, wrong = now
        stake = jnp.minimum((kappas - 1) * doubt, 0.5)
        factor = 1 - stake + jnp.where(wrong, stake / doubt, 0.0)
        money = (money + 1 / (time * (time + 1.0)) / bets) * factor
        whole = jnp.sum(money) + 1 / (time + 1.0)
        return (money, jnp.where((found == 0) & (whole >= need), time, found)), None

    times = jnp.arange(1, doubts.size + 1, dtype=jnp.int32)
    start = (jnp.zeros(bets), jnp.int32(0))
    return jax.lax.scan(step, start, (times, doubts, bad))[0][1]


def _uniform(key: Any, shape: tuple[int, ...]) -> Any:
    """Float64 draws strictly between 0 and 1, the middles of 2^32 cells."""
    return (jax.random.bits(key, shape, jnp.uint32).astype(jnp.float64) + 0.5) / 2**32


def _violations(truth: np.ndarray, alpha: float) -> Violations:
    size = truth.size
    return Violations(
        Rate.of(int((truth > alpha).sum()), size),
        Rate.of(int((truth == 0).sum()), size),
        float(truth.mean()),
        float(truth.std(ddof=1) / np.sqrt(size)),
    )


def _each(outcome: Callable[[Any], Any], size: int, datasets: int, seed: Any) -> Any:
    """The outcome of each data set's key, stacked; one batch, of about BATCH_ITEMS items, is in memory at a time."""
    batch = max(1, min(datasets, BATCH_ITEMS // size))
    batches = -(-datasets // batch)
    numbers = jnp.arange(batches * batch, dtype=jnp.uint32).reshape(batches, batch)
    root = jax.random.key(seed)
    one = jax.vmap(lambda number: outcome(jax.random.fold_in(root, number)))
    found = jax.lax.map(one, numbers)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:datasets], found)


@partial(jax.jit, static_argnums=(0, 1))
def _failures(trials: int, datasets: int, seed: Any, bits: Any) -> Any:
    def count(key: Any) -> Any:
        return jnp.sum(jax.random.bits(key, (trials,), jnp.uint32) < bits, dtype=jnp.int32)

    return _each(count, trials, datasets, seed)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _order_taus(disallowed: int, steps: int, datasets: int, seed: Any, allowances: Any, kappa: Any) -> Any:
    def taus(key: Any) -> Any:
        return order_taus(disallowed_reports(key, disallowed, kappa), allowances, steps)

    return _each(taus, disallowed, datasets, seed)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _chain_places(
    count: int, datasets: int, stops: bool, seed: Any, grid: Any, critical: Any, kappa: Any
) -> Any:
    def place(key: Any) -> Any:
        return chain_place(*items(key, count, kappa), grid, critical, stops)

    return _each(place, count, datasets, seed)


@partial(jax.jit, static_argnums=(0, 1))
def _alarm_times(
    horizon: int, datasets: int, seed: Any, kappa: Any, reach: Any, promise: Any, need: Any
) -> Any:
    def time(key: Any) -> Any:
        reports, allowed = items(key, horizon, kappa, reach)
        doubts = jnp.where(promise < 0, 1 - reports, promise)
        return alarm_time(doubts, ~allowed, need)

    return _each(time, horizon, datasets, seed)
