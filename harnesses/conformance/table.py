"""Table: a split harness as one POMDP and one agent, which `pomdp.simulate` runs; imports split, the context maps.

The POMDP is the world with idle actions, in which the state stays: a reply that did not parse, a call that is denied,
a tool that is not there, a run that has stalled. The agent's memory is that of the context map beside the counts of
control; from what the context says it draws an intended action, which its memory turns into what happens of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse import csr_array

from harnesses.conformance.split import Split
from harnesses.constructors.base import DENIED, ERROR, ONE, STOPPED, ZERO, Base
from harnesses.constructors.limits import CONSECUTIVE, WARNING
from harnesses.context import Context, ContextMap, NumberedMap
from harnesses.harness import Induced
from harnesses.runtime.records import AgentError, Reason
from pomdp.agents import draw_lanes, take
from pomdp.alias import AliasTable
from pomdp.model import POMDP
from pomdp.policy import Controller

What = Literal["call", "malformed", "denied", "unknown", "stopped"]
MAX_NODES, MAX_ENTRIES = 200_000, 100_000_000


class Move(NamedTuple):
    """An action of the table: the model's own action, and what happened of it."""

    action: str
    what: What


@dataclass(frozen=True, eq=False)
class Table:
    """`model` M_s with the `moves` that its actions are, under the context map `phi`, and the agent's tables.

    rows: `[C, 2A]` shares of (intended action, parses or not) in each of the `contexts`. shown `[K]`: the context in
    each node. happens `[K, 2A]`: the action of M_s. follow `[K, A_s, O]`: the next node. ends `[K]`: why the run is
    over in a node, None where it goes on.
    """

    split: Split
    phi: ContextMap
    model: POMDP
    moves: tuple[Move, ...]
    contexts: tuple[Context, ...]
    rows: np.ndarray
    shown: np.ndarray
    happens: np.ndarray
    follow: np.ndarray
    ends: tuple[Reason | None, ...]

    @functools.cached_property
    def draws(self) -> AliasTable:
        """The rows as every engine draws from them."""
        return AliasTable.build(csr_array(self.rows))

    @functools.cached_property
    def agent(self) -> TableAgent:
        """The agent, for `pomdp.simulate`."""
        return TableAgent(
            self.draws,
            jnp.asarray(self.shown, dtype=jnp.uint32),
            jnp.asarray(self.happens.ravel(), dtype=jnp.uint32),
            jnp.asarray(self.follow.ravel(), dtype=jnp.uint32),
            *(self.rows.shape[1], len(self.moves), self.model.num_observations),
        )

    @functools.cached_property
    def controller(self) -> Controller:
        """The same agent as a controller, for exact values."""
        act = np.zeros((len(self.shown), len(self.moves)))
        for k, c in enumerate(self.shown):
            np.add.at(act[k], self.happens[k], self.rows[c])
        return Controller(act, self.follow)

    @functools.cached_property
    def over(self) -> frozenset[int]:
        """The states in which nothing can be earned or lost any more."""
        return Base(self.model).over


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["rows", "shown", "happens", "follow"],
    meta_fields=["intended", "actions", "observations"],
)
@dataclass(frozen=True, eq=False)
class TableAgent:
    """An agent of `pomdp.agents`: memory is the node, 0 at the start."""

    rows: AliasTable
    shown: Array
    happens: Array
    follow: Array
    intended: int
    actions: int
    observations: int

    lanes = None

    @property
    def draws(self) -> int:
        """Two words where the rows are wide."""
        return 2 if self.rows.wide else 1

    def begin(self, lanes: int) -> Array:
        """The start in every lane."""
        return jnp.zeros(lanes, dtype=jnp.uint32)

    def choose(self, memory: Array, words: tuple[Array, ...]) -> Array:
        """What happens of the action drawn."""
        drawn = draw_lanes(self.rows, take(self.shown, memory), *words)
        return take(self.happens, memory * np.uint32(self.intended) + drawn)

    def update(self, memory: Array, action: Array, observation: Array) -> Array:
        """The next node."""
        pair = memory * np.uint32(self.actions) + action
        return take(self.follow, pair * np.uint32(self.observations) + observation)


