"""Deciders and language models by name, and the scripted ones."""

from __future__ import annotations

import math

import pytest

from harnesses.desk.clerk import Clerk
from harnesses.desk.decider import Choice, Decider, DeciderError, Noul, label
from harnesses.desk.deciders import decider_named
from harnesses.desk.language_models import language_model
from harnesses.desk.questions import ROUTES, SEND_EMAIL, route_question
from harnesses.desk.scripted import ByState, Scripted
from harnesses.runtime.records import AgentError

CASE = {"request": "Where is E1?"}


def test_scripted_says_its_numbers_and_its_label_says_that_no_model_did() -> None:
    decider = decider_named("scripted")
    assert isinstance(decider, Decider)
    answer = decider.choose(route_question(CASE))
    assert (answer.choice, answer.p, decider.noul(Noul("?"))) == (SEND_EMAIL, 0.91, 0.80)
    assert math.isclose(sum(answer.probabilities.values()), 1)
    assert set(answer.probabilities) == set(ROUTES)
    assert "no model" in label(decider)


def test_other_numbers_and_routes() -> None:
    decider = decider_named("scripted", p_route=0.5, p_allow=0.3, route="retrieve")
    assert (decider.choose(route_question(CASE)).choice, decider.noul(Noul("?"))) == ("retrieve", 0.3)
    with pytest.raises(DeciderError, match="none of the options"):
        Scripted("dance", 0.5, 0.5).choose(route_question(CASE))


@pytest.mark.parametrize("numbers", [{"p_route": 1.2}, {"p_allow": -0.1}, {"p_allow": float("nan")}])
def test_numbers_that_are_none_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(DeciderError, match="not a probability"):
        decider_named("scripted", **numbers)


def test_an_unknown_name_is_refused_in_one_line() -> None:
    with pytest.raises(DeciderError, match=r"^no decider 'oracle'; name one of toy, lm, jev, scripted$"):
        decider_named("oracle")


def test_by_state_says_the_labels_and_nothing_else() -> None:
    decider = ByState({"Where is E1?": "retrieve"}, {"Where is E1?": False})
    assert decider.choose(route_question(CASE)).p == 1.0 and decider.noul(Noul("?", CASE)) == 0.0
    with pytest.raises(DeciderError, match="no label for the request 'Who"):
        decider.noul(Noul("?", {"request": "Who are you?"}))
    with pytest.raises(DeciderError, match="no label"):
        decider.choose(Choice("?", {"a": "", "b": ""}))


def test_the_scripted_clerk_is_the_language_model_unless_one_is_named() -> None:
    assert isinstance(language_model(None), Clerk) and isinstance(language_model("scripted"), Clerk)
    with pytest.raises(AgentError):
        language_model("nonesuch:model")
