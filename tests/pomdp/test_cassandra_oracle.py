"""Statements of every arity, in any order, mean what assigning them one by one to dense tables means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pomdp.cassandra import parse

# Sizes that differ, so that no axis can stand for another.
ACTIONS, STATES, OBSERVATIONS = ["go", "stay"], ["a", "b", "c"], ["dark", "light", "fog", "rain"]
SHAPES = {
    "T": (ACTIONS, STATES, STATES),
    "O": (ACTIONS, STATES, OBSERVATIONS),
    "R": (ACTIONS, STATES, STATES, OBSERVATIONS),
}
# Rows in text; those of the last lines are near 1 but not 1, as rounded ones are.
ROWS = {
    3: ["1 0 0", "0 1. 0", "0.5 .25 2.5e-1", "1/3 1/3 1/3", "0.333333 0.333333 0.333333", "0.2 0.799995 0"],
    4: [
        "1 0 0 0",
        "0 0 0 1",
        "0.1 0.2 0.3 0.4",
        "0 1/7 6/7 0",
        "0.1666667 0.3333333 0.5 0",
        "0 0.3 0.700009 0",
    ],
}
REWARDS = ["0", "0", "1", "-1", "2.5", "1/3", "-7e-2", "100"]


@dataclass(frozen=True)
class Statement:
    """A label, one index or None (`*`) an axis, and the words that follow."""

    label: str
    indices: tuple[int | None, ...]
    words: str

    def text(self, draw: st.DrawFn) -> str:
        """The statement with names or numbers as indices and arbitrary white space."""
        parts = [self.label]
        for axis, i in zip(SHAPES[self.label], self.indices, strict=False):
            parts.append("*" if i is None else draw(st.sampled_from([axis[i], str(i)])))
        colon = draw(st.sampled_from([":", " : ", ": ", " #\n: "]))
        gap = draw(st.sampled_from([" ", "\n", "\t", " # 1 2 3\n"]))
        return colon.join(parts) + gap + gap.join(self.words.split())

    def assign(self, table: np.ndarray, start: np.ndarray) -> None:
        """Set the entries of a dense table that the statement names."""
        where = tuple(slice(None) if i is None else i for i in self.indices)
        rest = table.shape[len(self.indices) :]
        if self.words == "uniform":
            table[where] = Fraction(1, table.shape[-1])
        elif self.words == "identity":
            table[where] = np.array([[Fraction(int(i == j)) for j in range(rest[1])] for i in range(rest[0])])
        elif self.words == "reset":
            table[where] = start
        else:
            values = np.array([Fraction(word) for word in self.words.split()], dtype=object)
            table[where] = values.reshape(rest) if rest else values[0]


@st.composite
def statements(draw: st.DrawFn, label: str) -> Statement:
    """One statement; rows of T and O are drawn whole, single entries are anything."""
    shape = SHAPES[label]
    length = draw(st.integers(1, len(shape)))
    # The first of each axis is common, so that statements meet.
    indices = tuple(draw(st.sampled_from([None, 0, 0, *range(len(axis))])) for axis in shape[:length])
    rest = [len(axis) for axis in shape[length:]]
    if label == "R":
        count = int(np.prod(rest, dtype=int))
        return Statement(label, indices, " ".join(draw(st.sampled_from(REWARDS)) for _ in range(count)))
    if not rest:
        return Statement(label, indices, draw(st.sampled_from(["0", "1", "0.25", "1e-1", "1/3"])))
    words = ["uniform"] + ["reset"] * (label == "T") + ["identity"] * (label == "T" and length == 1)
    if draw(st.booleans()):
        return Statement(label, indices, draw(st.sampled_from(words)))
    count = int(np.prod(rest[:-1], dtype=int))
    return Statement(label, indices, " ".join(draw(st.sampled_from(ROWS[rest[-1]])) for _ in range(count)))


def repaired(table: np.ndarray, label: str) -> list[Statement]:
    """Statements that make a distribution of every row that is none."""
    out = []
    for a, s in np.ndindex(*table.shape[:2]):
        if abs(sum(table[a, s]) - 1) > Fraction(1, 100_000):
            out.append(Statement(label, (a, s), ROWS[table.shape[2]][2]))
    return out


def expectation(T: np.ndarray, O: np.ndarray, R: np.ndarray) -> np.ndarray:
    """R(a, s), every outcome in turn."""
    out = np.full(R.shape[:2], Fraction(0))
    for a, s, following, o in np.ndindex(*R.shape):
        out[a, s] += T[a, s, following] * O[a, following, o] * R[a, s, following, o]
    return out


@given(st.data())
def test_statements_equal_assignment_in_order_to_dense_tables(data: st.DataObject) -> None:
    start_text = data.draw(st.sampled_from(ROWS[3][:4]))
    start = np.array([Fraction(word) for word in start_text.split()], dtype=object)
    mixed = st.sampled_from("TORRR").flatmap(statements)
    sequence = data.draw(st.lists(mixed, max_size=16))
    tables = {label: np.full([len(axis) for axis in shape], Fraction(0)) for label, shape in SHAPES.items()}
    for statement in sequence:
        statement.assign(tables[statement.label], start)
    for statement in repaired(tables["T"], "T") + repaired(tables["O"], "O"):
        statement.assign(tables[statement.label], start)
        sequence.append(statement)
    near = {label: tables[label].sum(axis=2, keepdims=True) for label in "TO"}
    T, O = (tables[label] / near[label] for label in "TO")
    cost = data.draw(st.booleans())

    def draw(strategy: st.SearchStrategy) -> object:
        return data.draw(strategy)

    head = [f"states: {' '.join(STATES)}", f"observations: {' '.join(OBSERVATIONS)}", "actions: go stay"]
    start_line, values = f"start: {start_text}", f"values: {'cost' if cost else 'reward'}"
    body = [statement.text(draw) for statement in sequence]
    text = "\n".join([*head, *data.draw(st.permutations([start_line, values])), *body])

    model = parse(text)
    for a in range(len(ACTIONS)):
        assert [[row.get(j, 0) for j in range(3)] for row in model.exact.T[a].rows()] == T[a].tolist()
        assert [[row.get(j, 0) for j in range(4)] for row in model.exact.Z[a].rows()] == O[a].tolist()
    expected = expectation(T, O, tables["R"]) * (-1 if cost else 1)
    assert [[row.get(s, 0) for s in range(3)] for row in model.exact.R.rows()] == expected.tolist()
    assert model.normalised_rows == sum(int((near[label] != 1).sum()) for label in "TO")
    assert model.exact.start == {s: p for s, p in enumerate(start) if p}
