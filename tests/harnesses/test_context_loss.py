"""What a map costs: values that are known, the order of the three values, and what is shared between maps."""

from __future__ import annotations

from fractions import Fraction

import pytest

from harnesses.case import Case, Effort
from harnesses.context import parse_map
from harnesses.context_loss import ContextLoss, few_contexts, stateless_value
from harnesses.smallest import smallest
from harnesses.spec import parse_spec


def case(task: str, horizon: int, context: str, **entries: object) -> Case:
    spec = {"task": f"library:{task}", "horizon": horizon, "discount": 1, "context": context, **entries}
    return Case(parse_spec(spec), Effort(seconds=12.0))


@pytest.mark.parametrize(
    ("context", "value"), [("null", "1/5"), ("last:1", "5/8"), ("last:2", "17/20"), ("full", "17/20")]
)
def test_windows_on_the_repair_task(context: str, value: str) -> None:
    """chain: W = 1/5, best deterministic last(1) 5/8, last(2) loses nothing: V* = 17/20."""
    found = ContextLoss(case("repo_repair", 4, context if context != "null" else "counter:null"))
    exact = float(Fraction(value))
    assert found.optimal.contains(Fraction(17, 20))
    assert found.deterministic.lower == pytest.approx(exact, abs=1e-6)
    assert found.stateless.lower >= exact - 1e-6
    assert found.stateless.lower <= found.recall.upper and found.recall.upper <= found.optimal.upper
    assert found.loss.lower >= 0
    if context in ("last:2", "full"):
        assert found.loss.upper <= 1e-6


def test_a_belief_that_the_context_determines_loses_nothing() -> None:
    """no-loss: sufficient with the time in the context, then loss 0."""
    found = ContextLoss(case("flip:2", 4, "counter:pin:flip/t2:last:1"))
    assert found.sufficiency.sufficient and found.loss.upper <= 1e-6
    assert found.json("typed")["map"] == "typed" and found.json("typed")["witness"] is None


def test_recall_of_a_blind_map_is_the_best_plan() -> None:
    found = ContextLoss(case("tiger", 3, "counter:null"))
    assert found.recall.contains(Fraction(-3)) or found.recall.upper == pytest.approx(-3, abs=1e-6)
    assert found.stateless.upper == pytest.approx(-3, abs=1e-6)


def test_values_of_the_task_are_not_computed_again_for_another_map() -> None:
    one = case("tiger", 3, "last:1")
    value = one.inner
    other = one.with_context(one.spec.with_context(parse_map("null")))
    assert other.inner is value
    assert other.induced.num_contexts == 1 < one.induced.num_contexts


def test_contexts_merge_while_the_value_stays() -> None:
    one = case("tiger", 2, "last:1")
    found = smallest(one.inner.model, 2)
    fewest = few_contexts(one, found.phi)
    assert 1 <= fewest.contexts <= found.bisimulation_contexts
    assert fewest.value.lower == pytest.approx(one.inner.interval.lower, abs=1e-6)
    assert stateless_value(one, found.phi).upper >= one.inner.interval.lower
