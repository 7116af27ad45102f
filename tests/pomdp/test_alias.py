"""Alias tables: exact marginals recomputed from the packed integers, and draws that follow them exactly."""

from __future__ import annotations

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pomdp.agents import draw_lanes
from pomdp.alias import AliasError, AliasTable, draw, pair
from pomdp.rational import RationalMatrix
from pomdp.testing import distributions


def columns_of(table: AliasTable, row: int) -> list[tuple[int, int, int]]:
    """(threshold, own outcome, alias's outcome) of each column of a row, in Python integers."""
    bits = table.bits if table.row_bits is None else int(table.row_bits[row])
    start = row << bits if table.offsets is None else int(table.offsets[row])
    found = []
    for column in range(1 << bits):
        entry = int(table.entries[start + column])
        if table.aliases is None:
            threshold, alias = entry >> 10, entry & 1023
        else:
            threshold, alias = entry, int(table.aliases[start + column])
        if table.outcomes is not None:
            found.append((threshold, *(int(table.outcomes[start + i]) for i in (column, alias))))
        else:
            found.append((threshold, column, alias))
    return found


def marginals(table: AliasTable, row: int) -> dict[int, Fraction]:
    """Exact probability of each outcome of a row, by the definition of the packed integers."""
    columns = columns_of(table, row)
    full = 2**32 if table.wide else 2**22
    parts: dict[int, int] = {}
    for threshold, own, alias in columns:
        parts[own] = parts.get(own, 0) + threshold
        parts[alias] = parts.get(alias, 0) + full - threshold
    return {i: Fraction(n, full * len(columns)) for i, n in parts.items() if n}


def assert_near(table: AliasTable, rows: list[dict[int, Fraction]]) -> None:
    for i, row in enumerate(rows):
        drawn = marginals(table, i)
        columns = len(columns_of(table, i))
        bound = Fraction(1, (2**32 if table.wide else 2**22) * columns)
        assert sum(drawn.values()) == 1
        assert set(drawn) <= set(row)
        assert all(abs(drawn.get(j, 0) - p) < bound for j, p in row.items())


def sparse_rows(rng: np.random.Generator, sizes: list[int], columns: int) -> list[dict[int, Fraction]]:
    """Rows with the given numbers of outcomes, with unequal rational probabilities."""
    found = []
    for size in sizes:
        weights = rng.integers(1, 10_000, size=size).tolist()
        where = sorted(rng.choice(columns, size=size, replace=False).tolist())
        found.append({j: Fraction(w, sum(weights)) for j, w in zip(where, weights, strict=True)})
    return found


