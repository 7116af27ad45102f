"""The decision memo: the tree against its table, the worked tasks as the source has them, Axis 2 against exact ones."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.agency import Agency, agency
from harnesses.architecture import Memo, write_memo
from harnesses.decision_tree import TreeAnswers, decide, turns
from harnesses.framework import framework_view
from harnesses.memo_answers import QUESTIONS, parse_answers
from harnesses.memo_examples import EXAMPLES
from harnesses.spec import memo_spec
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.library import task
from pomdp.model import ModelError
from pomdp.testing import pomdps

BOTH = (False, True)


def memo(document: dict[str, Any], **effort: Any) -> Memo:
    return write_memo("a test", document, memo_spec(document), **effort)


def document(name: str, **changes: Any) -> dict[str, Any]:
    """An example with some of its answers replaced; None takes one away."""
    found = copy.deepcopy(dict(EXAMPLES[name]))
    found["memo"] = {k: v for k, v in (found["memo"] | changes).items() if v is not None}
    return found


# --- the tree ---------------------------------------------------------------------------------------------------------

TABLE = {  # M1 §1.8.2 as a table: the questions asked, the answers to them, the architecture
    "y": "workflow",
    "ny": "workflow with human gates",
    "nny": "multi-agent",
    "nnny": "single agent",
    "nnnn": "single agent",
}


@pytest.mark.parametrize("answers", list(product(BOTH, repeat=4)))
def test_the_tree_stops_at_the_first_answer_that_decides(answers):
    decision = decide(TreeAnswers(*answers))
    path = "".join(step.answer[0] for step in decision.path)
    assert TABLE[path] == decision.architecture
    assert path == "".join("ny"[a] for a in answers)[: len(path)]
    assert [step.number for step in decision.path] == list(range(1, len(path) + 1))
    assert ("router" in decision.form) == (path == "nnny")
    assert decision.dominant.split(",")[0] == ("Axis 2", "Axis 4", "Axis 1", "Axis 5")[len(path) - 1]
    # Axis 4: a costly failure means human gates whatever feedback is worth.
    assert ("human gate" in decision.form) == (len(path) <= 2 and answers[1])


@pytest.mark.parametrize("answers", list(product((None, *BOTH), BOTH, BOTH, BOTH)))
def test_what_would_change_is_every_single_answer_whose_turn_moves_the_decision(answers):
    given_answers = TreeAnswers(*answers)
    now, named = decide(given_answers), {turn.number: turn for turn in turns(given_answers)}
    for number in range(1, 5):
        if answers[number - 1] is None:
            assert number not in named
            continue
        turned = [not a if i == number else a for i, a in enumerate(answers, 1)]
        then = decide(TreeAnswers(*turned))
        assert (number in named) == (then.form != now.form)
        if number in named:
            assert (
                named[number].decision == then and named[number].answer == ("no", "yes")[turned[number - 1]]
            )
            assert then.form in named[number].text()


@pytest.mark.parametrize("rest", list(product(BOTH, repeat=3)))
def test_an_undecided_first_question_leaves_both_decisions_open(rest):
    decision = decide(TreeAnswers(None, *rest))
    assert decision.architecture == "undecided" and decision.path[0].answer == "undecided"
    assert decision.otherwise == decide(TreeAnswers(False, *rest))
    assert decision.path[1:] == decision.otherwise.path[1:] and decision.dominant.startswith("Axis 2")
    assert decide(TreeAnswers(True, *rest)).form in decision.form and decision.otherwise.form in decision.form


# --- the worked tasks -------------------------------------------------------------------------------------------------

WORKED = {
    "A": ("workflow", "y", "pipeline"),
    "B": ("single agent", "nnnn", "loop"),
    "C": ("multi-agent", "nny", "hybrid"),
    "E1.4": ("workflow", "y", "pipeline"),
    "E1.6": ("workflow", "y", "pipeline"),
}


@pytest.mark.parametrize("name", WORKED)
def test_the_worked_tasks_come_out_as_the_source_says(name):
    """M1 §1.8.3, S1.4 and S1.6."""
    found = memo(document(name)).json()
    path = "".join(step["answer"][0] for step in found["path"])
    assert (found["architecture"], path, found["framework"]["choice"]) == WORKED[name]
    assert len(found["axes"]) == 5 and all(a["value"] and a["justification"] for a in found["axes"])
    assert all(step["evidence"] and step["axis"] for step in found["path"])
    assert found["what_would_change"] and found["verification_plan"]["sentence"]
    assert len(found["framework"]["questions"]) == 4


def test_several_agents_stay_subject_to_the_null_hypothesis():
    found = memo(document("C"))
    assert "build the single agent first" in found.decision.form
    assert any(
        "Question 3 turns to no" in text and "single agent" in text for text in found.what_would_change
    )


def test_distinct_contexts_whose_coordination_is_not_worth_it_stay_with_one_agent():
    subtasks = {"answer": "distinct", "coordination": "no", "why": "The sections refer to each other."}
    found = memo(document("C", subtasks=subtasks))
    assert found.decision.architecture == "single agent" and "not worth its cost" in found.reasons[2]


def test_ticket_routing_is_a_workflow_by_its_lookup_table_and_not_by_an_open_loop():
    """Erratum 10: V_f = q + 2(1-q)/11 - c - 1/4 > 0, and nothing is left of it once the categories are branches."""
    worth = Fraction(9, 10) + Fraction(2, 110) - Fraction(1, 20) - Fraction(1, 4)
    drawn = memo(document("E1.4"))
    assert drawn.agency.value_of_feedback.contains(worth) and drawn.agency.beyond.contains(0)
    assert drawn.agency.beyond.upper < 1e-5 and drawn.agency.known is True
    assert any("without them feedback is worth" in text for text in drawn.what_would_change)
    blind = memo(document("E1.4", branch_on=None))
    assert blind.agency.beyond.contains(worth) and blind.agency.known is False
    assert blind.decision.architecture == "single agent"
    assert "disagrees" in blind.axes[1].justification


def test_repository_repair_pays_for_agency_below_a_price_and_not_above_it():
    """V_f = 13/20 over 4 steps: an agent pays at a price below 13/80."""
    below, above = (memo(document("B", price_per_step=p)) for p in (0.162, 0.163))
    assert below.agency.steps == pytest.approx(4) and below.agency.value_of_feedback.contains(
        Fraction(13, 20)
    )
    assert below.agency.deciding_price.contains(Fraction(13, 80)) or below.agency.deciding_price.width < 1e-6
    assert (below.decision.architecture, above.decision.architecture) == ("single agent", "workflow")
    for found in (below, above):
        assert any("price per step in" in text for text in found.what_would_change)


def test_branches_at_the_test_results_alone_leave_less_for_the_agent():
    """W_N = 2/5: beyond it feedback is worth 9/20, which a tolerance of 1/2 forgoes and one of 2/5 does not."""
    named = {"price_per_step": None, "branch_on": ["fails-in-0", "fails-in-1"]}
    forgone, needed = (memo(document("B", tolerance=t, **named)) for t in (0.5, 0.4))
    assert forgone.agency.beyond.contains(Fraction(9, 20))
    assert forgone.decision.architecture == "workflow" and needed.decision.architecture == "single agent"
    # Without the branches the same tolerance asks for an agent: V_f = 13/20.
    assert memo(document("B", price_per_step=None, tolerance=0.5)).decision.architecture == "single agent"


# --- Axis 2 -----------------------------------------------------------------------------------------------------------


def made(low: float, high: float, tolerance: float) -> Agency:
    point = Interval(0.0, 0.0)
    return Agency(Interval(low, high), point, (), None, 1, None, tolerance, 1.0, 1)


@given(st.data())
def test_question_one_is_answered_only_where_every_value_in_the_bounds_agrees(data):
    thirds = st.integers(0, 12).map(lambda n: n / 4)
    low, high = sorted((data.draw(thirds), data.draw(thirds)))
    found = made(low, high, data.draw(thirds))
    value = {v / 8 for v in range(25) if low <= v / 8 <= high}
    answers = {v <= found.tolerance for v in value}
    assert found.known == (answers.pop() if len(answers) == 1 else None)
    if found.known is None:
        assert "do not decide" in found.sentence() and found.what_decides() in found.sentence()


@given(st.floats(0.0, 3.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_the_gap_that_would_decide_does_where_the_value_lies_in_the_middle(a, b, tolerance):
    low, high = sorted((a, b))
    found = made(low, high, tolerance)
    gap = found.deciding_gap
    assert gap is None or found.known is None
    if gap is not None and gap > 1e-9:
        middle = found.beyond.middle
        # An interval around the middle, narrower than the gap however it lies, excludes the cost.
        for lower, upper in ((middle - 0.99 * gap, middle), (middle, middle + 0.99 * gap)):
            assert made(max(lower, 0.0), max(upper, 0.0), tolerance).known is not None


def test_bounds_that_meet_the_cost_are_said_to_be_undecided_and_what_would_decide():
    # V_f = 13/20 exactly; a tolerance of the same value is met by every interval around it.
    found = memo(document("B", price_per_step=None, tolerance=0.65))
    written = found.json()
    assert written["architecture"] == "undecided" and written["path"][0]["answer"] == "undecided"
    assert "do not decide" in written["axes"][1]["justification"]
    assert written["framework"]["choice"] == "undecided"
    assert "gap" in written["what_would_change"][0] or "bounds" in written["what_would_change"][0]
    # However narrow, bounds on a difference that may be 0 never show that it is.
    nothing = made(0.0, 1e-12, 0.0)
    assert nothing.known is None and "cost of agency above 0" in nothing.sentence()


@settings(max_examples=6)
@given(pomdps(max_states=3, max_actions=2, min_observations=2, max_observations=2))
def test_branching_at_everything_leaves_nothing_for_agency(model):
    found = agency(model, Criterion(Fraction(1), 2), branch_on=model.observations, tolerance=1e-3, gap=1e-8)
    assert found.beyond.contains(0) and found.known is True
    assert found.open_loop.lower <= found.workflow.upper and found.workflow.lower <= found.optimal.upper


def test_the_memo_is_about_the_task_behind_its_harness():
    """A budget of one call leaves nothing to observe for: W = V* and the agent is gone."""
    with_limit = document("B") | {"control": ["step_limit:1"]}
    found = memo(with_limit)
    assert found.agency.value_of_feedback.contains(0) and found.decision.architecture == "workflow"


def test_a_stall_rule_is_recorded_as_a_revision_condition():
    """S1.7."""
    found = memo(document("B") | {"control": ["stall:3-4"]})
    assert any("would have recovered" in text for text in found.what_would_change)


def test_an_unknown_branch_and_an_unstated_cost_are_refused():
    with pytest.raises(ModelError, match="branch_on.*fails-in-2"):
        memo(document("B", branch_on=["fails-in-2"]))
    model = task("drift").model
    for costs in ({}, {"price": 1.0, "tolerance": 1.0}):
        with pytest.raises(ModelError, match="one of them"):
            agency(model, Criterion(Fraction(1), 2), **costs)


# --- the answers ------------------------------------------------------------------------------------------------------


def test_all_that_is_missing_is_listed_at_once_with_an_example():
    with pytest.raises(ModelError) as error:
        parse_answers({"variance": {"answer": "low", "why": "One kind."}}, with_task=False)
    text = str(error.value)
    assert all(f"{key} (" in text for key in ("tasks", *QUESTIONS) if key != "variance")
    assert "variance (" not in text and "for example tasks = " in text and "\n" not in text
    asked, computed = (
        pytest.raises(ModelError, parse_answers, {}, with_task=with_task).value for with_task in BOTH
    )
    assert "sequence (" in str(asked) and "sequence (" not in str(computed)
    assert "tolerance (" in str(computed) and "tolerance (" not in str(asked)


WRONG = {
    "unknown key": ({"varience": {}}, "did you mean variance"),
    "unknown answer": ({"failure": {"answer": "medium", "why": "x"}}, '"low" or "high"'),
    "no reason": ({"failure": {"answer": "low"}}, "memo.failure has no why"),
    "empty reason": ({"failure": {"answer": "low", "why": " "}}, "memo.failure.why"),
    "no table": ({"failure": "low"}, "memo.failure is 'low'"),
    "unknown part": ({"failure": {"answer": "low", "why": "x", "gates": []}}, "memo.failure has no entry"),
    "count": ({"tools": {"answer": "fixed", "count": 1.5, "why": "x"}}, "memo.tools.count"),
    "no count": ({"tools": {"answer": "fixed", "why": "x"}}, "no count"),
    "reliability": (
        {"verifier": {"answer": "none", "why": "x", "reliability": 2}},
        "memo.verifier.reliability",
    ),
    "coordination": ({"subtasks": {"answer": "distinct", "why": "x"}}, "coordination"),
    "a price without a task": ({"price_per_step": 0.1}, "needs a task"),
    "revise": ({"revise": "more"}, "memo.revise"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_named_with_a_right_one(name):
    changes, message = WRONG[name]
    with pytest.raises(ModelError) as error:
        memo(document("A", **changes))
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("price", [-1, "much", True, float("nan"), float("inf")])
def test_a_cost_that_is_no_amount_is_refused(price):
    with pytest.raises(ModelError, match="memo.price_per_step"):
        memo(document("B", price_per_step=price))
    with pytest.raises(ModelError, match="keep the one"):
        memo(document("B", tolerance=0.1))


def test_true_and_false_stand_for_yes_and_no():
    found = memo(document("A", sequence={"answer": False, "why": "It depends."}))
    assert found.decision.path[0].answer == "no" and "router" in found.decision.form


def test_an_unverified_task_asks_for_people_whatever_the_architecture():
    found = memo(document("A", verifier={"answer": "none", "why": "Nobody can tell."}))
    assert "a person reviews" in found.verification and "human oversight" in found.axes[2].points_to
    costly = memo(document("B", failure={"answer": "high", "irreversible": ["finish"], "why": "It deploys."}))
    assert "irreversible" in costly.verification and "finish" in costly.axes[3].value
    assert costly.decision.architecture == "workflow with human gates"


# --- framework or loop ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", list(product((None, *BOTH), BOTH, BOTH, BOTH)))
def test_the_framework_view_follows_the_four_questions(answers):
    """LG's diagram: drawable, then persistence; else the bet; a costly step always has its branches drawn."""
    drawn, persistent, costly, betting = answers
    view = framework_view(drawn=drawn, persistent=persistent, costly=costly, betting=betting)
    expected = {
        None: "undecided",
        True: "framework" if persistent else "pipeline",
        False: "hybrid" if persistent or costly else "loop" if betting else "framework",
    }
    assert view.choice == expected[drawn] and len(view.views) == 4
    assert [v.answer for v in view.views[1:]] == [
        ("no", "yes")[persistent],
        ("low", "high")[costly],
        ("no", "yes")[betting],
    ]
    assert all(v.implies for v in view.views) and view.conclusion
