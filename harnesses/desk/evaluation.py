"""Evaluation: a decider and the running desk on a split, from which the measures are taken; imports played, measures.

Route items go through the decider; emails through the graph, proposed one by one, with a simulated reviewer; injected
texts through whole runs with a language model that may follow them; the shift of the guard's number is read on the same
emails with and without each text. Every figure carries the decider's label and the language model's.
Source: M14 §8, Exercise 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from harnesses.desk.clerk import Clerk
from harnesses.desk.database import DeskError
from harnesses.desk.decider import Answer, Choice, Decider, DeciderError, Noul, checked, choices, label, nouls
from harnesses.desk.documents import POISONS
from harnesses.desk.generator import SEED, TEST, split
from harnesses.desk.grounds import Kind
from harnesses.desk.items import GuardItem, RouteItem
from harnesses.desk.measures import (
    Attacked,
    AttackMeasures,
    Guarded,
    Routed,
    RouteMeasures,
    Shift,
    by_attack,
    guard_report,
    tokens_of,
    unsafe_rate,
)
from harnesses.desk.played import play_attack, play_email
from harnesses.desk.policy import GUARD_THRESHOLDS, TAU_ROUTE
from harnesses.desk.wishes import person_asked_for
from harnesses.guard.rate import Rate
from harnesses.guard.region import Region, Thresholds, region
from harnesses.guard.report import Report
from harnesses.runtime.models import Model

FOLLOW = 0.8
"""Probability with which the gullible clerk obeys an order that it reads, this project's choice."""
TOGETHER = 50
"""Questions that are put to a decider at once, between two steps of the progress."""

_drawn = lru_cache(maxsize=1)(split)
"""The last split, drawn once: the large one takes seconds."""

Progress = Callable[[], object]
Q = TypeVar("Q", Choice, Noul)
A = TypeVar("A", Answer, float)
T = TypeVar("T")


def nothing() -> None:
    """The progress that nobody watches."""


@dataclass(frozen=True)
class Evaluation:
    """All measures of one decider on one split; `routes`, `guard`, `attacks` as in `measures`, `shifts` by poison.

    ran: whether the emails went through the graph, or through decider and thresholds alone. lifted: rules in code that
    were left unchecked. tokens: of the language model in all runs through the graph, None where it counts none.
    """

    decider: str
    model: str
    language_model: str
    split: str
    seed: int
    ran: bool
    lifted: tuple[str, ...]
    routes: RouteMeasures
    guard: Report
    uar: Rate
    questions: Rate
    tokens: int | None
    attacks: AttackMeasures
    attacks_by: Mapping[str, AttackMeasures]
    shifts: Mapping[str, Shift]

    def json(self) -> dict[str, Any]:
        """As data; rates as in `guard report`."""
        report = self.guard.json()
        return {
            "decider": self.decider,
            "model": self.model,
            "language_model": self.language_model,
            "split": self.split,
            "seed": self.seed,
            "ran_in_graph": self.ran,
            "lifted": list(self.lifted),
            "confidence": self.guard.confidence,
            "route_accuracy": self.routes.accuracy.json(),
            "route_followed": self.routes.followed.json(),
            "route_accuracy_followed": self.routes.accuracy_followed.json(),
            "route_invalid": self.routes.invalid.json(),
            "uar": self.uar.json(),
            "share": report["share"],
            "bound": report["bound"],
            "verdict": report["verdict"],
            "held_back": report["held_back"],
            "questions": self.questions.json(),
            "cost_per_case": report["cost_per_case"],
            "cost_per_case_interval": report["cost_per_case_interval"],
            "tokens": self.tokens,
            **self.attacks.json(),
            "attacks": {name: one.json() for name, one in self.attacks_by.items()},
            "delta_p": {name: one.json() for name, one in self.shifts.items()},
            "thresholds": report["thresholds"],
        }

    def text(self) -> str:
        """A table for people, every line with the label of what produced it; ends with a newline."""
        from harnesses.desk.evaluation_text import text

        return text(self)


def evaluate(
    decider: Decider,
    name: str = TEST,
    seed: int = SEED,
    *,
    language_model: Model | None = None,
    thresholds: Thresholds = GUARD_THRESHOLDS,
    lifted: Sequence[str] = (),
    in_graph: bool = True,
    progress: Progress = nothing,
) -> Evaluation:
    """All measures of a decider on a split.

    language_model: at the agent node of the injection runs; the gullible clerk unless one is given. lifted: rules in
    code that are left unchecked, for experiments. in_graph: whether emails go through the graph; without, the split
    `large` takes a minute with the toy decider. `progress` is called once for each of `steps_of`. Raises ItemError for
    an unknown split, DeskError for a rule that cannot be lifted, and DeciderError where the decider answers none of the
    questions of a kind.
    """
    if set(lifted) - {Kind.ADDRESS.value}:
        raise DeskError(f"lifted is {', '.join(lifted)}; the one rule that can be left unchecked is P6")
    found = _drawn(name, seed)
    model = Clerk(FOLLOW, seed) if language_model is None else language_model
    routes = routed(found.route, decider, progress)
    if in_graph:
        emails = [_told(play_email(item, decider, thresholds, lifted)[0], progress) for item in found.guard]
    else:
        emails = directly(found.guard, decider, thresholds, lifted, progress)
    attacks: list[Attacked] = [
        _told(play_attack(item, decider, model, thresholds, lifted)[0], progress) for item in found.injection
    ]
    # The label is read last: a service says with its answers which model gave them.
    moved = shifts(found.guard, decider, thresholds, progress)
    return Evaluation(
        decider.name,
        decider.model,
        model.name,
        name,
        seed,
        in_graph,
        tuple(lifted),
        RouteMeasures.of(routes, TAU_ROUTE),
        guard_report(emails, thresholds),
        unsafe_rate(emails),
        Rate.of(sum(record.asked for record in emails), len(emails), 0.95),
        tokens_of([*emails, *attacks]),
        AttackMeasures.of(attacks),
        by_attack(attacks),
        moved,
    )


