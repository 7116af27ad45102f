"""A harness: four lists of parts around a task, and the POMDP that it induces; imports pomdp, kernel, context.

    task M --tools, control, loop--> M_0 --context map--> M_H

M_0 is what happens; M_H is what the model sees of it: its observations are contexts. Source: M1 Def 1.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array, diags_array

from harnesses.constructors import with_unexposed
from harnesses.constructors.base import Base
from harnesses.constructors.catalogue import UNEXPOSED_RANK, Part, joined
from harnesses.context import Context, ContextMap, MapRecipe, NumberedMap, Sizes, require_horizon
from harnesses.kernel import MAX_STATES, Kernel, of_model, tabulate
from pomdp.criterion import Criterion
from pomdp.discounted import solve as solve_chain
from pomdp.interval import Interval, round_down, round_up
from pomdp.model import POMDP, ModelError

# The outer two of control count every iteration, also a reply that did not parse: the loop goes inside them.
OUTER = ("stall", "step_limit")
# `evaluate` finds J to within this share of the largest value (pomdp.discounted.RTOL is ten times smaller).
RETURN_ERROR = 1e-9


@dataclass(frozen=True)
class Harness:
    """H = (L, T, C, K): loop, tools, context map and control. Source: M1 Def 1.4.1.

    `tools`, `control` and `loop` are lists of constructors, innermost first; the loop's stand inside the first
    `stall` or `step_limit` of control.
    """

    tools: tuple[Part, ...]
    control: tuple[Part, ...]
    loop: tuple[Part, ...]
    context: MapRecipe

    def __post_init__(self) -> None:
        """Refuse a constructor in a part it does not belong to."""
        for name in ("tools", "control", "loop"):
            for part in getattr(self, name):
                if part.part != name:
                    raise ModelError(
                        f"{part.name} is a constructor of {part.part}, not of {name}; move it there"
                    )

    def parts(self) -> tuple[Part, ...]:
        """Every constructor in the order in which it is applied, innermost first; a retry follows its timeout."""
        outer = next((i for i, part in enumerate(self.control) if part.name in OUTER), len(self.control))
        return (*self.tools, *self.control[:outer], *self.loop, *self.control[outer:])

    def inner(self, task: POMDP, also: Sequence[str] = ()) -> POMDP:
        """M_0: the task behind tools, control and loop.

        `also` names actions that a model may try although the harness does not expose them; they yield `error`.
        """
        model, parts = task, joined(self.parts())
        # Budgets and whatever stands outside them count a call that is not exposed; tools and guards never see it.
        outside = next((i for i, part in enumerate(parts) if part.rank > UNEXPOSED_RANK), len(parts))
        for part in parts[:outside]:
            model = _applied(part, model)
        missing = [name for name in also if name not in model.actions]
        if missing:
            model = with_unexposed(model, missing)
        for part in parts[outside:]:
            model = _applied(part, model)
        return model

    def induce(
        self,
        task: POMDP,
        criterion: Criterion,
        sizes: Sizes,
        also: Sequence[str] = (),
        max_states: int = MAX_STATES,
    ) -> Induced:
        """M_H for the histories that the criterion counts; `sizes` are the tokens of calls and results."""
        inner = self.inner(task, also)
        phi = self.context.bind(inner, criterion.horizon, sizes)
        return induce(task, inner, phi, criterion, sizes, max_states)

    def json(self) -> dict[str, object]:
        """The four parts as a spec writes them."""
        lists = {name: [part.text for part in getattr(self, name)] for name in ("tools", "control", "loop")}
        return lists | {"context": self.context.name}


@dataclass(frozen=True, eq=False)
class Induced:
    """The harness-induced POMDP of a task, with what its states and observations stand for.

    `model` M_H: `[N]` states are pairs of a state of `inner` M_0 and a memory of `phi`; its observations are the
    `contexts` `[C]`, in order, `contexts[0]` being c_0 = lam(x0), which is seen before the first action; a last
    observation `over` may follow them, of a run that has ended or is past the horizon. `shown` `[N]` is the context in
    each state, -1 where it is over; `origin` `[N]` the state of M_0, -1 likewise.
    """

    task: POMDP
    inner: POMDP
    model: POMDP
    phi: ContextMap
    criterion: Criterion
    contexts: tuple[Context, ...]
    shown: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)

    @property
    def num_contexts(self) -> int:
        """C."""
        return len(self.contexts)

    def evaluate(self, pi: np.ndarray) -> float:
        """J of the stateless policy `pi` `[C, A]`, rows summing to 1: exact but for rounding. Source: M1 §1.4.4."""
        return float(self.model.start @ self.values(pi))

    def values(self, pi: np.ndarray) -> np.ndarray:
        """`[N]` expected return of `pi` `[C, A]` from each state over the whole criterion."""
        if self.criterion.horizon is not None:
            return self.values_by_steps(pi, self.criterion.horizon)[-1]
        transition, rewards = self._chain(pi)
        return solve_chain(lambda v: transition @ v, rewards, self.criterion.gamma, lambda: transition).values

    def values_by_steps(self, pi: np.ndarray, steps: int) -> list[np.ndarray]:
        """`[N]` expected return of `pi` over the next 0, 1, ..., `steps` steps."""
        transition, rewards = self._chain(pi)
        values = [np.zeros(len(rewards))]
        for _ in range(steps):
            values.append(rewards + self.criterion.gamma * (transition @ values[-1]))
        return values

    def occupancy(self, pi: np.ndarray, steps: int) -> Iterator[np.ndarray]:
        """`[N]` the distribution over states before each of the first `steps` actions of `pi` `[C, A]`."""
        transition, _ = self._chain(pi)
        measure = self.model.start
        for _ in range(steps):
            yield measure
            measure = measure @ transition

    def around(self, found: float) -> Interval:
        """A return that `evaluate` found, with the rounding that it may have made."""
        margin = Fraction(RETURN_ERROR) * Fraction(
            max(1.0, float(np.max(np.abs(self.model.R))) * self.criterion.scale)
        )
        return Interval(round_down(Fraction(found) - margin), round_up(Fraction(found) + margin))

    def _chain(self, pi: np.ndarray) -> tuple[csr_array, np.ndarray]:
        """The Markov chain of `pi`: its matrix `[N, N]` and expected rewards `[N]`."""
        weights = self._weights(pi)
        used = np.flatnonzero(np.any(weights > 0.0, axis=0))
        transition = sum(diags_array(weights[:, a]) @ self.model.T[a] for a in used)
        return csr_array(transition), np.einsum("na,an->n", weights, self.model.R)

    def _weights(self, pi: np.ndarray) -> np.ndarray:
        """`[N, A]` action probabilities in each state; past the horizon any action does nothing."""
        expected = (self.num_contexts, self.model.num_actions)
        if pi.shape != expected:
            raise ModelError(f"the policy has shape {pi.shape}; the contexts and actions ask for {expected}")
        if np.any(pi < 0) or np.any(np.abs(pi.sum(axis=1) - 1.0) > 1e-9):
            row = int(np.argmax(np.abs(pi.sum(axis=1) - 1.0) + (pi < 0).any(axis=1)))
            raise ModelError(
                f"the policy's row for {self.contexts[row].text} is no distribution over actions"
            )
        weights = pi[np.maximum(self.shown, 0)]
        return weights / weights.sum(axis=1, keepdims=True)


def _applied(part: Part, model: POMDP) -> POMDP:
    """The model in one more constructor; an error names it."""
    try:
        return part.apply(model)
    except ModelError as error:
        raise ModelError(f"{part.text}: {error}") from None


def induce(
    task: POMDP,
    inner: POMDP,
    phi: ContextMap,
    criterion: Criterion,
    sizes: Sizes,
    max_states: int = MAX_STATES,
) -> Induced:
    """M_H = context(phi)(M_0), reachable part; with a horizon, its decision points alone.

    Where the run is over nobody is asked for an action, so all such states are one, with the observation `over`. That
    changes no value: what is known or done there earns nothing.
    Raises ModelError where the map has no end of memories and the criterion no horizon, TooManyStates beyond
    `max_states`.
    """
    require_horizon(phi, criterion.horizon)
    base, fold, over = of_model(inner), NumberedMap(phi, sizes), Base(inner).over
    names = _Names(fold)
    places: dict[str, tuple[int, int]] = {}

    def step(state: tuple[int, int], action: int) -> Iterator[tuple[tuple[int, int], str, Fraction]]:
        s, x = state
        for reached, observation, p in base.step(s, action):
            if reached in over:
                yield (reached, 0), names.context(0), p  # nobody is shown anything any more
                continue
            for y, q in fold.step(x, inner.actions[action], observation):
                yield (reached, y), names.context(fold.shown[y]), p if q is None else p * q

    def label(state: tuple[int, int]) -> str:
        name = f"{inner.states[state[0]]}/{names.memory(state[1])}"
        places[name] = state
        return name

    kernel = Kernel(
        start={(s, 0): p for s, p in inner.exact.start.items()},
        actions=inner.actions,
        observations=(names.context(0),),  # c_0 is seen at the start, and perhaps never again
        step=step,
        reward=lambda state, action: base.reward(state[0], action),
        label=label,
        discount=inner.exact.discount,
        name=f"{inner.name}/{phi.name}" if inner.name else phi.name,
        cost=inner.cost,
        ended=lambda state: state[0] in over,
    )
    model = tabulate(kernel, horizon=criterion.horizon, max_states=max_states)
    number = {name: c for c, name in enumerate(model.observations)}
    of_memory = [number.get(names.context(c), -1) for c in fold.shown]
    known = [places.get(name, (-1, -1)) for name in model.states]
    shown = np.array([of_memory[x] if x >= 0 else -1 for _, x in known])
    named = {names.context(c): context for c, context in enumerate(fold.contexts)}
    contexts = tuple(named[name] for name in model.observations if name in named)
    return Induced(task, inner, model, phi, criterion, contexts, shown, np.array([s for s, _ in known]))


class _Names:
    """Unique names of the contexts of a folded map and of the memories that show them."""

    def __init__(self, folded: NumberedMap) -> None:
        self._folded = folded
        self._contexts: list[str] = []
        self._taken: dict[str, int] = {}

    def context(self, c: int) -> str:
        """Its text; different contexts that read alike get a number each."""
        while len(self._contexts) <= c:
            text = self._folded.contexts[len(self._contexts)].text
            seen = self._taken[text] = self._taken.get(text, 0) + 1
            self._contexts.append(text if seen == 1 else f"{text}~{seen}")
        return self._contexts[c]

    def memory(self, x: int) -> str:
        """The name of its context, with `~m` and its number where another memory showed that before."""
        c = self._folded.shown[x]
        return self.context(c) if self._folded.first[c] == x else f"{self.context(c)}~m{x}"
