"""The induced POMDP: against histories enumerated in exact rationals, and the order of the parts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesses.constructors.catalogue import Part, parse_part
from harnesses.context import ContextMap, Sizes, branches, fold, parse_map
from harnesses.harness import Harness, Induced, induce
from pomdp.bounds import solve
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.testing import pomdps

ONE, ZERO = Fraction(1), Fraction(0)
MAPS = (
    "null",
    "last:1",
    "last:2",
    "counter:last:1",
    "last_messages:1",
    "summary:count:2",
    "compose:calls:last:1",
)
small_models = pomdps(max_states=3, max_actions=2, max_observations=2)
Sequence = tuple[str, ...]


def harness(tools: list = [], control: list = [], loop: list = [], context: str = "last:1") -> Harness:  # noqa: B006
    """A harness from texts."""
    parts = (tuple(parse_part(text) for text in texts) for texts in (tools, control, loop))
    return Harness(*parts, parse_map(context))


def bound(model: POMDP, context: str, criterion: Criterion) -> Induced:
    phi = parse_map(context).bind(model, criterion.horizon, Sizes())
    return induce(model, model, phi, criterion, Sizes())


def step(
    model: POMDP, measure: dict[int, Fraction], a: int
) -> tuple[Fraction, dict[int, dict[int, Fraction]]]:
    """Expected reward of an action at a measure, and the measure after each observation."""
    reward, after = ZERO, {}
    for s, p in measure.items():
        reward += p * model.exact.R.row(a).get(s, ZERO)
        for t, q in model.exact.T[a].row(s).items():
            for o, z in model.exact.Z[a].row(t).items():
                part = after.setdefault(o, {})
                part[t] = part.get(t, ZERO) + p * q * z
    return reward, after


def by_histories(
    model: POMDP, phi: ContextMap, act: Callable[[object], dict[int, Fraction]], gamma: Fraction, left: int,
    pairs: tuple[tuple[str, str], ...] = (), measure: dict[int, Fraction] | None = None,
) -> Fraction:  # fmt: skip
    """J of a stateless policy: the sum over all histories of their probability and reward."""
    measure = dict(model.exact.start) if measure is None else measure
    if left == 0:
        return ZERO
    context, total = fold(phi, [Sizes().event(*pair) for pair in pairs]), ZERO
    for a, weight in act(context).items():
        reward, after = step(model, measure, a)
        total += weight * reward
        for o, part in after.items():
            following = (*pairs, (model.actions[a], model.observations[o]))
            total += weight * gamma * by_histories(model, phi, act, gamma, left - 1, following, part)
    return total


def by_memories(
    induced: Induced, pi: dict[object, dict[int, Fraction]], left: int, memory: object, measure: dict
) -> Fraction:
    """J where the map draws its memory, by recursion over pairs and memories."""
    if left == 0:
        return ZERO
    model, phi, total = induced.inner, induced.phi, ZERO
    for a, weight in pi.get(phi.show(memory), {0: ONE}).items():
        reward, after = step(model, measure, a)
        total += weight * reward
        for o, part in after.items():
            for y, q in branches(phi, memory, Sizes().event(model.actions[a], model.observations[o])):
                total += weight * q * by_memories(induced, pi, left - 1, y, part)
    return total


def on_induced(induced: Induced, pi: list[dict[int, Fraction]], steps: int) -> Fraction:
    """J of `pi` by context number, forward on M_H in exact rationals."""
    model, gamma = induced.model, induced.criterion.discount
    measure, total, weight = dict(model.exact.start), ZERO, ONE
    for _ in range(steps):
        after: dict[int, Fraction] = {}
        for s, p in measure.items():
            for a, w in pi[max(int(induced.shown[s]), 0)].items():
                total += weight * p * w * model.exact.R.row(a).get(s, ZERO)
                for t, q in model.exact.T[a].row(s).items():
                    after[t] = after.get(t, ZERO) + p * w * q
        measure, weight = after, weight * gamma
    return total


def policy(data: st.DataObject, induced: Induced) -> list[dict[int, Fraction]]:
    """A stateless policy with small weights, some of them zero."""
    A, rows = induced.model.num_actions, []
    for _ in range(induced.num_contexts):
        weights = [data.draw(st.integers(0, 2)) for _ in range(A)]
        weights[0] += not any(weights)
        rows.append({a: Fraction(w, sum(weights)) for a, w in enumerate(weights) if w})
    return rows


@given(data=st.data())
def test_return_on_the_induced_model_is_the_expected_return_over_histories(data: st.DataObject) -> None:
    """adequacy: J on M_H, a sum over histories of M_0, and the float evaluation are one number."""
    model, n = data.draw(small_models), data.draw(st.integers(1, 3))
    gamma = data.draw(st.sampled_from([ONE, Fraction(1, 2)]))
    induced = bound(model, data.draw(st.sampled_from(MAPS)), Criterion(gamma, n))
    pi = policy(data, induced)
    number = {context: c for c, context in enumerate(induced.contexts)}
    # Contexts of runs that are over are in no row; nothing is earned there, whatever is done.
    expected = by_histories(model, induced.phi, lambda c: pi[number.get(c, 0)], gamma, n)
    assert on_induced(induced, pi, n) == expected
    rows = np.array([[float(row.get(a, 0)) for a in range(model.num_actions)] for row in pi])
    found = induced.evaluate(rows)
    assert found == pytest.approx(float(expected), abs=1e-9)
    assert induced.around(found).contains(expected)


@given(data=st.data())
def test_a_summary_that_errs_is_drawn_with_its_probability(data: st.DataObject) -> None:
    model = data.draw(small_models)
    induced = bound(model, "summary:count:2:error=1/4", Criterion(ONE, 3))
    pi = policy(data, induced)
    by_context = dict(zip(induced.contexts, pi, strict=True))
    expected = by_memories(induced, by_context, 3, induced.phi.start(), dict(model.exact.start))
    assert on_induced(induced, pi, 3) == expected


@given(data=st.data())
def test_without_a_horizon_the_return_is_the_limit_of_those_with_one(data: st.DataObject) -> None:
    model = data.draw(small_models)
    induced = bound(
        model, data.draw(st.sampled_from(("null", "last:1", "last:2"))), Criterion(Fraction(1, 2))
    )
    pi = policy(data, induced)
    rows = np.array([[float(row.get(a, 0)) for a in range(model.num_actions)] for row in pi])
    far = on_induced(induced, pi, 20)
    assert induced.evaluate(rows) == pytest.approx(float(far), abs=10 * 2 * 0.5**20 + 1e-9)
    assert induced.model.exact.discount == model.exact.discount


def worthless(model: POMDP) -> set[int]:
    """States from which no reward can ever be reached."""
    found = set(range(model.num_states))
    while True:
        kept = {
            s
            for s in found
            if all(
                not model.exact.R.row(a).get(s, ZERO) and set(model.exact.T[a].row(s)) <= found
                for a in range(model.num_actions)
            )
        }
        if kept == found:
            return found
        found = kept


def laws(model: POMDP, plan: tuple[int, ...], show: Callable[[Sequence], str], dead: set[int]) -> dict:
    """Mass of each sequence of what was shown under a plan, runs in `dead` states left out."""
    level = {(): dict(model.exact.start)}
    masses: dict[tuple[str, ...], Fraction] = {}
    histories: dict[Sequence, tuple[str, ...]] = {(): (show(()),)}
    for a in plan:
        following: dict[Sequence, dict[int, Fraction]] = {}
        for pairs, measure in level.items():
            for o, part in step(model, measure, a)[1].items():
                alive = {s: p for s, p in part.items() if s not in dead}
                if alive:
                    longer = (*pairs, f"{a}>{o}")
                    histories[longer] = (*histories[pairs], show(longer))
                    following[longer] = alive
        level = following
    for pairs, measure in level.items():
        key = histories[pairs]
        masses[key] = masses.get(key, ZERO) + sum(measure.values())
    return masses


@given(data=st.data())
def test_contexts_come_with_the_probabilities_that_histories_give_them(data: st.DataObject) -> None:
    """M_H is exact: for every plan the joint law of all contexts is that of the folded histories of M_0."""
    model = data.draw(small_models)
    induced = bound(model, data.draw(st.sampled_from(MAPS)), Criterion(ONE, 3))
    names = dict(zip(induced.contexts, induced.model.observations, strict=False))

    def folded(pairs: Sequence) -> str:
        found = [tuple(map(int, pair.split(">"))) for pair in pairs]
        events = [Sizes().event(model.actions[a], model.observations[o]) for a, o in found]
        return names.get(fold(induced.phi, events), "unknown")

    def shown(pairs: Sequence) -> str:
        return induced.model.observations[int(pairs[-1].split(">")[1]) if pairs else 0]

    dead = worthless(model)
    over = {s for s in range(induced.model.num_states) if induced.shown[s] < 0 or induced.origin[s] in dead}
    for plan in itertools.product(range(model.num_actions), repeat=2):
        assert laws(induced.model, plan, shown, over) == laws(model, plan, folded, dead)


@given(data=st.data())
def test_each_state_shows_its_context_and_keeps_its_state_of_the_task(data: st.DataObject) -> None:
    model = data.draw(small_models)
    induced = bound(model, data.draw(st.sampled_from(MAPS)), Criterion(ONE, 3))
    assert induced.contexts[0] == induced.phi.show(induced.phi.start())
    assert len(set(induced.contexts)) == induced.num_contexts
    assert induced.model.num_observations - induced.num_contexts in (0, 1)
    for a, Z in enumerate(induced.model.exact.Z):
        for s in range(induced.model.num_states):
            for s2 in induced.model.exact.T[a].row(s):
                if induced.shown[s2] >= 0:
                    assert Z.row(s2) == {int(induced.shown[s2]): ONE}
            if induced.shown[s] >= 0:
                assert induced.model.exact.R.row(a).get(s, ZERO) == model.exact.R.row(a).get(
                    int(induced.origin[s]), ZERO
                )


@given(data=st.data())
def test_a_window_that_shows_each_result_has_the_optimum_of_the_task(data: st.DataObject) -> None:
    """The horizon cut and the joining of ended runs change no optimum: V*(last(1)) on M_H is V*(M_0)."""
    model = data.draw(small_models)
    criterion = Criterion(ONE, 3)
    inner, outer = (
        solve(m, criterion, gap=1e-9, time_limit=5.0, certify=False).interval
        for m in (model, bound(model, "last:1", criterion).model)
    )
    assert inner.lower == pytest.approx(outer.lower, abs=1e-6)
    assert inner.upper == pytest.approx(outer.upper, abs=1e-6)


def test_the_loop_stands_inside_the_first_part_that_counts_every_iteration() -> None:
    found = harness(
        ["select:listen"],
        ["timeout:listen:1/10", "call-budget:9", "stall:3-4", "step_limit:6"],
        ["malformed:1/10"],
    )
    names = [part.name for part in found.parts()]
    assert names == ["select", "timeout", "call_budget", "malformed", "stall", "step_limit"]
    assert [p.name for p in harness(control=["timeout:listen:1/10"], loop=["malformed:1/5"]).parts()] == [
        "timeout",
        "malformed",
    ]
    assert found.json()["control"] == ["timeout:listen:1/10", "call_budget:9", "stall:3:4", "step_limit:6"]


def test_a_reply_that_does_not_parse_counts_for_the_step_limit_and_not_for_the_budget() -> None:
    tiger = task("tiger").model
    counted = harness(control=["step_limit:1"], loop=["malformed:1/2"]).inner(tiger)
    budget = harness(control=["call_budget:1"], loop=["malformed:1/2"]).inner(tiger)
    # After one reply: the limit is reached for sure, the budget only where the call was made.
    assert reward_of_second_call(counted, "listen") == 0
    assert reward_of_second_call(budget, "listen") == Fraction(1, 2) * Fraction(-1, 2)


def reward_of_second_call(model: POMDP, name: str) -> Fraction:
    a = model.action_index(name)
    measure: dict[int, Fraction] = {}
    for part in step(model, dict(model.exact.start), a)[1].values():
        for s, p in part.items():
            measure[s] = measure.get(s, ZERO) + p
    return step(model, measure, a)[0]


def test_an_action_that_is_not_exposed_yields_an_error_and_changes_nothing() -> None:
    tiger = task("tiger").model
    inner = harness(["select:listen"]).inner(tiger, tiger.actions)
    assert set(inner.actions) == set(tiger.actions)
    a = inner.action_index("open-left")
    reward, after = step(inner, dict(inner.exact.start), a)
    assert reward == 0
    assert [inner.observations[o] for o in after] == ["error"]
    (part,) = after.values()
    without = {inner.states[s].partition("/")[0]: p for s, p in part.items()}
    assert without == {tiger.states[s]: p for s, p in tiger.exact.start.items()}
    # Limits count it: after one wrong call the only call of the budget is spent.
    limited = harness(["select:listen"], ["call_budget:1"]).inner(tiger, tiger.actions)
    b = limited.action_index("open-left")
    spent = {
        s: p for part in step(limited, dict(limited.exact.start), b)[1].values() for s, p in part.items()
    }
    assert step(limited, spent, limited.action_index("listen"))[0] == 0


@pytest.mark.parametrize(("text", "wrong"), [("deny:listen", "tools"), ("malformed:1/2", "control")])
def test_a_constructor_in_the_wrong_part_is_refused(text: str, wrong: str) -> None:
    part: Part = parse_part(text)
    with pytest.raises(ModelError, match=f"{part.name} is a constructor of {part.part}, not of {wrong}"):
        Harness(
            **{name: (part,) if name == wrong else () for name in ("tools", "control", "loop")},
            context=parse_map("null"),
        )  # type: ignore[arg-type]


def test_a_policy_that_does_not_fit_is_refused_by_name() -> None:
    induced = bound(task("tiger").model, "last:1", Criterion(ONE, 2))
    with pytest.raises(ModelError, match="shape"):
        induced.evaluate(np.ones((1, 1)))
    pi = np.full((induced.num_contexts, 3), 1 / 3)
    pi[1] = [0.5, 0.5, 0.5]
    with pytest.raises(ModelError, match=induced.contexts[1].text):
        induced.evaluate(pi)
    with pytest.raises(ModelError, match="horizon"):
        bound(task("tiger").model, "counter:last:1", Criterion(Fraction(1, 2)))


WITNESSES = {
    "A_H": (harness(["select:run-tests,read-file,finish"]), harness()),
    "T_H": (harness(control=["step_limit:1"]), harness()),
    "Z_phi": (harness(context="null"), harness(context="last:1")),
}


@pytest.mark.parametrize("which", WITNESSES)
def test_one_model_earns_different_returns_in_two_harnesses(which: str) -> None:
    """M1-T1.4.2: a task, one fixed stateless model and two harnesses that differ in A_H, T_H or Z_phi alone."""
    model = task("repo_repair").model
    rules = {"-": "run-tests"}
    returns = []
    for one in WITNESSES[which]:
        induced = one.induce(model, Criterion(ONE, 4), Sizes(), model.actions)
        patch = induced.model.action_index(next(a for a in model.actions if a.startswith("patch")))
        pi = np.zeros((induced.num_contexts, induced.model.num_actions))
        for c, context in enumerate(induced.contexts):
            if context.text in rules:
                pi[c, induced.model.action_index(rules[context.text])] = 1.0
            elif "patch" in context.text:
                pi[c, induced.model.action_index("finish")] = 1.0
            else:
                pi[c, patch] = 1.0
        returns.append(induced.evaluate(pi))
    assert abs(returns[0] - returns[1]) > 1e-3
