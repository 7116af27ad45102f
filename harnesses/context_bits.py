"""Bits: what context, belief and state say of each other, step by step; imports pomdp, fibres.

Exact but for rounding: distributions over nodes of (belief, memory) are carried forward in doubles, and a context
says everything of the belief where no context stands for two beliefs. Source: M1 §1.5.1 (data processing).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harnesses.belief_graph import TooManyError
from harnesses.context import Context, ContextMap, Sizes, require_horizon
from harnesses.fibres import MAX_NODES, NodeGraph
from pomdp.criterion import Criterion
from pomdp.information import conditional_entropy, entropy, marginal
from pomdp.model import POMDP, ModelError

# A behaviour: the probability of each action, by name, in a context.
Behaviour = Callable[[Context], Mapping[str, float]]
# Discounted steps are followed until this share of the weight is left.
TAIL = 1e-3
MAX_ENTRIES = 200_000


@dataclass(frozen=True)
class Step:
    """Bits at one decision: `belief_context` I(b;c) <= `belief_history` I(b;h) = H(b); `state_context` I(s;c) <=
    `state_history` I(s;h) <= `state` H(s). `determined`: no context of positive probability has two beliefs, which
    is when I(b;c) = I(b;h).
    """

    belief_context: float
    belief_history: float
    state_context: float
    state_history: float
    state: float
    determined: bool


@dataclass(frozen=True)
class Bits:
    """Weighted means over the decisions `steps`, each in bits; `weights` sum to 1.

    With a horizon all of its decisions weigh the same; without one step t weighs gamma^t, and `left` is the share
    of later ones, which were left out.
    """

    steps: tuple[Step, ...]
    weights: tuple[float, ...]
    left: float

    def mean(self, name: str) -> float:
        """The weighted mean of a field of the steps, such as `belief_context`."""
        return math.fsum(w * getattr(step, name) for w, step in zip(self.weights, self.steps, strict=True))

    @property
    def determined(self) -> bool:
        """Whether the context gives the belief at every decision, almost surely."""
        return all(step.determined for step in self.steps)

    def json(self) -> dict[str, Any]:
        """The form every command prints."""
        names = ("belief_context", "belief_history", "state_context", "state_history", "state")
        means = {name: self.mean(name) for name in names}
        return means | {"determined": self.determined, "decisions": len(self.steps), "left": self.left}


def bits(
    model: POMDP,
    phi: ContextMap,
    criterion: Criterion,
    sizes: Sizes | None = None,
    policy: Behaviour | None = None,
    *,
    depth: int | None = None,
    max_nodes: int = MAX_NODES,
) -> Bits:
    """Bits at the decisions of a behaviour on `model` (M_0) under `phi`; all actions alike unless `policy` is given.

    `depth`: how many decisions to follow without a horizon; None until TAIL of the weight is left or too many nodes
    are reached. Raises ModelError for an unbounded map without a horizon, where a horizon needs more nodes than
    allowed, and where the policy gives no distribution over the model's actions.
    """
    require_horizon(phi, criterion.horizon)
    if depth is not None and depth < 1:
        raise ModelError(f"depth {depth} has no decision; give one such as 50")
    graph = NodeGraph(model, phi, sizes or Sizes(), max_nodes)
    acts = _Acts(graph, policy)
    wanted = criterion.horizon or depth or _decisions(criterion.gamma)
    masses: dict[int, float] = {0: 1.0}
    steps, entries = [_step(graph, masses)], 0
    while len(steps) < wanted:
        try:
            masses = _advance(graph, acts, masses)
        except TooManyError:
            if criterion.horizon is not None:
                raise
            break
        entries += len(masses)
        steps.append(_step(graph, masses))
        if criterion.horizon is None and depth is None and entries > MAX_ENTRIES:
            break
    if criterion.horizon is not None:
        return Bits(tuple(steps), (1 / len(steps),) * len(steps), 0.0)
    gamma = criterion.gamma
    left = gamma ** len(steps)
    weights = tuple((1 - gamma) * gamma**t / (1 - left) for t in range(len(steps)))
    return Bits(tuple(steps), weights, left)


class _Acts:
    """Action probabilities `[A]` by context, each asked once."""

    def __init__(self, graph: NodeGraph, policy: Behaviour | None) -> None:
        self._graph, self._policy = graph, policy
        self._uniform = [1.0 / graph.model.num_actions] * graph.model.num_actions
        self._known: dict[int, list[float]] = {}

    def at(self, context: int) -> list[float]:
        """The distribution in a context, by number."""
        if self._policy is None:
            return self._uniform
        if context not in self._known:
            shown, model = self._graph.contexts[context], self._graph.model
            row = [0.0] * model.num_actions
            for name, p in self._policy(shown).items():
                row[model.action_index(name)] = float(p)
            if min(row) < 0 or abs(math.fsum(row) - 1.0) > 1e-9:
                raise ModelError(
                    f"the policy's probabilities in context {shown.text} sum to {math.fsum(row):.10g}, not 1; "
                    f'give one such as {{"{model.actions[0]}": 1}}'
                )
            self._known[context] = row
        return self._known[context]


def _advance(graph: NodeGraph, acts: _Acts, masses: dict[int, float]) -> dict[int, float]:
    """The distribution over nodes one decision later."""
    after: dict[int, float] = {}
    for node, mass in masses.items():
        row = acts.at(graph.context(node))
        for action, _, p, following in graph.edges(node):
            if row[action] > 0.0:
                after[following] = after.get(following, 0.0) + mass * row[action] * float(p)
    return after


def _step(graph: NodeGraph, masses: dict[int, float]) -> Step:
    """Bits of one distribution over nodes."""
    joint: dict[tuple[int, int], float] = {}
    states: dict[tuple[int, int], float] = {}
    for node, mass in masses.items():
        belief, context = graph.belief(node), graph.context(node)
        joint[belief, context] = joint.get((belief, context), 0.0) + mass
    for (belief, context), mass in joint.items():
        weights = graph.beliefs.weights(belief)
        total = sum(w for _, w in weights)
        for s, w in weights:
            states[s, context] = states.get((s, context), 0.0) + mass * (w / total)
    spread = math.fsum(p * entropy(_shares(graph, belief)) for (belief, _), p in joint.items())
    state = entropy(marginal(states, 0))
    # I(x;c) as H(x) - H(x|c): never above H(x), whatever the rounding.
    told = entropy(marginal(joint, 0))
    return Step(
        belief_context=max(0.0, told - conditional_entropy(joint)),
        belief_history=told,
        state_context=max(0.0, state - conditional_entropy(states)),
        state_history=max(0.0, state - spread),
        state=state,
        determined=len({context for _, context in joint}) == len(joint),
    )


def _shares(graph: NodeGraph, belief: int) -> list[float]:
    weights = graph.beliefs.weights(belief)
    total = sum(w for _, w in weights)
    return [w / total for _, w in weights]


def _decisions(gamma: float) -> int:
    """Decisions until TAIL of the discounted weight is left."""
    return 1 if gamma == 0.0 else max(1, math.ceil(math.log(TAIL) / math.log(gamma)))
