"""T9, the share: Learn-then-Test by exact enumeration of samples in Fractions, and against peers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harnesses.guard.demo import demo_items
from harnesses.guard.learn_then_test import METHODS, share_threshold
from harnesses.guard.region import GuardError, regions

REPORTS = (0.875, 0.625, 0.125)
"""One report in each of two acting cells and one below the grid."""
GRID = ("3/4", "1/2")
ALPHA, DELTA, SIZE = F(1, 2), F(1, 4), 4


def samples(mass: Sequence[F], share: Sequence[F], size: int) -> Iterator[tuple[list[float], list[int], F]]:
    """All samples up to order, with exact probabilities; cell i has `mass` and `share` of bad items."""
    atoms = [(p, y, m * (1 - s if y else s)) for p, m, s in zip(REPORTS, mass, share) for y in (0, 1)]
    atoms = [atom for atom in atoms if atom[2]]
    for chosen in combinations_with_replacement(range(len(atoms)), size):
        counts = [chosen.count(i) for i in range(len(atoms))]
        chance = F(factorial(size), prod(factorial(c) for c in counts))
        for (_, _, weight), count in zip(atoms, counts):
            chance *= weight**count
        yield [atoms[i][0] for i in chosen], [atoms[i][1] for i in chosen], chance


def true_share(tau: float, mass: Sequence[F], share: Sequence[F]) -> F:
    cells = [(m, s) for p, m, s in zip(REPORTS, mass, share) if p >= tau]
    return sum((m * s for m, s in cells), F(0)) / sum((m for m, _ in cells), F(0))


def error(method: str, mass: Sequence[F], share: Sequence[F], size: int = SIZE, delta: F = DELTA) -> F:
    """Exact probability that a threshold is certified whose true share exceeds alpha."""
    wrong, total = F(0), F(0)
    for p, y, chance in samples(mass, share, size):
        found = share_threshold(p, y, ALPHA, delta, GRID, method)
        total += chance
        if any(t.rejected and true_share(float(t.tau), mass, share) > ALPHA for t in found.tests):
            wrong += chance
    assert total == 1
    return wrong


EIGHTHS = st.integers(0, 8).map(lambda i: F(i, 8))


@settings(max_examples=12)
@given(st.sampled_from(METHODS), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2), EIGHTHS, EIGHTHS)
def test_t9_no_true_hypothesis_is_rejected_more_often_than_delta(
    method: str, a: int, b: int, c: int, top: F, next_: F
) -> None:
    """T9: exactly, for monotone and other guards, with and without items below the grid."""
    mass = [F(i, a + b + c) for i in (a, b, c)]
    assert error(method, mass, [top, next_, F(1, 2)]) <= DELTA


# Laws just above alpha at both thresholds; in the later ones the top cell is worst and often empty.
CLOSE = [
    ((F(1, 2), F(1, 2)), (F(17, 32), F(17, 32))),
    ((F(1, 4), F(3, 4)), (F(3, 4), F(29, 64))),
    ((F(1, 8), F(7, 8)), (F(1), F(7, 16))),
]


@pytest.mark.parametrize(("mass", "share"), CLOSE)
@pytest.mark.parametrize("method", METHODS)
def test_t9_shares_just_above_alpha(method: str, mass: tuple[F, F], share: tuple[F, F]) -> None:
    """T9: the hardest laws, where an empty top cell hides that the share is too large."""
    full, cells = (*mass, F(0)), (*share, F(0))
    assert min(true_share(tau, full, cells) for tau in (0.75, 0.5)) > ALPHA
    found = error(method, full, cells)
    assert found <= DELTA
    empty = (1 - mass[0]) ** SIZE  # the bound that is proven for the chain that passes over empty selections
    assert found <= DELTA + empty


def test_t9_trying_every_threshold_at_delta_breaks_it() -> None:
    """T9: without a correction for the number of thresholds the error exceeds delta."""
    mass, share, delta = (F(1, 4), F(3, 4), F(0)), (F(513, 1024), F(513, 1024), F(0)), F(65, 256)
    wrong = F(0)
    for p, y, chance in samples(mass, share, 9):
        alone = [share_threshold(p, y, ALPHA, delta, [tau]).tau_act for tau in GRID]
        wrong += chance if any(tau is not None for tau in alone) else 0
    assert wrong > delta * F(11, 10)
    for method in METHODS:
        assert error(method, mass, share, 9, delta) <= delta


def test_t9_the_share_is_not_monotone_and_the_least_certified_threshold_is_returned() -> None:
    """T9: bad calls with the surest reports; the strict thresholds are not certified, the lower one is."""
    p = [0.9995] * 20 + [0.96] * 400
    y = [0] * 10 + [1] * 410
    for method in ("fallback", "holm", "bonferroni"):
        found = share_threshold(p, y, "0.05", "0.05", ["0.999", "0.95"], method)
        assert [t.rejected for t in found.tests] == [False, True]
        assert found.tau_act == 0.95 and (found.bad, found.sent) == (10, 420)
    assert share_threshold(p, y, "0.05", "0.05", ["0.999", "0.95"], "fixed-sequence").tau_act is None


@pytest.mark.parametrize("method", METHODS)
def test_t9_an_empty_selection_is_not_rejected_and_does_not_stop_the_search(method: str) -> None:
    """T9: no report reaches 0.999 or 0.995."""
    found = share_threshold([0.96] * 400, [1] * 400, "0.05", "0.05", ["0.95", "0.999", "0.995"], method)
    empty = found.tests[:2]
    assert [t.sent for t in empty] == [0, 0]
    assert all(t.p_value is None and not t.rejected for t in empty)
    assert found.tau_act == 0.95


def test_nothing_sent_at_all_is_told() -> None:
    found = share_threshold([0.1] * 9, [1] * 9, "0.05", "0.05")
    assert found.tau_act is None and found.share.rate is None
    assert found.why == "0 sent at the least threshold of the grid; one alone needs 59, none of them bad"
    assert found.thresholds("3/8").tau_act is None
    bad = share_threshold([0.9] * 99, [0] * 99, "0.05", "0.05", ["0.5", "0.95"])
    assert bad.why == "none of 2 thresholds, 1 of them empty, is certified to keep the share at or below 0.05"


COUNTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6)), min_size=1, max_size=6)


def items_of(cells: list[tuple[int, int]]) -> tuple[list[float], list[int], list[str]]:
    """Cells of (allowed, bad) items, surest first, and the grid between them."""
    p: list[float] = []
    y: list[int] = []
    for i, (allowed, bad) in enumerate(cells):
        p += [1 - i / 16] * (allowed + bad)
        y += [1] * allowed + [0] * bad
    return p, y, [str(F(16 - i, 16)) for i in range(len(cells))]


@given(COUNTS)
def test_p_values_agree_with_a_peer_and_corrections_with_their_definitions(
    cells: list[tuple[int, int]],
) -> None:
    """scipy's exact test for each threshold, 1 for an empty selection; Holm down the sorted p-values."""
    p, y, grid = items_of(cells)
    if not p:
        return
    found = share_threshold(p, y, "0.1", "0.07", grid, "holm")
    assert [float(t.tau) for t in found.tests] == sorted((float(F(t)) for t in grid), reverse=True)
    peer = [stats.binomtest(t.bad, t.sent, 0.1, "less").pvalue if t.sent else 1.0 for t in found.tests]
    assert [1.0 if t.p_value is None else t.p_value for t in found.tests] == pytest.approx(peer, rel=1e-9)
    ranked = sorted(range(len(peer)), key=peer.__getitem__)
    holm = [False] * len(peer)
    for rank, i in enumerate(ranked):
        if peer[i] > 0.07 / (len(peer) - rank):
            break
        holm[i] = True
    assert [t.rejected for t in found.tests] == holm
    bonferroni = share_threshold(p, y, "0.1", "0.07", grid, "bonferroni").tests
    assert [t.rejected for t in bonferroni] == [value <= 0.07 / len(peer) for value in peer]


