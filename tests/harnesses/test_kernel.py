"""The reachable part of a kernel: the same process as the kernel itself, by enumeration of histories."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesses.kernel import Kernel, of_model, tabulate
from pomdp.belief import exact_step
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.policy import OpenLoop
from pomdp.testing import distributions, pomdps
from pomdp.value import evaluate

History = tuple[tuple[int, str], ...]


def kernel_measures(kernel: Kernel, length: int) -> Iterator[tuple[History, dict[Any, Fraction]]]:
    """Every history of positive probability with its unnormalised belief, straight from the kernel."""
    level: dict[History, dict[Any, Fraction]] = {(): dict(kernel.start)}
    for _ in range(length):
        yield from level.items()
        following: dict[History, dict[Any, Fraction]] = {}
        for history, measure in level.items():
            for a in range(len(kernel.actions)):
                for s, m in measure.items():
                    for t, o, p in kernel.step(s, a):
                        if p:
                            mass = following.setdefault((*history, (a, o)), {})
                            mass[t] = mass.get(t, Fraction(0)) + m * p
        level = following
    yield from level.items()


def assert_same(kernel: Kernel, model: POMDP, length: int) -> None:
    """Every history has the probability and the expected rewards that the kernel gives it."""
    mass: dict[int, Fraction] = {}
    for history, measure in kernel_measures(kernel, length):
        belief = dict(model.exact.start)
        for a, o in history:
            belief = exact_step(model, belief, a, model.observation_index(o))
        assert sum(belief.values()) == sum(measure.values())
        mass[len(history)] = mass.get(len(history), Fraction(0)) + sum(measure.values())
        for a in range(len(kernel.actions)):
            rewards = model.exact.R.row(a)
            ours = sum((p * rewards.get(s, 0) for s, p in belief.items()), Fraction(0))
            assert ours == sum((p * kernel.reward(s, a) for s, p in measure.items()), Fraction(0))
    assert mass == {t: len(kernel.actions) ** t for t in mass}


def reachable(model: POMDP) -> set[int]:
    """The states that some action sequence reaches."""
    reached, frontier = set(model.exact.start), list(model.exact.start)
    while frontier:
        s = frontier.pop()
        new = {t for T in model.exact.T for t in T.row(s)} - reached
        reached |= new
        frontier += new
    return reached


@st.composite
def joint_kernels(draw: st.DrawFn) -> Kernel:
    """A kernel over pairs (state, observation) that seldom factors."""
    S, A, O = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    rows = {(s, a): draw(distributions(S * O)) for s in range(S) for a in range(A)}
    rewards = {key: Fraction(draw(st.integers(-3, 3))) for key in rows}
    return Kernel(
        start=draw(distributions(S)),
        actions=tuple(f"a{a}" for a in range(A)),
        observations=draw(st.sampled_from([None, ("o1", "o0", "never")])),
        # Every outcome comes in three pieces, which are to be added up.
        step=lambda s, a: [(k // O, f"o{k % O}", p / 3) for _ in range(3) for k, p in rows[s, a].items()],
        reward=lambda s, a: rewards[s, a],
        label=lambda s: f"s{s}",
    )


@given(joint_kernels())
def test_a_joint_kernel_becomes_the_same_process(kernel: Kernel) -> None:
    """Whether or not P(s',o|s,a) factors into T and Z."""
    model = tabulate(kernel)
    assert_same(kernel, model, 3)
    assert reachable(model) == set(range(model.num_states))


@given(pomdps(max_states=4, max_actions=2, max_observations=2))
def test_a_model_keeps_its_reachable_states_by_name(model: POMDP) -> None:
    """And T, R and the start between them, exactly; no observation enters a state."""
    found = tabulate(of_model(model))
    place = [model.state_index(name) for name in found.states]
    assert sorted(place) == sorted(reachable(model))
    assert {place[s]: p for s, p in found.exact.start.items()} == model.exact.start
    for a in range(model.num_actions):
        for i, s in enumerate(place):
            assert {place[j]: p for j, p in found.exact.T[a].row(i).items()} == model.exact.T[a].row(s)
            assert found.exact.R.row(a).get(i, 0) == model.exact.R.row(a).get(s, 0)
            for j in found.exact.T[a].row(i):
                assert found.exact.Z[a].row(j) == model.exact.Z[a].row(place[j])
    assert found.observations == model.observations


@given(joint_kernels(), st.integers(1, 3))
def test_a_horizon_changes_nothing_before_it(kernel: Kernel, horizon: int) -> None:
    """Rewards of the steps that count are those of the whole model, for every action sequence."""
    whole, cut = tabulate(kernel), tabulate(kernel, horizon=horizon)
    criterion = Criterion(Fraction(1), horizon)
    A = len(kernel.actions)
    for k in range(A**horizon):
        plan = OpenLoop(tuple(k // A**t % A for t in range(horizon)), ())
        assert evaluate(cut, plan, criterion) == pytest.approx(evaluate(whole, plan, criterion), abs=1e-12)
    assert cut.num_states <= whole.num_states + 1


def chain(length: int) -> Kernel:
    """0 -> 1 -> ... -> length, one action."""
    return Kernel(
        start={0: Fraction(1)},
        actions=("go",),
        observations=None,
        step=lambda s, a: [(min(s + 1, length), f"at-{min(s + 1, length)}", Fraction(1))],
        reward=lambda s, a: Fraction(s),
        label=lambda s: f"s{s}",
        name="chain",
    )


def test_states_at_the_horizon_are_one_that_is_over() -> None:
    model = tabulate(chain(9), horizon=3)
    assert model.states == ("s0", "s1", "s2", "over")
    assert model.observations == ("at-1", "at-2", "over")
    assert model.exact.R.row(0) == {1: 1, 2: 2}
    assert model.exact.T[0].row(2) == model.exact.T[0].row(3) == {3: 1}
    assert model.exact.Z[0].row(3) == {2: 1}
    assert model.terminal.tolist() == [False, False, False, True]


def test_nothing_is_over_where_the_horizon_reaches_nothing_new() -> None:
    assert "over" not in tabulate(chain(2), horizon=4).states


def test_only_the_states_that_need_it_remember_an_observation() -> None:
    """From a, `go` shows x or y and leads to b either way; from b it shows x: b needs it, a does not."""
    half = Fraction(1, 2)
    kernel = Kernel(
        start={"a": half, "b": half},
        actions=("go", "back"),
        observations=("x", "y"),
        step=lambda s, a: (
            [("a", "x", Fraction(1))]
            if a
            else [("b", "x", half if s == "a" else Fraction(1))] + [("b", "y", half)] * (s == "a")
        ),
        reward=lambda s, a: Fraction(0),
        label=str,
    )
    model = tabulate(kernel)
    assert model.states == ("a", "b", "b/x", "b/y")
    assert_same(kernel, model, 4)


def test_too_many_states_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"chain reaches more than 50 states; shorten the horizon"):
        tabulate(chain(50), max_states=50)
    assert tabulate(chain(49), max_states=50).num_states == 50


def test_two_states_of_one_name_are_refused() -> None:
    kernel = chain(3)
    same = Kernel(kernel.start, kernel.actions, None, kernel.step, kernel.reward, lambda s: "here")
    with pytest.raises(ModelError, match="labelled 'here'; labels must be unique"):
        tabulate(same)


def test_a_row_that_does_not_sum_to_one_is_refused() -> None:
    kernel = chain(3)
    short = Kernel(
        kernel.start,
        kernel.actions,
        None,
        lambda s, a: [(s, "x", Fraction(1, 2))],
        kernel.reward,
        kernel.label,
    )
    with pytest.raises(ModelError, match=r"transition row \[go, s0\] sums to 0.5, not 1"):
        tabulate(short)


@settings(deadline=None)
@given(st.sampled_from(["tiger", "flip:3", "repo_repair", "tmaze:3"]))
def test_rows_are_computed_once_and_numbers_shared(name: str) -> None:
    kernel = of_model(task(name).model)
    assert kernel.step(0, 0) is kernel.step(0, 0)
