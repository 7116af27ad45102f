"""Reviewers: by label, with errors at their rates, and a person at a terminal who types what they like."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from harnesses.desk.database import DeskError
from harnesses.desk.driver import Question
from harnesses.desk.reviewer import AtTerminal, ByLabel, Fallible
from harnesses.desk.reviews import Verdict, addressed, review_answer, review_question
from harnesses.guard.costs import Reviewer
from harnesses.guard.rate import Rate
from harnesses.guard.region import GuardError

Make = Callable[..., Any]


def question(number: int = 0, body: str = "Text") -> Question:
    email = {"to": "ana@example.org", "subject": "Hello", "body": body}
    shown = {
        "call": "c1",
        "email": email,
        "p_allow": 0.8,
        "tau_esc": "3/8",
        "tau_act": "31/32",
        "request": "Please.",
    }
    return Question(f"{number:032}", f"t{number}", shown | {"about": f"{number:016}"})


@pytest.mark.parametrize("allowed", [True, False])
def test_the_simulated_reviewer_follows_the_label(room: Make, allowed: bool) -> None:
    r, reviewer = room(), ByLabel(lambda shown: allowed)
    done = r.desk.run_with_human("t", r.case, reviewer)
    assert (done.kind, r.sent(), reviewer.questions) == ("answer", int(allowed), 1)


@pytest.mark.parametrize(("allowed", "errs"), [(True, Verdict.REJECT), (False, Verdict.APPROVE)])
def test_the_fallible_reviewer_errs_at_its_rates(allowed: bool, errs: Verdict) -> None:
    rates = Reviewer(e0=Fraction(1, 10), e1=Fraction(1, 4))
    reviewer = Fallible(lambda shown: allowed, rates, seed=7)
    wrong = sum(reviewer(question(number)) is errs for number in range(2000))
    found = Rate.of(wrong, 2000, level=0.999)
    assert found.lower <= float(rates.e1 if allowed else rates.e0) <= found.upper


def test_the_fallible_reviewer_repeats_itself_and_differs_by_seed() -> None:
    half = Reviewer(e0=Fraction(1, 2))
    first, again, other = (
        [Fallible(lambda shown: False, half, seed)(question(n)) for n in range(50)] for seed in (1, 1, 2)
    )
    assert first == again != other


def test_rates_at_the_ends_are_exact() -> None:
    for e0, expected in ((0, Verdict.REJECT), (1, Verdict.APPROVE)):
        reviewer = Fallible(lambda shown: False, Reviewer(e0=e0), seed=0)
        assert all(reviewer(question(n)) is expected for n in range(200))
    with pytest.raises(GuardError):
        Fallible(lambda shown: False, Reviewer(e0=2), seed=0)


def test_a_person_is_asked_until_they_say_one_of_the_two_words() -> None:
    out = io.StringIO()
    assert AtTerminal(io.StringIO("yes\n\nReject\nreject\n"), out)(question()) is Verdict.REJECT
    shown = out.getvalue()
    assert (
        shown.count("approve or reject? ") == 4
        and "0.8; handed over below 3/8, sent alone from 31/32" in shown
    )
    with pytest.raises(DeskError, match="waits on"):
        AtTerminal(io.StringIO("maybe\n"), io.StringIO())(question())


def test_an_email_cannot_hide_a_line_of_itself() -> None:
    out = io.StringIO()
    AtTerminal(io.StringIO("reject\n"), out)(question(body="Send 900 EUR\r\x1b[1A\x1b[2KHello‮"))
    assert "\x1b" not in out.getvalue() and "\r" not in out.getvalue() and "‮" not in out.getvalue()
    assert "900" in out.getvalue()


def test_an_answer_is_for_what_was_shown_and_for_nothing_else() -> None:
    state: dict[str, Any] = {
        "pending": {"id": "c1", "email": {"to": "a@b", "subject": "s", "body": "b"}},
        "p_allow": 0.8,
        "taus": {"esc": "3/8", "act": "31/32"},
        "case": {"request": "Please."},
    }
    shown = review_question(state)
    assert addressed(review_answer(shown, Verdict.APPROVE, "ines"), shown) == (Verdict.APPROVE, "ines")
    changes: list[dict[str, Any]] = [
        {"p_allow": 0.81},
        {"taus": {"esc": "3/8", "act": "0.9"}},
        {"pending": {"id": "c2", "email": state["pending"]["email"]}},
        {"pending": {"id": "c1", "email": {**state["pending"]["email"], "body": "c"}}},
    ]
    for change in changes:
        assert addressed(review_answer(review_question(state | change), Verdict.APPROVE), shown) is None
    for said in (
        "approve",
        None,
        {"about": shown["about"]},
        {"about": shown["about"], "verdict": "yes"},
        ["approve"],
    ):
        assert addressed(said, shown) is None
