"""Witness: two histories that a context map confuses, what lost the difference, what would keep it.

Imports pomdp, fibres, best_action, context. Source: M1 §1.5.2 (the construction), §1.5.3 (three losses).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from harnesses.best_action import Best, BestActions, differ
from harnesses.context import Context, ContextMap, Event, Removal, Sizes, fold, parse_map
from harnesses.fibres import Fibres, fibres, first_shared
from pomdp.model import POMDP, ModelError

# Pairs of beliefs looked at for the one that is easiest to read, and for one whose best action differs.
MAX_PAIRS = 2_000
# A remedy is tried on as many nodes as this, and this many single pins before all of them together.
MAX_REMEDY_NODES = 20_000
MAX_PINS = 6

History = tuple[tuple[str, str], ...]

ADVICE = {
    "truncation": "retrieve {event} when it matters, or let a pin or a scratchpad keep it",
    "summarisation": "let the summary keep {event}, and judge it by the context loss, not by how it reads",
    "formatting": "show {event} in a form that tells it apart, and test the form by the context loss",
}


@dataclass(frozen=True)
class Remedy:
    """What the loss suggests; `map` is a map that was tried, `sufficient` whether it confuses nothing.

    `sufficient` is None where nothing was tried or the trial was too large.
    """

    advice: str
    map: str | None = None
    sufficient: bool | None = None


@dataclass(frozen=True)
class Witness:
    """Two histories of `length` pairs with one context and two exact beliefs.

    `differing` are the positions, from 0, at which they differ; `loss` and `rule` the kind and rule of the removal
    that took the first of these out of sight (formatting where nothing was removed). `best_action_differs`: no
    action is best at both beliefs; None where that was not decided; `method` says how it was.
    """

    context: Context
    histories: tuple[History, History]
    beliefs: tuple[dict[str, Fraction], dict[str, Fraction]]
    best_actions: tuple[tuple[str, ...], tuple[str, ...]] | None
    best_action_differs: bool | None
    method: str
    differing: tuple[int, ...]
    loss: str
    rule: str
    remedy: Remedy

    @property
    def length(self) -> int:
        """Pairs of each history."""
        return len(self.histories[0])

    def text(self) -> str:
        """A few lines for a reader."""
        lines = [f"  both are shown   {self.context.text}"]
        for k, (history, belief) in enumerate(zip(self.histories, self.beliefs, strict=True)):
            said = "; ".join(f"{action} -> {observation}" for action, observation in history)
            states = ", ".join(f"{state} {p}" for state, p in list(belief.items())[:4])
            more = f" and {len(belief) - 4} more" if len(belief) > 4 else ""
            best = f"; best: {' or '.join(self.best_actions[k])}" if self.best_actions else ""
            lines += [f"  history {k + 1}        {said}", f"    belief         {states}{more}{best}"]
        tried = ""
        if self.remedy.map is not None:
            tried = f" ({self.remedy.map} is {'' if self.remedy.sufficient else 'not '}sufficient)"
        lines.append(f"  {self.loss} by {self.rule}: {self.remedy.advice}{tried}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The form every command prints, with names and exact probabilities."""
        return {
            "context": self.context.text,
            "histories": [[list(pair) for pair in history] for history in self.histories],
            "beliefs": [{state: str(p) for state, p in belief.items()} for belief in self.beliefs],
            "best_actions": None
            if self.best_actions is None
            else [list(names) for names in self.best_actions],
            "best_action_differs": self.best_action_differs,
            "method": self.method,
            "differing": list(self.differing),
            "loss": self.loss,
            "rule": self.rule,
            "remedy": self.remedy.advice,
            "remedy_map": self.remedy.map,
            "remedy_sufficient": self.remedy.sufficient,
        }


@dataclass(frozen=True)
class _Pair:
    """Two nodes of one level and context, the best actions at their beliefs."""

    length: int
    nodes: tuple[int, int]
    best: tuple[Best | None, Best | None]

    @property
    def differs(self) -> bool | None:
        return differ(*self.best)


def shortest(found: Fibres, best: BestActions, *, decisive: bool = False) -> Witness | None:
    """The shortest pair that shares a context but not the belief, or None.

    Among those of one length a pair whose best action differs comes first, then one with few differing events.
    `decisive`: only pairs whose best action differs count.
    """
    chosen: tuple[tuple[bool, int], _Pair] | None = None
    for pair in _pairs(found, best):
        if chosen is not None and pair.length > chosen[1].length:
            break
        if decisive and not pair.differs:
            continue
        rank = (not pair.differs, len(_differing(*_histories(found, pair))))
        if chosen is None or rank < chosen[0]:
            chosen = rank, pair
    return None if chosen is None else _witness(found, chosen[1], best.method)


