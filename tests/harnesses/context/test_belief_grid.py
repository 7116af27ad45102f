"""Rounded beliefs against all points of the grid, and the filter against the exact one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import BeliefGrid, ContextMap, Sizes, fold
from harnesses.context.belief_grid import on_grid
from pomdp.belief import exact_history
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import distributions, histories, pomdps


def kept(phi: ContextMap, model: POMDP, pairs) -> dict[int, Fraction]:
    """The belief kept after a history of indices."""
    memory = phi.start()
    for a, o in pairs:
        memory, _ = phi.step(memory, Sizes().event(model.actions[a], model.observations[o]))
    return {s: Fraction(n, phi.resolution) for s, n in memory}  # type: ignore[attr-defined]


@given(distributions(3), st.integers(1, 6))
def test_rounding_gives_a_nearest_point_of_the_grid(belief: dict[int, Fraction], resolution: int) -> None:
    rounded = dict(on_grid(belief, resolution))
    assert sum(rounded.values()) == resolution and all(rounded.values())

    def distance(point: dict[int, int]) -> Fraction:
        return sum(
            (abs(belief.get(s, Fraction(0)) * resolution - point.get(s, 0)) for s in range(3)), Fraction(0)
        )

    grid = (dict(enumerate(p)) for p in product(range(resolution + 1), repeat=3) if sum(p) == resolution)
    assert distance(rounded) == min(map(distance, grid))
    assert all(abs(belief[s] * resolution - rounded.get(s, 0)) < 1 for s in belief)


def test_ties_go_to_the_lower_state() -> None:
    half = Fraction(1, 2)
    assert on_grid({1: half, 4: half}, 1) == ((1, 1),)
    assert on_grid({1: half, 4: half}, 3) == ((1, 2), (4, 1))


@given(st.data())
def test_a_fine_grid_keeps_the_exact_belief_nearly(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3))
    history = data.draw(histories(model))
    exact = exact_history(model, history)[0][-1]
    found = kept(BeliefGrid(model, 10**15), model, history)
    assert all(abs(found.get(s, 0) - exact.get(s, 0)) < 1e-9 for s in range(model.num_states))


def test_a_grid_that_holds_every_belief_is_the_exact_filter(enumerate_histories) -> None:
    """T-maze with a sure cue: every belief is a multiple of 1/2, and the note tells all beliefs apart."""
    model = task("tmaze:3:1").model
    phi = BeliefGrid(model, 2)
    notes: dict[str, dict[int, Fraction]] = {}
    for pairs, belief in enumerate_histories(model, 4):
        history = [(model.action_index(a), model.observation_index(o)) for a, o in pairs]
        assert kept(phi, model, history) == belief
        text = fold(phi, [Sizes().event(*pair) for pair in pairs]).messages[0].text
        assert notes.setdefault(text, belief) == belief
    assert len(notes) == len({tuple(belief.items()) for belief in notes.values()})


def ruled_out() -> POMDP:
    """State b has probability 1/4, which a grid of 1 or 2 loses; `bell` is heard in b alone, 'a' moves to c."""
    return POMDP.build(
        states=["a", "b", "c"],
        actions=["listen", "move"],
        observations=["bell", "hush"],
        T=[[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 1, 0], [0, 0, 1]]],
        Z=[[[0, 1], [1, 0], [0, 1]]] * 2,
        R=[[0] * 3] * 2,
        start=["3/4", "1/4", 0],
    )


@pytest.mark.parametrize(
    ("fallback", "resolution", "action", "expected"),
    [
        ("prior", 1, "listen", "belief(a=1)"),
        ("prior", 4, "listen", "belief(b=1)"),  # no fallback: the grid is fine enough
        ("prior", 1, "move", "belief(a=1)"),
        ("uniform", 1, "listen", "belief(a=1)"),
        ("predict", 1, "listen", "belief(a=1)"),
        ("predict", 1, "move", "belief(c=1)"),
    ],
)
def test_the_fallback_replaces_an_update_of_probability_zero(
    fallback: str, resolution: int, action: str, expected: str
) -> None:
    phi = BeliefGrid(ruled_out(), resolution, fallback)
    assert fold(phi, [Sizes().event(action, "bell")]).messages[0].text == expected


def test_the_uniform_fallback_is_over_all_states() -> None:
    model = ruled_out()
    phi = BeliefGrid(model.with_start("a"), 3, "uniform")
    context = fold(phi, [Sizes().event("listen", "bell")])
    assert context.messages[0].text == "belief(a=1/3,b=1/3,c=1/3)"
    assert context.tokens == 12
    assert {(r.kind, r.rule) for r in context.dropped} == {("summarisation", "belief_grid:3:uniform")}


def test_the_prediction_does_not_depend_on_how_many_observations_show_a_state() -> None:
    model = POMDP.build(
        states=["a", "b", "c"],
        actions=1,
        observations=["hush", "rain", "bell"],
        T=[[["1/2", 0, "1/2"], [0, 1, 0], [0, 0, 1]]],
        Z=[[["1/2", "1/2", 0], [0, 0, 1], [1, 0, 0]]],
        R=[[0] * 3],
        start="a",
    )
    context = fold(BeliefGrid(model, 4, "predict"), [Sizes().event("0", "bell")])
    assert context.text == "belief(a=1/2,c=1/2)"


def test_a_grid_without_steps_and_an_unknown_fallback_are_refused() -> None:
    with pytest.raises(
        ModelError, match="belief_grid needs a resolution from 1, such as belief_grid:4; got 0"
    ):
        BeliefGrid(ruled_out(), 0)
    with pytest.raises(
        ModelError, match="belief_grid has no fallback 'guess'; known: prior, uniform, predict"
    ):
        BeliefGrid(ruled_out(), 2, "guess")
    with pytest.raises(ModelError, match="no observation 'knock'"):
        fold(BeliefGrid(ruled_out(), 2), [Sizes().event("listen", "knock")])
