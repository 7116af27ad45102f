"""The Cassandra `.pomdp` format: grammar and entry points; imports pomdp.model and pomdp.cassandra_* alone.

A file is a sequence of sections, in any order but that `states`, `actions` and `observations` come before the
first T, O or R; `#` starts a comment anywhere, and line breaks mean no more than spaces:

    discount: 0.95                      (absent: whoever uses the model gives one)
    values: reward                      (or rewards, cost, costs; costs are negated, `POMDP.cost` remembers)
    states: 5          actions: left right          observations: seen unseen
    start: 0.2 0.8 0 0 0                (or a state, several states, `uniform`; absent means uniform)
    start include: s1 s2                (uniform over these; `start exclude:` over the others)
    T: action : state : next-state      one probability
    T: action : state                   a row, `uniform`, or `reset` (the start distribution)
    T: action                           a matrix, `uniform`, `reset`, or `identity`
    O: action : next-state : observation     O: action : next-state     O: action     (likewise, no `reset`)
    R: action : state : next-state : observation     one number
    R: action : state : next-state      a row, one number an observation
    R: action : state                   a matrix, one row a next state
    R: action                           such a matrix for every state

An index is a name, a number from 0, or `*` for all. Later statements override earlier ones entry by entry;
what none sets is 0. A name is any word that is neither a number nor a word of the grammar. Numbers are exact:
decimals, with an exponent or without, or (an extension of ours) fractions p/q. A row whose sum is within 1e-5
of 1 is divided by it. Rewards that depend on the next state or the observation are averaged exactly. `Limits`
says how much a file may ask for.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TextIO

from pomdp.cassandra_rewards import Rewards
from pomdp.cassandra_tables import Kernel, normalised
from pomdp.cassandra_tokens import (
    EVERY,
    LIMITS,
    PREAMBLE,
    SECTIONS,
    ZERO,
    FormatError,
    Limits,
    Meter,
    Names,
    Tokens,
    is_count,
    name_fault,
    shown,
)
from pomdp.cassandra_writer import write
from pomdp.model import POMDP

__all__ = ["FormatError", "Limits", "parse", "read", "write"]

_VALUES = {"reward": False, "rewards": False, "cost": True, "costs": True}


def read(path: str | Path, limits: Limits = LIMITS) -> POMDP:
    """The model in a file, named after it. Raises FormatError, also where the file cannot be read."""
    label = str(path).encode("utf-8", "backslashreplace").decode()
    try:
        # Bytes that are not UTF-8, as in comments of old files, are carried along and can only not be names.
        stream = open(path, encoding="utf-8-sig", errors="surrogateescape")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FormatError(f"{label}: found no readable file ({reason}), expected a .pomdp file") from None
    with stream:
        return _model(stream, label, Path(label).stem, limits)


def parse(text: str, name: str = "<text>", limits: Limits = LIMITS) -> POMDP:
    """The model in a text; `name` stands for the file's in errors. Raises FormatError."""
    stream = io.StringIO(text.removeprefix("\ufeff"), newline=None)
    return _model(stream, name, "" if name == "<text>" else name, limits)


def _model(stream: TextIO, label: str, name: str, limits: Limits) -> POMDP:
    """The model in a stream of text."""
    grammar = _Grammar(Tokens(stream, Meter(label, limits)))
    grammar.sections()
    return grammar.model(name)


class _Tables(NamedTuple):
    """What the T, O and R statements fill."""

    T: Kernel
    O: Kernel
    R: Rewards


