"""Decider: typed questions about a state, probabilities back, behind one protocol; imports nothing.

A decider never returns text that a program acts on: a `Choice` gets probabilities over its options, a `Noul` (a yes/no
question) the probability of yes. What it says is compared with thresholds, and every number printed carries its `name`
and `model`. Source: M14 §7 (Choice and Noul, `probabilities[choice]` and `noul`, never a confidence field).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

SLACK = 1e-6
"""How far the probabilities of a choice may sum from 1: providers round theirs."""

TOY, LM, JEV, SCRIPTED = "toy", "lm", "jev", "scripted"
NAMES = (TOY, LM, JEV, SCRIPTED)
"""The deciders that `--decider` names."""


class DeciderError(ValueError):
    """A question, an answer or a decider that cannot be used, in one line with an example of a right one."""


@dataclass(frozen=True)
class Choice:
    """Which one of `options` (name: description) holds of `state`. Raises DeciderError without two options."""

    text: str
    options: Mapping[str, str]
    state: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.options) < 2:
            raise DeciderError(f"a choice among {len(self.options)} options is none; give two or more")


@dataclass(frozen=True)
class Noul:
    """Whether the sentence `text` asks about is so of `state`: a yes/no question."""

    text: str
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The chosen option and the probability of every one. Raises DeciderError where they are no such thing."""

    choice: str
    probabilities: Mapping[str, float]

    def __post_init__(self) -> None:
        for option, p in self.probabilities.items():
            checked(p, f"the probability of {option}")
        total = math.fsum(self.probabilities.values())
        if abs(total - 1) > SLACK:
            raise DeciderError(f"the probabilities of an answer sum to {total:.6g}, not 1")
        if self.choice not in self.probabilities:
            raise DeciderError(f"{self.choice!r} is none of the options {', '.join(self.probabilities)}")

    @classmethod
    def likeliest(cls, probabilities: Mapping[str, float]) -> Answer:
        """The answer that chooses the most probable option, the first of equals."""
        if not probabilities:
            raise DeciderError("an answer needs options; give probabilities such as {'retrieve': 0.9, ...}")
        return cls(max(probabilities, key=lambda option: probabilities[option]), dict(probabilities))

    @property
    def p(self) -> float:
        """The probability of the chosen option: what M14 Eq. 3 compares with tau_route."""
        return self.probabilities[self.choice]


@runtime_checkable
class Decider(Protocol):
    """What answers typed questions. A decider may fail by raising DeciderError; it may not invent an option."""

    @property
    def name(self) -> str:
        """One of NAMES."""
        ...

    @property
    def model(self) -> str:
        """What produced the numbers, as it is printed beside each of them."""
        ...

    def choose(self, question: Choice) -> Answer:
        """Probabilities over exactly the question's options."""
        ...

    def noul(self, question: Noul) -> float:
        """The probability of yes, in [0, 1]."""
        ...


@runtime_checkable
class BatchDecider(Decider, Protocol):
    """A decider for which many questions at once are cheaper than one by one."""

    def choose_all(self, questions: Sequence[Choice]) -> list[Answer]:
        """As `choose` of each."""
        ...

    def noul_all(self, questions: Sequence[Noul]) -> list[float]:
        """As `noul` of each."""
        ...


def choices(decider: Decider, questions: Sequence[Choice]) -> list[Answer]:
    """The answer to each choice, all at once where the decider can."""
    if isinstance(decider, BatchDecider):
        return decider.choose_all(questions)
    return [decider.choose(question) for question in questions]


def nouls(decider: Decider, questions: Sequence[Noul]) -> list[float]:
    """The probability of yes to each question, all at once where the decider can."""
    if isinstance(decider, BatchDecider):
        return decider.noul_all(questions)
    return [decider.noul(question) for question in questions]


def label(decider: Decider) -> str:
    """What stands beside every number of this decider: its name and its model."""
    return f"{decider.name} ({decider.model})"


def checked(p: float, where: str) -> float:
    """A probability as it is. Raises DeciderError for what is none, NaN among it."""
    if not 0 <= p <= 1:
        raise DeciderError(f"{where} is {p}, not a probability; give one from 0 to 1, such as 0.97")
    return p
