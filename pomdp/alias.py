"""Alias tables with integer thresholds: one word and one entry draw an outcome; imports pomdp.rational.

A row of n outcomes gets 2^k >= n columns. The top k bits of a random word name the column, the bits below are
compared with the column's threshold: the column's own outcome below it, its alias from there on. Columns
are a power of two so that one word serves both, exactly and independently: no float takes part in a draw,
and every engine that has the words draws the same outcomes.

A packed entry holds a 22-bit threshold above a 10-bit alias. Rows of more than 1024 outcomes make the table
wide: thresholds of 32 bits in one array, aliases in another, and a draw takes a second word.
Source: Walker 1977; Vose, A linear algorithm for generating random numbers with a given distribution (1991).
Differs from the source: probabilities are rounded to integers first, so the pairing itself is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pomdp.rational import RationalMatrix

THRESHOLD_BITS, WIDE_BITS = 22, 32
ALIAS_BITS = 10
ALIAS_MASK = np.uint32(2**ALIAS_BITS - 1)
THRESHOLD_MASK = np.uint32(2**32 - 2**ALIAS_BITS)

# Below this size a table lies in a core's own cache in any form, and the fewest look-ups win.
SMALL_BYTES = 2**18
# Float rows within this of 1 are divided by their sum.
SUM_TOLERANCE = 1e-8
# JAX indexes with 32 bits, signed.
MAX_ENTRIES = 2**31 - 1
# Entries of the tables that are built at one time.
SLAB_ENTRIES = 2**20


class AliasError(ValueError):
    """Rows that are no distributions, or too large for a table; the message names the row."""


@dataclass(frozen=True, eq=False)
class AliasTable:
    """Distributions of R rows, ready to be drawn from with `draw`.

    `bits`: k, with 2^k columns in every row (in a ragged table, in the largest). `entries` uint32 `[N]`:
    threshold * 2^10 + alias, or 32-bit thresholds where `aliases` uint32 `[N]` is there (wide). `outcomes`
    uint32 `[N]`: the outcome of each column, None where the column is the outcome. `offsets`, `row_bits`
    uint32 `[R]`: where each row begins and its own k, None where all rows have 2^bits columns.
    """

    bits: int
    entries: np.ndarray
    aliases: np.ndarray | None
    outcomes: np.ndarray | None
    offsets: np.ndarray | None
    row_bits: np.ndarray | None

    @property
    def wide(self) -> bool:
        """Whether a draw takes a second word."""
        return self.aliases is not None

    @classmethod
    def build(cls, rows: RationalMatrix | csr_array) -> AliasTable:
        """The table of row-stochastic `rows` `[R, C]`, exact or float64.

        Outcome c of row i is drawn with a probability that differs from `rows[i, c]` by less than 2^-(22 +
        k), 2^k being the columns of the row (2^-(32 + k) in a wide table), and never if `rows[i, c]` is 0.
        Float rows add the rounding of their sum. Raises AliasError where a row is no distribution.
        """
        support = _Support.of(rows)
        form = _form(support)
        widths = np.int64(1) << form.row_bits.astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(widths)])
        if offsets[-1] > MAX_ENTRIES:
            raise AliasError(f"the alias table would have {offsets[-1]} entries, more than {MAX_ENTRIES}")
        entries = np.zeros(offsets[-1], dtype=np.uint32)
        aliases = np.zeros_like(entries) if form.wide else None
        outcomes = None if form.direct else np.zeros_like(entries)
        threshold_bits = WIDE_BITS if form.wide else THRESHOLD_BITS
        counts = support.counts(form.row_bits + threshold_bits)
        for chosen, bits in _slabs(form.row_bits):
            weights, names = support.columns(chosen, counts, 1 << bits, form.direct)
            thresholds, local = pair(weights, 1 << threshold_bits)
            places = (offsets[chosen][:, None] + np.arange(1 << bits)).ravel()
            if aliases is None:
                entries[places] = (thresholds << ALIAS_BITS | local).ravel()
            else:
                entries[places], aliases[places] = thresholds.ravel(), local.ravel()
            if outcomes is not None:
                outcomes[places] = names.ravel()
        ragged = form.ragged
        return cls(
            bits=int(form.row_bits.max()),
            entries=entries,
            aliases=aliases,
            outcomes=outcomes,
            offsets=offsets[:-1].astype(np.uint32) if ragged else None,
            row_bits=form.row_bits.astype(np.uint32) if ragged else None,
        )


def draw(
    table: AliasTable,
    row: Any,
    word: Any,
    second: Any = None,
    take: Callable[[Any, Any], Any] = np.take,
    where: Callable[[Any, Any, Any], Any] = np.where,
) -> Any:
    """The outcome uint32 `[...]` of each `row` uint32 `[...]` that the random `word` uint32 `[...]` names.

    `second`: a further random word, which only wide tables read. `take` and `where` are the engine's own
    `array[index]` and choice; the table's arrays are the engine's too.
    """
    one = np.uint32(1)
    if table.offsets is None:
        bits: Any = np.uint32(table.bits)
        base = row << bits
    else:
        bits, base = take(table.row_bits, row), take(table.offsets, row)
    # In two shifts, because a row of one column would shift by all 32 bits at once.
    column = (word >> one) >> (np.uint32(31) - bits)
    entry = take(table.entries, base + column)
    if table.aliases is None:
        chosen = where(word << bits < entry & THRESHOLD_MASK, column, entry & ALIAS_MASK)
    else:
        chosen = where(second < entry, column, take(table.aliases, base + column))
    return chosen if table.outcomes is None else take(table.outcomes, base + chosen)


def pair(weights: np.ndarray, full: int) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds and aliases int64 `[R, W]` of the columns of each row of integer `weights` `[R, W]`.

    Each row sums to W * `full`. Of `full` equal parts of column c, `threshold[c]` go to c and the rest to
    `alias[c]`; every column gets back exactly its weight. A full column has threshold 0 and itself as alias.

    One light column (at most `full`) is filled up from the current heavy one in each round; a heavy column
    that has become light is filled up from the next heavy one. All rows go through their rounds together.
    """
    R, W = weights.shape
    order = np.argsort(weights > full, axis=1, kind="stable")
    sorted_weights = np.take_along_axis(weights, order, axis=1)
    rows = np.arange(R)
    light, first_heavy = np.zeros(R, dtype=np.int64), np.sum(weights <= full, axis=1)
    heavy = first_heavy.copy()
    rest = sorted_weights[rows, np.minimum(heavy, W - 1)]
    thresholds, aliases = np.zeros_like(weights), np.tile(np.arange(W), (R, 1))
    for _ in range(W):
        # Once the heavy column is light, it is itself the one to fill; so are all without a heavy one left.
        fill_light = (light < first_heavy) & ((rest > full) | (heavy >= W))
        position = np.where(fill_light, light, np.minimum(heavy, W - 1))
        giver = np.where(fill_light, heavy, heavy + 1)
        amount = np.where(fill_light, sorted_weights[rows, position], rest)
        partial = (amount < full) & (giver < W)
        column = order[rows, position]
        giver_column = order[rows, np.minimum(giver, W - 1)]
        thresholds[rows, column] = np.where(partial, amount, 0)
        aliases[rows, column] = np.where(partial, giver_column, column)
        next_rest = sorted_weights[rows, np.minimum(heavy + 1, W - 1)] + rest - full
        rest = np.where(fill_light, np.where(heavy < W, rest - (full - amount), rest), next_rest)
        light, heavy = light + fill_light, heavy + ~fill_light
    return thresholds, aliases


