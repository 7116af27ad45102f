"""Bits of a context map: against sums over all histories with their chances."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.context import Context, ContextMap, Full, Last, LastMessages, Null, Sizes, parse_map
from harnesses.context_bits import Step, bits
from harnesses.lossy import sufficient
from pomdp.belief import exact_measures
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

ONE = Fraction(1)
MAPS: list[ContextMap] = [Null(), Last(1), Last(2), LastMessages(1), Full(4)]
small_models = pomdps(max_states=3, max_actions=2, max_observations=2)


def information(joint: Mapping[tuple[Hashable, Hashable], Fraction]) -> float:
    """I(x;y) by its definition."""
    rows: dict[Hashable, Fraction] = {}
    columns: dict[Hashable, Fraction] = {}
    for (x, y), p in joint.items():
        rows[x] = rows.get(x, Fraction(0)) + p
        columns[y] = columns.get(y, Fraction(0)) + p
    return sum(float(p) * math.log2(p / (rows[x] * columns[y])) for (x, y), p in joint.items() if p)


def by_enumeration(
    model: POMDP, phi: ContextMap, n: int, policy: Callable[[Context], Mapping[str, Fraction]]
) -> list[tuple[float, float, float, float]]:
    """At each decision I(b;c), I(b;h), I(s;c), I(s;h), over histories as (pairs, memory, unnormalised measure)."""
    edge = [((), phi.start(), dict(model.exact.start))]
    found = []
    for _ in range(n):
        joints: list[dict[tuple[Hashable, Hashable], Fraction]] = [{}, {}, {}, {}]
        for pairs, x, measure in edge:
            mass = sum(measure.values())
            belief = tuple((s, p / mass) for s, p in sorted(measure.items()))
            context = phi.show(x)
            entries = [(0, belief, context, mass), (1, belief, pairs, mass)]
            entries += [(k, s, y, p) for s, p in measure.items() for k, y in ((2, context), (3, pairs))]
            for k, left, right, p in entries:
                joints[k][left, right] = joints[k].get((left, right), Fraction(0)) + p
        found.append(tuple(information(joint) for joint in joints))
        edge = [
            ((*pairs, (a, o)), phi.step(x, Sizes().event(action, model.observations[o]))[0], after)
            for pairs, x, measure in edge
            for a, action in enumerate(model.actions)
            if policy(phi.show(x)).get(action, 0)
            for o, after in exact_measures(
                model, {s: p * policy(phi.show(x))[action] for s, p in measure.items()}, a
            ).items()
        ]
    return found


def values(step: Step) -> tuple[float, float, float, float]:
    return (step.belief_context, step.belief_history, step.state_context, step.state_history)


@given(st.data())
def test_every_step_has_the_bits_of_its_definition(data: st.DataObject) -> None:
    model = data.draw(small_models)
    phi = data.draw(st.sampled_from(MAPS))
    found = bits(model, phi, Criterion(ONE, 3))
    uniform = dict.fromkeys(model.actions, Fraction(1, model.num_actions))
    expected = by_enumeration(model, phi, 3, lambda context: uniform)
    for step, numbers in zip(found.steps, expected, strict=True):
        assert values(step) == pytest.approx(numbers, abs=1e-12)
    assert found.mean("belief_context") == pytest.approx(sum(row[0] for row in expected) / 3, abs=1e-12)


@given(st.data())
def test_a_policy_of_contexts_is_followed(data: st.DataObject) -> None:
    model = data.draw(pomdps(max_states=3, min_actions=2, max_actions=2, max_observations=2))
    phi = data.draw(st.sampled_from(MAPS))

    def policy(context: Context) -> dict[str, Fraction]:
        if len(context.messages) % 4 == 2:
            return {model.actions[1]: ONE}
        return {model.actions[0]: Fraction(1, 4), model.actions[1]: Fraction(3, 4)}

    found = bits(model, phi, Criterion(ONE, 3), policy=policy)
    for step, numbers in zip(found.steps, by_enumeration(model, phi, 3, policy), strict=True):
        assert values(step) == pytest.approx(numbers, abs=1e-12)


@given(st.data())
def test_a_context_says_no_more_of_the_belief_than_the_history(data: st.DataObject) -> None:
    """dpi: I(b;c) <= I(b;h) at every step, with equality iff the context determines the belief almost surely."""
    model = data.draw(small_models)
    phi = data.draw(st.sampled_from(MAPS))
    found = bits(model, phi, Criterion(ONE, 4))
    for step in found.steps:
        assert 0.0 <= step.belief_context <= step.belief_history
        assert step.state_context <= step.state_history + 1e-12 <= step.state + 2e-12
        assert step.determined == (step.belief_history - step.belief_context < 1e-12)
    # Under random actions every history has a chance, so almost surely is always.
    assert found.determined == sufficient(model, phi, Criterion(ONE, 4)).sufficient


def test_a_policy_that_avoids_the_confusion_determines_the_belief_almost_surely() -> None:
    """dpi: equality is about what has a chance: one who never flips at random is never confused by its window."""
    model = task("flip:3").model
    criterion = Criterion(ONE, 5)
    assert not bits(model, Last(1), criterion).determined
    waiting = bits(model, Last(1), criterion, policy=lambda context: {"wait": 1.0})
    assert waiting.determined
    assert waiting.mean("belief_context") == pytest.approx(waiting.mean("belief_history"))


def test_a_blind_context_says_nothing_and_flip_loses_the_phase() -> None:
    model = task("flip:2").model
    assert bits(model, Null(), Criterion(ONE, 4)).mean("belief_context") == 0.0
    # At stage 1 the context shows u: one bit; a window of one shows it as well as a full one.
    steps = bits(model, Last(1), Criterion(ONE, 4)).steps
    assert steps[1].belief_context == steps[1].belief_history == 1.0
    assert steps[3].belief_context < steps[3].belief_history


def test_discounted_steps_weigh_less_and_what_is_left_out_is_said() -> None:
    model = task("tiger").model
    found = bits(model, Last(1), Criterion(Fraction(1, 2)), depth=4)
    assert found.weights == pytest.approx([8 / 15, 4 / 15, 2 / 15, 1 / 15])
    assert found.left == 1 / 16
    expected = sum(w * step.state_context for w, step in zip(found.weights, found.steps, strict=True))
    assert found.json()["state_context"] == pytest.approx(expected)
    assert len(bits(model, Last(1), Criterion(Fraction(1, 2))).steps) == 10
    cut = bits(model, Last(1), Criterion(Fraction(19, 20)), max_nodes=60)
    assert 1 < len(cut.steps) < 30 and cut.left > 0.1


def test_a_summary_that_errs_says_less_than_one_that_does_not() -> None:
    model = task("tiger").model
    criterion = Criterion(ONE, 3)
    means = [
        bits(model, parse_map(name).bind(model, 3), criterion).mean("belief_context")
        for name in ("summary:count", "summary:count:error=1/10", "summary:count:error=1/2", "null")
    ]
    assert means == sorted(means, reverse=True)
    assert len(set(means)) == 4


def test_what_cannot_be_is_refused() -> None:
    model = task("tiger").model
    with pytest.raises(ModelError, match=r"probabilities in context - sum to 0.5, not 1; give one such as"):
        bits(model, Null(), Criterion(ONE, 2), policy=lambda context: {"listen": 0.5})
    with pytest.raises(ModelError, match="no action 'lisen'; known: listen"):
        bits(model, Null(), Criterion(ONE, 2), policy=lambda context: {"lisen": 1.0})
    with pytest.raises(ModelError, match="more than 10 pairs"):
        bits(model, Last(2), Criterion(ONE, 4), max_nodes=10)
    with pytest.raises(ModelError, match="depth 0"):
        bits(model, Null(), Criterion(Fraction(1, 2)), depth=0)
