"""What a context map loses: sufficiency with the shortest witness, and whether recall undoes it; imports fibres.

A map is sufficient where histories of equal length that share a context share the exact belief.
Source: M1 §1.5, E1.3; design of the formal core, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harnesses.best_action import BestActions
from harnesses.context import ContextMap, Sizes
from harnesses.fibres import MAX_NODES, Fibres, contexts_of, fibres
from harnesses.witness import Witness, shortest
from pomdp.criterion import Criterion
from pomdp.model import POMDP


@dataclass(frozen=True)
class Sufficiency:
    """What is known of a map over histories of 0 to `depth` pairs, those at which an action is chosen.

    `sufficient`, `determined`, `injective`: None where undecided. `determined`: the context alone, whatever the
    length, gives the belief; `injective`: every context has one history (M1 E1.3: then `determined`). `witness` is
    the shortest pair of histories against sufficiency, `decisive` the shortest of those whose best action differs,
    where one was found. `contexts` and `histories` (None without a horizon: they have no end) count what was walked,
    which is everything unless a `reason` says why not.
    """

    sufficient: bool | None
    depth: int
    witness: Witness | None
    decisive: Witness | None
    determined: bool | None
    injective: bool | None
    contexts: int
    histories: int | None
    reason: str

    def json(self) -> dict[str, Any]:
        """The form every command prints."""
        return {
            "sufficient": self.sufficient,
            "depth": self.depth,
            "witness": None if self.witness is None else self.witness.json(),
            "decisive": None if self.decisive is None else self.decisive.json(),
            "determined": self.determined,
            "injective": self.injective,
            "contexts": self.contexts,
            "histories": self.histories,
            "reason": self.reason,
        }


def sufficient(
    model: POMDP,
    phi: ContextMap,
    criterion: Criterion,
    sizes: Sizes | None = None,
    *,
    max_nodes: int = MAX_NODES,
) -> Sufficiency:
    """Whether `phi` is a sufficient statistic of the histories of `model` (M_0) within the criterion's horizon.

    Raises ModelError for an unbounded map without a horizon.
    """
    return judged(fibres(model, phi, criterion.horizon, sizes, max_nodes=max_nodes), criterion)


def judged(found: Fibres, criterion: Criterion) -> Sufficiency:
    """`sufficient` of fibres that are there already."""
    graph = found.graph
    best = BestActions(graph.beliefs, criterion)
    witness = shortest(found, best)
    decisive = None
    if witness is not None:
        decisive = witness if witness.best_action_differs else shortest(found, best, decisive=True)
    reached = found.reached()
    by_context = contexts_of(graph, reached)
    one_belief = all(len(beliefs) == 1 for beliefs in by_context.values())
    one_history = all(count == 1 for count in found.histories_by_context().values())
    return Sufficiency(
        sufficient=False if witness is not None else _if_decided(found, True),
        depth=len(found.levels) - 1,
        witness=witness,
        decisive=decisive,
        determined=_if_decided(found, True) if one_belief else False,
        injective=_injective(found, one_history),
        contexts=len(by_context),
        histories=None if criterion.horizon is None else found.histories(),
        reason=found.why,
    )


def recovers(found: Fibres) -> bool | None:
    """Whether every next context shows which observation came, so that recall of all contexts recovers the history.

    True proves that `V*(phi) = V*(M_0)`: `last(k)` with k >= 1 is such a map. False proves nothing: an observation
    that is hidden may not matter, or come back later. None where too much is reachable to tell.
    """
    graph = found.graph
    last = len(found.levels) - 1
    acted = found.reached() if found.end == "repeats" else {n for level in found.levels[:last] for n in level}
    for node in acted:
        shown: dict[tuple[int, int], int] = {}
        drawn: dict[tuple[int, int], int] = {}
        for action, observation, _, following in graph.edges(node):
            if shown.setdefault((action, graph.context(following)), observation) != observation:
                return False
            # One who recalls does not know which memory was drawn.
            if drawn.setdefault((action, observation), following) != following:
                return False
    return _if_decided(found, True)


def _injective(found: Fibres, one_history: bool) -> bool | None:
    """Endless histories never fit finitely many contexts, so levels that recur are not injective."""
    if not one_history or found.end == "repeats":
        return False
    return _if_decided(found, True)


def _if_decided(found: Fibres, answer: bool) -> bool | None:
    return answer if found.decided else None
