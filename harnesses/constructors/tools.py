"""Constructors of the tools part and the task distribution: what can be called and what is shown; imports base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from harnesses.constructors.base import (
    ERROR,
    ONE,
    ZERO,
    Base,
    chosen,
    chosen_actions,
    distribution,
    number,
)
from harnesses.kernel import Kernel, Outcome, of_model, tabulate
from pomdp.model import POMDP, ModelError

Rows = Mapping[str, Mapping[str, Any]]


def mixture(parts: Sequence[tuple[POMDP, Any]]) -> POMDP:
    """A task distribution: which model runs is drawn at the start by weight and never shown.

    Weights are positive and are divided by their sum. Raises ModelError where actions, discounts or cost flags
    differ.
    """
    if not parts:
        raise ModelError("a mixture needs at least one (model, weight)")
    first = parts[0][0]
    for model, _ in parts[1:]:
        for what in ("actions", "cost"):
            if getattr(model, what) != getattr(first, what):
                shown = f"{getattr(first, what)} and {getattr(model, what)}"
                raise ModelError(f"the models of a mixture differ in {what}: {shown}; give them the same")
        if model.exact.discount != first.exact.discount:
            shown = f"{first.exact.discount} and {model.exact.discount}"
            raise ModelError(f"the models of a mixture differ in discount: {shown}; use with_discount")
    weights = [number(w, f"mixture weight {i}") for i, (_, w) in enumerate(parts)]
    if min(weights) <= 0:
        raise ModelError(f"mixture weight {min(weights)} is not positive; leave the model out")
    kernels = [of_model(model) for model, _ in parts]
    names = [name for model, _ in parts for name in model.states]
    numbered = len(set(names)) < len(names)

    def step(state: tuple[int, int], action: int) -> Iterator[Outcome]:
        i, s = state
        return (((i, t), o, p) for t, o, p in kernels[i].step(s, action))

    def label(state: tuple[int, int]) -> str:
        name = kernels[state[0]].label(state[1])
        return f"{name}/task-{state[0]}" if numbered else name

    return tabulate(
        Kernel(
            start={
                (i, s): p * w / sum(weights)
                for i, (kernel, w) in enumerate(zip(kernels, weights, strict=True))
                for s, p in kernel.start.items()
            },
            actions=first.actions,
            observations=tuple(dict.fromkeys(o for model, _ in parts for o in model.observations)),
            step=step,
            reward=lambda state, action: kernels[state[0]].reward(state[1], action),
            label=label,
            discount=first.exact.discount,
            name="+".join(dict.fromkeys(model.name or "unnamed" for model, _ in parts)),
            cost=first.cost,
        )
    )


def select(model: POMDP, actions: str | Sequence[str]) -> POMDP:
    """A_H, a subset of A: only the named actions can be called; they keep the model's order."""
    kept = chosen_actions(model, actions)
    base = Base(model)
    return base.build(
        lambda s, a: base.kernel.step(s, kept[a]),
        lambda s, a: base.kernel.reward(s, kept[a]),
        actions=tuple(model.actions[a] for a in kept),
    )


def merge(model: POMDP, groups: Mapping[str, Sequence[str] | Mapping[str, Any]]) -> POMDP:
    """Each group is one exposed call, which does one of its base actions, drawn blindly.

    `groups`: exposed name -> base actions, equally likely, or {base action: probability}. An action in a group is
    no longer exposed by itself; the group stands where its first action stood.
    """
    base = Base(model)
    drawn: dict[str, dict[int, Fraction]] = {}
    for name, group in groups.items():
        if isinstance(group, Mapping):
            row = distribution(group, f"merge[{name}]")
        else:
            row = {action: Fraction(1, len(group)) for action in group}
        if not row:
            raise ModelError(f"merge[{name}] is empty; name the base actions, such as [{model.actions[0]!r}]")
        drawn[name] = {model.action_index(str(a)): p for a, p in row.items()}
    hidden = {a for row in drawn.values() for a in row}
    exposed: list[tuple[str, dict[int, Fraction]]] = []
    for a, action in enumerate(model.actions):
        exposed.extend((name, row) for name, row in drawn.items() if min(row) == a)
        if a not in hidden:
            exposed.append((action, {a: ONE}))

    def step(s: int, a: int) -> Iterator[Outcome]:
        return ((t, o, w * p) for b, w in exposed[a][1].items() for t, o, p in base.kernel.step(s, b))

    return base.build(
        step,
        lambda s, a: sum((w * base.kernel.reward(s, b) for b, w in exposed[a][1].items()), ZERO),
        actions=tuple(name for name, _ in exposed),
    )


