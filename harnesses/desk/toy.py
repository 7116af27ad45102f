"""Toy: the trained decider, regression on words and signs with calibrated reports; imports generator, guard, toy_cache.

It answers the desk's route and guard questions and no others: a question outside what it was fitted on is refused, not
guessed at. Its numbers say something about this model on this synthetic desk, and nothing about Jev. The guard is
fitted on emails that pass P6, because in the graph code has checked P6 before the guard is asked.
Source: M14 §7 (a toy decision model in place of Jev).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from harnesses.desk import toy_cache
from harnesses.desk.decider import TOY, Answer, Choice, DeciderError, Noul
from harnesses.desk.generator import CALIBRATION, SEED, TRAIN, split
from harnesses.desk.items import DecisionSet, GuardItem
from harnesses.desk.questions import GUARD_TEXT, ROUTES
from harnesses.desk.regression import Logistic
from harnesses.desk.text_features import Vocabulary
from harnesses.guard.calibrators import Fitted, calibrator

GUARD_STRENGTH, ROUTE_STRENGTH = 10.0, 100.0
"""How little large weights are penalised: of 0.3, 1, 3, 10, 30 and 100 the best for log loss on `dev`."""
BETA = "beta"
"""The calibrator unless another is named: its reports have no steps, so that a shift of one is a shift of the text."""

State = Mapping[str, Any]

_READERS = ("guard", "router")
_REPORTS = ("guard_reports", "allowed", "route_reports", "right")


@dataclass(frozen=True, eq=False)
class Reader:
    """A regression on the features of states."""

    vocabulary: Vocabulary
    regression: Logistic

    @classmethod
    def of(cls, states: Sequence[State], labels: Sequence[Any], strength: float) -> Reader:
        """Fit both."""
        vocabulary = Vocabulary.of(states)
        return cls(vocabulary, Logistic.fit(vocabulary.matrix(states), labels, strength))

    def read(self, states: Sequence[State]) -> np.ndarray:
        """Uncalibrated probabilities `[N, K]`."""
        return self.regression.predict(self.vocabulary.matrix(states))


@dataclass(frozen=True, eq=False)
class Trained:
    """Both readers, and what they report on the calibration split.

    `guard_reports` `[N]`: probability of allowed, with `allowed` `[N]`; `route_reports` `[M]`: probability of the
    chosen step, with `right` `[M]`, whether it was the right one.
    """

    guard: Reader
    router: Reader
    guard_reports: np.ndarray
    allowed: np.ndarray
    route_reports: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, train: DecisionSet, calibration: DecisionSet, p6_in_code: bool = True) -> Trained:
        """Fit on one split, report on another; the guard on emails that pass P6, or on all where it is not in code."""
        learned, held = (asked(part.guard, p6_in_code) for part in (train, calibration))
        guard = Reader.of([i.question().state for i in learned], [i.allowed for i in learned], GUARD_STRENGTH)
        router = Reader.of(
            [i.question().state for i in train.route], [i.route for i in train.route], ROUTE_STRENGTH
        )
        reports = guard.read([i.question().state for i in held])[:, 1]
        table = router.read([i.question().state for i in calibration.route])
        chosen = [router.regression.classes[k] for k in table.argmax(axis=1)]
        right = [mine == item.route for mine, item in zip(chosen, calibration.route)]
        return cls(guard, router, reports, _bits(i.allowed for i in held), table.max(axis=1), _bits(right))


def asked(items: Sequence[GuardItem], p6_in_code: bool = True) -> list[GuardItem]:
    """The emails that a guard is asked about: with `p6_in_code`, those that pass P6."""
    return [item for item in items if item.on_record or not p6_in_code]


@dataclass(frozen=True, eq=False)
class Toy:
    """The toy decider with its reports calibrated. Raises GuardError for an unknown calibrator."""

    trained: Trained
    calibrated_by: str = BETA

    def __post_init__(self) -> None:
        calibrator(self.calibrated_by)

    @property
    def name(self) -> str:
        """`toy`."""
        return TOY

    @property
    def model(self) -> str:
        """As M14 labels it, with the calibrator."""
        return f"local toy decider (not Jev), {self.calibrated_by}"

    @cached_property
    def guard_map(self) -> Fitted:
        """From a reader's report to a calibrated one, for the guard."""
        return calibrator(self.calibrated_by).fit(self.trained.guard_reports, self.trained.allowed)

    @cached_property
    def route_map(self) -> Fitted:
        """The same for the probability of the chosen step."""
        return calibrator(self.calibrated_by).fit(self.trained.route_reports, self.trained.right)

    def choose(self, question: Choice) -> Answer:
        """The next step."""
        return self.choose_all([question])[0]

    def noul(self, question: Noul) -> float:
        """Whether the email may go out alone."""
        return self.noul_all([question])[0]

    def choose_all(self, questions: Sequence[Choice]) -> list[Answer]:
        """The likeliest step with its calibrated probability; the others share the rest as the reader has it.

        Only the chosen step's probability is calibrated: it is what M14 Eq. 3 compares. Raises DeciderError for
        another choice than the router's.
        """
        if not questions:
            return []
        for question in questions:
            if set(question.options) != set(ROUTES):
                raise DeciderError(
                    f"the toy decider was not fitted on this choice; its options are {', '.join(ROUTES)}"
                )
        table = self.trained.router.read([question.state for question in questions])
        calibrated = self.route_map.predict(table.max(axis=1))
        steps = self.trained.router.regression.classes
        return [_answer(dict(zip(steps, map(float, row))), float(p)) for row, p in zip(table, calibrated)]

    def noul_all(self, questions: Sequence[Noul]) -> list[float]:
        """Calibrated probabilities of allowed. Raises DeciderError for another question than the guard's."""
        if not questions:
            return []
        for question in questions:
            if question.text != GUARD_TEXT:
                raise DeciderError(
                    f"the toy decider was not fitted on {question.text[:40]!r}...; ask questions.guard_question"
                )
        reports = self.trained.guard.read([question.state for question in questions])[:, 1]
        return [float(p) for p in self.guard_map.predict(reports)]


