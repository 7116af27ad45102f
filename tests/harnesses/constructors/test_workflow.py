"""Workflow: the process of any graph by the rules of its definition, special cases that are other constructors."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors import select, step_limit
from harnesses.constructors.workflow import AT, Node, node_of, workflow
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

ZERO, ONE = Fraction(0), Fraction(1)
NAMES = ("a", "b")
models = pomdps(max_states=2, min_actions=2, max_actions=2, min_observations=2, max_observations=2)


@st.composite
def graphs(draw: st.DrawFn, model: POMDP) -> dict[str, Node]:
    """Two nodes with any menus, any edges and any limits."""
    found = {}
    for name in NAMES:
        menu = tuple(sorted(draw(st.sets(st.sampled_from(model.actions), min_size=1))))
        seen = draw(st.dictionaries(st.sampled_from((*model.observations, "error")), st.sampled_from(NAMES)))
        limit = draw(st.none() | st.integers(1, 2))
        then = None if limit is None else draw(st.none() | st.sampled_from(NAMES))
        found[name] = Node(menu, seen, limit, then)
    return found


def standing(nodes: Mapping[str, Node], results: tuple[str, ...]) -> tuple[str | None, int]:
    """Where a run stands after these results, read off the whole history; None where it was stopped."""
    at, stayed = next(iter(nodes)), 0
    for o in results:
        node = nodes[at]
        goes = node.edges.get(o, at)
        stayed = stayed + 1 if goes == at else 0
        if node.limit is not None and stayed == node.limit:
            if node.then is None:
                return None, 0
            goes, stayed = node.then, 0
        at = goes
    return at, stayed


def drawn(oracle: Any, model: POMDP, nodes: Mapping[str, Node], charge: Any) -> Any:
    """The rules of a workflow whose state is the whole history of results."""
    rules, over = oracle.rules(model), oracle.absorbing(model)

    def step(state: Any, a: str) -> Any:
        s, results = state
        at, _ = standing(nodes, results)
        if s in over:
            yield from ((((t, results)), o, p) for t, o, p in rules.step(s, a))
        elif at is None:
            yield state, "stopped", ONE
        else:
            for t, o, p in rules.step(s, a) if a in nodes[at].menu else [(s, "error", ONE)]:
                reached, _ = standing(nodes, (*results, o))
                plain = t in over or reached is None
                yield (t, (*results, o)), o if plain else f"{o}{AT}{reached}", p

    def reward(state: Any, a: str) -> Fraction:
        s, results = state
        at, stayed = standing(nodes, results)
        if s in over or at is None:
            return ZERO
        counted = 0 if nodes[at].limit is None else stayed
        return (rules.reward(s, a) if a in nodes[at].menu else ZERO) - charge(at, counted, a)

    return oracle.Rules({(s, ()): p for s, p in rules.start.items()}, rules.actions, step, reward)


def charged(node: str, stayed: int, action: str) -> Fraction:
    """A charge that tells nodes, steps and actions apart."""
    return Fraction(1 + NAMES.index(node) + 3 * stayed, 7 + int(action))


@given(st.data())
def test_a_workflow_is_the_process_of_its_graph(oracle: Any, data: st.DataObject) -> None:
    model = data.draw(models)
    nodes = data.draw(graphs(model))
    expected = drawn(oracle, model, nodes, charged)
    assert oracle.process(workflow(model, nodes, charged), 3) == oracle.process(expected, 3)


@given(models, st.integers(1, 2))
def test_one_node_with_a_limit_is_a_step_limit(oracle: Any, model: POMDP, n: int) -> None:
    found = oracle.process(workflow(model, {"a": Node(model.actions, {}, n)}), 3)
    expected = oracle.process(step_limit(model, n), 3)
    plain = {tuple((a, o.removesuffix(f"{AT}a")) for a, o in h): kept for h, kept in found.items()}
    assert plain == expected


def test_a_menu_of_one_action_leaves_the_model_no_choice() -> None:
    """A node that exposes one action is `select`: the other calls only err."""
    model = task("repo_repair").model
    found = workflow(model, {"a": Node((model.actions[0],))})
    alone = select(model, model.actions[0])
    assert len([row for row in found.exact.R.rows() if row]) == len(
        [row for row in alone.exact.R.rows() if row]
    )
    errors = {o for o in found.observations if o.startswith("error")}
    assert errors == {f"error{AT}a"}


def test_the_first_pattern_that_matches_counts() -> None:
    nodes = {
        "a": Node(("listen",), {"*-left": "b", "tiger-*": "c"}),
        "b": Node(("listen",)),
        "c": Node(("listen",)),
    }
    found = workflow(task("tiger").model, nodes)
    assert {o for o in found.observations if not o.startswith("error")} >= {
        f"tiger-left{AT}b",
        f"tiger-right{AT}c",
    }
    assert f"tiger-left{AT}c" not in found.observations[:2]


def test_a_node_is_read_off_what_was_shown() -> None:
    assert node_of(f"listen{AT}b-2", "a") == "b-2"
    assert node_of("", "a") == "a" and node_of("listen", "a") == "a"


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ({}, "needs a node"),
        ({"a": Node(())}, "exposes no action"),
        ({"a": Node(("jump",))}, "no action 'jump'"),
        ({"a": Node(("listen",), {"*": "b"})}, "no node"),
        ({"a": Node(("listen",), {}, 2, "b")}, "no node"),
        ({"a": Node(("listen",), {"bear": "a"})}, "no observation matches 'bear'"),
        ({"a": Node(("listen",), {}, 0)}, "give 1 or more"),
        ({"a": Node(("listen",), {}, None, "a")}, "without a limit"),
    ],
)
def test_what_is_no_graph_is_refused(nodes: dict[str, Node], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        workflow(task("tiger").model, nodes)
