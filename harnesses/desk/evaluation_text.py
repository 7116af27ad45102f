"""The table of an evaluation for people; imports evaluation's record and the decider's label.

Each line ends with what produced its number, so that a line which is copied out still says it. A rate is printed with
its counts: none of 30 is 0/30 with its upper end, and never 0 %. Source: M14 §8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harnesses.desk.measures import AttackMeasures, Shift

if TYPE_CHECKING:
    from harnesses.desk.evaluation import Evaluation

Row = tuple[str, str]


def text(found: Evaluation) -> str:
    """All of an evaluation, in sections; ends with a newline."""
    who = f"{found.decider} ({found.model})"
    both = f"{who}; language model {found.language_model}"
    how = "emails through the graph" if found.ran else "emails by decider and thresholds, without the graph"
    rules = f"NOT checked in code: {', '.join(found.lifted)}" if found.lifted else "P6 in code first"
    sections: list[tuple[str, Sequence[Row], str]] = [
        ("route items (Eq. 6)", _routes(found), who),
        (f"guard items (Eq. 7), {how}; {rules}", _guard(found), who),
        (
            f"injection runs (Eq. 8), all; {rules}",
            [*_attack(found.attacks), ("tokens", _tokens(found))],
            both,
        ),
        *((f"injection runs, {name}", _attack(one), both) for name, one in found.attacks_by.items()),
        *(
            (f"delta p (Eq. 9), {name} among the passages", _shift(one), who)
            for name, one in found.shifts.items()
        ),
    ]
    wide = max(len(value) for _, rows, _ in sections for _, value in rows)
    lines = [f"split {found.split}, seed {found.seed}"]
    for title, rows, label in sections:
        lines += ["", title, *(f"  {name:<22}{value:<{wide}}  {label}" for name, value in rows)]
    return "\n".join(lines) + "\n"


def _routes(found: Evaluation) -> list[Row]:
    rows = [
        ("accuracy", str(found.routes.accuracy)),
        ("followed", str(found.routes.followed)),
        ("accuracy, followed", str(found.routes.accuracy_followed)),
    ]
    if found.routes.invalid.numerator:
        rows.append(("no valid answer", str(found.routes.invalid)))
    return rows


def _guard(found: Evaluation) -> list[Row]:
    bound = "nothing, for it never acts" if found.guard.bound is None else str(found.guard.bound)
    return [
        ("unsafe-action rate", str(found.uar)),
        ("share of sent, bad", str(found.guard.share)),
        ("  Eq. 5 allows", f"{bound}, {found.guard.verdict}"),
        ("allowed, held back", str(found.guard.held_back)),
        ("questions", str(found.questions)),
        ("cost per case", str(found.guard.cost_per_case)),
    ]


def _attack(one: AttackMeasures) -> list[Row]:
    stops = ", ".join(f"{name} {count}" for name, count in one.stopped_by.items())
    rows = [
        ("attempted", str(one.attempted)),
        ("carried out alone", str(one.carried_out)),
        ("attempts stopped by", stops or "nothing"),
    ]
    if one.approved.numerator:
        rows.append(("approved by a person", str(one.approved)))
    if one.unasked.numerator:
        rows.append(("ended by the router", str(one.unasked)))
    return rows


def _tokens(found: Evaluation) -> str:
    return "not counted by this model" if found.tokens is None else str(found.tokens)


def _shift(one: Shift) -> list[Row]:
    found = one.injection
    return [
        ("mean", str(found.shift)),
        ("smallest, largest", f"{float(found.smallest):.6g}, {float(found.largest):.6g}"),
        ("over tau_act, up", f"{found.crossed_up}; not allowed among them {found.crossed_up_bad}"),
        ("over tau_act, down", str(found.crossed_down)),
        ("over tau_esc, up", str(one.into_review)),
        ("over tau_esc, down", str(one.out_of_review)),
    ]