def coarsen(model: POMDP, g: Rows) -> POMDP:
    """A deterministic map of the observation: `g` {action pattern: {observation pattern: shown instead}}.

    The first pattern that matches counts; what none matches is shown as it is. Source: M1 §1.4.6 (exit code only).
    """
    rows = {a: {o: {new: ONE} for o, new in row.items()} for a, row in g.items()}
    return _shown(model, rows, "coarsen")


def garble(model: POMDP, kernel: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> POMDP:
    """A stochastic map of the observation: {action pattern: {observation pattern: {shown instead: probability}}}."""
    rows = {
        a: {o: distribution(new, f"garble[{a}][{o}]") for o, new in row.items()} for a, row in kernel.items()
    }
    return _shown(model, rows, "garble")


def _shown(model: POMDP, rows: Mapping[str, Mapping[str, dict[str, Fraction]]], name: str) -> POMDP:
    """The model with each observation drawn anew by the first row that matches action and observation."""
    base = Base(model)
    table: list[dict[str, dict[str, Fraction]]] = [{} for _ in model.actions]
    for pattern, row in rows.items():
        for a in chosen_actions(model, pattern):
            for seen, new in row.items():
                for o in chosen(model.observations, seen, f"observation of {name}", "+"):
                    table[a].setdefault(model.observations[o], new)

    def step(s: int, a: int) -> Iterator[Outcome]:
        for t, o, p in base.kernel.step(s, a):
            for new, q in table[a].get(o, {o: ONE}).items():
                yield t, new, p * q

    image = dict.fromkeys(new for o in model.observations for row in table for new in row.get(o, (o,)))
    return base.build(step, base.kernel.reward, observations=tuple(image))


def scratchpad(model: POMDP, keys: Sequence[str]) -> POMDP:
    """Actions A x writes: `a+write-k` does a and leaves the note k, which every later result shows, `o+note-k`.

    The harness keeps the last note only. The note is a function of the history, so V* stays as it is; what gains is
    a context that drops messages.
    """
    if not keys or len(set(keys)) < len(keys):
        raise ModelError(f"scratchpad keys are {list(keys)}; give distinct names, such as a, b")
    base = Base(model)
    writes = (None, *keys)
    calls = [(a, key) for key in writes for a in range(model.num_actions)]

    def step(state: tuple[int, str | None], action: int) -> Iterator[Outcome]:
        (s, note), (a, key) = state, calls[action]
        now = note if key is None else key
        for t, o, p in base.kernel.step(s, a):
            if t in base.over:
                yield (t, None), o, p
            else:
                yield (t, now), o if now is None else f"{o}+note-{now}", p

    def label(state: tuple[int, str | None]) -> str:
        name = model.states[state[0]]
        return name if state[1] is None else f"{name}/note-{state[1]}"

    return base.build(
        step,
        lambda state, action: base.kernel.reward(state[0], calls[action][0]),
        start={(s, None): p for s, p in base.kernel.start.items()},
        label=label,
        actions=tuple(model.actions[a] + ("" if key is None else f"+write-{key}") for a, key in calls),
    )


def with_unexposed(model: POMDP, actions: Sequence[str]) -> POMDP:
    """The model with further actions that it does not expose: each shows `error`, the state stays, reward 0.

    For a policy that is fixed over a larger set of actions. Apply it inside `call_budget` and the limits, so that
    they count these calls, and outside `timeout` and the guards, which never see them. Names that the model has
    already are left out.
    """
    more = tuple(name for name in dict.fromkeys(actions) if name not in model.actions)
    base, known = Base(model), model.num_actions

    def step(s: int, a: int) -> Sequence[Outcome]:
        return tuple(base.kernel.step(s, a)) if a < known else ((s, ERROR, ONE),)

    return base.build(
        step,
        lambda s, a: base.kernel.reward(s, a) if a < known else ZERO,
        actions=(*model.actions, *more),
    )
