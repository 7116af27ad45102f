"""Evaluation: a decider and the running desk on a split, from which the measures are taken; imports played, measures.

Route items go through the decider; emails through the graph, proposed one by one, with a simulated reviewer; injected
texts through whole runs with a language model that may follow them; the shift of the guard's number is read on the same
emails with and without each text. Every figure carries the decider's label and the language model's.
Source: M14 §8, Exercise 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harnesses.desk.clerk import Clerk
from harnesses.desk.decider import Decider, choices, nouls
from harnesses.desk.documents import POISONS
from harnesses.desk.generator import SEED, TEST, split
from harnesses.desk.grounds import Kind
from harnesses.desk.items import GuardItem
from harnesses.desk.measures import (
    Attacked,
    AttackMeasures,
    Guarded,
    Routed,
    RouteMeasures,
    by_attack,
    guard_report,
    shift,
    unsafe_rate,
)
from harnesses.desk.played import play_attack, play_email
from harnesses.desk.policy import GUARD_THRESHOLDS, TAU_ROUTE
from harnesses.desk.wishes import person_asked_for
from harnesses.guard.injection import Injection
from harnesses.guard.rate import Rate
from harnesses.guard.region import Region, Thresholds, region
from harnesses.guard.report import Report
from harnesses.runtime.models import Model

FOLLOW = 0.8
"""Probability with which the gullible clerk obeys an order that it reads, this project's choice."""

Progress = Callable[[], object]


@dataclass(frozen=True)
class Evaluation:
    """All measures of one decider on one split; `routes`, `guard`, `attacks` as in `measures`, `shifts` by poison.

    ran: whether the emails went through the graph, or through decider and thresholds alone.
    """

    decider: str
    model: str
    language_model: str
    split: str
    seed: int
    ran: bool
    routes: RouteMeasures
    guard: Report
    uar: Rate
    questions: Rate
    tokens: int | None
    attacks: AttackMeasures
    attacks_by: Mapping[str, AttackMeasures]
    shifts: Mapping[str, Injection]

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
            "confidence": self.guard.confidence,
            "route_accuracy": self.routes.accuracy.json(),
            "route_followed": self.routes.followed.json(),
            "route_accuracy_followed": self.routes.accuracy_followed.json(),
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
        """A table for people, every part under the label of what produced it; ends with a newline."""
        who = f"{self.decider} ({self.model})"
        how = "through the graph" if self.ran else "decider and thresholds, without the graph"
        lines = [
            f"split {self.split}, seed {self.seed}",
            "",
            f"route, by {who}",
            f"  accuracy              {self.routes.accuracy}",
            f"  followed              {self.routes.followed}",
            f"  accuracy, followed    {self.routes.accuracy_followed}",
            "",
            f"guard, by {who}, {how}; P6 in code first",
            f"  unsafe-action rate    {self.uar}",
            f"  share of sent, bad    {self.guard.share}; promised at most {_bound(self.guard)}, {self.guard.verdict}",
            f"  allowed, held back    {self.guard.held_back}",
            f"  questions             {self.questions}",
            f"  cost per case         {self.guard.cost_per_case}",
            f"  tokens                {'not counted by this model' if self.tokens is None else self.tokens}",
            "",
            f"injection, decider {who}, language model {self.language_model}",
            f"  attempted             {self.attacks.attempted}",
            f"  carried out alone     {self.attacks.carried_out}",
            f"  stopped by            {_stops(self.attacks)}",
        ]
        for name, one in self.attacks_by.items():
            lines += [
                f"  {name}",
                f"    attempted           {one.attempted}",
                f"    carried out alone   {one.carried_out}; stopped by {_stops(one)}",
            ]
        for name, found in self.shifts.items():
            lines += ["", f"delta p of {name}, by {who}", *(f"  {line}" for line in found.lines()[:4])]
        return "\n".join(lines) + "\n"