@given(COUNTS)
def test_fallback_and_chain_are_their_definitions(cells: list[tuple[int, int]]) -> None:
    """Against plain loops over exact p-values in Fractions."""
    p, y, grid = items_of(cells)
    if not p:
        return
    alpha, delta, part = F(1, 10), F(7, 100), F(7, 100) / len(grid)
    tests = share_threshold(p, y, alpha, delta, grid).tests
    exact = [1 if not t.sent else _tail(t.bad, t.sent, alpha) for t in tests]
    held = F(0)
    for t, value in zip(tests, exact):
        held += part
        assert t.spent == held and t.rejected == (value <= held)
        held = held if t.rejected else F(0)
    chain = share_threshold(p, y, alpha, delta, grid, "fixed-sequence").tests
    going = True
    for t, value in zip(chain, exact):
        assert t.rejected == (going and t.sent > 0 and value <= delta)
        going = going and (t.rejected or t.sent == 0)


def _tail(k: int, n: int, rate: F) -> F:
    term, total = (1 - rate) ** n, F(0)
    for i in range(k + 1):
        total += term
        term = term * (n - i) / (i + 1) * rate / (1 - rate)
    return total


def test_holm_goes_on_where_bonferroni_stops() -> None:
    """30 good sends have p-value .9^30 = .042, between half of .07 and .07; 130 are certified at once."""
    p, y, grid = items_of([(30, 0), (100, 0)])
    rejected = {
        method: [t.rejected for t in share_threshold(p, y, "0.1", "0.07", grid, method).tests]
        for method in ("holm", "bonferroni")
    }
    assert rejected == {"holm": [True, True], "bonferroni": [False, True]}


