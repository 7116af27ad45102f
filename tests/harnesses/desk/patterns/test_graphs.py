"""Graphs: exactly the formal harness over all runs, the same run whatever the threads do, what each node sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from harnesses.desk.patterns import formal, graphs
from harnesses.desk.patterns.formal import NODES, PATTERNS, PRICE, Twin, twin
from harnesses.desk.patterns.request import Competence
from harnesses.desk.patterns.runs import OUTCOMES, run_episode, run_episodes
from harnesses.desk.patterns.world import STEPS, Keyed, World
from pomdp.rng import ACTION

F = Fraction
ZERO, ONE, QUARTER = F(0), F(1), F(1, 4)
# Competences with some outcomes certain keep the number of runs within some hundreds.
FULL = Competence()
VOTING = Competence(found=ONE, astray=ZERO)
JUDGED = Competence(classify=ONE, found=ONE, slips=ZERO)
QUICK = Competence(classify=F(4, 5), found=ONE, astray=ONE, blind=ONE, blind_astray=ZERO, slips=ZERO)
FEW = Competence(
    classify=ONE, found=ONE, blind=ONE, blind_astray=ZERO, grounded=F(3, 4), slips=ZERO, passes=ONE
)
SURE = replace(FEW, grounded=ONE)

Enumerated = Callable[..., dict[str, Fraction]]


def compare(enumerated: Enumerated, pattern: str, rates: Competence, error: Fraction) -> int:
    """Hold every mean of the graph against the formal harness; how many runs the graph has."""
    found = enumerated(pattern, PRICE, rates=rates, error=error)
    exact = Twin(pattern, rates).measures(error)
    assert found["total"] == 1
    assert exact.J.contains(found["J"])
    for name in (*OUTCOMES, "calls", "tokens"):
        assert getattr(exact, name) == pytest.approx(float(found[name]), rel=1e-10, abs=1e-10), name
    return int(found["runs"])


@pytest.mark.parametrize(
    ("pattern", "rates", "error"),
    [
        ("chain", FULL, ZERO),
        ("routing", FULL, ZERO),
        ("parallel", VOTING, ZERO),
        ("evaluator", JUDGED, ZERO),
        ("tool_use", QUICK, ZERO),
        ("orchestrator", QUICK, ZERO),
        ("hybrid", QUICK, ZERO),
        ("autonomous", SURE, ZERO),
    ],
)
def test_a_graph_is_its_formal_harness(
    enumerated: Enumerated, pattern: str, rates: Competence, error: Fraction
) -> None:
    """All runs of the LangGraph graph, weighted exactly: every outcome, calls, tokens and J."""
    assert compare(enumerated, pattern, rates, error) > 1


@pytest.mark.parametrize(
    ("pattern", "rates"), [("tool_use", FULL), ("orchestrator", SURE), ("hybrid", SURE), ("autonomous", FEW)]
)
def test_a_graph_is_its_formal_harness_when_the_model_errs(
    enumerated: Enumerated, pattern: str, rates: Competence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops cut short on both sides, so that all runs with errors can be tried, those that are stopped among them."""
    steps = {"autonomous": 3}.get(pattern, 2)
    short = {name: replace(node, limit=node.limit and steps) for name, node in NODES[pattern].items()}
    monkeypatch.setitem(formal.NODES, pattern, short)
    monkeypatch.setattr(graphs, "AUTONOMOUS" if pattern == "autonomous" else "LOOP", steps)
    assert compare(enumerated, pattern, rates, QUARTER) > 50


def test_both_sides_have_the_same_limits() -> None:
    assert (formal.VOTERS, formal.ROUNDS, formal.LOOP, formal.AUTONOMOUS) == (
        graphs.VOTERS,
        graphs.ROUNDS,
        graphs.LOOP,
        graphs.AUTONOMOUS,
    )
    assert tuple(graphs.GRAPHS) == PATTERNS


@pytest.mark.parametrize("pattern", PATTERNS)
def test_an_episode_is_a_function_of_seed_and_number(pattern: str) -> None:
    """Alone or in a row, in branches that run at once or not: the same."""
    row = run_episodes(pattern, 7, range(12))
    assert [run_episode(pattern, Keyed(7, n)) for n in (11, 3)] == [row[11], row[3]]
    assert row != run_episodes(pattern, 8, range(12))
    assert {episode.outcome for episode in row} <= set(OUTCOMES)


def test_runs_fall_around_the_exact_share() -> None:
    """300 episodes: the exact share within five standard errors, for a loop and for workers side by side."""
    for pattern in ("tool_use", "orchestrator"):
        exact = twin(pattern).measures().solved
        share = sum(e.outcome == "solved" for e in run_episodes(pattern, 40, range(300))) / 300
        assert abs(share - exact) < 5 * (exact * (1 - exact) / 300) ** 0.5


def test_traces_follow_the_drawn_graph() -> None:
    sure = replace(SURE, two=ONE, split=ONE)
    path = ("classify", "retrieve", "draft")
    expected = {
        "chain": (*path, "submit"),
        "routing": ("split", *path, "submit", *path, "submit"),
        "parallel": (*path * 3, "submit"),
        "evaluator": (*(*path, "check") * 3, "escalate"),
        "tool_use": (*path, "submit"),
        "orchestrator": ("split", *path * 2, "submit"),
        "autonomous": ("split", *(*path, "check", "submit") * 2),
        "hybrid": ("split", *(*path, "check", "submit") * 2),
    }
    for pattern, trace in expected.items():
        rates = replace(sure, grounded_two=ZERO)
        assert run_episode(pattern, Keyed(0, 0), rates, error=ZERO).trace == trace, pattern


def test_a_worker_sees_only_what_it_is_given() -> None:
    """Two workers on two questions cost twice one worker: neither reads the other's steps nor the coordinator's."""
    one = replace(SURE, two=ZERO)
    two = replace(SURE, two=ONE, split=ONE)
    costs = [run_episode("orchestrator", Keyed(0, 0), rates, error=ZERO).tokens for rates in (one, two)]
    split = 190
    assert costs[1] - split == 2 * (costs[0] - split)
    loop = run_episode("autonomous", Keyed(0, 0), two, error=ZERO)
    assert loop.tokens > 2 * costs[1]


def test_a_failed_worker_is_a_gap_and_a_gap_goes_to_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one step a loop cannot draft: a failure never comes back as an empty success."""
    monkeypatch.setattr(graphs, "LOOP", 1)
    for rates in (replace(SURE, two=ZERO), replace(SURE, two=ONE, split=ONE)):
        assert run_episode("orchestrator", Keyed(0, 0), rates, error=ZERO).outcome == "handed"
    assert run_episode("tool_use", Keyed(0, 0), SURE, error=ZERO).outcome == "unfinished"


def test_a_slot_has_an_end_of_draws() -> None:
    world = World(Keyed(0, 0))
    for _ in range(STEPS):
        world.draw(ACTION, 1, {"x": ONE})
    with pytest.raises(ValueError, match="64 draws"):
        world.draw(ACTION, 1, {"x": ONE})
    with pytest.raises(ValueError, match="sums to 0"):
        Keyed(0, 0).pick(ACTION, 0, {})


def test_an_unknown_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="known: chain"):
        graphs.graph("swarm")
