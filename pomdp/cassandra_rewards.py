"""R of a Cassandra file: rules with wildcards and their exact mean; imports cassandra_tokens and rational.

R(a, s, s', o) is never tabulated: a rule is found again for the outcomes that T and O make possible, of which
those that agree on the reward are not told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from pomdp.cassandra_tokens import EVERY, ZERO, Meter, Names
from pomdp.rational import RationalMatrix

# What a rule sets, and its place in the file: of two rules for one outcome the later one holds.
_Set = tuple[int, int, int]  # place, numerator, denominator
_NONE: _Set = (-1, 0, 1)
# A sum of two rationals takes as long as this many assignments.
_OPERATION = 4


class _Rules:
    """The rules that share their (action, state), each of which may be EVERY, by what else they name."""

    __slots__ = ("any", "by_next", "by_observation", "by_both")

    def __init__(self) -> None:
        self.any = _NONE
        # Most files name neither, so the tables are made when they are needed.
        self.by_next: dict[int, _Set] | None = None
        self.by_observation: dict[int, _Set] | None = None
        self.by_both: dict[int, dict[int, _Set]] | None = None


class Rewards:
    """The reward statements of a file, later ones over earlier ones; what none of them names is 0."""

    def __init__(self, actions: Names, states: Names, meter: Meter) -> None:
        self.actions, self.states, self.meter = actions, states, meter
        self._rules: dict[tuple[int, int], _Rules] = {}
        self._order = 0
        self._line = 0
        self._lists: dict[int, tuple[list[int], list[int], list[int]]] = {}

    def put(self, action: int, state: int, following: int, seen: int, value: Fraction, line: int) -> None:
        """Set R(a, s, s', o) for one outcome, or with EVERY for all in its place."""
        self._order += 1
        self._line = line
        rules = self._rules.get((action, state))
        if rules is None:
            rules = self._rules[action, state] = _Rules()
        rule = (self._order, value.numerator, value.denominator)
        if following == EVERY and seen == EVERY:
            self.meter.store(rules.any is _NONE, line)
            rules.any = rule
            return
        if following == EVERY:
            table = rules.by_observation = rules.by_observation or {}
        elif seen == EVERY:
            table = rules.by_next = rules.by_next or {}
        else:
            rules.by_both = rules.by_both or {}
            table = rules.by_both.setdefault(following, {})
        key = following if seen == EVERY else seen
        self.meter.store(key not in table, line)
        table[key] = rule

    def row(self, action: int, state: int, following: int, values: list[Fraction], line: int) -> None:
        """Set R(a, s, s', .), which must be 0 so far, to one value an observation."""
        for o, value in enumerate(values):
            if value is not ZERO:
                self.put(action, state, following, o, value, line)

    def expected(self, T: list[RationalMatrix], Z: list[RationalMatrix], cost: bool) -> RationalMatrix:
        """R(a, s) `[A, S]`, the mean over s' and o under row-stochastic T and Z, negated if it is a cost."""
        rows: list[dict[int, Fraction]] = []
        for a in range(self.actions.count):

            def where(a: int = a) -> str:
                return f"rewards of action {self.actions[a]}"

            row: dict[int, Fraction] = {}
            common = 1
            for s in range(self.states.count):
                numerator, denominator = self._expected(a, s, T[a], Z[a])
                if numerator:
                    row[s] = Fraction(-numerator if cost else numerator, denominator)
                    common = math.lcm(common, denominator)
                    self._charge(common, where)
            self.meter.row(common, len(row), self._line, where)
            rows.append(row)
        return RationalMatrix.from_rows(rows, self.states.count)

    def _expected(self, a: int, s: int, T: RationalMatrix, Z: RationalMatrix) -> tuple[int, int]:
        """The exact mean of R(a, s, s', o) over the row T(. | s, a) and the rows Z(. | s', a), a fraction."""
        keys = ((a, s), (a, EVERY), (EVERY, s), (EVERY, EVERY))
        rules = [self._rules[key] for key in keys if key in self._rules]
        if not rules:
            return 0, 1
        base = max(r.any for r in rules)
        by_next = [r.by_next for r in rules if r.by_next]
        by_observation = [r.by_observation for r in rules if r.by_observation]
        by_both = [r.by_both for r in rules if r.by_both]
        if not (by_next or by_observation or by_both):
            return base[1], base[2]

        def where() -> str:
            return f"a reward of [{self.actions[a]}, {self.states[s]}]"

        terms: list[tuple[int, int, int]] = []
        for following, weight in self._row(T, s):
            known = _latest(base, by_next, following)
            tables = by_observation + [table[following] for table in by_both if following in table]
            if tables:
                cells = [(weight, *_latest(known, tables, o)[1:]) for o, weight in self._row(Z, following)]
                known = (0, *self._sum(cells, Z.denominators[following], where))
            terms.append((weight, known[1], known[2]))
        return self._sum(terms, T.denominators[s], where)

    def _row(self, matrix: RationalMatrix, i: int) -> list[tuple[int, int]]:
        """The (column, numerator) pairs of row i."""
        if id(matrix) not in self._lists:
            # The current T and Z: an element of an array costs more to reach than one of a list.
            self._lists = dict(list(self._lists.items())[-1:])
            parts = (matrix.indptr, matrix.indices, matrix.numerators)
            self._lists[id(matrix)] = tuple(part.tolist() for part in parts)
        indptr, indices, numerators = self._lists[id(matrix)]
        span = slice(indptr[i], indptr[i + 1])
        return list(zip(indices[span], numerators[span]))

    def _sum(
        self, terms: list[tuple[int, int, int]], weights: int, where: Callable[[], str]
    ) -> tuple[int, int]:
        """Sum of w n / d over `terms` (w, n, d), divided by the sum `weights` of all w, in lowest terms."""
        numerator, denominator = 0, 1
        for weight, n, d in terms:
            if n:
                if d != denominator:
                    common = math.lcm(denominator, d)
                    numerator *= common // denominator
                    n *= common // d
                    denominator = common
                numerator += weight * n
            self._charge(denominator, where)
        denominator *= weights
        divisor = math.gcd(numerator, denominator)
        return numerator // divisor, denominator // divisor

    def _charge(self, denominator: int, where: Callable[[], str]) -> None:
        """Count an operation on rationals; long ones, whose common divisors are slow to find, count more."""
        bits = denominator.bit_length()
        if bits > self.meter.limits.bits:
            self.meter.row(denominator, 1, self._line, where)
        self.meter.step(_OPERATION * (1 + (bits >> 10) ** 2), self._line)


def _latest(rule: _Set, tables: list[dict[int, _Set]], key: int) -> _Set:
    """The latest of a rule and those that tables have for a key."""
    for table in tables:
        other = table.get(key)
        if other is not None and other[0] > rule[0]:
            rule = other
    return rule