def table(split: Split, induced: Induced, pi: np.ndarray) -> Table:
    """The table of a split harness and the policy `pi` `[C, A]` on the contexts of `induced`.

    AgentError for a map that errs at random, and for more nodes than MAX_NODES.
    """
    model, moves = _with_idle(split)
    p = float(split.malformed[0])
    rows = np.stack([pi * (1 - p), pi * p], axis=2).reshape(len(pi), -1)
    return _Exploration(split, model, moves, induced, rows).table()


def _with_idle(split: Split) -> tuple[POMDP, tuple[Move, ...]]:
    """M_s and its moves."""
    world, base = split.world, Base(split.world)
    kinds: list[What] = ["denied", "unknown", "stopped", "malformed"]
    wanted = {
        "denied": set(split.denied),
        "unknown": set(split.unexposed),
        "stopped": set(split.actions) if split.stall or split.calls else set(),
        "malformed": set(split.actions) if split.malformed[0] else set(),
    }
    calls = [Move(name, "call") for name in world.actions]
    idle = [Move(name, kind) for kind in kinds for name in split.actions if name in wanted[kind]]
    shows = {"denied": DENIED, "unknown": ERROR, "stopped": STOPPED, "malformed": ERROR}
    moves = (*calls, *idle)

    def step(s: int, a: int) -> Any:
        return base.kernel.step(s, a) if a < len(calls) else ((s, shows[moves[a].what], ONE),)

    def reward(s: int, a: int) -> Fraction:
        if a < len(calls):
            return base.kernel.reward(s, a)
        charges = {"denied": split.denied.get(moves[a].action, ZERO), "malformed": split.malformed[1]}
        return ZERO if s in base.over else -charges.get(moves[a].what, ZERO)

    names = tuple(m.action if m.what == "call" else f"{m.action}~{m.what}" for m in moves)
    return base.build(step, reward, actions=names), moves


class _Node(NamedTuple):
    """The map's memory, the calls so far and the loop detector's record; `end` where the run is over."""

    memory: int
    calls: int
    seen: tuple[int, ...]
    end: Reason | None = None


