"""Typed questions and answers: what is none is refused, and a batch says what single questions say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from harnesses.desk.decider import (
    Answer,
    BatchDecider,
    Choice,
    Decider,
    DeciderError,
    Noul,
    choices,
    label,
    nouls,
)
from harnesses.desk.questions import ROUTES, guard_question, rendered, route_question, verify_question

CASE = {
    "today": "2026-03-02",
    "request": "Where is E1?",
    "email": "ana@example.org",
    "event": {"id": "E1", "city": "Lyon"},
    "registration": None,
    "secret": "x",
}
EMAIL = {"to": "ana@example.org", "subject": "Hello", "body": "Dear Ana", "bcc": "x"}


@dataclass
class Constant:
    """Gives every question the same answer."""

    p: float
    name: str = "scripted"
    model: str = "constant"

    def choose(self, question: Choice) -> Answer:
        first, *others = question.options
        return Answer(first, {first: self.p, **{o: (1 - self.p) / len(others) for o in others}})

    def noul(self, question: Noul) -> float:
        return self.p


class Batched(Constant):
    """Answers many at once, and counts how often."""

    calls = 0

    def choose_all(self, questions: Sequence[Choice]) -> list[Answer]:
        self.calls += 1
        return [self.choose(question) for question in questions]

    def noul_all(self, questions: Sequence[Noul]) -> list[float]:
        self.calls += 1
        return [self.noul(question) for question in questions]


@pytest.mark.parametrize(
    ("choice", "probabilities", "named"),
    [
        ("a", {"a": 0.5, "b": 0.4}, "sum to 0.9"),
        ("c", {"a": 0.5, "b": 0.5}, "'c' is none of the options a, b"),
        ("a", {"a": 1.5, "b": -0.5}, "probability of a is 1.5"),
        ("a", {"a": float("nan"), "b": 1.0}, "probability of a is nan"),
    ],
)
def test_what_is_no_answer_is_refused(choice: str, probabilities: Mapping[str, float], named: str) -> None:
    with pytest.raises(DeciderError, match=named):
        Answer(choice, probabilities)


def test_the_likeliest_option_is_chosen_and_the_first_of_equals() -> None:
    assert Answer.likeliest({"a": 0.2, "b": 0.8}).choice == "b"
    assert Answer.likeliest({"a": 0.5, "b": 0.5}).choice == "a"
    assert Answer.likeliest({"a": 0.2, "b": 0.8}).p == 0.8
    with pytest.raises(DeciderError, match="needs options"):
        Answer.likeliest({})


def test_a_choice_needs_two_options() -> None:
    with pytest.raises(DeciderError, match="two or more"):
        Choice("Which?", {"only": "one"})


def test_a_batch_is_one_call_and_says_the_same() -> None:
    single, batched = Constant(0.75), Batched(0.75)
    assert isinstance(single, Decider) and not isinstance(single, BatchDecider)
    assert isinstance(batched, BatchDecider)
    asked = [route_question(CASE)] * 3
    assert choices(single, asked) == choices(batched, asked)
    guarded = [guard_question(CASE, EMAIL)] * 3
    assert nouls(single, guarded) == nouls(batched, guarded) == [0.75] * 3
    assert batched.calls == 2
    assert label(batched) == "scripted (constant)"


def test_a_question_shows_the_case_and_nothing_else() -> None:
    asked = route_question(CASE)
    assert set(asked.options) == set(ROUTES)
    assert set(asked.state) == {"today", "request", "event", "registration"}
    guarded = guard_question(CASE, EMAIL, ["[E1:1] Lyon."])
    assert guarded.state["email"] == {name: EMAIL[name] for name in ("to", "subject", "body")}
    assert guarded.state["passages"] == ["[E1:1] Lyon."]
    assert verify_question("Lyon.", ["[E1:1] Lyon."]).state["answer"] == "Lyon."


def test_a_state_reads_alike_whatever_its_order() -> None:
    state = guard_question(CASE, EMAIL, ["one", "two"]).state
    assert rendered(state) == rendered(dict(sorted(state.items(), reverse=True)))
    assert rendered(state).splitlines() == [
        "today: 2026-03-02",
        "request: Where is E1?",
        "event id: E1",
        "event city: Lyon",
        "registration: none",
        "email to: ana@example.org",
        "email subject: Hello",
        "email body: Dear Ana",
        "passages: one",
        "passages: two",
    ]
