"""Every cell of a pairwise cover takes the same steps in the tabular simulator, the minimal harness and LangGraph."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from harnesses.conformance.cells import CONTROLS, FACTORS, cell, cover, every_cell
from harnesses.conformance.compare import MET, Conformance
from harnesses.conformance.episode import Engine

CELLS = cover()
EPISODES = 50
SQLITE = {CELLS[i * len(CELLS) // 5] for i in range(5)}
# What the episodes of a cell with this control must meet, so that agreement is not for want of events.
MEETS = {
    "plain": (),
    "failures": ("timeout", "malformed"),
    "denied": ("timeout", "denied"),
    "budget": ("malformed", "tool_call_budget"),
    "stall": ("timeout", "malformed", "warning"),
    "total": ("warning",),
    "unknown": ("unknown",),
}


def test_every_pair_of_levels_occurs() -> None:
    for i, j in combinations(range(len(FACTORS)), 2):
        assert {(row[i], row[j]) for row in CELLS} == set(product(FACTORS[i], FACTORS[j]))
    assert len(CELLS) < len(every_cell()) / 5


def test_every_kind_of_event_is_asked_for() -> None:
    assert set(MEETS) == set(CONTROLS)
    assert {name for names in MEETS.values() for name in names} | {"stalled", "step_limit"} == set(MET)


@pytest.mark.parametrize("row", CELLS, ids=" ".join)
def test_no_engine_leaves_the_tabular_simulator(row: tuple[str, str, str]) -> None:
    engines: list[Engine] = ["runtime", "langgraph"]
    found = Conformance.of(cell(*row)).compare(engines + ["sqlite"] * (row in SQLITE), range(EPISODES))
    assert found.differences == 0, found.first and found.first.text
    assert found.steps >= found.episodes * len(found.engines)
    assert all(found.met[name] > 0 for name in MEETS[row[2]]), found.met


def test_runs_stall_and_reach_the_step_limit() -> None:
    found = Conformance.of(cell("tiger", "last:1", "stall")).compare(["runtime"], range(EPISODES))
    assert found.met["stalled"] > 0 and found.met["step_limit"] > 0 and found.differences == 0