class _Exploration:
    """The nodes that a run can be in, found by following every state of M_s with every node that it occurs with."""

    def __init__(
        self, split: Split, model: POMDP, moves: tuple[Move, ...], induced: Induced, rows: np.ndarray
    ) -> None:
        self.split, self.model, self.moves, self.phi = split, model, moves, induced.phi
        self.contexts, self.rows = list(induced.contexts), list(rows)
        self._context = {context: c for c, context in enumerate(induced.contexts)}
        self._fold = NumberedMap(induced.phi, split.spec.sizes)
        self._move = {move: m for m, move in enumerate(moves)}
        # What every action of a run that control has ended is: nothing.
        self._dead = next((m for m, move in enumerate(moves) if move.what == "stopped"), 0)
        self.nodes: dict[_Node, int] = {}
        self.listed: list[_Node] = []
        self.shown: list[int] = []
        self.happens: list[list[int]] = []
        self.follow: list[dict[tuple[int, int], int]] = []
        self._follow_all(Base(model))

    def _follow_all(self, base: Base) -> None:
        start = self._add(_Node(0, 0, ()))
        level = [(s, start) for s in self.model.exact.start]
        seen = set(level)
        number = {name: o for o, name in enumerate(self.model.observations)}
        for depth in range(self.split.steps):
            reached = []
            for s, k in level:
                # A run that begins where nothing can be earned is noticed to be over after its first step.
                if (depth and s in base.over) or self.listed[k].end is not None:
                    continue
                happens = self.happens[k] = self.happens[k] or self._happens(k)
                chosen = np.flatnonzero(self.rows[self.shown[k]]).tolist()
                for m, drawn in {happens[i]: i for i in chosen}.items():
                    for t, observation, p in base.kernel.step(s, m):
                        o = number[observation]
                        if (m, o) not in self.follow[k]:
                            self.follow[k][m, o] = self._after(k, drawn, m, observation)
                        pair = t, self.follow[k][m, o]
                        if p and pair not in seen:
                            seen.add(pair)
                            reached.append(pair)
            level = reached

    def _happens(self, k: int) -> list[int]:
        """The move that each drawn action is in a node."""
        found = []
        for i in range(2 * len(self.split.actions)):
            action, malformed = self.split.actions[i // 2], bool(i % 2)
            times, _ = self._counted(self.listed[k].seen, i // 2)
            move = Move(action, self._what(action, malformed, times))
            found.append(self._move.get(move, self._dead))  # no other is ever drawn
        return found

    def _what(self, action: str, malformed: bool, times: int) -> What:
        stall = self.split.stall
        if stall is not None and times >= stall.stop:
            return "stopped"
        if malformed:
            return "malformed"
        if action in self.split.unexposed:
            return "unknown"
        return "denied" if action in self.split.denied else "call"

    def _after(self, k: int, drawn: int, m: int, observation: str) -> int:
        """The node after a move and what it shows."""
        node, what, stall = self.listed[k], self.moves[m].what, self.split.stall
        times, seen = self._counted(node.seen, drawn // 2)
        calls = node.calls + (what not in ("malformed", "stopped")) if self.split.calls else 0
        end = Reason.STALLED if what == "stopped" else None
        if end is None and self.split.calls and calls >= self.split.calls:
            end = Reason.TOOL_CALL_BUDGET
        shown = f"{observation}+{WARNING}" if stall is not None and times == stall.warn else observation
        following = self._fold.step(node.memory, self.moves[m].action, shown)
        if len(following) != 1:
            raise AgentError(
                f"{self.phi.name} errs at random, for which a run has no stream; take another map"
            )
        return self._add(_Node(following[0][0], calls, seen, end))

    def _counted(self, seen: tuple[int, ...], a: int) -> tuple[int, tuple[int, ...]]:
        """The number of this call among identical ones, and the record after it."""
        if self.split.stall is None:
            return 0, ()
        if self.split.stall.mode == CONSECUTIVE:
            run = seen[1] + 1 if seen and seen[0] == a else 1
            return run, (a, run)
        counts = list(seen or (0,) * len(self.split.actions))
        counts[a] += 1
        return counts[a], tuple(counts)

    def _add(self, node: _Node) -> int:
        if node not in self.nodes:
            if len(self.nodes) >= MAX_NODES:
                raise AgentError(
                    f"a run has more than {MAX_NODES} memories; shorten it, or take a smaller map"
                )
            self.nodes[node] = len(self.nodes)
            self.listed.append(node)
            self.happens.append([])
            self.follow.append({})
            self.shown.append(self._row(self._fold.contexts[self._fold.shown[node.memory]]))
        return self.nodes[node]

    def _row(self, context: Context) -> int:
        """The row of a context; where M_H asks nobody any more, as nothing is left to earn, all actions alike."""
        c = self._context.get(context)
        if c is None:
            c = self._context[context] = len(self.contexts)
            p, A = float(self.split.malformed[0]), len(self.split.actions)
            self.contexts.append(context)
            self.rows.append(np.tile([(1 - p) / A, p / A], A))
        return c

    def table(self) -> Table:
        """Nodes as arrays; what cannot follow a node leads back to it."""
        K, A, O = len(self.nodes), len(self.moves), self.model.num_observations
        if K * A * O > MAX_ENTRIES:
            raise AgentError(f"a run has {K} memories, too many for {A} actions and {O} results; shorten it")
        follow = np.repeat(np.arange(K), A * O).reshape(K, A, O)
        for k, steps in enumerate(self.follow):
            for (m, o), following in steps.items():
                follow[k, m, o] = following
        idle = [self._dead] * (2 * len(self.split.actions))
        arrays = np.array(self.shown), np.array([moves or idle for moves in self.happens]), follow
        ends, rows = tuple(node.end for node in self.listed), np.array(self.rows)
        return Table(self.split, self.phi, self.model, self.moves, tuple(self.contexts), rows, *arrays, ends)
