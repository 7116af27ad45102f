"""The smallest sufficient map of a task: three counts, the map itself, and what merging its contexts costs.

Imports pomdp, belief_graph, bisimulation, context. Contexts are counted as memories of a map that knows nothing but
its context, `c' = f(c, a, o)`: with a hidden memory as many contexts as actions would do, the harness printing the
action. Source: design of the formal core, section 3; M1 E1.3 (minimal sufficient statistic).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesses.belief_graph import BeliefGraph
from harnesses.bisimulation import alike, belief_over, merged_states
from harnesses.context import Context, Event, Memory, Removal
from harnesses.context.message import note, removed
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError

Value = Callable[["BlockMap"], Interval]
History = tuple[tuple[str, str], ...]
Examples = tuple[History, History]
# Values this close are the same: a stateless optimum is an interval, not a number.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class BlockMap:
    """A context map that shows a block of histories by its number: memory `x' = delta[x, action, observation]`.

    `examples[x]` is a shortest history of block x, by names. Every finite updatable map is of this form.
    """

    delta: Mapping[tuple[Memory, str, str], int] = field(repr=False, hash=False)
    examples: tuple[History, ...]
    name: str = "smallest"
    bounded: bool = field(default=True, init=False)

    @property
    def contexts(self) -> int:
        """Number of contexts."""
        return len(self.examples)

    def start(self) -> Memory:
        """The block of the empty history."""
        return 0

    def step(self, memory: Memory, event: Event) -> tuple[Memory, tuple[Removal, ...]]:
        """The next block; ModelError for an event that no counted history has."""
        try:
            following = self.delta[memory, event.action, event.observation]
        except KeyError:
            raise ModelError(
                f"{event.action}/{event.observation} cannot follow context {memory} of {self.name} within the "
                "horizon that it was made for; make it for a longer one"
            ) from None
        return following, removed(event, self.name, "summarisation")

    def show(self, memory: Memory) -> Context:
        """One note: the block."""
        return Context((note(f"c{memory}"),))

    def merged(self, one: int, other: int) -> BlockMap:
        """The finest map of this form in which two blocks are one: what they lead to is merged as well."""
        group = list(range(self.contexts))

        def root(x: int) -> int:
            while group[x] != x:
                group[x] = group[group[x]]
                x = group[x]
            return x

        after: list[dict[tuple[str, str], int]] = [{} for _ in group]
        for (x, action, observation), y in self.delta.items():
            after[x][action, observation] = y
        waiting = [(one, other)]
        while waiting:
            keep, gone = sorted(map(root, waiting.pop()))
            if keep == gone:
                continue
            group[gone] = keep
            for pair, y in after[gone].items():
                waiting.append((after[keep].setdefault(pair, y), y))
        kept = [x for x in range(self.contexts) if root(x) == x]
        number = {x: i for i, x in enumerate(kept)}
        delta = {(number[root(x)], a, o): number[root(y)] for (x, a, o), y in self.delta.items()}
        return BlockMap(delta, tuple(self.examples[x] for x in kept), self.name)


@dataclass(frozen=True)
class Smallest:
    """Counts over histories of 0 to `length` pairs (None: of any length), and the smallest map as `phi`.

    `beliefs`: distinct exact beliefs. `belief_contexts`: the same after states that nothing tells apart are one.
    `bisimulation_contexts`: contexts of `phi`, the coarsest updatable map that is lossless for every criterion.
    """

    length: int | None
    beliefs: int
    belief_contexts: int
    bisimulation_contexts: int
    phi: BlockMap = field(repr=False)

    def json(self) -> dict[str, Any]:
        """The counts, as every command prints them."""
        names = ("beliefs", "belief_contexts", "bisimulation_contexts")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Point:
    """A map of the frontier and the best stateless value under it."""

    phi: BlockMap = field(repr=False)
    value: Interval

    @property
    def contexts(self) -> int:
        """Number of contexts."""
        return self.phi.contexts


# Beliefs compare exactly. Where they never recur their weights grow with every step, so without a horizon few are
# walked before one is refused; within a horizon, many.
MAX_ENDLESS, MAX_WITHIN = 1_000, 50_000


def smallest(model: POMDP, horizon: int | None, *, max_beliefs: int | None = None) -> Smallest:
    """The smallest sufficient map of `model` (M_0) and its counts.

    With a horizon n over histories of 0 to n pairs, the last of which is where the run stands after its last action;
    without one over all, for which the beliefs must be finitely many. Raises ModelError where they are too many.
    """
    if max_beliefs is None:
        max_beliefs = MAX_ENDLESS if horizon is None else MAX_WITHIN
    graph = BeliefGraph(model, max_beliefs)
    histories, moved = _explored(graph, horizon)
    beliefs = list(histories)
    block = merged_states(model)
    over = {tuple(sorted(belief_over(graph.belief(i), block).items())) for i in beliefs}
    classes = dict(zip(beliefs, alike(graph, beliefs), strict=True))
    examples: dict[int, History] = {}
    for i, history in histories.items():
        examples.setdefault(classes[i], history)
    delta = {
        (classes[i], model.actions[a], model.observations[move.observation]): classes[move.belief]
        for i in moved
        for a in range(model.num_actions)
        for move in graph.moves(i, a)
    }
    phi = BlockMap(delta, tuple(examples[x] for x in range(len(examples))))
    return Smallest(horizon, len(beliefs), len(over), phi.contexts, phi)


def value_contexts(phi: BlockMap, vo: Value, *, tolerance: float = TOLERANCE) -> Point:
    """A map of few contexts under which the best stateless value found is that of `phi` to within `tolerance`.

    By merging pairs of blocks while the value stays. Its number of contexts bounds the fewest from above: another
    order of merging may find fewer. `vo` gives the interval of a map's best stateless value.
    """
    vo = _remembering(vo)
    best = Point(phi, vo(phi))
    floor = best.value.lower - tolerance
    lost: set[Examples] = set()
    while True:
        for one, other in itertools.combinations(range(best.contexts), 2):
            pair = (best.phi.examples[one], best.phi.examples[other])
            if pair in lost:
                continue
            candidate = best.phi.merged(one, other)
            value = vo(candidate)
            if value.lower >= floor:
                best = Point(candidate, value)
                break
            # What loses value here loses it in every coarser map.
            lost.add(pair)
        else:
            return best


def frontier(phi: BlockMap, vo: Value) -> tuple[Point, ...]:
    """Maps from `phi` down to one context, each by the merge of two blocks that keeps the value highest.

    Greedy: a point bounds from below the best value of so many contexts. With the value of `phi` no loss, the loss of
    a point is the difference. `vo` is called about once a pair of contexts, and then for the most promising ones.
    """
    vo = _remembering(vo)
    points = [Point(phi, vo(phi))]
    bounds: dict[Examples, float] = {}
    while points[-1].contexts > 1:
        current = points[-1].phi
        # The value that a merge had in a finer map bounds what it has here, so most need no new evaluation.
        pairs = [
            (bounds.get((current.examples[i], current.examples[j]), float("inf")), i, j)
            for i, j in itertools.combinations(range(current.contexts), 2)
        ]
        best: Point | None = None
        for bound, i, j in sorted(pairs, key=lambda entry: (-entry[0], *entry[1:])):
            if best is not None and bound <= best.value.lower:
                break
            point = Point(current.merged(i, j), vo(current.merged(i, j)))
            bounds[current.examples[i], current.examples[j]] = point.value.lower
            if best is None or (point.value.lower, point.contexts) > (best.value.lower, best.contexts):
                best = point
        assert best is not None  # two contexts have a pair
        points.append(best)
    return tuple(points)


def _remembering(vo: Value) -> Value:
    """`vo`, asked once a map: different pairs often lead to the same merged map."""
    known: dict[frozenset[tuple[tuple[int, str, str], int]], Interval] = {}

    def ask(phi: BlockMap) -> Interval:
        key = frozenset(phi.delta.items())
        if key not in known:
            known[key] = vo(phi)
        return known[key]

    return ask


def _explored(graph: BeliefGraph, length: int | None) -> tuple[dict[int, History], list[int]]:
    """Belief -> a shortest history to it, by names, in the order found; and those beliefs at which one acts."""
    actions, observations = graph.model.actions, graph.model.observations
    histories: dict[int, History] = {0: ()}
    edge, moved = [0], []
    steps = 0
    while edge and (length is None or steps < length):
        fresh = []
        for i in edge:
            for a in range(len(actions)):
                for move in graph.moves(i, a):
                    if move.belief not in histories:
                        histories[move.belief] = (*histories[i], (actions[a], observations[move.observation]))
                        fresh.append(move.belief)
        moved.extend(edge)
        edge = fresh
        steps += 1
    return histories, moved
