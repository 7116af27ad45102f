"""T and O of a Cassandra file: sparse rows; imports pomdp.cassandra_tokens, model and rational."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from pomdp.cassandra_tokens import EVERY, ONE, ZERO, Meter, Names
from pomdp.model import ROW_TOLERANCE
from pomdp.rational import RationalMatrix


class _Row:
    """A distribution: nonzero entries, the line of the last one, whether they stand on top of the start's."""

    __slots__ = ("entries", "line", "reset")

    def __init__(self) -> None:
        self.entries: dict[int, Fraction] = {}
        self.line = 0
        self.reset = False


class Kernel:
    """The rows of T `[A, S, S']` or O `[A, S', O]`; indices may be EVERY wherever statements have `*`."""

    def __init__(self, label: str, actions: Names, states: Names, columns: Names, meter: Meter) -> None:
        self.label, self.actions, self.states, self.columns = label, actions, states, columns
        self.meter = meter
        self._rows: dict[int, _Row] = {}

    def put(self, action: int, state: int, column: int, value: Fraction, line: int) -> None:
        """Set one entry, or with EVERY those of all actions, states or columns."""
        if column == EVERY:
            size = self.columns.count if value else 0
            self.meter.step(self._targets(action, state) * max(1, size), line)
            self._replace(action, state, dict.fromkeys(range(size), value), line)
            return
        self.meter.step(self._targets(action, state), line)
        for row in self._each(action, state, line):
            entries, before = row.entries, len(row.entries)
            if value is ZERO and not row.reset:
                entries.pop(column, None)
            else:
                # A zero on top of `reset` is kept until the start distribution is known.
                entries[column] = value
            self.meter.store(len(entries) - before, line)

    def replace(self, action: int, state: int, entries: Mapping[int, Fraction], line: int) -> None:
        """Set whole rows to the same nonzero entries."""
        self.meter.step(self._targets(action, state) * max(1, len(entries)), line)
        self._replace(action, state, entries, line)

    def uniform(self, action: int, state: int, line: int) -> None:
        """Set whole rows to the uniform distribution."""
        size = self.columns.count
        self.meter.step(self._targets(action, state) * size, line)
        self._replace(action, state, dict.fromkeys(range(size), Fraction(1, size)), line)

    def identity(self, action: int, line: int) -> None:
        """Set every state's row to that state."""
        self.meter.step(self._targets(action, EVERY), line)
        for s in range(self.states.count):
            self._replace(action, s, {s: ONE}, line)

    def reset(self, action: int, state: int, line: int) -> None:
        """Set whole rows to the start distribution, which may be given later in the file."""
        self.replace(action, state, {}, line)
        for row in self._each(action, state, line):
            row.reset = True

    def finish(self, start: Mapping[int, Fraction], line: int) -> tuple[list[RationalMatrix], int]:
        """One row-stochastic matrix an action, and how many rows were divided by a sum that was not 1.

        Uses up the rows. `line` is the one to name where a row is missing. Raises FormatError naming the row.
        """
        matrices: list[RationalMatrix] = []
        count = 0
        previous: list[dict[int, Fraction]] = []
        for a in range(self.actions.count):
            rows: list[dict[int, Fraction]] = []
            for s in range(self.states.count):
                row, changed = self._distribution(a, s, start, line)
                rows.append(row)
                count += changed
            # Observations often do not depend on the action; such matrices are kept once.
            same = rows == previous
            matrices.append(matrices[-1] if same else RationalMatrix.from_rows(rows, self.columns.count))
            previous = rows
        return matrices, count

    def _distribution(
        self, action: int, state: int, start: Mapping[int, Fraction], line: int
    ) -> tuple[dict[int, Fraction], bool]:
        """One row divided by its sum, and whether that changed it."""

        def where() -> str:
            return f"{self._kind} row [{self.actions[action]}, {self.states[state]}]"

        row = self._rows.pop(action * self.states.count + state, None)
        if row is None:
            example = self._example(action, state, {})
            raise self.meter.error(line, f"found no {where()}, expected one such as {example}")
        entries = row.entries
        if row.reset:
            self.meter.store(len(start), row.line)
            entries = {**start, **entries}
        return normalised(entries, self.meter, row.line, where, lambda: self._example(action, state, entries))

    def _replace(self, action: int, state: int, entries: Mapping[int, Fraction], line: int) -> None:
        for row in self._each(action, state, line):
            self.meter.store(len(entries) - len(row.entries), line)
            row.entries, row.reset = dict(entries), False

    @property
    def _kind(self) -> str:
        return "transition" if self.label == "T" else "observation"

    def _example(self, action: int, state: int, entries: Mapping[int, Fraction]) -> str:
        """Statements that give the row that was probably meant."""
        total = sum(entries.values(), ZERO)
        right = {j: v / total for j, v in sorted(entries.items())[:3]} if total else {0: ONE}
        head = f"{self.label}: {self.actions[action]} : {self.states[state]}"
        parts = [f"`{head} : {self.columns[j]} {float(v):.6g}`" for j, v in right.items()]
        return ", ".join(parts) + (", ..." if len(entries) > 3 else "")

    def _targets(self, action: int, state: int) -> int:
        """How many rows a pair of indices means."""
        return (self.actions.count if action == EVERY else 1) * (self.states.count if state == EVERY else 1)

    def _each(self, action: int, state: int, line: int) -> Iterator[_Row]:
        """The rows that a pair of indices means, marked as last set in this line."""
        for a in range(self.actions.count) if action == EVERY else (action,):
            for s in range(self.states.count) if state == EVERY else (state,):
                key = a * self.states.count + s
                row = self._rows.get(key)
                if row is None:
                    row = self._rows[key] = _Row()
                row.line = line
                yield row


def normalised(
    entries: dict[int, Fraction],
    meter: Meter,
    line: int,
    where: Callable[[], str],
    example: Callable[[], str],
) -> tuple[dict[int, Fraction], bool]:
    """Nonzero probabilities divided by their exact sum, and whether it was near 1 but not 1.

    Raises FormatError at `line` naming the distribution as `where()` says, with a right one from `example()`.
    """
    if len(entries) == 1 and ONE in entries.values():
        return entries, False
    denominator = 1
    for d in {v.denominator for v in entries.values()}:
        denominator = math.lcm(denominator, d)
        if denominator.bit_length() > meter.limits.bits:
            break  # `row` refuses it
    meter.row(denominator, len(entries), line, where)
    numerators = {j: v.numerator * (denominator // v.denominator) for j, v in entries.items()}
    total = sum(numerators.values())
    if total == denominator:
        return entries, False
    if abs(total - denominator) > ROW_TOLERANCE * denominator:
        found = f"{where()} that sums to {total / denominator:.10g}"
        tolerance = float(ROW_TOLERANCE)
        raise meter.error(line, f"found {found}, expected 1 within {tolerance:g}: for example {example()}")
    return {j: Fraction(n, total) for j, n in numerators.items()}, True
