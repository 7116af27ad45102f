"""Jev: the decision model behind TypeSafe's service, as a decider; imports decider and, on call, langchain_typesafe.

Used only where a key is set. A question and its state go out as they are; what comes back is read from `noul` and
`probabilities`, never from `confidence`, which is no probability. Whatever fails is a DeciderError in one line, without
the key and without the state. Source: M14 §7; langchain-typesafe 0.0.1a3.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harnesses.desk.decider import JEV, Answer, Choice, DeciderError, Noul, checked

KEY = "TYPESAFE_API_KEY"
REMEDY = "pip install 'hpomdp[jev]'"
ROUNDED = 0.01
"""How far the probabilities of a choice may sum from 1 and are scaled to it, as rounded ones do; others are refused."""

ID = "question"
"""The one question of a request."""

T = TypeVar("T")


@dataclass(eq=False)
class Jev:
    """A decider that asks a classifier of langchain-typesafe, one request a question.

    types: what has the classes `Choice` and `Noul` of its questions, the package itself. model: what the service says
    it answered with; before the first answer, what it was asked for.
    """

    classifier: Any
    types: Any
    model: str
    name: str = JEV

    def choose(self, question: Choice) -> Answer:
        """The option that the service chose, and the probability of every one."""

        def asked() -> Any:
            return self.types.Choice(instructions=question.text, criteria=dict(question.options))

        choice, got = self._answer(
            asked, question.state, lambda result: _choice(result.choices[ID]), "choice"
        )
        if set(got) != set(question.options):
            given, wanted = ", ".join(sorted(got)) or "nothing", ", ".join(question.options)
            raise DeciderError(f"jev gave probabilities of {given}, not of {wanted}")
        total = math.fsum(got.values())
        if not abs(total - 1) <= ROUNDED:
            raise DeciderError(f"jev's probabilities sum to {total:.6g}, not 1")
        return Answer(choice, {option: got[option] / total for option in question.options})

    def noul(self, question: Noul) -> float:
        """The probability of yes."""

        def asked() -> Any:
            return self.types.Noul(instructions=question.text)

        p = self._answer(asked, question.state, lambda result: float(result.nouls[ID].noul), "noul")
        return checked(p, "jev's noul")

    def _answer(
        self, asked: Callable[[], Any], state: Mapping[str, Any], read: Callable[[Any], T], kind: str
    ) -> T:
        """What is read from the answer to one question. Raises DeciderError where the service gives none."""
        try:
            result = self.classifier.invoke({"state": plain(state), "questions": {ID: asked()}})
            self.model = str(result.model)
            return read(result)
        except KeyError:
            raise DeciderError(f"jev did not answer: its response has no {kind}") from None
        except (
            Exception
        ) as error:  # of the service or on the way; the package keeps state and key out of its words
            raise DeciderError(f"jev did not answer: {_words(error)}") from None


def jev(model: str | None = None) -> Jev:
    """Jev with the key of the environment; `model` as the service names it, its newest unless given.

    Raises DeciderError with the remedy without a key, without the package, and for a model without a name.
    """
    if not os.environ.get(KEY, "").strip():
        raise DeciderError(f"jev needs a key of TypeSafe: set {KEY}, or take another decider, such as toy")
    try:
        import langchain_typesafe
    except ModuleNotFoundError as error:
        raise DeciderError(f"jev needs the package langchain-typesafe ({error}): {REMEDY}") from None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*beta.*")
        try:
            classifier = langchain_typesafe.TypeSafeClassifier(**({} if model is None else {"model": model}))
        except ValueError as error:
            raise DeciderError(f"jev cannot be made: {_words(error)}") from None
    return Jev(classifier, langchain_typesafe, classifier.model)


def plain(value: Any) -> Any:
    """A state as JSON has it: the package takes no mapping but a dictionary. Dates and fractions become their texts."""
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _choice(answer: Any) -> tuple[str, dict[str, float]]:
    return str(answer.choice), {str(option): float(p) for option, p in answer.probabilities.items()}


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