def remedy_of(
    found: Fibres, histories: tuple[History, History], differing: tuple[int, ...], loss: str
) -> Remedy:
    """The advice for a kind of loss, with the pins of the deciding events tried where content was removed."""
    graph = found.graph
    events = list(dict.fromkeys("/".join(history[i]) for i in differing for history in histories))
    first = dict.fromkeys("/".join(history[differing[0]]) for history in histories)
    advice = ADVICE[loss].format(event=" or ".join(first))
    if loss == "formatting":
        return Remedy(advice)
    tries = [*events[:MAX_PINS], *([",".join(events)] if len(events) > 1 else [])]
    tried: Remedy | None = None
    for pins in tries:
        name = f"pin:{pins}:{graph.phi.name}"
        verdict = _confuses_nothing(graph.model, name, found.horizon, graph.sizes)
        if verdict:
            return Remedy(ADVICE[loss].format(event=pins), name, True)
        if tried is None and verdict is not None:
            tried = Remedy(advice, name, False)
    return tried or Remedy(advice)


def _pairs(found: Fibres, best: BestActions) -> Iterator[_Pair]:
    """Pairs that share a context, shortest first, each with the best actions."""
    looked_at = 0
    for length, _, beliefs in first_shared(found):
        known = [(nodes[0], best.at(belief, length)) for belief, nodes in beliefs.items()]
        for i, (first, at_first) in enumerate(known):
            for second, at_second in known[i + 1 :]:
                yield _Pair(length, (first, second), (at_first, at_second))
                looked_at += 1
                if looked_at >= MAX_PAIRS:
                    return


def _witness(found: Fibres, pair: _Pair, method: str) -> Witness:
    graph, model = found.graph, found.graph.model
    histories = _histories(found, pair)
    differing = _differing(*histories)
    loss, rule = _loss(graph.phi, graph.sizes, histories, differing)

    def belief(node: int) -> dict[str, Fraction]:
        return {model.states[s]: p for s, p in graph.beliefs.belief(graph.belief(node)).items()}

    def names(best: Best) -> tuple[str, ...]:
        return tuple(model.actions[a] for a in sorted(best.actions))

    one, other = pair.best
    return Witness(
        context=graph.contexts[graph.context(pair.nodes[0])],
        histories=histories,
        beliefs=(belief(pair.nodes[0]), belief(pair.nodes[1])),
        best_actions=None if one is None or other is None else (names(one), names(other)),
        best_action_differs=pair.differs,
        method=method,
        differing=differing,
        loss=loss,
        rule=rule,
        remedy=remedy_of(found, histories, differing, loss),
    )


def _histories(found: Fibres, pair: _Pair) -> tuple[History, History]:
    """The histories of both nodes, by names."""
    model = found.graph.model

    def named(node: int) -> History:
        pairs = found.history(pair.length, node)
        return tuple((model.actions[a], model.observations[o]) for a, o in pairs)

    return named(pair.nodes[0]), named(pair.nodes[1])


def _differing(one: History, other: History) -> tuple[int, ...]:
    return tuple(i for i, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs)


def _loss(
    phi: ContextMap, sizes: Sizes, histories: tuple[History, History], differing: tuple[int, ...]
) -> tuple[str, str]:
    """Kind and rule of the removal that hid the first differing event, in either history.

    Messages carry their position as id, by which a removal is traced to its event; a removal counts where its
    message is one in which the histories differ.
    """
    hidden = [_removals(phi, sizes, history) for history in histories]
    for i in differing:
        parts = [part for part in range(2) if histories[0][i][part] != histories[1][i][part]]
        for removals in hidden:
            for part in parts:
                if (i, part) in removals:
                    removal = removals[i, part]
                    return removal.kind, removal.rule
    return "formatting", phi.name


def _removals(phi: ContextMap, sizes: Sizes, history: History) -> dict[object, Removal]:
    """Message by position -> the first removal of it, along a history."""
    events = []
    for i, (action, observation) in enumerate(history):
        event = sizes.event(action, observation)
        events.append(Event(event.call._replace(id=(i, 0)), event.result._replace(id=(i, 1))))
    found: dict[object, Removal] = {}
    for removal in fold(phi, events).dropped:
        found.setdefault(removal.message.id, removal)
    return found


def _confuses_nothing(model: POMDP, name: str, horizon: int | None, sizes: Sizes) -> bool | None:
    """Whether the named map is sufficient; None where that is not decided, or no such map exists."""
    try:
        phi = parse_map(name).bind(model, horizon, sizes)
        found = fibres(model, phi, horizon, sizes, max_nodes=MAX_REMEDY_NODES)
    except ModelError:
        return None
    if next(first_shared(found), None) is not None:
        return False
    return True if found.decided else None
