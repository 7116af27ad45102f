"""Entropy, mutual information and data processing of finite distributions, in bits; imports pomdp.model alone.

A distribution is an array of any shape, a sequence, or a mapping {outcome: p}; a joint distribution of (X, Y) is an
array `[X, Y]` or a sparse mapping {(x, y): p}. Entries are floats, which must sum to 1 within 1e-9, or Fractions (and
whole numbers), which must sum to 1 exactly and whose ratios are formed exactly. Outcomes of probability 0 count for
nothing, since p log p tends to 0. Every function raises ModelError for what is no distribution.
Source: M1 §1.5.1 (data processing); the definitions are Shannon's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pomdp.model import ModelError

# Floats come from filters and divisions; rounding stays far below this, mistakes far above.
SUM_TOLERANCE = 1e-9
# Conditional distributions of floats that differ by no more than this are taken for the same.
SAME = 1e-9

Probability = float | Fraction
Distribution = np.ndarray | Sequence[Any] | Mapping[Any, Any]
Pair = tuple[Hashable, Hashable]


@dataclass(frozen=True)
class DataProcessing:
    """What of X survives the way X -> Y -> Z: `before` I(X;Y), `after` I(X;Z), in bits.

    `lossless`: Y tells nothing of X that Z does not, which is exactly when the two are equal. It is decided by
    comparing conditional distributions, exactly for Fractions, not by comparing the two numbers.
    """

    before: float
    after: float
    lossless: bool

    @property
    def lost(self) -> float:
        """I(X;Y) - I(X;Z) >= 0; exactly 0 where nothing is lost."""
        return 0.0 if self.lossless else max(0.0, self.before - self.after)


def entropy(distribution: Distribution) -> float:
    """`H` in bits, from 0 to log2 of the number of outcomes; of an array `[X, Y]` that of the pair."""
    return _entropy(_single(distribution).values())


def conditional_entropy(joint: Distribution) -> float:
    """`H(X|Y)` in bits of a joint distribution of (X, Y): what is left of X once Y is known, from 0 to H(X)."""
    table = _joint(joint)
    given = _marginal(table, 1)
    return max(0.0, math.fsum(-float(p) * _log2(p, given[y]) for (_, y), p in table.items()))


def mutual_information(joint: Distribution) -> float:
    """`I(X;Y)` in bits of a joint distribution of (X, Y), from 0 (independent) to min(H(X), H(Y)).

    With Fractions that are independent the result is exactly 0; with floats its error is some 1e-16 a bit.
    """
    return _information(_joint(joint))


def marginal(joint: Distribution, part: int) -> dict[Hashable, Probability]:
    """The distribution of X (`part` 0) or Y (`part` 1) as {outcome: p}, outcomes of probability 0 left out."""
    if part not in (0, 1):
        raise ModelError(f"part {part} of a joint distribution of (X, Y); give 0 for X or 1 for Y")
    return _marginal(_joint(joint), part)


def processed(joint: Distribution, channel: Distribution) -> dict[Pair, Probability]:
    """The joint distribution {(x, z): p} of X and Z, where Z is drawn given Y alone.

    `channel`: an array `[Y, Z]` whose rows are distributions, or a mapping from each possible y to a distribution
    over z (a mapping or an array) or, for a deterministic channel, to z itself.
    """
    table = _joint(joint)
    rows = _channel(channel, _marginal(table, 1))
    found: dict[Pair, Probability] = {}
    for (x, y), p in table.items():
        for z, q in rows[y].items():
            found[x, z] = found.get((x, z), 0) + p * q
    return found


def data_processing(joint: Distribution, channel: Distribution) -> DataProcessing:
    """I(X;Y), I(X;Z) and whether they are equal, for X -> Y -> Z with `channel` as in `processed`.

    The inequality `after <= before` (`dpi`) holds up to rounding, some 1e-15; the caller can check it.
    """
    table = _joint(joint)
    rows = _channel(channel, _marginal(table, 1))
    return DataProcessing(
        _information(table), _information(processed(table, rows)), _is_lossless(table, rows)
    )


def _is_lossless(table: Mapping[Pair, Probability], rows: Mapping[Hashable, Mapping[Any, Any]]) -> bool:
    """Whether all y that can lead to the same z agree on X."""
    given: dict[Hashable, dict[Hashable, Probability]] = {}
    for (x, y), p in table.items():
        given.setdefault(y, {})[x] = p
    for row in given.values():
        total = sum(row.values())
        for x in row:
            row[x] /= total
    agreed: dict[Hashable, dict[Hashable, Probability]] = {}
    return all(_same(agreed.setdefault(z, row), row) for y, row in given.items() for z in rows[y])


def _same(one: Mapping[Any, Any], two: Mapping[Any, Any]) -> bool:
    """Equality of two distributions: of Fractions exact, of floats within SAME."""
    values = (*one.values(), *two.values())
    slack: Probability = Fraction(0) if all(isinstance(v, Fraction) for v in values) else SAME
    return all(abs(one.get(x, 0) - two.get(x, 0)) <= slack for x in {*one, *two})


def _information(table: Mapping[Pair, Probability]) -> float:
    first, second = _marginal(table, 0), _marginal(table, 1)
    terms = (float(p) * _log2(p, first[x], second[y]) for (x, y), p in table.items())
    # Rounding alone can push a sum that is 0 below it.
    return max(0.0, math.fsum(terms))


def _entropy(probabilities: Iterable[Probability]) -> float:
    return max(0.0, math.fsum(-float(p) * _log2(p) for p in probabilities))


def _log2(p: Probability, *divisors: Probability) -> float:
    """`log2(p / product of divisors)`, of Fractions from their exact ratio, and safe where doubles would underflow."""
    if isinstance(p, Fraction) and all(isinstance(q, Fraction) for q in divisors):
        ratio = p / math.prod((q for q in divisors if isinstance(q, Fraction)), start=Fraction(1))
        return math.log2(ratio.numerator) - math.log2(ratio.denominator)
    return math.log2(p) - math.fsum(math.log2(q) for q in divisors)


def _marginal(table: Mapping[Pair, Probability], part: int) -> dict[Hashable, Probability]:
    found: dict[Hashable, Probability] = {}
    for pair, p in table.items():
        found[pair[part]] = found.get(pair[part], 0) + p
    return found


def _single(distribution: Distribution) -> dict[Any, Probability]:
    """Any accepted form as {outcome: p} without zeros."""
    if isinstance(distribution, Mapping):
        entries = dict(distribution)
    else:
        array = np.asarray(distribution)
        entries = {index if len(index) != 1 else index[0]: p for index, p in np.ndenumerate(array)}
    return _checked(entries, "the distribution")


def _joint(joint: Distribution) -> dict[Pair, Probability]:
    """Any accepted form of a joint distribution as {(x, y): p} without zeros."""
    if isinstance(joint, Mapping):
        odd = next((key for key in joint if not (isinstance(key, tuple) and len(key) == 2)), None)
        if odd is not None:
            raise ModelError(
                f"the joint distribution has the outcome {odd!r}, not a pair (x, y) such as (0, 1)"
            )
        return _checked(dict(joint), "the joint distribution")
    array = np.asarray(joint)
    if array.ndim != 2:
        raise ModelError(f"a joint distribution has shape [X, Y], not {array.shape}; or give {{(x, y): p}}")
    return _checked(dict(np.ndenumerate(array)), "the joint distribution")


def _channel(channel: Distribution, given: Mapping[Hashable, Any]) -> dict[Hashable, dict[Any, Probability]]:
    """The row {z: p} of every y in `given`."""
    rows: dict[Hashable, dict[Any, Probability]] = {}
    table: Any = channel if isinstance(channel, Mapping) else np.asarray(channel)
    if not isinstance(table, Mapping) and table.ndim != 2:
        raise ModelError(f"a channel has shape [Y, Z], not {table.shape}; or give {{y: {{z: p}}}}")
    for y in given:
        if isinstance(table, Mapping):
            if y not in table:
                raise ModelError(f"the channel has no row for {y!r}, which has positive probability")
            row = table[y]
        elif isinstance(y, (int, np.integer)) and 0 <= y < len(table):
            row = table[y]
        else:
            raise ModelError(f"the channel has {len(table)} rows and none for {y!r}; give a mapping")
        if isinstance(row, (Mapping, np.ndarray, list)):
            entries = dict(row) if isinstance(row, Mapping) else dict(enumerate(row))
            rows[y] = _checked(entries, f"the channel's row {y!r}")
        else:
            rows[y] = {row: Fraction(1)}
    return rows


def _checked(entries: Mapping[Any, Any], what: str) -> dict[Any, Probability]:
    """Positive entries as floats or Fractions; ModelError where they are no distribution."""
    found: dict[Any, Probability] = {}
    for outcome, value in entries.items():
        p: Any = _number(value, outcome, what)
        if not 0 <= p < math.inf:
            raise ModelError(f"{what} has the probability {float(p):g} at {outcome!r}; give one from 0 to 1")
        if p > 0:
            found[outcome] = p
    exact = all(isinstance(p, Fraction) for p in found.values())
    total: Probability = sum(found.values(), Fraction(0)) if exact else math.fsum(found.values())
    slack = 0.0 if exact else SUM_TOLERANCE
    if not -slack <= total - 1 <= slack:
        raise ModelError(f"{what} sums to {float(total):.12g}, not 1; a right one is {{0: 0.25, 1: 0.75}}")
    return found


def _number(value: Any, outcome: Any, what: str) -> Probability:
    """A Fraction for what is exact, else a float."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        return float(value)
    raise ModelError(f"{what} has {value!r} at {outcome!r}, not a number such as 0.25")
