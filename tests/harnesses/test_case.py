"""Case: a spec computed; each quantity once, and for every kind of model."""

from __future__ import annotations

import numpy as np
import pytest

from harnesses.case import Case, Effort
from harnesses.spec import parse_spec

SPEC = {"task": "library:tiger", "horizon": 3, "discount": 1, "context": "last:1"}


def case(**entries: object) -> Case:
    return Case(parse_spec(SPEC | entries), Effort(seconds=5.0))


@pytest.mark.parametrize(
    "model",
    [
        "optimal",
        "bayes",
        "naive",
        "random",
        "optimal:0.5",
        "naive:2",
        {"kind": "rules", "otherwise": "listen"},
    ],
)
def test_every_model_is_a_distribution_in_each_context_and_earns_no_more_than_the_best(model: object) -> None:
    """chain: J <= Vo <= V*(M_0)."""
    one = case(model=model)
    assert one.pi.shape == (one.induced.num_contexts, one.induced.model.num_actions)
    assert one.pi.min() >= 0 and one.pi.sum(axis=1) == pytest.approx(1)
    assert one.returned <= one.best.interval.upper + 1e-9 <= one.inner.interval.upper + 2e-9
    assert one.achieved.contains(one.returned)


def test_the_optimal_model_reaches_the_lower_end_of_the_best_stateless_value() -> None:
    one = case(context="counter:last:1")
    assert one.returned == pytest.approx(one.best.interval.lower, abs=1e-9)


def test_what_always_listens_pays_for_it() -> None:
    assert case(model={"kind": "rules", "otherwise": "listen"}).returned == pytest.approx(-3)


def test_a_bare_task_is_solved_once() -> None:
    bare, timed = case(), case(control=["timeout:listen:1/10"])
    assert bare.inner is bare.task and bare.task is bare.task
    assert timed.inner is not timed.task


def test_only_a_fixed_model_may_try_what_is_not_exposed() -> None:
    hidden = {"tools": ["select:listen"]}
    assert case(**hidden, model="bayes").induced.inner.actions == ("listen",)
    naive = case(**hidden, model="naive")
    assert set(naive.induced.inner.actions) == {"listen", "open-left", "open-right"}
    rules = case(**hidden, model={"kind": "rules", "otherwise": "open-left"})
    assert rules.returned == 0 and np.all(rules.pi.max(axis=1) == 1)
