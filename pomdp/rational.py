"""Sparse matrices of exact rationals, one denominator a row; imports only numpy and scipy.

Certificates are checked in integers, so every model keeps its numbers twice: as floats for the solver and the
simulator, and as these matrices. One denominator a row makes a row an integer vector, and the form canonical:
the same numbers always give the same integers, which is what a model's digest hashes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.sparse import csr_array

# A number written with more digits or a larger exponent is refused: as a rational it would fill the memory.
MAX_DIGITS = 400
MAX_EXPONENT = 400
_DIGITS = rf"\d{{1,{MAX_DIGITS}}}"
_NUMBER = re.compile(rf"[+-]?({_DIGITS}(\.\d{{0,{MAX_DIGITS}}})?|\.{_DIGITS})([eE][+-]?\d{{1,4}})?")
_RATIO = re.compile(rf"[+-]?{_DIGITS}/{_DIGITS}")


def read_rational(value: Any) -> Fraction:
    """The exact rational that `value` stands for: an int, Fraction, Decimal, float or text such as `0.85` or `17/20`.

    A float is read by its shortest decimal, so 0.85 is 17/20 and not the nearest binary fraction: what a person
    typed is what is meant. Raises ValueError for anything else, NaN and infinities included.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        return Fraction(repr(float(value)))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not a finite number")
        value = str(value)  # limited like a text: Decimal("1e999999999") would fill the memory
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text):
            exponent = re.search(r"[eE]([+-]?\d+)$", text)
            if exponent is None or abs(int(exponent.group(1))) <= MAX_EXPONENT:
                return Fraction(text)
        elif _RATIO.fullmatch(text) and int(text.split("/")[1]) != 0:
            return Fraction(text)
    raise ValueError(f"{str(value)[:40]!r} is not a number; write it as 0.85, 1e-3 or 17/20")


@dataclass(frozen=True, eq=False)
class RationalMatrix:
    """A sparse matrix `[rows, columns]` whose entry k of row i is `numerators[k] / denominators[i]`.

    `indptr` int64 `[rows + 1]` and `indices` int64 `[nnz]` are those of CSR, columns ascending within a row.
    `numerators` `[nnz]` and `denominators` `[rows]` hold Python integers: no zero numerators, denominators
    positive, and no common factor within a row, so that equal matrices have equal fields.
    """

    shape: tuple[int, int]
    indptr: np.ndarray
    indices: np.ndarray
    numerators: np.ndarray
    denominators: np.ndarray

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[int, Fraction]], columns: int) -> RationalMatrix:
        """From one mapping column -> value a row; zero values are dropped."""
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        indices: list[int] = []
        numerators: list[int] = []
        denominators: list[int] = []
        for i, row in enumerate(rows):
            entries = row.items() if len(row) == 1 else sorted(row.items())
            # Reading a Fraction's parts is slow, so each is read once.
            parts = [(j, n, v.denominator) for j, v in entries if (n := v.numerator)]
            below = {d for _, _, d in parts}
            if len(below) == 1:
                denominator = below.pop()
                indices.extend([j for j, _, _ in parts])
                numerators.extend([n for _, n, _ in parts])
            else:
                denominator = math.lcm(*below)
                indices.extend([j for j, _, _ in parts])
                numerators.extend([n * (denominator // d) for _, n, d in parts])
            denominators.append(denominator)
            indptr[i + 1] = len(indices)
        return cls(
            (len(rows), columns),
            indptr,
            np.array(indices, dtype=np.int64),
            _objects(numerators),
            _objects(denominators),
        )

    def row(self, i: int) -> dict[int, Fraction]:
        """Row i as a mapping column -> value, zeros left out."""
        start, stop = self.indptr[i], self.indptr[i + 1]
        denominator = self.denominators[i]
        return {
            int(j): Fraction(n, denominator)
            for j, n in zip(self.indices[start:stop], self.numerators[start:stop], strict=True)
        }

    def rows(self) -> Iterator[dict[int, Fraction]]:
        """Every row in order, as `row` gives it."""
        return (self.row(i) for i in range(self.shape[0]))

    def take(self, rows: np.ndarray) -> RationalMatrix:
        """The matrix whose row i is row `rows[i]` of this one."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        return RationalMatrix(
            (len(rows), self.shape[1]),
            indptr,
            self.indices[entries],
            self.numerators[entries],
            self.denominators[rows],
        )

    def to_csr(self) -> csr_array:
        """The nearest float64 matrix: each entry is the correctly rounded quotient."""
        denominators = np.repeat(self.denominators, np.diff(self.indptr))
        # Python's integer division rounds correctly whatever the size of the integers.
        data = (self.numerators / denominators).astype(np.float64)
        return csr_array((data, self.indices.copy(), self.indptr.copy()), shape=self.shape)

    def row_sums(self) -> list[Fraction]:
        """The exact sum of each row."""
        return [
            Fraction(sum(self.numerators[self.indptr[i] : self.indptr[i + 1]]), self.denominators[i])
            for i in range(self.shape[0])
        ]

    def rows_sum_to_one(self) -> bool:
        """Whether every row sums to 1 exactly, in integers alone."""
        up_to = list(accumulate(self.numerators.tolist(), initial=0))
        ends = self.indptr.tolist()
        return all(
            up_to[stop] - up_to[start] == denominator
            for start, stop, denominator in zip(ends, ends[1:], self.denominators.tolist(), strict=False)
        )

    def text(self) -> str:
        """A canonical text of all numbers, the same for equal matrices and for no others."""
        parts = (self.indptr.tolist(), self.indices.tolist(), list(self.numerators), list(self.denominators))
        return f"{self.shape}{parts}"


def _objects(values: Sequence[int]) -> np.ndarray:
    """A one-dimensional object array, which numpy would otherwise turn into int64 where it fits."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