class _Grammar:
    """One pass over the words of a file, one method a kind of section."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.meter = tokens, tokens.meter
        self.seen: dict[str, int] = {}  # section of the preamble -> its line
        self.names: dict[str, Names] = {}
        self.discount: Fraction | None = None
        self.cost = False
        self.start_mode = ""
        self.start_words: list[tuple[str, int]] = []
        self.tables: _Tables | None = None
        self.complete = ""  # what a surplus word comes after

    def sections(self) -> None:
        """Read to the end."""
        tokens = self.tokens
        while word := tokens.take():
            if word not in _SECTION:
                near = "a section " + ", ".join(f"`{name}:`" for name in SECTIONS)
                raise tokens.error(shown(word) + self.complete, near)
            if word in PREAMBLE:
                if word in self.seen:
                    first = self.seen[word]
                    raise tokens.error(f"a second {word!r}", f"one alone (the first is in line {first})")
                self.seen[word] = tokens.line
            _SECTION[word](self, word)

    def model(self, name: str) -> POMDP:
        """The model that was read."""
        end = max(1, self.tokens.line)
        tables = self._tables(shown(""), end)
        start = self._start_distribution()
        T, changed_T = tables.T.finish(start, end)
        Z, changed_O = tables.O.finish({}, end)
        model = POMDP.build(
            states=self.names["states"].given(),
            actions=self.names["actions"].given(),
            observations=self.names["observations"].given(),
            T=T,
            Z=Z,
            R=tables.R.expected(T, Z, self.cost),
            start=start,
            discount=self.discount,
            name=name,
            cost=self.cost,
        )
        return replace(model, normalised_rows=changed_T + changed_O)

    def _discount(self, word: str) -> None:
        self.tokens.expect_colon(word)
        found = self.tokens.take()
        expected = "a discount between 0 and 1 such as 0.95"
        if not found:
            raise self.tokens.error(shown(found), expected)
        value = self.tokens.value(found, expected)
        if not 0 <= value <= 1:
            raise self.tokens.error(f"the discount {shown(found)}", expected)
        self.discount = value
        self.complete = " after the discount"

    def _values(self, word: str) -> None:
        self.tokens.expect_colon(word)
        found = self.tokens.take()
        if found not in _VALUES:
            raise self.tokens.error(shown(found), "'reward' or 'cost'")
        self.cost = _VALUES[found]
        self.complete = f" after 'values: {found}'"

    def _entities(self, kind: str) -> None:
        """`states`, `actions` or `observations`: a count or names."""
        tokens = self.tokens
        tokens.expect_colon(kind)
        limit = getattr(self.meter.limits, kind)
        count_or_names = f"the number of {kind} (1 to {limit}) or their names"
        first = tokens.peek()
        if is_count(first):
            tokens.take()
            if not 1 <= int(first) <= limit:
                raise tokens.error(f"{first} {kind}", f"1 to {limit} (Limits.{kind})")
            self.names[kind] = Names(kind[:-1], int(first))
            self.complete = f" after the count of {kind}"
            return
        names: dict[str, None] = {}
        while (word := tokens.peek()) and word not in _SECTION:
            fault = name_fault(word)
            if fault is not None:
                other = f"the name of {kind[:-1]} {len(names)} or a section"
                raise tokens.error(shown(word), f"{other if names else count_or_names}: {fault}")
            if word in names:
                raise tokens.error(f"{kind[:-1]} {shown(word)} a second time", f"{kind} of different names")
            names[tokens.take()] = None
            if len(names) > limit:
                raise tokens.error(f"more than {limit} {kind}", f"1 to {limit} (Limits.{kind})")
        if not names:
            raise tokens.error(shown(word), count_or_names)
        self.names[kind] = Names(kind[:-1], list(names))

    def _start(self, word: str) -> None:
        """Keep what the start is for the end: the states may come later."""
        tokens = self.tokens
        if tokens.peek() in ("include", "exclude"):
            self.start_mode = tokens.take()
        tokens.expect_colon(f"{word} {self.start_mode}".strip())
        while (found := tokens.peek()) and found not in _SECTION:
            self.start_words.append((tokens.take(), tokens.line))
            if found in (":", "*") or len(self.start_words) > self.meter.limits.states:
                raise tokens.error(f"{shown(found)} in the start", "states or probabilities, or a section")
        if not self.start_words:
            raise tokens.error(shown(found), "a state, states, probabilities or 'uniform'")

    def _start_distribution(self) -> dict[int, Fraction]:
        """The start as exact probabilities."""
        states, words = self.names["states"], self.start_words
        first = words[0][0] if words else "uniform"
        if not self.start_mode:
            if first == "uniform" and len(words) <= 1:
                return dict.fromkeys(range(states.count), Fraction(1, states.count))
            # One number is a state where there is such a one, several are probabilities.
            if not states.named(first) and (len(words) > 1 or states.find(first) is None):
                return self._start_vector()
        chosen: dict[int, None] = {}
        for word, line in words:
            found = states.find(word)
            if found is None or (is_count(word) and len(words) > 1 and not self.start_mode):
                raise self.tokens.error(f"{shown(word)} in the start", states.expected(word), line)
            chosen[found] = None
        if self.start_mode == "exclude":
            chosen = dict.fromkeys(s for s in range(states.count) if s not in chosen)
        if not chosen:
            raise self.tokens.error("a start that excludes every state", "at least one left", words[-1][1])
        return dict.fromkeys(sorted(chosen), Fraction(1, len(chosen)))

    def _start_vector(self) -> dict[int, Fraction]:
        """The start from one probability a state."""
        states, words, line = self.names["states"], self.start_words, self.start_words[-1][1]
        entries: dict[int, Fraction] = {}
        for word, at in words:
            if not (word[0].isdigit() or word[0] in "+-."):
                raise self.tokens.error(f"{shown(word)} in the start", states.expected(word), at)
        if len(words) != states.count:
            found = (
                f"{len(words)} numbers in the start"
                if len(words) > 1
                else f"{shown(words[0][0])} as the start"
            )
            expected = f"{states.count} probabilities, a state, or `start include:` with states"
            raise self.tokens.error(found, expected, line)
        for s, (word, at) in enumerate(words):
            value = self.tokens.probability_of(word, "a probability in the start", at)
            if value:
                entries[s] = value
        return normalised(entries, self.meter, line, lambda: "a start", lambda: "`start: uniform`")[0]

    def _tables(self, found: str, line: int) -> _Tables:
        """The tables, made when they are first needed: by then the sizes must be known."""
        if self.tables is not None:
            return self.tables
        kinds = ("states", "actions", "observations")
        missing = next((kind for kind in kinds if kind not in self.names), None)
        if missing is not None:
            raise self.tokens.error(found, f"`{missing}:` before it, with a count or names", line)
        states, actions, observations = (self.names[kind] for kind in kinds)
        least, most = 2 * states.count * actions.count, self.meter.limits.entries
        if least > most:
            size = f"{states.count} states x {actions.count} actions, which need {least} entries at least"
            raise self.tokens.error(size, f"at most {most} (Limits.entries)", line)
        self.tables = _Tables(
            Kernel("T", actions, states, states, self.meter),
            Kernel("O", actions, states, observations, self.meter),
            Rewards(actions, states, self.meter),
        )
        return self.tables

    def _indices(self, label: str, most: int) -> list[int]:
        """One to `most` indices after a label, each after a colon; EVERY for `*`."""
        kinds = ("actions", "states", "observations" if label == "O" else "states", "observations")
        tokens = self.tokens
        tokens.expect_colon(label)
        out: list[int] = []
        while True:
            names = self.names[kinds[len(out)]]
            word = tokens.take()
            found = names.find(word)
            if found is None:
                raise tokens.error(shown(word), names.expected(word))
            out.append(found)
            if len(out) == most or tokens.peek() != ":":
                return out
            tokens.take()

    def _probabilities(self, label: str) -> None:
        """A T or O statement."""
        tokens = self.tokens
        tables = self._tables(repr(label), tokens.line)
        kernel = tables.T if label == "T" else tables.O
        indices = self._indices(label, 3)
        action, state = indices[0], indices[1] if len(indices) > 1 else EVERY
        what = f"{label} {'matrix' if len(indices) == 1 else 'row'}"
        self.complete = f" after a complete {what}"
        if len(indices) == 3:
            value = tokens.probability("a probability")
            kernel.put(action, state, indices[2], value, tokens.line)
            self.complete = f" after the probability of a {label} entry"
            return
        word = tokens.peek()
        if word == "uniform":
            tokens.take()
            kernel.uniform(action, state, tokens.line)
        elif word == "reset" and label == "T":
            tokens.take()
            kernel.reset(action, state, tokens.line)
        elif word == "identity" and len(indices) == 1:
            if kernel.columns.count != kernel.states.count:
                raise tokens.error("'identity'", "a matrix: there are not as many observations as states")
            tokens.take()
            kernel.identity(action, tokens.line)
        elif len(indices) == 2:
            kernel.replace(action, state, self._row(f"the {what}", kernel.columns.count), tokens.line)
        else:
            for s in range(kernel.states.count):
                row = self._row(f"row {s} of the {what}", kernel.columns.count)
                kernel.replace(action, s, row, tokens.line)

    def _row(self, what: str, columns: int) -> dict[int, Fraction]:
        """A row of probabilities as its nonzero entries."""
        return {j: v for j, v in enumerate(self.tokens.probabilities(columns, what)) if v is not ZERO}

    def _reward(self, label: str) -> None:
        """An R statement."""
        tokens = self.tokens
        rewards = self._tables(repr(label), tokens.line).R
        indices = self._indices(label, 4)
        S, O = self.names["states"].count, self.names["observations"].count
        if len(indices) == 4:
            value = tokens.reward("a reward")
            rewards.put(indices[0], indices[1], indices[2], indices[3], value, tokens.line)
            self.complete = " after the number of an R entry"
        elif len(indices) == 3:
            values = tokens.rewards(O, "the R row, one an observation")
            rewards.put(indices[0], indices[1], indices[2], EVERY, ZERO, tokens.line)
            rewards.row(indices[0], indices[1], indices[2], values, tokens.line)
            self.complete = " after a complete R row"
        else:
            for state in [indices[1]] if len(indices) == 2 else range(S):
                rewards.put(indices[0], state, EVERY, EVERY, ZERO, tokens.line)
                for following in range(S):
                    values = tokens.rewards(O, f"row {following} of the R matrix, one an observation")
                    rewards.row(indices[0], state, following, values, tokens.line)
            self.complete = " after a complete R matrix"


_SECTION: dict[str, Callable[[_Grammar, str], None]] = {
    "discount": _Grammar._discount,
    "values": _Grammar._values,
    "states": _Grammar._entities,
    "actions": _Grammar._entities,
    "observations": _Grammar._entities,
    "start": _Grammar._start,
    "T": _Grammar._probabilities,
    "O": _Grammar._probabilities,
    "R": _Grammar._reward,
}
