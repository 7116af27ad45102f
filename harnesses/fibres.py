"""The fibres of a context map: which exact beliefs share a context; imports pomdp, belief_graph, context.

Histories that agree in belief and in the map's memory agree for ever, so they are one node: levels of nodes are
walked, never histories. A node keeps one history that leads to it and the number of all of them.
Source: design of the formal core, section 3; M1 §1.5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from harnesses.belief_graph import BeliefGraph, TooManyError
from harnesses.context.context_map import ContextMap, Memory, require_horizon
from harnesses.context.message import Context, Sizes
from harnesses.context.numbered import NumberedMap
from pomdp.model import POMDP, ModelError

MAX_NODES = 200_000
# Nodes of all levels together: what is kept a level is a few words a node. Without a horizon fewer: where beliefs
# never recur, their weights grow with every level.
MAX_ENTRIES = 2_000_000
MAX_ENDLESS_ENTRIES = 100_000

Pair = tuple[int, int]  # action and observation
End = Literal["horizon", "repeats", "too many"]


class Edge(NamedTuple):
    """What can follow a node: action, observation, probability of observation and memory, the next node."""

    action: int
    observation: int
    probability: Fraction
    node: int


class NodeGraph:
    """Pairs of an exact belief of `model` and a memory of `phi`, expanded on demand and each once.

    Beliefs, memories, contexts and nodes are numbered as they are met, each from 0 for the empty history.
    Raises TooManyError beyond `max_nodes`.
    """

    def __init__(self, model: POMDP, phi: ContextMap, sizes: Sizes, max_nodes: int = MAX_NODES) -> None:
        self.model, self.phi, self.sizes = model, phi, sizes
        self.beliefs = BeliefGraph(model, max_nodes)
        self._folded = NumberedMap(phi, sizes)
        self.contexts: list[Context] = self._folded.contexts
        self._max = max_nodes
        self._numbers: dict[tuple[int, int], int] = {}
        self._nodes: list[tuple[int, int]] = []
        self._edges: dict[int, tuple[Edge, ...]] = {}
        self._node(0, 0)

    def __len__(self) -> int:
        """Nodes met so far."""
        return len(self._nodes)

    def belief(self, node: int) -> int:
        """Number of the node's belief in `beliefs`."""
        return self._nodes[node][0]

    def memory(self, node: int) -> Memory:
        """The node's memory."""
        return self._folded.memories[self._nodes[node][1]]

    def context(self, node: int) -> int:
        """Number of the node's context in `contexts`."""
        return self._folded.shown[self._nodes[node][1]]

    def edges(self, node: int) -> tuple[Edge, ...]:
        """Everything that can follow, actions and observations ascending."""
        found = self._edges.get(node)
        if found is None:
            belief, memory = self._nodes[node]
            actions, observations = self.model.actions, self.model.observations
            found = self._edges[node] = tuple(
                Edge(a, o, p if q is None else p * q, self._node(following, y))
                for a in range(self.model.num_actions)
                for o, p, following in self.beliefs.moves(belief, a)
                for y, q in self._folded.step(memory, actions[a], observations[o])
            )
        return found

    def _node(self, belief: int, memory: int) -> int:
        number = self._numbers.get((belief, memory))
        if number is None:
            if len(self._nodes) >= self._max:
                raise TooManyError(
                    f"more than {self._max} pairs of belief and memory are reachable under {self.phi.name}; "
                    "give a shorter horizon, such as --horizon 4, or a map that keeps less"
                )
            number = self._numbers[belief, memory] = len(self._nodes)
            self._nodes.append((belief, memory))
        return number


