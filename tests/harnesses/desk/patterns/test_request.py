"""Request: rows that sum to 1, what the desk sees, the two ways to fail on two questions, prices of a call."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from harnesses.desk.patterns.chooser import Tokens, choice, sensible
from harnesses.desk.patterns.request import (
    ACTIONS,
    END,
    FIRST,
    ONE,
    SECOND,
    UNSPLIT,
    Competence,
    Part,
    Payoff,
    Whole,
    after,
    answered,
    outcomes,
    request_model,
)
from pomdp.model import ModelError

RATES = Competence()
EVIDENCE = ("fresh", "nothing", "label-right", "label-wrong", "passage-right", "passage-astray")
PARTS = [Part(*given) for given in product(EVIDENCE, ("none", "right", "wrong"), ("none", "pass", "fail"))]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("double", [False, True])
def test_every_call_has_outcomes_that_sum_to_one(action: str, double: bool) -> None:
    for part in PARTS:
        row = outcomes(part, action, double, RATES)
        assert sum(row.values()) == 1 and min(row.values()) > 0
        for known in (UNSPLIT, ONE, FIRST, SECOND):
            whole = Whole(2 if double else 1, known, "none", part)
            assert sum(after(whole, action, RATES).values()) == 1


def test_what_is_shown_hides_quality() -> None:
    """States that differ in quality alone look alike, so no context can tell a right draft from a wrong one."""
    assert Part("label-right").shown == Part("label-wrong").shown == "labelled.none"
    assert Part("passage-right", "right").shown == Part("passage-astray", "wrong").shown == "passage.new"
    assert Part("passage-right", "right", "pass").shown == "passage.pass"
    assert {Whole(n).shown for n in (1, 2)} == {"unsplit.fresh.none"}


def test_a_draft_counts_on_what_is_held() -> None:
    def right(evidence: str, double: bool) -> Fraction:
        return outcomes(Part(evidence), "draft", double, RATES)[Part(evidence, "right")]

    assert right("passage-right", False) == RATES.grounded and right("passage-astray", False) == RATES.misled
    assert right("nothing", False) == right("label-right", False) == RATES.guessed
    assert right("passage-right", True) == RATES.grounded_two
    assert right("passage-astray", True) == right("fresh", True) == RATES.guessed_two


def test_a_new_search_drops_the_draft() -> None:
    done = Part("passage-right", "right", "pass")
    for action in ("classify", "retrieve"):
        assert all(part.draft == "none" for part in outcomes(done, action, False, RATES))
    assert outcomes(Part("fresh"), "check", False, RATES) == {Part("fresh"): 1}


def test_two_questions_need_two_right_answers() -> None:
    first = Whole(2, FIRST, "none", Part("passage-right", "right"))
    (second,) = after(first, "submit", RATES)
    assert second == Whole(2, SECOND, "right")
    done = second._replace(part=Part("nothing", "right")) if isinstance(second, Whole) else first
    assert answered(done) and not answered(done._replace(first="wrong"))
    assert not answered(Whole(1)) and after(done, "submit", RATES) == {END: 1}


def test_questions_that_are_not_named_stay_together() -> None:
    seen = after(Whole(2, UNSPLIT, "none", Part("label-right")), "split", RATES)
    missed = Whole(2, ONE, "none", Part("label-right"))
    assert seen == {Whole(2, FIRST): RATES.split, missed: 1 - RATES.split} and missed.double
    assert after(Whole(1), "split", RATES) == {Whole(1, ONE): 1} and not Whole(1, ONE).double
    assert after(missed, "split", RATES) == {missed: 1}  # a second look sees no more


def test_rewards_are_those_of_the_payoff() -> None:
    worth = Payoff(Fraction(5), Fraction(-7), Fraction(2))
    model = request_model(RATES, worth)
    submit, escalate = (model.exact.R.row(model.action_index(a)) for a in ("submit", "escalate"))
    assert set(submit.values()) == {5, -7}
    assert set(escalate.values()) == {2} and len(escalate) == model.num_states - 1
    assert submit[model.state_index("1.unsplit.none.passage-right.right.none")] == 5
    assert submit[model.state_index("2.second.wrong.passage-right.right.none")] == -7


@pytest.mark.parametrize(
    "given", [{"split": Fraction(3, 2)}, {"blind": Fraction(1), "blind_astray": Fraction(1)}]
)
def test_competence_is_made_of_probabilities(given: dict[str, Fraction]) -> None:
    with pytest.raises(ModelError, match="competence"):
        replace(RATES, **given)


@pytest.mark.parametrize(
    ("shown", "menu", "best"),
    [
        ("unsplit.fresh.none", ACTIONS, "split"),
        ("unsplit.fresh.none", ("classify", "retrieve", "draft"), "classify"),
        ("one.labelled.none", ACTIONS, "retrieve"),
        ("one.passage.none", ACTIONS, "draft"),
        ("one.nothing.none", ACTIONS, "classify"),
        ("first.passage.new", ACTIONS, "check"),
        ("first.passage.new", ("draft", "submit"), "submit"),
        ("second.passage.pass", ACTIONS, "submit"),
        ("second.passage.fail", ACTIONS, "classify"),
        ("one.fresh.none", ("check",), "check"),
    ],
)
def test_the_sensible_step(shown: str, menu: tuple[str, ...], best: str) -> None:
    assert sensible(shown, menu) == best
    row = choice(shown, menu, Fraction(1, 10))
    assert sum(row.values()) == 1 and tuple(row) == menu
    assert row[best] == (1 if len(menu) == 1 else Fraction(9, 10))
    assert len(set(row.values()) - {row[best]}) <= 1


def test_a_loop_sends_its_history_again_with_every_call() -> None:
    """n steps of a loop cost an n(n-1)/2 share of history: 100 tokens a step, here 100 * (0+1+2+3)."""
    sizes = Tokens()
    flat = 190 + 3 * 40
    assert sum(sizes.step("classify", 3, k).tokens for k in range(4)) == 4 * flat + 600
    assert sizes.step("retrieve", 1, 9).calls == 0 and sizes.step("retrieve", 3, 0).calls == 1
    assert sizes.step("draft", 1, 9).tokens == 340 and sizes.step("classify", 1, 9).tokens == 190
    check = sizes.step("check", 7, 2)
    assert (check.calls, check.tokens) == (2, 190 + 280 + 200 + 340)
