"""Hidden failures: a harness that swallows a failure and shows a usual result in its place; imports base.

A failure shown as what nothing else shows is only another name for it. So a hidden one is shown as a result that the
action also gives when it works: a fixed one, or the action's last one. Source: M1 §1.2.2 (every failure becomes an
observation), of which this is the contrary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from harnesses.constructors.base import ERROR, TIMEOUT, Base, chosen
from harnesses.kernel import Outcome
from pomdp.model import POMDP, ModelError

FAILURES = (ERROR, TIMEOUT)
WAYS = ("blank", "stale")
_Seen = tuple[tuple[int, str], ...]
_State = tuple[int, _Seen]


def hide(
    model: POMDP,
    way: str = "blank",
    failures: str | Sequence[str] = FAILURES,
    shows: Mapping[str, str] | None = None,
) -> POMDP:
    """The model whose `failures`, those that it has, are shown as results.

    `blank`: as a fixed one of each action, that of `shows` {action: observation}, by default the first of the model's
    observations that the action shows where it works. `stale`: as the action's newest true result, the blank where it
    has none. Both are functions of the visible history, so that V* never rises. A result of the task's own that has the
    name of a failure would be hidden too: rename it before.
    Raises ModelError for an unknown way, action or observation, and for a pattern that matches nothing.
    """
    if way not in WAYS:
        raise ModelError(f"no way {way!r} to hide a failure; known: {', '.join(WAYS)}")
    base = Base(model)
    patterns = (
        [name for name in FAILURES if name in model.observations]
        if failures is FAILURES
        else ([failures] if isinstance(failures, str) else failures)
    )
    failed = {model.observations[o] for o in chosen(model.observations, patterns, "observation", "+")}
    for action, observation in (shows or {}).items():
        model.action_index(action), model.observation_index(observation)
    blank = [(shows or {}).get(name) or usual(base, a, failed) for a, name in enumerate(model.actions)]

    def step(state: _State, action: int) -> Iterator[Outcome]:
        s, seen = state
        last = dict(seen)
        for t, o, p in base.kernel.step(s, action):
            if o in failed:
                yield (t, seen), last.get(action, blank[action]), p
            elif way == "stale" and t not in base.over and o != blank[action]:
                yield (t, tuple(sorted({**last, action: o}.items()))), o, p
            else:
                yield (t, () if t in base.over else _without(seen, action)), o, p

    def reward(state: _State, action: int) -> Fraction:
        return base.kernel.reward(state[0], action)

    def label(state: _State) -> str:
        s, seen = state
        held = ",".join(f"{model.actions[a]}={o}" for a, o in seen)
        return f"{model.states[s]}/{held}" if held else model.states[s]

    return base.build(
        step,
        reward,
        start={(s, ()): p for s, p in base.kernel.start.items()},
        label=label,
        observations=tuple(o for o in model.observations if o not in failed),
    )


def usual(base: Base, action: int, failed: Sequence[str] | set[str]) -> str:
    """The first observation, in the model's order, that the action shows where it works and the run goes on."""
    model = base.model
    seen = {
        o
        for s in range(model.num_states)
        if s not in base.over
        for _, o, _ in base.kernel.step(s, action)
        if o not in failed
    }
    return next((o for o in model.observations if o in seen), model.observations[0])


def _without(seen: _Seen, action: int) -> _Seen:
    """What is remembered once the action has shown its blank, which needs no memory."""
    return tuple((a, o) for a, o in seen if a != action)
