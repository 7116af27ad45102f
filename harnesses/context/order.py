"""Coarsening order: whether one context map is a function of another's context; imports context_map, pomdp.belief.

phi2 is coarser than phi1 where phi2 = psi . phi1 for a memoryless psi, on all histories that can happen. Then
V*(phi2) <= V*(phi1) and Vo(phi2) <= Vo(phi1). Source: design of the formal core, section 4, `garbling`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from harnesses.context.context_map import ContextMap, Memory, branches, require_horizon
from harnesses.context.message import Context, Sizes
from pomdp.model import POMDP, ModelError

MAX_NODES = 1_000_000

History = tuple[tuple[str, str], ...]
_Support = frozenset[int]
_Node = tuple[_Support, Memory, Memory]


@dataclass(frozen=True)
class Refutation:
    """Two histories with one context under phi1 and two under phi2: no psi can tell them apart.

    Histories are of action and observation names and need not be equally long. The longer of the two is as short
    as in any refutation, and `first` as any history with this context. `images` are the contexts of phi2 after
    `first` and `second`.
    """

    first: History
    second: History
    context: Context
    images: tuple[Context, Context]


def coarsens(
    model: POMDP,
    phi1: ContextMap,
    phi2: ContextMap,
    horizon: int | None = None,
    sizes: Sizes | None = None,
    *,
    max_nodes: int = MAX_NODES,
) -> dict[Context, Context] | Refutation:
    """psi with phi2 = psi . phi1 on every history at which an action is chosen, or a refutation.

    Those are the histories of positive probability of length 0..horizon-1; of any length without a horizon.
    Explored are pairs of memories with the states that the history leaves possible. Raises ModelError for a
    map without an end of memories where there is no horizon, for a stochastic map, and beyond `max_nodes`.
    """
    for phi in (phi1, phi2):
        require_horizon(phi, horizon)
    search = _Search(model, phi1, phi2, Sizes() if sizes is None else sizes, max_nodes)
    return search.run(horizon)


class _Search:
    """Breadth first over (possible states, memory of phi1, memory of phi2)."""

    def __init__(
        self, model: POMDP, phi1: ContextMap, phi2: ContextMap, sizes: Sizes, max_nodes: int
    ) -> None:
        self.model, self.maps, self.sizes, self.max_nodes = model, (phi1, phi2), sizes, max_nodes
        self._next: dict[_Support, tuple[tuple[int, int, _Support], ...]] = {}
        self._reached: dict[tuple[int, int], tuple[int, ...]] = {}
        self._shown: dict[tuple[int, int], tuple[int, ...]] = {}
        self._origin: dict[_Node, tuple[_Node, str, str] | None] = {}

    def run(self, horizon: int | None) -> dict[Context, Context] | Refutation:
        """psi or a refutation."""
        first = frozenset(self.model.exact.start), self.maps[0].start(), self.maps[1].start()
        self._origin = {first: None}
        queue = deque([(first, 0)])
        psi: dict[Context, Context] = {}
        found_at: dict[Context, _Node] = {}
        while queue:
            node, depth = queue.popleft()
            context, image = (phi.show(memory) for phi, memory in zip(self.maps, node[1:]))
            known = psi.setdefault(context, image)
            if known != image:
                first_history, second_history = self._history(found_at[context]), self._history(node)
                return Refutation(first_history, second_history, context, (known, image))
            found_at.setdefault(context, node)
            # A node first reached later has fewer steps left, so its first visit covers every other.
            if horizon is None or depth + 1 < horizon:
                queue.extend((following, depth + 1) for following in self._expand(node))
        return psi

    def _expand(self, node: _Node) -> list[_Node]:
        """The nodes after one more pair that were not seen before."""
        support, *memories = node
        fresh = []
        for a, o, following in self._successors(support):
            action, observation = self.model.actions[a], self.model.observations[o]
            event = self.sizes.event(action, observation)
            after = []
            for phi, memory in zip(self.maps, memories):
                outcomes = branches(phi, memory, event)
                if len(outcomes) > 1:
                    raise ModelError(f"{phi.name} is stochastic; the order compares deterministic maps")
                after.append(outcomes[0][0])
            reached: _Node = (following, after[0], after[1])
            if reached not in self._origin:
                if len(self._origin) >= self.max_nodes:
                    raise ModelError(
                        f"{self.maps[0].name} and {self.maps[1].name} have more than {self.max_nodes} pairs of "
                        "memories; give a smaller horizon, such as --horizon 4"
                    )
                self._origin[reached] = (node, action, observation)
                fresh.append(reached)
        return fresh

    def _successors(self, support: _Support) -> tuple[tuple[int, int, _Support], ...]:
        """(action, observation, possible states) that can follow."""
        found = self._next.get(support)
        if found is None:
            by_pair: dict[tuple[int, int], set[int]] = {}
            for a in range(self.model.num_actions):
                for reached in {t for s in support for t in self._row(self._reached, a, s)}:
                    for o in self._row(self._shown, a, reached):
                        by_pair.setdefault((a, o), set()).add(reached)
            found = tuple((a, o, frozenset(states)) for (a, o), states in sorted(by_pair.items()))
            self._next[support] = found
        return found

    def _row(self, rows: dict[tuple[int, int], tuple[int, ...]], a: int, s: int) -> tuple[int, ...]:
        """The columns of positive probability of a row of T[a] or Z[a], read once."""
        if (a, s) not in rows:
            matrices = self.model.exact.T if rows is self._reached else self.model.exact.Z
            rows[a, s] = tuple(matrices[a].row(s))
        return rows[a, s]

    def _history(self, node: _Node) -> History:
        """The pairs that lead to a node."""
        pairs: list[tuple[str, str]] = []
        while (origin := self._origin[node]) is not None:
            node, action, observation = origin
            pairs.append((action, observation))
        return tuple(reversed(pairs))
