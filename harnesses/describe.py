"""The POMDP specification of a harness on a task, in numbers and sentences: M1 Lab 1b; imports case, context_loss.

Seven components, the sources of partial observability in bits a step, one pair of histories that the context map
confuses, one distinction that the harness's actions cannot make.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harnesses.case import Case
from harnesses.context import Context
from harnesses.context_bits import bits
from harnesses.context_loss import ContextLoss
from harnesses.lossy import Sufficiency
from pomdp.bounds import solve
from pomdp.information import entropy
from pomdp.interval import Interval
from pomdp.model import POMDP

# Parts that take actions of the task away or put several behind one call.
COARSENING = ("select", "merge", "deny")
# A discounted run is described over its first steps, until this share of the weight is left.
TAIL = 1e-3
MAX_STEPS = 200


@dataclass(frozen=True)
class Component:
    """One of the seven components: its symbol, its name and a sentence that justifies it."""

    symbol: str
    name: str
    sentence: str


@dataclass(frozen=True)
class Source:
    """A source of partial observability: bits a step under the spec's model, and where most of them come from."""

    kind: str
    formula: str
    bits: float
    largest: str


@dataclass(frozen=True)
class Coarser:
    """A distinction of the task that the harness cannot express: which part, which actions, what it costs."""

    part: str
    actions: tuple[str, ...]
    cost: Interval


@dataclass(frozen=True)
class Description:
    """All of it. `sources` are the three of M1 §0.2.9, largest first; `coarser` None where no action is taken away."""

    components: tuple[Component, ...]
    sources: tuple[Source, ...]
    sufficiency: Sufficiency
    loss: Interval
    coarser: Coarser | None

    def json(self) -> dict[str, Any]:
        """The form `hpomdp describe --json` prints."""
        witness = self.sufficiency.decisive or self.sufficiency.witness
        return {
            "components": [
                {"symbol": c.symbol, "name": c.name, "sentence": c.sentence} for c in self.components
            ],
            "sources": [
                {"kind": s.kind, "formula": s.formula, "bits_per_step": s.bits, "largest": s.largest}
                for s in self.sources
            ],
            "confused": None if witness is None else witness.json(),
            "sufficient": self.sufficiency.sufficient,
            "loss": self.loss.json(),
            "coarser": None
            if self.coarser is None
            else {
                "part": self.coarser.part,
                "actions": list(self.coarser.actions),
                "cost": self.coarser.cost.json(),
            },
        }


def describe(case: Case) -> Description:
    """The specification of one case under the spec's own model."""
    loss = ContextLoss(case)
    sources = (_environment(case), _tools(case), _model(case))
    return Description(
        components(case),
        tuple(sorted(sources, key=lambda source: -source.bits)),
        loss.sufficiency,
        loss.loss,
        _coarser(case),
    )


def components(case: Case) -> tuple[Component, ...]:
    """S, A, T, O, Z, R, gamma of M_H with a sentence each. Source: M1 §1.4.2, Def 1.4.1."""
    induced, criterion, harness = case.induced, case.spec.criterion, case.spec.harness
    task, inner = induced.task, induced.inner
    wrapped = ", ".join(part.text for part in harness.parts())
    told = f"the harness's {wrapped}" if wrapped else "no tools, control or loop around the task"
    hidden = [name for name in task.actions if name not in inner.actions]
    new = [name for name in inner.actions if name not in task.actions]
    results = [name for name in inner.observations if name not in task.observations]
    horizon = "for ever" if criterion.horizon is None else f"over {criterion.horizon} steps"
    actions = f"{inner.num_actions} exposed: {_list(inner.actions)}"
    if hidden:
        actions += f"; of the task's actions it does not expose {_list(hidden)}"
    if new:
        actions += f"; it makes {_list(new)} itself"
    return (
        Component(
            "S",
            "states",
            f"{task.num_states} of the task and, with {told}, {inner.num_states}; together with what the context map "
            f"remembers {induced.model.num_states}, since counters, last calls and memories decide what comes next.",
        ),
        Component("A", "actions", f"{actions}. A model can do nothing else."),
        Component("T", "transitions", _moves(inner)),
        Component(
            "O",
            "observations",
            f"{induced.num_contexts} contexts, the range of {induced.phi.name}; behind them {inner.num_observations} "
            f"results"
            + (f", of which the harness adds {_list(results)}." if results else ", all of the task."),
        ),
        Component(
            "Z",
            "observation kernel",
            f"the result of a call given the state it led to, then {induced.phi.name} over all pairs so far: the model "
            "is shown a context, never a result alone.",
        ),
        Component(
            "R",
            "reward",
            f"expected reward of a call in a state, from {inner.R.min():g} to {inner.R.max():g}; a call that the "
            "harness stops pays its charge and nothing of the task's.",
        ),
        Component("gamma", "discount", f"{criterion.discount}, {horizon}."),
    )


def _moves(inner: POMDP) -> str:
    """The sentence on transitions."""
    random = [name for name, T in zip(inner.actions, inner.T) if T.nnz > inner.num_states]
    sure = f"{len(inner.actions) - len(random)} of {len(inner.actions)} actions lead to one sure state"
    return f"{sure}" + (f"; {_list(random)} may lead to several." if random else ".")


