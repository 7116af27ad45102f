"""Text features: a question's state as sparse numbers, for the toy decider; imports questions, policy and scipy.

Two groups. Words and pairs of neighbouring words of each part of the state (request, email, passages), weighted by
rarity, each part of length 1. And signs: short facts that a program reads off the records (days left, the sum named
against the sum paid, status, seats), with all pairs of them, 1 or 0. Words that were not in the training set are not
seen. Source: the usual bag of words; the choice of parts and signs is this project's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from harnesses.desk.policy import days_until

LEAST = 3
"""A token is kept if so many training items have it."""
WIDTH = 10
"""Days in one sign of the days left; the policy's own dates fall inside such spans, not on their edges only."""
LONGEST = 60
"""Further days count as these."""

_WORD = re.compile(r"[a-z]+|\d+")
_SUM = re.compile(r"(\d+(?:\.\d+)?) EUR")


@dataclass(frozen=True)
class Vocabulary:
    """Column and weight of each token: rarity for words, 1 for signs."""

    column: Mapping[str, int]
    weight: np.ndarray

    @classmethod
    def of(cls, states: Sequence[Mapping[str, Any]]) -> Vocabulary:
        """Of N training states: tokens in at least LEAST; a word in n of them weighs 1 + log((N + 1) / (n + 1))."""
        held: Counter[str] = Counter()
        for state in states:
            held.update({token for part in parts(state) for token in part})
            held.update(signs(state))
        kept = sorted(token for token, n in held.items() if n >= LEAST)
        size = len(states)
        weight = [1.0 if "=" in t else 1 + math.log((size + 1) / (held[t] + 1)) for t in kept]
        return cls({token: i for i, token in enumerate(kept)}, np.array(weight))

    def matrix(self, states: Sequence[Mapping[str, Any]]) -> csr_array:
        """Features float64 `[N, F]`."""
        rows, columns, values = [], [], []
        for row, state in enumerate(states):
            found = self._row(state)
            rows += [row] * len(found)
            columns += list(found)
            values += list(found.values())
        return csr_array((values, (rows, columns)), shape=(len(states), len(self.column)), dtype=np.float64)

    def _row(self, state: Mapping[str, Any]) -> dict[int, float]:
        found: dict[int, float] = {}
        for part in parts(state):
            known = {self.column[token]: n for token, n in part.items() if token in self.column}
            weighed = {column: n * float(self.weight[column]) for column, n in known.items()}
            length = math.sqrt(sum(value**2 for value in weighed.values())) or 1.0
            for column, value in weighed.items():
                found[column] = found.get(column, 0.0) + value / length
        found.update({self.column[sign]: 1.0 for sign in signs(state) if sign in self.column})
        return found


def parts(state: Mapping[str, Any]) -> Iterator[Counter[str]]:
    """Words and pairs of words of the request, of the email and of the passages."""
    email = state.get("email") or {}
    yield _words(str(state.get("request") or ""))
    yield _words(f"{email.get('subject', '')} . {email.get('body', '')}")
    yield _words(" . ".join(state.get("passages") or ()))


def signs(state: Mapping[str, Any]) -> list[str]:
    """The facts that stand in the records and in the email's subject, and their pairs."""
    single = sorted(set(_signs(state)))
    return single + [f"{a}&{b}" for a, b in combinations(single, 2)]


def _words(text: str) -> Counter[str]:
    """Lower-case words and pairs; of a number only its count of digits is kept: #3 for 250."""
    found = [f"#{len(word)}" if word.isdigit() else word for word in _WORD.findall(text.lower())]
    return Counter([*found, *(f"{a} {b}" for a, b in zip(found, found[1:]))])


def _signs(state: Mapping[str, Any]) -> Iterator[str]:
    registration, event, email = state.get("registration"), state.get("event"), state.get("email")
    if event is not None and state.get("today"):
        days = days_until(str(state["today"]), str(event["first"]))
        over = days_until(str(state["today"]), str(event["last"])) < 0
        yield "over=yes" if over else f"days={min(days, LONGEST) // WIDTH}"
    if registration is None:
        yield "record=none"
    else:
        yield from (f"{name}={registration[name]}" for name in ("status", "moved", "attended", "party"))
    if email is not None:
        yield from (f"subject={word}" for word in _WORD.findall(email["subject"].lower()) if len(word) > 4)
        named = _SUM.search(email["body"])
        if named and registration is not None:
            yield from _sum_signs(float(named[1]), float(registration["paid"]))


def _sum_signs(named: float, paid: float) -> Iterator[str]:
    """How a sum compares with what was paid, and its size in steps of 100 EUR."""
    shares = {"none": 0.0, "half": paid / 2, "all": paid}
    yield f"sum={next((name for name, value in shares.items() if named == value), 'other')}"
    yield f"hundreds={min(int(named // 100), 10)}"
