"""Hidden failures: histories with failures shown, rewritten by hand, are the histories of the model that hides them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.constructors import coarsen, difference, malformed, timeout
from harnesses.constructors.base import Base
from harnesses.constructors.hidden import hide, usual
from pomdp.bounds import solve
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

models = pomdps(max_states=3, min_actions=2, max_actions=2, max_observations=3)
ways = st.sampled_from(["blank", "stale"])
P, EFFECT = Fraction(1, 3), Fraction(1, 2)


def rewritten(
    history: tuple[tuple[str, str], ...], blanks: dict[str, str], stale: bool
) -> tuple[tuple[str, str], ...]:
    """What a harness shows that hides failures, given what happened."""
    newest, found = dict(blanks), []
    for action, observation in history:
        if observation in ("timeout", "error"):
            observation = newest[action]
        elif stale:
            newest[action] = observation
        found.append((action, observation))
    return tuple(found)


def merged(process: Any, blanks: dict[str, str], stale: bool) -> dict[Any, Any]:
    """A process whose histories are rewritten: chances and expected rewards of those that read alike are added."""
    found: dict[Any, Any] = {}
    for history, (chance, rewards) in process.items():
        key = rewritten(history, blanks, stale)
        before, earned = found.get(key, (Fraction(0), {}))
        found[key] = before + chance, {a: earned.get(a, Fraction(0)) + r for a, r in rewards}
    return {key: (chance, tuple(sorted(earned.items()))) for key, (chance, earned) in found.items()}


@settings(max_examples=40)
@given(models, ways, st.booleans())
def test_it_is_a_function_of_what_would_have_been_shown(
    oracle: Any, model: POMDP, way: str, timed: bool
) -> None:
    failing = timeout(model, "*", P, EFFECT, 1) if timed else malformed(model, P, 1)
    if not {"timeout", "error"} & set(failing.observations):
        return  # a run that is over at the start never fails
    over = oracle.absorbing(model)
    rules = oracle.rules(model)
    blanks = {}
    for action in model.actions:
        seen = {o for s in range(model.num_states) if s not in over for _, o, _ in rules.step(s, action)}
        blanks[action] = next((o for o in model.observations if o in seen), model.observations[0])
    expected = merged(oracle.process(failing, 3), blanks, way == "stale")
    found = oracle.process(hide(failing, way, shows=blanks), 3)
    assert {h: v for h, v in found.items() if v[0]} == {h: v for h, v in expected.items() if v[0]}


@pytest.mark.parametrize("name", ["tiger", "tmaze:2:0.9", "flip:2", "repo_repair"])
def test_blank_failures_are_the_hidden_and_the_coarsened_ones(name: str) -> None:
    model = task(name).model
    names = tuple("import-error" if o == "error" else o for o in model.observations)
    model = replace(model, observations=names)  # its own error is no failure
    assert difference(hide(malformed(model, P)), malformed(model, P, visible=False)) is None
    timed = timeout(model, "*", P, EFFECT)
    rows = {action: {"timeout": usual(Base(model), a, ())} for a, action in enumerate(model.actions)}
    assert difference(hide(timed), coarsen(timed, rows)) is None


@pytest.mark.parametrize("name", ["tiger", "tmaze:2:0.9"])
@pytest.mark.parametrize("way", ["blank", "stale"])
def test_hiding_never_raises_the_best_value(name: str, way: str) -> None:
    failing, criterion = timeout(task(name).model, "*", P, EFFECT), Criterion(Fraction(1), 4)
    shown = solve(failing, criterion, gap=1e-6).interval
    hidden = solve(hide(failing, way), criterion, gap=1e-6).interval
    assert hidden.lower <= shown.upper
    assert name != "tiger" or hidden.upper < shown.lower


def test_a_stale_result_is_the_newest_of_the_same_action() -> None:
    """One listen that works, one that fails: the second shows the first's result, never the other side's."""
    tiger = task("tiger:1").model
    made = hide(malformed(tiger, Fraction(1, 2)), "stale")
    assert not any("error" in name for name in made.observations)
    sure = [history for history in _reached(made) if [a for a, _ in history] == ["listen", "listen"]]
    assert {tuple(o for _, o in history) for history in sure} >= {("tiger-right", "tiger-right")}
    # Nothing was heard before: a failure then shows the blank, and the truth may follow.
    assert ("tiger-right", "tiger-left") not in {tuple(o for _, o in history) for history in sure}


def _reached(model: POMDP) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """All histories of two pairs that can happen."""
    base = Base(model)
    found: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for s in base.kernel.start:
        for a, first in enumerate(model.actions):
            for t, o, p in base.kernel.step(s, a):
                for b, second in enumerate(model.actions):
                    found += [((first, o), (second, u)) for _, u, q in base.kernel.step(t, b) if p and q]
    return found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"way": "silent"}, "no way 'silent'"),
        ({"failures": "nothing"}, "no observation matches"),
        ({"shows": {"listen": "roar"}}, "roar"),
    ],
)
def test_impossible_arguments_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        hide(malformed(task("tiger").model, P), **given)