@dataclass(frozen=True, eq=False)
class Fibres:
    """Levels 0, 1, ... of nodes: level t holds what histories of t pairs lead to.

    `levels[t]` maps a node of `graph` to the number of such histories (for a map that draws, of histories with
    draws); `parents[t]` to the node before it and the pair that led there, for one of them. `end`: every length
    that counts is there ("horizon"); from here on levels recur ("repeats"); or more was not allowed ("too many").
    """

    graph: NodeGraph
    horizon: int | None
    levels: tuple[dict[int, int], ...]
    parents: tuple[dict[int, tuple[int, Pair]], ...] = field(repr=False)
    end: End
    why: str = ""

    @property
    def decided(self) -> bool:
        """Whether what holds on these levels holds on all that count."""
        return self.end != "too many"

    def require(self) -> Fibres:
        """Itself where decided; else ModelError saying what was too many."""
        if not self.decided:
            raise ModelError(self.why)
        return self

    def history(self, level: int, node: int) -> tuple[Pair, ...]:
        """One history of `level` pairs that leads to the node."""
        pairs: list[Pair] = []
        for t in range(level, 0, -1):
            node, pair = self.parents[t][node]
            pairs.append(pair)
        return tuple(reversed(pairs))

    def histories(self) -> int:
        """Histories of all these lengths together."""
        return sum(sum(level.values()) for level in self.levels)

    def shared(self, level: int) -> dict[int, dict[int, list[int]]]:
        """Of one length: context -> belief -> nodes, by their numbers; the fibre over each context."""
        found: dict[int, dict[int, list[int]]] = {}
        for node in self.levels[level]:
            found.setdefault(self.graph.context(node), {}).setdefault(self.graph.belief(node), []).append(
                node
            )
        return found

    def reached(self) -> set[int]:
        """Nodes of all levels."""
        return {node for level in self.levels for node in level}

    def histories_by_context(self) -> dict[int, int]:
        """Context -> how many histories of these lengths it stands for."""
        counts: dict[int, int] = {}
        for level in self.levels:
            for node, count in level.items():
                context = self.graph.context(node)
                counts[context] = counts.get(context, 0) + count
        return counts


def fibres(
    model: POMDP,
    phi: ContextMap,
    horizon: int | None,
    sizes: Sizes | None = None,
    *,
    max_nodes: int = MAX_NODES,
    max_entries: int | None = None,
) -> Fibres:
    """The fibres of `phi` over the histories of `model` (M_0) at which an action is chosen.

    With a horizon n those of 0..n-1 pairs; without one all, of which enough are walked to know them. Raises
    ModelError for an unbounded map without a horizon; what is beyond the limits is said in `end`.
    """
    require_horizon(phi, horizon)
    if horizon is not None and horizon < 1:
        raise ModelError(f"horizon {horizon} has no decisions; give one such as 4")
    graph = NodeGraph(model, phi, sizes or Sizes(), max_nodes)
    levels: list[dict[int, int]] = [{0: 1}]
    parents: list[dict[int, tuple[int, Pair]]] = [{}]
    seen = {frozenset(levels[0])}
    allowed = max_entries or (MAX_ENDLESS_ENTRIES if horizon is None else MAX_ENTRIES)
    entries, why = 1, ""
    while horizon is None or len(levels) < horizon:
        try:
            level, parent = _advance(graph, levels[-1])
        except TooManyError as error:
            why = str(error)
            break
        entries += len(level)
        if entries > allowed:
            why = (
                f"beliefs and memories of {phi.name} still change after {len(levels)} steps; "
                "give a horizon, such as --horizon 4"
            )
            break
        nodes = frozenset(level)
        if horizon is None and nodes in seen:
            return Fibres(graph, horizon, tuple(levels), tuple(parents), "repeats")
        seen.add(nodes)
        levels.append(level)
        parents.append(parent)
    return Fibres(graph, horizon, tuple(levels), tuple(parents), "too many" if why else "horizon", why)


def _advance(graph: NodeGraph, level: dict[int, int]) -> tuple[dict[int, int], dict[int, tuple[int, Pair]]]:
    """The next level from the counts of one, with a parent of each node."""
    counts: dict[int, int] = {}
    parents: dict[int, tuple[int, Pair]] = {}
    for node, count in level.items():
        for action, observation, _, following in graph.edges(node):
            counts[following] = counts.get(following, 0) + count
            parents.setdefault(following, (node, (action, observation)))
    return counts, parents


def first_shared(found: Fibres) -> Iterator[tuple[int, int, dict[int, list[int]]]]:
    """(length, context, belief -> nodes) of every context with two beliefs or more, shortest histories first."""
    for length in range(len(found.levels)):
        for context, beliefs in found.shared(length).items():
            if len(beliefs) > 1:
                yield length, context, beliefs


def contexts_of(graph: NodeGraph, nodes: Iterable[int]) -> dict[int, set[int]]:
    """Context -> beliefs, over some nodes."""
    found: dict[int, set[int]] = {}
    for node in nodes:
        found.setdefault(graph.context(node), set()).add(graph.belief(node))
    return found
