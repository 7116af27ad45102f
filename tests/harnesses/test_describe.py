"""The specification in numbers: each source of partial observability against enumeration of runs, and its sentences."""

from __future__ import annotations

import math

import pytest

from harnesses.case import Case, Effort
from harnesses.context import Sizes, fold
from harnesses.describe import describe
from harnesses.spec import parse_spec
from pomdp.model import POMDP

STEPS = 2
Runs = dict[tuple[tuple[str, str], ...], dict[int, float]]


def case(**entries: object) -> Case:
    spec = {"task": "library:tiger", "horizon": STEPS, "discount": 1, "context": "last:1", "model": "random"}
    return Case(parse_spec(spec | entries), Effort(seconds=5.0))


def h(weights: list[float]) -> float:
    """Entropy in bits of weights of any sum, times the sum."""
    total = sum(weights)
    return -sum(w * math.log2(w / total) for w in weights if w > 0)


def enumerated(one: Case) -> tuple[float, float, float]:
    """H(s | filter), H(o | s', a) and H(a | c) a step, over all runs of the spec's model."""
    model: POMDP = one.induced.inner
    number = {context: c for c, context in enumerate(one.induced.contexts)}
    level: Runs = {(): {s: float(p) for s, p in model.exact.start.items()}}
    state = tool = act = 0.0
    for _ in range(STEPS):
        following: Runs = {}
        joint: dict[tuple[int, int], dict[int, float]] = {}
        for pairs, measure in level.items():
            state += h(list(measure.values()))
            row = one.pi[number[fold(one.induced.phi, [Sizes().event(*pair) for pair in pairs])]]
            act += sum(measure.values()) * h(list(row))
            for a, share in enumerate(row):
                for s, p in measure.items():
                    for t, q in model.exact.T[a].row(s).items():
                        for o, z in model.exact.Z[a].row(t).items():
                            mass = p * float(share) * float(q) * float(z)
                            seen = joint.setdefault((t, a), {})
                            seen[o] = seen.get(o, 0.0) + mass
                            part = following.setdefault(
                                (*pairs, (model.actions[a], model.observations[o])), {}
                            )
                            part[t] = part.get(t, 0.0) + mass
        tool += sum(h(list(seen.values())) for seen in joint.values())
        level = {pairs: {t: m for t, m in part.items() if m > 0} for pairs, part in following.items()}
        level = {pairs: part for pairs, part in level.items() if part}
    return state / STEPS, tool / STEPS, act / STEPS


@pytest.mark.parametrize(
    "entries",
    [{}, {"context": "null"}, {"tools": ["select:listen"]}, {"model": {"kind": "bayes", "temperature": 20}}],
)
def test_bits_a_step_are_those_of_all_runs(entries: dict[str, object]) -> None:
    one = case(**entries)
    found = {source.kind: source.bits for source in describe(one).sources}
    assert (found["environment"], found["tool"], found["model"]) == pytest.approx(enumerated(one), abs=1e-9)


def test_sources_stand_by_size_and_say_where_most_of_them_is() -> None:
    found = describe(case(tools=["select:listen"]))
    assert [source.bits for source in found.sources] == sorted((s.bits for s in found.sources), reverse=True)
    by_kind = {source.kind: source for source in found.sources}
    # Listening errs with 15/100; one action alone leaves nothing to the model.
    assert by_kind["tool"].bits == pytest.approx(h([0.85, 0.15]))
    assert by_kind["tool"].largest == "listen" and by_kind["model"].bits == 0


def test_the_noise_of_a_tool_does_not_hide_in_states_that_remember_their_result() -> None:
    plain = {s.kind: s.bits for s in describe(case(tools=["select:listen"])).sources}
    timed = {
        s.kind: s.bits
        for s in describe(case(tools=["select:listen"], control=["timeout:listen:1/2"])).sources
    }
    # Half the calls time out: one more bit, and half of the noise.
    assert timed["tool"] == pytest.approx(1 + plain["tool"] / 2)
    # A door that may not open: the result must enter the state, and says nothing of it: 1/2, 1/4, 1/4.
    door = case(
        control=["timeout:open-left:1/2"], model={"kind": "rules", "otherwise": "open-left"}, context="null"
    )
    assert any("/" in name for name in door.induced.inner.states)
    assert {s.kind: s.bits for s in describe(door).sources}["tool"] == pytest.approx(1.5)


def test_what_the_actions_cannot_express_is_named_with_its_cost() -> None:
    found = describe(case(tools=["select:listen,open-left"], horizon=1))
    assert found.coarser is not None and found.coarser.actions == ("open-right",)
    assert found.coarser.cost.contains(0.0)
    assert describe(case()).coarser is None
    merged = describe(case(tools=["merge:open=open-left|open-right"], horizon=2)).coarser
    assert merged is not None and set(merged.actions) == {"open-left", "open-right"}


def test_a_witness_is_shown_where_the_map_confuses_and_none_where_it_does_not() -> None:
    assert describe(case(horizon=3)).json()["confused"] is not None
    whole = describe(case(context="full", horizon=3)).json()
    assert (whole["confused"], whole["sufficient"]) == (None, True)
    assert len(whole["components"]) == 7


def test_components_name_what_the_harness_takes_and_adds() -> None:
    found = {
        c.symbol: c.sentence
        for c in describe(case(tools=["select:listen"], loop=["malformed:1/10"])).components
    }
    assert "open-left" in found["A"] and "error" in found["O"]
    assert "select:listen" in found["S"] and "last:1" in found["Z"]
