"""Hypothesis strategies for constructors, harnesses, context maps and specs; imports hypothesis and harnesses.

Paste this into a test and replace the property by one of your own:

    >>> from hypothesis import given, settings, strategies as st
    >>> from harnesses.context import Sizes
    >>> from harnesses.testing import harnesses
    >>> from pomdp.criterion import Criterion
    >>> from pomdp.testing import pomdps
    >>> @settings(max_examples=10)
    ... @given(st.data())
    ... def test_a_context_shows_no_more_than_the_criterion_counts(data):
    ...     task = data.draw(pomdps(max_states=2, max_actions=2, max_observations=2))
    ...     induced = data.draw(harnesses(task)).induce(task, Criterion(1, 2), Sizes())
    ...     assert induced.num_contexts >= 1
    >>> test_a_context_shows_no_more_than_the_criterion_counts()

All that is drawn fits the model it is drawn for: names exist, also behind the constructors inside, and maps bind.
Names with characters that have a meaning in the texts of constructors and maps are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from harnesses.constructors.catalogue import Part, parse_part
from harnesses.context import parse_map
from harnesses.harness import OUTER, Harness
from pomdp.library import task as library_task
from pomdp.model import POMDP, ModelError

PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
PROBABILITIES = ("0", "1/4", "1/3", "1/2", "1")
CHARGES = ("0", "1/2", "2")
SPEC_TASKS = ("tiger", "flip:3", "tmaze:3")
KINDS = ("tools", "control", "loop")


def context_maps(model: POMDP, *, max_wrappers: int = 3) -> st.SearchStrategy[str]:
    """The canonical name of a map that binds to the model, with up to `max_wrappers` wrappers around a leaf."""
    wrappers = st.lists(_wrappers(model), max_size=max_wrappers)
    return st.builds(lambda leaf, around: parse_map([leaf, *around]).name, _leaves(model), wrappers)


@st.composite
def parts(draw: st.DrawFn, model: POMDP, *, part: str | None = None) -> Part:
    """A constructor that applies to the model: of tools, control or loop, or of the one asked for.

    Without `retry`, which needs its timeout inside (`harnesses` draws it), and without `guard`, whose reports are
    the subject of harnesses.guard.testing.
    """
    if part is not None and part not in KINDS:
        raise ValueError(f"part {part!r} is none of {', '.join(KINDS)}")
    made = {"tools": _tools, "control": _controls, "loop": _loops}
    kinds = KINDS if part is None else (part,)
    return parse_part(draw(st.one_of(*(choice for kind in kinds for choice in made[kind](model)))))


@st.composite
def harnesses(draw: st.DrawFn, task: POMDP, *, max_parts: int = 3, max_wrappers: int = 1) -> Harness:
    """A harness that fits the task: up to `max_parts` constructors, innermost first, and a context map.

    A `timeout` is followed by a `retry` of its action now and then, where that is idempotent. Without parts and
    wrappers it is the bare task under a map without wrappers.
    """
    chosen: list[Part] = []
    model, rank = task, 0
    for _ in range(draw(st.integers(0, max_parts))):
        found = draw(parts(model))
        # The canonical nesting: what was drawn too late, or would stand outside a limit of steps twice, is left out.
        if found.rank <= rank or any(part.name in OUTER for part in chosen):
            continue
        chosen, rank = [*chosen, found], found.rank
        if found.name == "timeout" and draw(st.booleans()):
            action = found.text.split(":")[1]
            again = [*chosen, parse_part(f"retry:{action}:{draw(st.integers(1, 2))}")]
            chosen = again if _fits(again, task) else chosen
        model = _assembled(chosen, "null").inner(task)
    return _assembled(chosen, draw(context_maps(model, max_wrappers=max_wrappers)))


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """A document that `parse_spec` reads: a library task, a horizon, the texts of a harness, and a model."""
    name = draw(st.sampled_from(SPEC_TASKS))
    harness = draw(harnesses(library_task(name).model, max_parts=2))
    lists = {kind: [part.text for part in getattr(harness, kind)] for kind in KINDS}
    return {
        "task": f"library:{name}",
        "horizon": draw(st.integers(1, 4)),
        "context": harness.context.name,
        "model": draw(st.sampled_from(["optimal", "bayes", "bayes:0.5", "random"])),
        **{kind: texts for kind, texts in lists.items() if texts},
    }


def _assembled(chosen: Sequence[Part], context: str) -> Harness:
    tools, control, loop = (tuple(part for part in chosen if part.part == kind) for kind in KINDS)
    return Harness(tools, control, loop, parse_map(context))


def _fits(chosen: Sequence[Part], task: POMDP) -> bool:
    """Whether the constructors apply: a retry refuses an action that is not idempotent, and tells nobody before."""
    try:
        _assembled(chosen, "null").inner(task)
    except ModelError:
        return False
    return True


def _leaves(model: POMDP) -> st.SearchStrategy[str]:
    """Names of maps that wrap no other, all windows, budgets, statistics and grids among them."""
    fixed = ["null", "summary:count", "summary:count:2", "summary:pairs", "summary:latest", "summary:first:2"]
    fixed += ["summary:count:error=1/3", "belief_grid:3", "belief_grid:1:predict"]
    budgets = st.tuples(st.integers(0, 150), st.sampled_from(["whole", "partial"]), st.integers(0, 3))
    return st.one_of(
        st.integers(0, 4).map("last:{}".format),
        st.integers(0, 7).map("last_messages:{}".format),
        st.integers(1, 6).map("full:{}".format),
        budgets.map(lambda found: "oldest_first:{}:{}:{}".format(*found)),
        st.sampled_from(fixed),
        _patterns(model).map("summary:parity:{}".format),
    )


def _wrappers(model: POMDP) -> st.SearchStrategy[str]:
    """Names of maps that wrap another, without it."""
    patterns = _patterns(model)
    registers = st.builds("{}>{}".format, patterns, patterns)
    fixed = [
        "counter",
        "counter:2",
        "compose:results",
        "compose:calls",
        "compose:unordered",
        "held:1",
        "held:3",
    ]
    seen = _plain(model.observations)
    renames = st.lists(st.sampled_from(seen), min_size=1, max_size=2, unique=True) if seen else st.nothing()
    return st.one_of(
        st.sampled_from(fixed),
        # Both to one name, which the model may have or not.
        st.builds(_rename, renames, st.sampled_from(["w", *seen])),
        st.lists(patterns, min_size=1, max_size=2, unique=True).map(lambda found: f"pin:{','.join(found)}"),
        st.lists(registers, min_size=1, max_size=2, unique=True).map(
            lambda found: f"retrieve:{','.join(found)}"
        ),
    )


def _rename(old: Sequence[str], new: str) -> str:
    return "compose:rename:" + ",".join(f"{name}>{new}" for name in old)


def _patterns(model: POMDP) -> st.SearchStrategy[str]:
    """Patterns action/result of a model, with stars."""
    actions, results = (["*", *_plain(names)] for names in (model.actions, model.observations))
    return st.builds("{}/{}".format, st.sampled_from(actions), st.sampled_from(results))


def _tools(model: POMDP) -> list[st.SearchStrategy[Any]]:
    """Tools: fewer actions, two in one, fewer results, noisy results, a note pad."""
    actions, results = _plain(model.actions), _plain(model.observations)
    found: list[st.SearchStrategy[Any]] = [st.sampled_from(["a", "a,b"]).map("scratchpad:{}".format)]
    if actions:
        some = st.lists(st.sampled_from(actions), min_size=1, unique=True)
        found.append(some.map(lambda names: f"select:{','.join(names)}"))
    if len(actions) > 1:
        pairs = st.lists(st.sampled_from(actions), min_size=2, max_size=2, unique=True)
        found.append(pairs.map(lambda names: f"merge:either={'|'.join(names)}"))
    if actions and len(results) == model.num_observations:
        action = st.sampled_from(actions)
        found.append(action.map(lambda name: f"coarsen:{name}>seen={'|'.join(results)}"))
        noise = st.sampled_from(PROBABILITIES[1:-1])
        found.append(st.builds(lambda name, p: _garbled(name, results, p), action, noise))
    return found


def _garbled(action: str, results: Sequence[str], p: str) -> dict[str, Any]:
    """A table of `garble`: each result of the action is lost with probability p."""
    left = {"1/4": "3/4", "1/3": "2/3", "1/2": "1/2"}[p]
    return {"name": "garble", "kernel": {action: {o: {o: left, "lost": p} for o in results}}}


def _controls(model: POMDP) -> list[st.SearchStrategy[Any]]:
    """Control: failures, gates and limits."""
    actions, states = _plain(model.actions), _plain(model.states)
    shares, charges, few = st.sampled_from(PROBABILITIES), st.sampled_from(CHARGES), st.integers(1, 3)
    found: list[st.SearchStrategy[Any]] = [
        few.map("call_budget:{}".format),
        few.map("step_limit:{}".format),
        few.flatmap(lambda warn: st.integers(warn + 1, 5).map(lambda stop: f"stall:{warn}:{stop}")),
    ]
    if actions:
        action = st.sampled_from(actions)
        found.append(st.builds("timeout:{}:{}:{}:{}".format, action, shares, shares, charges))
        found.append(st.builds("deny:{}:{}".format, action, charges))
        if states:
            bad = st.sampled_from(states)
            found.append(
                st.builds("gate:{}:{}:{}:{}:0:{}:{}".format, action, bad, charges, charges, shares, shares)
            )
    return found


def _loops(model: POMDP) -> list[st.SearchStrategy[Any]]:
    """The loop: replies that do not parse, seen or not."""
    seen = st.sampled_from(["hidden", "visible"])
    return [
        st.builds("malformed:{}:{}:{}".format, st.sampled_from(PROBABILITIES), st.sampled_from(CHARGES), seen)
    ]


def _plain(names: Sequence[str]) -> list[str]:
    """The names that mean nothing else in a text."""
    return [name for name in names if PLAIN.fullmatch(name)]