def test_a_p_value_that_equals_delta_rejects() -> None:
    """Two sent, none bad, at 1/2: exactly 1/4."""
    assert share_threshold([0.9] * 2, [1, 1], "1/2", "1/4", ["1/2"]).tau_act == 0.5
    assert share_threshold([0.9] * 2, [1, 1], "1/2", "0.2499999999999999999", ["1/2"]).tau_act is None


def test_what_is_certified_is_what_the_guard_sends() -> None:
    """A threshold that is no float: the float returned sends the items that were counted."""
    below, above = 0.3333333333333333, np.nextafter(0.3333333333333333, 1)
    found = share_threshold([below] * 50 + [above] * 100, [0] * 50 + [1] * 100, "0.05", "0.05", ["1/3"])
    assert found.tau_act == above and found.sent == 100
    p = np.array([below, above])
    assert regions(p, found.thresholds(0)).tolist() == [1, 0]


def test_the_record_is_plain_and_the_demo_is_certified() -> None:
    data = demo_items(2000)
    found = share_threshold(data.p, data.y, "0.05", "0.1")
    told = json.loads(json.dumps(found.json(), allow_nan=False))
    assert told["tau_act"] == 0.9 and told["share"]["numerator"] == 24 and len(told["tests"]) == 13
    assert found.thresholds("0.95").collapsed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": []}, "the grid is empty"),
        ({"grid": ["1.5"]}, "grid threshold is 1.5"),
        ({"method": "best"}, "method is 'best'; give one of fallback"),
        ({"alpha": 0}, "alpha is 0"),
        ({"delta": 1}, "delta is 1"),
    ],
)
def test_what_is_no_test_is_refused_in_one_line(change: dict, words: str) -> None:
    with pytest.raises(GuardError, match=words) as caught:
        share_threshold(**({"p": [0.5], "y": [1], "alpha": 0.05, "delta": 0.05} | change))
    assert "\n" not in str(caught.value)