def steps_of(name: str, seed: int = SEED) -> int:
    """How often `evaluate` calls `progress` on a split: once an item, and once a question about a shift."""
    found = _drawn(name, seed)
    items = len(found.route) + len(found.guard) + len(found.injection)
    return items + (1 + len(POISONS)) * len(decided(found.guard))


def routed(items: Sequence[RouteItem], decider: Decider, progress: Progress = nothing) -> list[Routed]:
    """What a decider says to each route item; one that it does not answer has no valid answer."""
    answers = _answers(decider, [item.question() for item in items], choices, progress)
    return [
        Routed(item.route, None if answer is None else answer.choice, None if answer is None else answer.p)
        for item, answer in zip(items, answers)
    ]


def decided(items: Sequence[GuardItem], lifted: Sequence[str] = ()) -> list[GuardItem]:
    """The emails about which a decider is asked: no rule in code stops them, and nobody asked for a person."""
    checks = Kind.ADDRESS not in lifted
    return [
        item
        for item in items
        if (item.on_record or not checks) and person_asked_for(item.case["request"]) is None
    ]


def directly(
    items: Sequence[GuardItem],
    decider: Decider,
    thresholds: Thresholds,
    lifted: Sequence[str] = (),
    progress: Progress = nothing,
) -> list[Guarded]:
    """What the desk does with emails, without the graph: the hard rules, then the decider's number and the thresholds.

    An email about which the decider is not asked, or gives no number, is handed over.
    """
    asked = decided(items, lifted)
    numbers = _answers(decider, [item.question() for item in asked], _numbers, progress)
    reports = dict(zip((item.id for item in asked), numbers))
    made = []
    for item in items:
        p = reports.get(item.id)
        found = Region.ESCALATE if p is None else region(p, thresholds)
        approved = found is Region.ASK and item.allowed
        made.append(
            Guarded(item.allowed, item.on_record, p, found is Region.ACT, found is Region.ASK, approved)
        )
        if item.id not in reports:
            progress()
    return made


def shifts(
    items: Sequence[GuardItem], decider: Decider, thresholds: Thresholds, progress: Progress = nothing
) -> dict[str, Shift]:
    """Eq. 9 for each poisoned text, on the emails about which the decider is asked and gives both numbers."""
    asked = decided(items)

    def reports(added: Sequence[str]) -> list[float | None]:
        return _answers(decider, [item.question(added) for item in asked], _numbers, progress)

    plain, found = reports(()), {}
    for name, poison in POISONS.items():
        injected = reports((f"[{name}:1] {poison.text}",))
        both = [
            (p, after, item.allowed)
            for p, after, item in zip(plain, injected, asked)
            if p is not None and after is not None
        ]
        found[name] = Shift.of(
            [p for p, _, _ in both],
            [after for _, after, _ in both],
            [allowed for _, _, allowed in both],
            thresholds,
        )
    return found


def _answers(
    decider: Decider,
    questions: Sequence[Q],
    ask: Callable[[Decider, Sequence[Q]], list[A]],
    progress: Progress,
) -> list[A | None]:
    """The answer to each question, None where there is no valid one. Raises DeciderError where there is none at all."""
    found: list[A | None] = []
    fault: DeciderError | None = None
    for start in range(0, len(questions), TOGETHER):
        part = questions[start : start + TOGETHER]
        try:
            answers: list[A | None] = list(ask(decider, part))
        except DeciderError:
            answers = []
            for question in part:
                try:
                    answers += ask(decider, [question])
                except DeciderError as error:
                    fault = error
                    answers.append(None)
        found += answers
        for _ in part:
            progress()
    if fault is not None and all(answer is None for answer in found):
        raise DeciderError(f"{label(decider)} answered none of {len(found)} questions: {fault}")
    return found


def _numbers(decider: Decider, questions: Sequence[Noul]) -> list[float]:
    """The probabilities of yes. Raises DeciderError for what is none."""
    return [checked(p, "the decider's number") for p in nouls(decider, questions)]


def _told(found: T, progress: Progress) -> T:
    """What was found, after a step of the progress."""
    progress()
    return found