# Numbers of outcomes of each row, and of columns; and then which arrays the table has.
FORMS = {
    "columns are outcomes": ([3, 1, 7, 8], 8, set()),
    "one outcome": ([1, 1], 1, set()),
    "outcomes listed": ([3, 1, 4] * 300, 900, {"outcomes"}),
    "always one of many": ([1] * 2000, 900, {"outcomes"}),
    "rows of their own size": ([1, 2, 5] * 300 + [900], 900, {"outcomes", "offsets", "row_bits"}),
    "more than 1024 outcomes": ([1500, 1], 1500, {"aliases"}),
    "one wide row among many": ([2] * 300 + [3000], 3000, {"aliases", "outcomes", "offsets", "row_bits"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_marginals_are_the_probabilities_to_within_the_stated_bound(form: str) -> None:
    sizes, columns, arrays = FORMS[form]
    rows = sparse_rows(np.random.default_rng(1), sizes, columns)
    exact = AliasTable.build(RationalMatrix.from_rows(rows, columns))
    optional = ("aliases", "outcomes", "offsets", "row_bits")
    assert {name for name in optional if getattr(exact, name) is not None} == arrays
    assert_near(exact, rows)
    floats = AliasTable.build(RationalMatrix.from_rows(rows, columns).to_csr())
    assert_near(floats, rows)


@given(st.data())
def test_marginals_of_any_rows(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 20))
    rows = data.draw(st.lists(distributions(columns), min_size=1, max_size=5))
    assert_near(AliasTable.build(RationalMatrix.from_rows(rows, columns)), rows)


@pytest.mark.parametrize("numbers", [(1, 1), (1, 3 * 10**8), (10**14, 1)])
def test_probabilities_too_small_for_a_threshold_are_rounded(numbers: tuple[int, int]) -> None:
    first, last = (Fraction(n, 10**15) for n in numbers)
    rows = [{0: first, 1: 1 - first - last, 2: last}]
    assert_near(AliasTable.build(RationalMatrix.from_rows(rows, 3)), rows)


@given(st.integers(1, 17), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_pairing_gives_every_column_back_exactly_its_weight(W: int, full: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(W * full, rng.dirichlet(np.full(W, 0.5), size=20))
    thresholds, aliases = pair(weights, full)
    assert np.all((thresholds >= 0) & (thresholds < full))
    for row, threshold, alias in zip(weights, thresholds, aliases, strict=True):
        back = threshold + np.bincount(alias, weights=full - threshold, minlength=W)
        assert np.array_equal(back, row)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_words_together_draw_each_outcome_exactly_as_often_as_the_integers_say(size: int) -> None:
    rows = sparse_rows(np.random.default_rng(2), [size], size)
    table = AliasTable.build(RationalMatrix.from_rows(rows, size))
    # A draw depends on the top 22 + bits of a word, so this is one word of each kind, with any rest.
    shift = 32 - 22 - table.bits
    kinds = np.arange(2 ** (22 + table.bits), dtype=np.uint32)
    for rest in (0, 2**shift - 1):
        drawn = draw(table, np.zeros_like(kinds), kinds << np.uint32(shift) | np.uint32(rest))
        counts = np.bincount(drawn, minlength=size).tolist()
        assert {j: Fraction(n, len(kinds)) for j, n in enumerate(counts)} == marginals(table, 0)


@pytest.mark.parametrize("form", FORMS)
def test_draws_follow_the_columns_and_are_the_same_in_jax(form: str) -> None:
    sizes, outcomes, _ = FORMS[form]
    rng = np.random.default_rng(4)
    table = AliasTable.build(RationalMatrix.from_rows(sparse_rows(rng, sizes, outcomes), outcomes))
    row = rng.integers(0, len(sizes), size=3000).astype(np.uint32)
    row[:1000] = len(sizes) - 1
    word, second = rng.integers(0, 2**32, size=(2, 3000), dtype=np.uint32)
    drawn = draw(table, row, word, second)
    columns = {i: columns_of(table, i) for i in set(row.tolist())}
    for i, w, extra, got in zip(row.tolist(), word.tolist(), second.tolist(), drawn.tolist(), strict=True):
        # The word as a number in [0, 1) times the number of columns: the column, and the place within it.
        column, place = divmod(w * len(columns[i]), 2**32)
        threshold, own, alias = columns[i][column]
        below = extra < threshold if table.wide else place >> 10 < threshold
        assert got == (own if below else alias)
    in_jax = draw_lanes(_on_device(table), *(jnp.asarray(x) for x in (row, word, second)))
    assert in_jax.dtype == jnp.uint32 and np.array_equal(in_jax, drawn)


def _on_device(table: AliasTable) -> AliasTable:
    names = ("entries", "aliases", "outcomes", "offsets", "row_bits")
    arrays = {name: getattr(table, name) for name in names}
    return AliasTable(table.bits, **{n: None if x is None else jnp.asarray(x) for n, x in arrays.items()})


@pytest.mark.parametrize(
    "rows", [[[0.5, 0.5], [0.5, 0.4]], [[1.0, 0.0], [1.5, -0.5]], [[1.0, 0.0], [0.0, 0.0]]]
)
def test_rows_that_are_no_distribution_are_refused_by_number(rows: list[list[float]]) -> None:
    with pytest.raises(AliasError, match="row 1 "):
        AliasTable.build(csr_array(np.array(rows)))
    with pytest.raises(AliasError, match="row 1 "):
        exact = [{j: Fraction(p) for j, p in enumerate(row)} for row in rows]
        AliasTable.build(RationalMatrix.from_rows(exact, 2))
