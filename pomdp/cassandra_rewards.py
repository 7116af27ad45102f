"""R of a Cassandra file: rules with wildcards and their exact mean; imports cassandra_tokens and rational.

R(a, s, s', o) is never tabulated: a rule is found again for the outcomes that T and O make possible, of which
those that agree on the reward are not told apart.
"""

from __future__ import annotations

import math
from fractions import Fraction

from pomdp.cassandra_tokens import EVERY, ZERO, Meter, Names
from pomdp.rational import RationalMatrix

# What a rule sets, and its place in the file: of two rules for one outcome the later one holds.
_Set = tuple[int, Fraction]
_NONE: _Set = (-1, ZERO)
# A sum of two rationals takes as long as this many assignments.
_OPERATION = 10


class _Rules:
    """The rules that share their (action, state), each of which may be EVERY, by what else they name."""

    __slots__ = ("any", "by_next", "by_observation", "by_both")

    def __init__(self) -> None:
        self.any = _NONE
        self.by_next: dict[int, _Set] = {}
        self.by_observation: dict[int, _Set] = {}
        self.by_both: dict[int, dict[int, _Set]] = {}


class Rewards:
    """The reward statements of a file, later ones over earlier ones; what none of them names is 0."""

    def __init__(self, actions: Names, states: Names, meter: Meter) -> None:
        self.actions, self.states, self.meter = actions, states, meter
        self._rules: dict[tuple[int, int], _Rules] = {}
        self._order = 0
        self._line = 0

    def put(self, action: int, state: int, following: int, seen: int, value: Fraction, line: int) -> None:
        """Set R(a, s, s', o) for one outcome, or with EVERY for all in its place."""
        self._order += 1
        self._line = line
        rules = self._rules.get((action, state))
        if rules is None:
            rules = self._rules[action, state] = _Rules()
        rule = (self._order, value)
        if following == EVERY and seen == EVERY:
            rules.any = rule
            return
        if following == EVERY:
            table, key = rules.by_observation, seen
        elif seen == EVERY:
            table, key = rules.by_next, following
        else:
            table, key = rules.by_both.setdefault(following, {}), seen
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
            row: dict[int, Fraction] = {}
            denominator = 1
            for s in range(self.states.count):
                value = self._expected(a, s, T[a], Z[a])
                if value:
                    row[s] = -value if cost else value
                    denominator = math.lcm(denominator, value.denominator)
                    # Checked at each step: a common denominator that nobody stops can grow without bound.
                    self._charge(denominator, f"rewards of action {self.actions[a]}")
            self.meter.row(denominator, len(row), self._line, f"rewards of action {self.actions[a]}")
            rows.append(row)
        return RationalMatrix.from_rows(rows, self.states.count)

    def _expected(self, a: int, s: int, T: RationalMatrix, Z: RationalMatrix) -> Fraction:
        """The exact mean of R(a, s, s', o) over the row T(. | s, a) and the rows Z(. | s', a)."""
        keys = ((a, s), (a, EVERY), (EVERY, s), (EVERY, EVERY))
        rules = [self._rules[key] for key in keys if key in self._rules]
        if not rules:
            return ZERO
        base = max(r.any for r in rules)
        by_next = [r.by_next for r in rules if r.by_next]
        by_observation = [r.by_observation for r in rules if r.by_observation]
        by_both = [r.by_both for r in rules if r.by_both]
        if not (by_next or by_observation or by_both):
            return base[1]
        total = ZERO
        span = slice(T.indptr[s], T.indptr[s + 1])
        for following, weight in zip(T.indices[span].tolist(), T.numerators[span].tolist(), strict=True):
            known = _latest(base, by_next, following)
            tables = by_observation + [table[following] for table in by_both if following in table]
            mean = self._mean(known, tables, Z, following) if tables else known[1]
            if mean:
                total += mean * weight
            self._charge(total.denominator, f"a reward of [{self.actions[a]}, {self.states[s]}]")
        return total / T.denominators[s]

    def _mean(self, known: _Set, tables: list[dict[int, _Set]], Z: RationalMatrix, s: int) -> Fraction:
        """The exact mean over the observations of the state s that was reached; `tables` set single ones."""
        total = ZERO
        span = slice(Z.indptr[s], Z.indptr[s + 1])
        for o, weight in zip(Z.indices[span].tolist(), Z.numerators[span].tolist(), strict=True):
            value = _latest(known, tables, o)[1]
            if value is not ZERO:
                total += value * weight
            self._charge(total.denominator, "an expected reward")
        return total / Z.denominators[s]

    def _charge(self, denominator: int, where: str) -> None:
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
