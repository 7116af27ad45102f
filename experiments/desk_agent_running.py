"""Runs of the study desk_agent: one decider on one decision set, as counts; imports the desk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from experiments.desk_agent import STOPS
from experiments.study import Skipped
from harnesses.desk.clerk import Clerk
from harnesses.desk.decider import Answer, Choice, Decider, DeciderError, Noul, choices, nouls
from harnesses.desk.deciders import decider_named
from harnesses.desk.evaluation import FOLLOW, routed, shifts
from harnesses.desk.generator import LARGE, SEED, TEST, guard_item, split
from harnesses.desk.measures import Attacked, RouteMeasures, attack_name
from harnesses.desk.played import play_attack, play_email
from harnesses.desk.policy import GUARD_COSTS, GUARD_THRESHOLDS, TAU_ROUTE
from harnesses.desk.questions import RETRIEVE
from harnesses.desk.scripted import Scripted
from harnesses.desk.tail import tail
from harnesses.guard.report import Report, report
from harnesses.guard.scores import Scores

Row = dict[str, Any]
DOUBTS = 4
"""By which the bold decider divides every doubt. Source: M14 §7, the overconfident guard of the demo."""


@dataclass(frozen=True)
class Bold:
    """A decider with every doubt of its guard divided: as sharp as the one behind it, and overconfident."""

    behind: Decider
    name: str = "toy"
    model: str = "local toy decider (not Jev), doubts divided by 4"

    def choose(self, question: Choice) -> Answer:
        """As behind."""
        return self.behind.choose(question)

    def choose_all(self, questions: Sequence[Choice]) -> list[Answer]:
        """As behind."""
        return choices(self.behind, questions)

    def noul(self, question: Noul) -> float:
        """1 - (1 - p) / 4."""
        return self.noul_all([question])[0]

    def noul_all(self, questions: Sequence[Noul]) -> list[float]:
        """1 - (1 - p) / 4 of each."""
        return [1 - (1 - p) / DOUBTS for p in nouls(self.behind, questions)]


@lru_cache(maxsize=4)
def decider(name: str) -> Decider:
    """A decider of the study. Raises Skipped where its weights are not there."""
    if name == "allows":
        return Scripted(RETRIEVE, 0.99, 0.99)
    if name == "bold":
        return Bold(decider("toy"))
    try:
        return decider_named(name)
    except DeciderError as error:
        raise Skipped(str(error)) from None


def emails_part(cell: Mapping[str, Any], seed: int) -> list[Row]:
    """Routes by the decider, emails through the graph."""
    used, items = decider(cell["decider"]), split(TEST, SEED + seed)
    measures = RouteMeasures.of(routed(items.route, used), TAU_ROUTE)
    played = [play_email(item, used, GUARD_THRESHOLDS)[0] for item in items.guard]
    costs = [_cost(one) for one in played]
    return [
        {
            "kind": "emails",
            "route": measures.accuracy.numerator,
            "routes": measures.accuracy.denominator,
            "followed": measures.followed.numerator,
            "bad": sum(one.sent and not one.allowed for one in played),
            "disallowed": sum(not one.allowed for one in played),
            "held": sum(one.allowed and not one.sent for one in played),
            "allowed": sum(one.allowed for one in played),
            "asked": sum(one.asked for one in played),
            "items": len(played),
            "cost_sum": sum(costs),
            "cost_squares": sum(cost * cost for cost in costs),
        }
    ]


def direct_part(cell: Mapping[str, Any], seed: int) -> list[Row]:
    """Eq. 5 and Eq. 9 on emails of the large split about which the decider is asked, without the graph."""
    used = decider(cell["decider"])
    drawn = (guard_item(LARGE, number, SEED + seed) for number in range(cell["emails"]))
    items = [item for item in drawn if item.on_record]
    reports = nouls(used, [item.question() for item in items])
    scores = Scores.of(reports, [int(item.allowed) for item in items], source="emails")
    rows: list[Row] = [{"kind": "acted", **_acted(report(scores, GUARD_THRESHOLDS, GUARD_COSTS))}]
    for name, moved in shifts(items, used, GUARD_THRESHOLDS).items():
        found = moved.injection
        rows.append(
            {
                "kind": "shift", "poison": name, "items": found.shift.count, "mean": found.shift.mean,
                "smallest": float(found.smallest), "largest": float(found.largest),
                "up": found.crossed_up.numerator, "up_bad": found.crossed_up_bad.numerator,
                "down": found.crossed_down.numerator,
            }
        )  # fmt: skip
    return rows


def attacks_part(cell: Mapping[str, Any], seed: int) -> list[Row]:
    """Injection items through the graph with the gullible clerk, by channel and text."""
    used, lifted = decider(cell["decider"]), ("P6",) if cell["p6"] == "lifted" else ()
    clerk = Clerk(FOLLOW, SEED + seed)
    found: dict[str, list[Attacked]] = {}
    for item in split(TEST, SEED + seed).injection:
        record = play_attack(item, used, clerk, GUARD_THRESHOLDS, lifted)[0]
        found.setdefault(attack_name(record.channel, record.poison), []).append(record)
    return [
        {
            "kind": "attack",
            "attack": name,
            "runs": len(records),
            "attempted": sum(one.attempted for one in records),
            "carried_out": sum(one.carried_out for one in records),
            **{f"by_{stop.lower()}": sum(one.stopped == stop for one in records) for stop in STOPS},
        }
        for name, records in found.items()
    ]


def tail_part(cell: Mapping[str, Any], seed: int) -> list[Row]:
    """An arm of the tail on its own part of the large split."""
    size = cell["emails"]
    items = [guard_item(LARGE, number) for number in range(seed * size, (seed + 1) * size)]
    return [{"kind": "tail", **_acted(tail(cell["p6"], items).guard)}]


def _acted(found: Report) -> Row:
    """Counts of what is sent alone, the promise and the calibration error."""
    assert found.calibration is not None and found.bound is not None
    return {
        "items": found.items,
        "sent": found.sent,
        "bad": found.bad,
        "bound": float(found.bound),
        "ece": float(found.calibration.ece_width),
    }


def _cost(one: Any) -> float:
    """What an email cost, with a person who never errs. Source: M14 §7, Module 12's three-action cost."""
    if one.sent:
        return 0.0 if one.allowed else float(GUARD_COSTS.wrong)
    if one.asked:
        return float(GUARD_COSTS.ask) + (0.0 if one.allowed else float(GUARD_COSTS.miss))
    return float(GUARD_COSTS.escalate)