@dataclass(frozen=True, eq=False)
class _Support:
    """Rows in CSR order without zeros; `probability` holds numerators where there are `denominators`."""

    size: int
    starts: np.ndarray
    outcomes: np.ndarray
    probability: np.ndarray
    denominators: np.ndarray | None

    @classmethod
    def of(cls, rows: RationalMatrix | csr_array) -> _Support:
        if isinstance(rows, RationalMatrix):
            wrong = [i for i, total in enumerate(rows.row_sums()) if total != 1]
            support = cls(rows.shape[1], rows.indptr, rows.indices, rows.numerators, rows.denominators)
        else:
            matrix = csr_array(rows, copy=True).astype(np.float64)
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            sums = np.asarray(matrix.sum(axis=1)).ravel()
            wrong = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE)).tolist()
            data = matrix.data / np.repeat(sums, np.diff(matrix.indptr))
            support = cls(matrix.shape[1], matrix.indptr, matrix.indices, data, None)
        if wrong or np.any(support.probability < 0):
            where = wrong[0] if wrong else int(support.owner()[np.flatnonzero(support.probability < 0)[0]])
            raise AliasError(
                f"row {where} is no distribution: entries must be >= 0 and sum to 1, as [0.5, 0.5]"
            )
        return support

    def owner(self) -> np.ndarray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def counts(self, bits: np.ndarray) -> np.ndarray:
        """Integers near probability * 2^bits[row], off by less than 1, that sum to 2^bits in each row."""
        owner, scale = self.owner(), np.int64(1) << bits.astype(np.int64)
        if self.denominators is None:
            scaled = self.probability * scale[owner]
            counts = np.floor(scaled).astype(np.int64)
            remainder = scaled - counts
        else:
            divisor = self.denominators[owner]
            product = self.probability * scale[owner].astype(object)
            counts = (product // divisor).astype(np.int64)
            remainder = ((product % divisor) / divisor).astype(np.float64)
        missing = scale - np.add.reduceat(counts, self.starts[:-1])
        # Largest remainders take what rounding down has left over.
        order = np.lexsort((-remainder, owner))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - self.starts[:-1][owner]
        counts += rank < missing[owner]
        return counts

    def columns(
        self, chosen: np.ndarray, counts: np.ndarray, width: int, direct: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Counts and outcomes int64 `[len(chosen), width]` of some rows by column, zeros elsewhere."""
        sizes = np.diff(self.starts)[chosen]
        row = np.repeat(np.arange(len(chosen)), sizes)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entry = np.repeat(self.starts[chosen], sizes) + nth
        column = self.outcomes[entry] if direct else nth
        weights, names = np.zeros((2, len(chosen), width), dtype=np.int64)
        weights[row, column], names[row, column] = counts[entry], self.outcomes[entry]
        return weights, names


@dataclass(frozen=True, eq=False)
class _Form:
    """How a table lies in memory: bits of each row, and which of the optional arrays it has."""

    row_bits: np.ndarray
    direct: bool
    ragged: bool
    wide: bool


def _form(support: _Support) -> _Form:
    """The form with the fewest look-ups among those that are small or near the smallest."""
    row_bits = np.array([(int(n) - 1).bit_length() for n in np.diff(support.starts)])
    R, most, all_columns = len(row_bits), int(row_bits.max()), (support.size - 1).bit_length()
    wide = most > ALIAS_BITS
    entry = 8 if wide else 4
    ragged = int(np.sum(2**row_bits)) * (entry + 4) + 8 * R
    even = R * 2**most * (entry + 4)
    direct = R * 2**all_columns * entry
    if (wide or all_columns <= ALIAS_BITS) and direct <= max(SMALL_BYTES, min(even, 4 * ragged)):
        return _Form(np.full(R, all_columns), True, False, wide)
    if even <= max(SMALL_BYTES, 4 * ragged):
        return _Form(np.full(R, most), False, False, wide)
    return _Form(row_bits, False, True, wide)


def _slabs(row_bits: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Rows with equal bits, a bounded number of columns at a time."""
    for bits in np.unique(row_bits).tolist():
        rows = np.flatnonzero(row_bits == bits)
        step = max(1, SLAB_ENTRIES >> bits)
        for start in range(0, len(rows), step):
            yield rows[start : start + step], bits