@lru_cache(maxsize=2)
def trained(seed: int = SEED) -> Trained:
    """Fitted on the published splits: seconds, once an installation, then read from the cache."""
    stored = toy_cache.find(seed)
    if stored is not None:
        try:
            return _unpacked(*stored)
        except (KeyError, ValueError, TypeError):
            pass  # a file that is no fit
    made = Trained.of(split(TRAIN, seed), split(CALIBRATION, seed))
    toy_cache.store(seed, *_packed(made))
    return made


def _packed(made: Trained) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A fit as arrays and plain data."""
    arrays = {name: getattr(made, name) for name in _REPORTS}
    data = {}
    for name in _READERS:
        reader: Reader = getattr(made, name)
        arrays |= {
            f"{name}_weight": reader.vocabulary.weight,
            f"{name}_weights": reader.regression.weights,
            f"{name}_intercepts": reader.regression.intercepts,
        }
        data[name] = {"tokens": list(reader.vocabulary.column), "classes": list(reader.regression.classes)}
    return arrays, data


def _unpacked(arrays: Mapping[str, np.ndarray], data: Mapping[str, Any]) -> Trained:
    """The fit of `_packed`. Raises KeyError, ValueError or TypeError for what is none."""
    readers = {}
    for name in _READERS:
        tokens, classes = data[name]["tokens"], tuple(data[name]["classes"])
        weight, weights = arrays[f"{name}_weight"], arrays[f"{name}_weights"]
        if not len(tokens) == weight.size == weights.shape[0]:
            raise ValueError(f"{name}: {len(tokens)} tokens with {weights.shape[0]} weights")
        vocabulary = Vocabulary({token: i for i, token in enumerate(tokens)}, weight)
        readers[name] = Reader(vocabulary, Logistic(classes, weights, arrays[f"{name}_intercepts"]))
    return Trained(readers["guard"], readers["router"], *(arrays[name] for name in _REPORTS))


def toy(calibrated_by: str = BETA, seed: int = SEED) -> Toy:
    """The toy decider of the published splits. Raises GuardError for an unknown calibrator."""
    return Toy(trained(seed), calibrated_by)


def _answer(row: Mapping[str, float], p: float) -> Answer:
    """The likeliest step of a row with probability p, the rest shared in the row's proportions."""
    chosen = max(row, key=lambda step: row[step])
    rest = {step: value for step, value in row.items() if step != chosen}
    total = sum(rest.values())
    shares = {step: value / total if total else 1 / len(rest) for step, value in rest.items()}
    return Answer(chosen, {step: p if step == chosen else (1 - p) * shares[step] for step in row})


def _bits(values: Any) -> np.ndarray:
    return np.fromiter((int(value) for value in values), dtype=np.int8)