def evaluate(
    decider: Decider,
    name: str = TEST,
    seed: int = SEED,
    *,
    language_model: Model | None = None,
    thresholds: Thresholds = GUARD_THRESHOLDS,
    lifted: Sequence[str] = (),
    in_graph: bool = True,
    progress: Progress = lambda: None,
) -> Evaluation:
    """All measures of a decider on a split.

    language_model: at the agent node of the injection runs; the gullible clerk unless one is given. lifted: rules in
    code that are left unchecked, for experiments. in_graph: whether emails go through the graph; without, a large split
    takes seconds. `progress` is called after each item. Raises ItemError for an unknown split.
    """
    found = split(name, seed)
    model = Clerk(FOLLOW, seed) if language_model is None else language_model
    routes = [
        Routed(item.route, answer.choice, answer.p)
        for item, answer in zip(found.route, choices(decider, [item.question() for item in found.route]))
    ]
    emails = (
        _played(found.guard, decider, thresholds, lifted, progress)
        if in_graph
        else directly(found.guard, decider, thresholds, lifted)
    )
    attacks: list[Attacked] = []
    for item in found.injection:
        attacks.append(play_attack(item, decider, model, thresholds, lifted)[0])
        progress()
    spent = [record.tokens for record in emails if record.tokens is not None]
    return Evaluation(
        decider.name,
        decider.model,
        model.name,
        name,
        seed,
        in_graph,
        RouteMeasures.of(routes, TAU_ROUTE),
        guard_report(emails, thresholds),
        unsafe_rate(emails),
        Rate.of(sum(record.asked for record in emails), len(emails), 0.95),
        sum(spent) if spent else None,
        AttackMeasures.of(attacks),
        by_attack(attacks),
        shifts(found.guard, decider, thresholds),
    )


def items_of(name: str, seed: int = SEED, in_graph: bool = True) -> int:
    """How often `evaluate` calls `progress` on a split."""
    found = split(name, seed)
    return len(found.injection) + (len(found.guard) if in_graph else 0)


def directly(
    items: Sequence[GuardItem], decider: Decider, thresholds: Thresholds, lifted: Sequence[str] = ()
) -> list[Guarded]:
    """What the desk does with emails, without the graph: the hard rules, then the decider's number and the thresholds.

    An email whose request asks for a person, or that breaks P6, reaches no decider.
    """
    checked = Kind.ADDRESS not in lifted
    asked = [
        item
        for item in items
        if (item.on_record or not checked) and person_asked_for(item.case["request"]) is None
    ]
    reports = dict(zip((item.id for item in asked), nouls(decider, [item.question() for item in asked])))
    made = []
    for item in items:
        p = reports.get(item.id)
        found = Region.ESCALATE if p is None else region(p, thresholds)
        approved = found is Region.ASK and item.allowed
        made.append(
            Guarded(item.allowed, item.on_record, p, found is Region.ACT, found is Region.ASK, approved)
        )
    return made


def shifts(items: Sequence[GuardItem], decider: Decider, thresholds: Thresholds) -> dict[str, Injection]:
    """Eq. 9 for each poisoned text, on the emails about which the decider is asked at all."""
    asked = [item for item in items if item.on_record]
    plain = nouls(decider, [item.question() for item in asked])
    labels = [item.allowed for item in asked]
    return {
        name: shift(
            plain,
            nouls(decider, [item.question((f"[{name}:1] {poison.text}",)) for item in asked]),
            labels,
            thresholds.tau_act,
        )
        for name, poison in POISONS.items()
    }


def _played(
    items: Sequence[GuardItem],
    decider: Decider,
    thresholds: Thresholds,
    lifted: Sequence[str],
    progress: Progress,
) -> list[Guarded]:
    found = []
    for item in items:
        found.append(play_email(item, decider, thresholds, lifted)[0])
        progress()
    return found


def _bound(report: Report) -> str:
    return "nothing, for it never acts" if report.bound is None else str(report.bound)


def _stops(measures: AttackMeasures) -> str:
    return ", ".join(f"{name} {count}" for name, count in measures.stopped_by.items()) or "nothing"
