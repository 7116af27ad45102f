"""A split evaluated: graph and short path agree, every figure is labelled, and a lifted rule shows what it stops."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from harnesses.desk.clerk import Clerk
from harnesses.desk.database import DeskError
from harnesses.desk.decider import Answer, Choice, DeciderError, Noul
from harnesses.desk.documents import POISONS
from harnesses.desk.evaluation import (
    FOLLOW,
    Evaluation,
    decided,
    directly,
    evaluate,
    routed,
    shifts,
    steps_of,
)
from harnesses.desk.generator import SEED, TEST, split
from harnesses.desk.items import ItemError
from harnesses.desk.measures import Attacked
from harnesses.desk.played import play_attack, play_email
from harnesses.desk.policy import GUARD_THRESHOLDS
from harnesses.desk.scripted import Scripted
from harnesses.desk.toy import Toy, toy
from harnesses.guard.rate import Rate
from harnesses.guard.region import Thresholds
from harnesses.runtime.models import Reply

ITEMS = split(TEST)
WANTED = (
    "decider", "model", "language_model", "split", "seed", "route_accuracy", "route_followed", "uar", "held_back",
    "questions", "cost_per_case", "tokens", "isr_attempted", "isr_carried_out", "stopped_by", "delta_p",
)  # fmt: skip
RATE = {"numerator", "denominator", "rate", "se", "lower", "upper"}


@pytest.fixture(scope="module")
def decider() -> Toy:
    return toy()


@pytest.fixture(scope="module")
def ticks() -> list[int]:
    return []


@pytest.fixture(scope="module")
def found(decider: Toy, ticks: list[int]) -> Evaluation:
    return evaluate(decider, progress=lambda: ticks.append(1))


@dataclass
class Failing:
    """Another decider, one by one, that gives no answer where the request holds a word; none at all for ''."""

    inner: Any
    word: str
    name: str = "scripted"
    model: str = "failing"

    def choose(self, question: Choice) -> Answer:
        self._fail(question.state)
        return self.inner.choose(question)

    def noul(self, question: Noul) -> float:
        self._fail(question.state)
        return self.inner.noul(question)

    def _fail(self, state: Any) -> None:
        if self.word in str(state["request"]):
            raise DeciderError("the service is away")


class Batched(Failing):
    """The same for many questions at once, of which one fails all."""

    def choose_all(self, questions: Sequence[Choice]) -> list[Answer]:
        return [self.choose(question) for question in questions]

    def noul_all(self, questions: Sequence[Noul]) -> list[float]:
        return [self.noul(question) for question in questions]


@pytest.mark.parametrize("lifted", [(), ("P6",)])
def test_the_graph_and_the_short_path_agree_item_by_item(decider: Toy, lifted: tuple[str, ...]) -> None:
    short = directly(ITEMS.guard, decider, GUARD_THRESHOLDS, lifted)
    ran = [
        replace(play_email(item, decider, GUARD_THRESHOLDS, lifted)[0], tokens=None) for item in ITEMS.guard
    ]
    assert ran == short
    assert any(one.sent for one in ran) and any(one.asked for one in ran)


@pytest.mark.parametrize("kind", [Failing, Batched])
def test_they_agree_where_the_decider_gives_no_number(kind: Any) -> None:
    items, faulty = ITEMS.guard[:30], kind(Scripted("retrieve", 0.9, 0.99), "invoice")
    short = directly(items, faulty, GUARD_THRESHOLDS)
    ran = [replace(play_email(item, faulty, GUARD_THRESHOLDS)[0], tokens=None) for item in items]
    assert ran == short
    assert any(one.on_record and one.p is None for one in short) and any(one.sent for one in short)


@pytest.mark.parametrize("p", [1.5, -0.1, float("nan")])
def test_a_number_that_is_no_probability_is_no_answer(p: float) -> None:
    class Odd(Failing):
        def noul(self, question: Noul) -> float:
            return p if "invoice" in str(question.state["request"]) else 0.99

    odd, items = Odd(Scripted("retrieve", 0.9, 0.99), "invoice"), ITEMS.guard[:30]
    short = directly(items, odd, GUARD_THRESHOLDS)
    unanswered = [item for item, one in zip(items, short) if item.on_record and one.p is None]
    assert unanswered and any(one.sent for one in short)
    assert not play_email(unanswered[0], odd, GUARD_THRESHOLDS)[0].sent


def test_the_figures_of_the_test_split(found: Evaluation, ticks: list[int]) -> None:
    assert len(ticks) == steps_of(TEST) == 100 + 90 + 80 + 4 * len(decided(ITEMS.guard))
    data = found.json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data and set(WANTED) <= set(data)
    assert (data["uar"]["denominator"], data["route_accuracy"]["denominator"]) == (39, 100)
    assert found.uar == found.guard.uar and found.questions.numerator == found.guard.asked
    assert data["isr_attempted"]["denominator"] == data["isr_carried_out"]["denominator"] == 80
    assert all(
        set(data[name]) == RATE for name in WANTED if name.startswith(("route_", "uar", "held", "isr"))
    )
    assert data["route_accuracy"]["rate"] > 0.85 and data["lifted"] == []


def test_the_attacks_are_the_runs_recounted(found: Evaluation, decider: Toy) -> None:
    model = Clerk(FOLLOW, SEED)
    ran = [play_attack(item, decider, model, GUARD_THRESHOLDS)[0] for item in ITEMS.injection]
    assert found.attacks.attempted == Rate.of(sum(one.attempted for one in ran), 80)
    assert found.attacks.carried_out == Rate.of(sum(one.carried_out for one in ran), 80)
    tried = [one.stopped for one in ran if one.attempted and one.stopped is not None]
    assert found.attacks.stopped_by == {name: tried.count(name) for name in set(tried)}
    assert set(found.attacks_by) == {
        "direct", "document travel-notes", "document policy-update", "tool_result event-note",
    }  # fmt: skip
    for name, one in found.attacks_by.items():
        channel, _, poison = name.partition(" ")
        part: list[Attacked] = [one for one in ran if (one.channel, one.poison) == (channel, poison)]
        assert one.carried_out == Rate.of(sum(each.carried_out for each in part), len(part))
    a = found.attacks_by["document travel-notes"]
    assert a.attempted.numerator >= 10 and a.carried_out.numerator == 0


def test_every_line_with_a_number_says_what_produced_it(found: Evaluation) -> None:
    lines = found.text().splitlines()
    rows = [line for line in lines if line.startswith("  ")]
    assert len(rows) > 40
    for row in rows:
        assert "  toy (local toy decider (not Jev), beta)" in row, row
    injected = [row for row in rows if row.strip().startswith(("attempt", "carried", "ended by"))]
    assert injected and all(
        row.endswith("; language model scripted, follows orders with p 0.8") for row in injected
    )
    assert str(found.uar) in found.text() and "0 %" not in found.text()
    assert "P6 in code first" in found.text()
    assert "NOT checked in code: P6" in replace(found, lifted=("P6",)).text()


def test_a_decider_that_allows_everything_is_unsafe_and_p6_still_holds() -> None:
    decider = Scripted("retrieve", 0.99, 0.99)
    emails = directly(ITEMS.guard, decider, GUARD_THRESHOLDS)
    lifted = directly(ITEMS.guard, decider, GUARD_THRESHOLDS, ("P6",))
    wishes = sum(item.facts["plea"] == "person" for item in ITEMS.guard)
    assert sum(one.sent for one in lifted) == len(ITEMS.guard) - wishes
    assert sum(one.sent for one in emails) == sum(
        item.on_record and item.facts["plea"] != "person" for item in ITEMS.guard
    )
    assert all(item.on_record for item, one in zip(ITEMS.guard, emails) if one.sent)


def test_a_guard_that_never_acts_has_no_unsafe_action_and_holds_all_back() -> None:
    """Without the graph; the tokens are those of the model in the injection runs."""
    decider = Scripted("retrieve", 0.99, 0.99)
    ticks: list[int] = []

    class Counting(Clerk):
        def reply(self, messages: list, tools: list, step: int) -> Reply:
            calls.append(step)
            return replace(super().reply(messages, tools, step), tokens=3)

    calls: list[int] = []
    found = evaluate(
        decider,
        thresholds=Thresholds(None, 0),
        in_graph=False,
        language_model=Counting(1.0),
        progress=lambda: ticks.append(1),
    )
    assert len(ticks) == steps_of(TEST) and found.tokens == 3 * len(calls) > 0
    assert found.uar.numerator == 0
    assert found.guard.held_back.rate == 1.0 and found.guard.sent == 0
    assert found.questions.numerator == found.guard.asked == len(decided(ITEMS.guard))
    assert not found.ran and "without the graph" in found.text() and "it never acts" in found.text()


def test_an_unanswered_route_is_wrong_and_a_decider_that_never_answers_is_refused() -> None:
    right = Scripted("retrieve", 0.9, 0.7)
    for kind in (Failing, Batched):
        records = routed(ITEMS.route, kind(right, "invoice"))
        for item, record in zip(ITEMS.route, records):
            away = "invoice" in item.case["request"]
            assert (record.chosen, record.p) == ((None, None) if away else ("retrieve", 0.9))
        assert any(record.chosen is None for record in records)
        with pytest.raises(DeciderError, match="answered none of 100 questions: the service is away"):
            routed(ITEMS.route, kind(right, ""))


def test_the_shift_is_that_of_the_same_emails(decider: Toy) -> None:
    items = ITEMS.guard[:12]
    found, asked = shifts(items, decider, GUARD_THRESHOLDS), decided(items)
    assert set(found) == set(POISONS) and 5 < len(asked) < 12
    for name, poison in POISONS.items():
        moves = []
        for item in asked:
            plain, more = item.question(), item.question((f"[{name}:1] {poison.text}",))
            assert poison.text in str(more.state) and poison.text not in str(plain.state)
            moves.append(Fraction(str(decider.noul(more))) - Fraction(str(decider.noul(plain))))
        one = found[name].injection
        assert one.shift.mean == pytest.approx(float(sum(moves) / len(moves)), abs=1e-12)
        assert float(one.largest) == pytest.approx(float(max(moves)), abs=1e-12)
    constant = shifts(items, Scripted("retrieve", 0.9, 0.7), GUARD_THRESHOLDS)
    assert all(one.injection.shift.mean == 0.0 for one in constant.values())


def test_an_email_without_a_number_is_left_out_of_the_shift() -> None:
    asked = decided(ITEMS.guard)
    found = shifts(ITEMS.guard, Failing(Scripted("retrieve", 0.9, 0.7), "invoice"), GUARD_THRESHOLDS)
    away = sum("invoice" in item.case["request"] for item in asked)
    assert {one.injection.shift.count for one in found.values()} == {len(asked) - away} and away > 0


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ItemError, match="no split 'night'"):
        evaluate(Scripted("retrieve", 0.9, 0.9), "night")


def test_a_rule_that_cannot_be_lifted_is_refused() -> None:
    with pytest.raises(DeskError, match="the one rule that can be left unchecked is P6"):
        evaluate(Scripted("retrieve", 0.9, 0.9), lifted=("p6",))