def _environment(case: Case) -> Source:
    """H(s | filter): what even a Bayes filter over the whole history would not know."""
    spec, induced = case.spec, case.induced
    number = {context: c for c, context in enumerate(induced.contexts)}

    def behaviour(context: Context) -> dict[str, float]:
        # A run that is over is asked no more; whatever is done there changes nothing.
        row = case.pi[number.get(context, 0)]
        return dict(zip(induced.model.actions, row.tolist(), strict=True))

    found = bits(induced.inner, induced.phi, spec.criterion, spec.sizes, behaviour)
    unknown = [max(0.0, step.state - step.state_history) for step in found.steps]
    spread = sum(weight * h for weight, h in zip(found.weights, unknown, strict=True))
    latest = max(range(len(unknown)), key=lambda t: unknown[t])
    return Source(
        "environment", "H(s | filter)", spread, f"decision {latest + 1}, {unknown[latest]:.4g} bits"
    )


def _tools(case: Case) -> Source:
    """H(o | s', a): what a result leaves to chance though the state it led to is known.

    A state that had to remember its last result (`s/o`) counts as `s`, or the noise of tools would hide in the state.
    """
    induced, inner = case.induced, case.induced.inner
    base = np.array([_without_result(name, inner.observations) for name in inner.states])
    names, group = np.unique(base, return_inverse=True)
    per_action = np.zeros(inner.num_actions)
    for weight, measure in _measures(case):
        doing = measure[:, None] * _acting(case)
        for a in range(inner.num_actions):
            if not doing[:, a].any():
                continue
            here = np.bincount(
                induced.origin[induced.origin >= 0], doing[induced.origin >= 0, a], inner.num_states
            )
            joint = np.zeros((len(names), inner.num_observations))
            reached = here @ inner.T[a]
            np.add.at(joint, group, (inner.Z[a] * reached[:, None]).toarray())
            per_action[a] += weight * _conditional(joint)
    largest = inner.actions[int(per_action.argmax())] if per_action.any() else "nothing"
    return Source("tool", "H(o | s', a)", float(per_action.sum()), largest)


def _model(case: Case) -> Source:
    """H(a | c): what the model itself leaves to chance."""
    induced = case.induced
    rows = np.array([entropy(row) for row in case.pi])
    per_context = np.zeros(induced.num_contexts)
    for weight, measure in _measures(case):
        live = induced.shown >= 0
        per_context += weight * np.bincount(induced.shown[live], measure[live], induced.num_contexts) * rows
    largest = induced.contexts[int(per_context.argmax())].text if per_context.any() else "nothing"
    return Source("model", "H(a | c)", float(per_context.sum()), largest)


def _coarser(case: Case) -> Coarser | None:
    """The part whose removal raises V*(M_0) most among those that take actions away or join them."""
    harness, spec, effort = case.spec.harness, case.spec, case.effort
    found: list[Coarser] = []
    for name in ("tools", "control"):
        parts = getattr(harness, name)
        for i, part in enumerate(parts):
            if part.name not in COARSENING:
                continue
            without = replace(harness, **{name: parts[:i] + parts[i + 1 :]})
            inner = without.inner(spec.task)
            missing = tuple(a for a in inner.actions if a not in case.induced.inner.actions)
            if part.name == "select" and not missing:
                continue  # it exposes everything
            value = solve(
                inner, spec.criterion, gap=effort.gap, time_limit=effort.seconds, certify=effort.certify
            )
            found.append(Coarser(part.text, missing or (part.text,), value.interval - case.inner.interval))
    return max(found, key=lambda one: one.cost.lower, default=None)


def _weights(case: Case) -> list[float]:
    """Weight of each decision point: equal within a horizon, discounted and cut at TAIL without one; they sum to 1."""
    criterion = case.spec.criterion
    if criterion.horizon is not None:
        return [1.0 / criterion.horizon] * criterion.horizon
    gamma = criterion.gamma
    weights: list[float] = []
    while len(weights) < MAX_STEPS and gamma ** len(weights) > TAIL:
        weights.append(gamma ** len(weights))
    return [weight / sum(weights) for weight in weights]


def _measures(case: Case) -> Iterator[tuple[float, np.ndarray]]:
    """(weight, distribution over the states of M_H) at each decision point."""
    weights = _weights(case)
    return zip(weights, case.induced.occupancy(case.pi, len(weights)))


def _acting(case: Case) -> np.ndarray:
    """`[N, A]` what the model does in each state; nothing past the horizon."""
    induced = case.induced
    return np.where(induced.shown[:, None] >= 0, case.pi[np.maximum(induced.shown, 0)], 0.0)


def _conditional(joint: np.ndarray) -> float:
    """H(column | row) in bits of a joint measure of any mass, times the mass."""
    total = joint.sum(axis=1, keepdims=True)
    shares = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return float(-(joint * logs).sum())


def _without_result(name: str, observations: tuple[str, ...]) -> str:
    head, _, last = name.rpartition("/")
    return head if head and last in observations else name


def _list(names: Any, most: int = 8) -> str:
    shown = list(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")
