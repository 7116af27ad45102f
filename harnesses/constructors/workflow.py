"""Workflow: a graph of nodes, drawn by the engineer, that says which calls are exposed next; imports base.

At a node with one action the code has chosen; at a node with several the model does. The node is part of the state,
written after its name (`s/draft-0`: node draft, no step made there yet), and every result shows where the run stands
(`o+at-draft`), as the menu of tools that is sent with each call does. Source: M14 §4 (nodes and edges), §9 (who chooses
the next step).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache

from harnesses.constructors.base import ERROR, ONE, STOPPED, ZERO, Base
from harnesses.kernel import Outcome
from pomdp.model import POMDP, ModelError

AT = "+at-"
_OVER, _STOP = (-1, -1), (-1, -2)

Charge = Callable[[str, int, str], Fraction]
"""What a step costs: of the node's name, the steps made there before in a row (0 at a node without a limit, which
does not count them), and the action."""

Place = tuple[int, tuple[int, int]]
"""A state of the base, and (node, steps made there in a row); `_OVER` where the run has ended, `_STOP` if by force."""


@dataclass(frozen=True)
class Node:
    """A node: the actions it exposes, and where each result leads.

    `edges`: {pattern of the observation: next node}, the first that matches counts; without a match the run stays.
    After `limit` steps in a row that stayed it goes on to the node `then`; where that is None the run stops, as at a
    step limit: the last step still happens and shows its result, every further one shows `stopped` and earns 0.
    """

    menu: tuple[str, ...]
    edges: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    then: str | None = None

    @property
    def free(self) -> bool:
        """Whether the model chooses here."""
        return len(self.menu) > 1


def workflow(model: POMDP, nodes: Mapping[str, Node], charge: Charge | None = None) -> POMDP:
    """The model behind a graph: it starts at the first node, and only the node's menu can be called there.

    A call that is not on the menu shows `error`, leaves the state, earns 0 and is charged and counted like any other.
    `charge` is subtracted from the reward of each step, at least 0. Raises ModelError for a node without a menu, an
    action or node that is not known, and an edge that no observation matches.
    """
    names = tuple(nodes)
    _check(model, nodes)
    base = Base(model)
    menus = [frozenset(model.action_index(name) for name in node.menu) for node in nodes.values()]
    follow = [_edges(model, names, node) for node in nodes.values()]
    limits = [node.limit for node in nodes.values()]
    thens = [None if node.then is None else names.index(node.then) for node in nodes.values()]

    def after(at: tuple[int, int], observation: str) -> tuple[int, int]:
        node, steps = at
        reached = follow[node].get(observation, node)
        if reached != node:
            return reached, 0
        limit = limits[node]
        if limit is None:
            return at
        if steps + 1 < limit:
            return node, steps + 1
        then = thens[node]
        return _STOP if then is None else (then, 0)

    def step(place: Place, a: int) -> Iterator[Outcome]:
        s, at = place
        if at[0] < 0:
            yield place, STOPPED if at == _STOP else _shown(base, s, a), ONE
            return
        outcomes = base.kernel.step(s, a) if a in menus[at[0]] else ((s, ERROR, ONE),)
        for t, o, p in outcomes:
            if t in base.over:
                yield (t, _OVER), o, p
                continue
            reached = after(at, o)
            if reached == _STOP:
                yield (0, _STOP), o, p
            else:
                yield (t, reached), f"{o}{AT}{names[reached[0]]}", p

    @cache  # one number for all the states of the base
    def paid(at: tuple[int, int], a: int) -> Fraction:
        return charge(names[at[0]], at[1], model.actions[a]) if charge else ZERO

    def reward(place: Place, a: int) -> Fraction:
        s, at = place
        if at[0] < 0:
            return ZERO
        earned = base.kernel.reward(s, a) if a in menus[at[0]] else ZERO
        return earned - paid(at, a) if earned else -paid(at, a)

    stop = base.unused_state("stop")

    def label(place: Place) -> str:
        s, at = place
        if at == _STOP:
            return stop
        return model.states[s] if at == _OVER else f"{model.states[s]}/{names[at[0]]}-{at[1]}"

    start = {(s, _OVER if s in base.over else (0, 0)): p for s, p in base.kernel.start.items()}
    return base.build(step, reward, start=start, label=label, observations=())


def node_of(observation: str, first: str) -> str:
    """The node that a result shows; `first`, the workflow's first node, where it shows none (c_0)."""
    return observation.rpartition(AT)[2] if AT in observation else first


def _shown(base: Base, s: int, a: int) -> str:
    """What a run that is over shows: the first result of its end."""
    return next(iter(base.kernel.step(s, a)))[1]


def _edges(model: POMDP, names: tuple[str, ...], node: Node) -> dict[str, int]:
    """{observation: next node} of one node; `error` has edges of its own."""
    found: dict[str, int] = {}
    for pattern, target in node.edges.items():
        for o in (*model.observations, ERROR):
            if fnmatchcase(o, pattern):
                found.setdefault(o, names.index(target))
    return found


def _check(model: POMDP, nodes: Mapping[str, Node]) -> None:
    """Refuse what cannot be a graph over this model."""
    if not nodes:
        raise ModelError(f"a workflow needs a node, such as {{'start': Node(({model.actions[0]!r},))}}")
    for name, node in nodes.items():
        if not node.menu:
            raise ModelError(f"node {name} exposes no action; give its menu, such as ({model.actions[0]!r},)")
        for action in node.menu:
            model.action_index(action)
        for target in (*node.edges.values(), *([] if node.then is None else [node.then])):
            if target not in nodes:
                raise ModelError(
                    f"node {name} leads to {target!r}, which is no node; known: {', '.join(nodes)}"
                )
        for pattern in node.edges:
            if not any(fnmatchcase(o, pattern) for o in (*model.observations, ERROR)):
                shown = ", ".join(model.observations[:6])
                raise ModelError(f"node {name}: no observation matches {pattern!r}; known: {shown}")
        if node.limit is not None and node.limit < 1:
            raise ModelError(f"node {name} has limit {node.limit}; give 1 or more, such as 8, or None")
        if node.limit is None and node.then is not None:
            raise ModelError(f"node {name} names `then` without a limit; give a limit, such as 8")
