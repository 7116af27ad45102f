"""Commitment: changing tasks by hand, values against direct cases, runs against exact values, tables and figures."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import commitment as study
from experiments import style
from experiments.commitment_running import Planner, run_plans
from experiments.commitment_tables import NAMED
from experiments.commitment_tasks import NAMES, changing, follow, task
from experiments.served_task import ServedTask, episode
from experiments.study import StudyError, grid
from experiments.tables import check_frame
from harnesses.constructors.commitment import commit, planned
from harnesses.context.window import Full
from pomdp.bounds import solve
from pomdp.criterion import Criterion
from pomdp.library import task as library_task
from pomdp.value import evaluate

SMALL = study.Parameters(
    tasks=("follow", "tmaze:4"), rates=("0", "1/10", "1/2"), run_rates=("1/10",), short_rates=("0",), windows=(1, 3),
    episodes=40,
)  # fmt: skip


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = [
        {**cell, "seed": 0, "applied": None, **row}
        for cell in grid(study, SMALL)  # type: ignore[arg-type]
        for row in study.run(cell, 0).rows
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def frames(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return study.analyse(frame)


@pytest.mark.parametrize("name", NAMES)
def test_a_still_task_is_the_task_and_a_change_moves_what_is_hidden(name: str) -> None:
    still = task(name, Fraction(0))
    if ":" in name or name in ("tiger", "drift"):
        assert still.digest == library_task(name).model.digest
    moved = task(name, Fraction(1, 4))
    assert all(np.allclose(T.sum(axis=1), 1.0) for T in moved.T)
    assert any((T - U).nnz for T, U in zip(still.T, moved.T, strict=True))
    assert all((Z - U).nnz == 0 for Z, U in zip(still.Z, moved.Z, strict=True))


def test_a_change_comes_after_the_step_and_before_what_is_seen() -> None:
    """follow at rate r: T(other | side) = r, and the side reached is what is seen."""
    model = task("follow", Fraction(1, 4))
    assert [[model.T[a][s, t] for t in (0, 1)] for a, s in ((0, 0), (1, 1))] == [[0.75, 0.25], [0.25, 0.75]]
    assert model.Z[0][0, 0] == 0.9
    half = changing(follow(), Fraction(1), {"left": {"left": Fraction(1, 2), "right": Fraction(1, 2)}})
    assert half.T[0][0, 1] == 0.5 and half.T[0][1, 1] == 1.0


def test_values_of_follow_in_closed_form(frame: pd.DataFrame) -> None:
    """Never again deciding: the side is still the first one with chance (1 + (1 - 2r)^t) / 2 at step t."""
    part = frame[(frame["part"] == "value") & (frame["task"] == "follow") & (frame["level"] == 0)]
    for rate in SMALL.rates:
        r = float(Fraction(rate))
        row = part[(part["rate"] == rate) & (part["k"] == 6) & ~part["named"]].iloc[0]
        expected = sum((1 + (1 - 2 * r) ** t) / 2 for t in range(6))
        assert row["J_lower"] - 1e-9 <= expected <= row["J_upper"] + 1e-9
        assert row["decisions"] == 1
    every = part[(part["rate"] == "1/2") & (part["k"] == 1)].iloc[0]
    assert every["J_lower"] - 1e-9 <= 1 + 5 * 0.9 <= every["J_upper"] + 1e-9


def test_a_price_is_paid_once_for_each_decision(frame: pd.DataFrame) -> None:
    """Where runs do not end the decisions are ceil(n / k); in the maze they are those of the controller found."""
    part = frame[(frame["part"] == "value") & ~frame["named"]]
    for _, group in part.groupby(["task", "rate", "k"]):
        free, low = (group[group["level"] == level].iloc[0] for level in (0, 1))
        if free["task"] == "follow":
            assert free["decisions"] == low["decisions"] == -(-6 // free["k"])
        loss = (free["J_lower"] + free["J_upper"] - low["J_lower"] - low["J_upper"]) / 2
        assert low["price"] * low["decisions"] - 1e-3 <= loss <= low["price"] * free["decisions"] + 1e-3


def test_an_early_end_of_the_plan_is_worth_a_decision_at_every_step_in_the_maze(frame: pd.DataFrame) -> None:
    part = frame[(frame["part"] == "value") & (frame["task"] == "tmaze:4") & (frame["level"] == 0)]
    for rate in SMALL.rates:
        rows = part[part["rate"] == rate]
        named, every = rows[rows["named"]].iloc[0], rows[rows["k"] == 1].iloc[0]
        assert abs(named["J_lower"] - every["J_lower"]) < 1e-3
        if rate == "0":
            assert named["decisions"] == pytest.approx(2.0)


def test_a_plan_is_memory_where_the_context_is_short(frames: dict[str, pd.DataFrame]) -> None:
    """The cue, seen at step 1, is in the last 3 pairs at step 3 and not at the junction, step 4."""
    part = frames["short_contexts"].set_index(["window", "rule"])
    assert part.loc[(1, "1"), "Vo_upper"] < 1e-6 and part.loc[(1, NAMED), "Vo_lower"] > 1 - 1e-6
    assert part.loc[(3, "1"), "Vo_upper"] < 1e-6 and part.loc[(3, "3"), "Vo_lower"] > 1 - 1e-6


def test_runs_keep_the_plan_and_earn_what_was_computed(frame: pd.DataFrame) -> None:
    runs = frame[frame["part"] == "running"]
    for row in runs.itertuples():
        if row.task == "follow":
            assert row.replies == -(-6 // row.k) and row.replies_se == 0
        assert abs(row.earned - row.J) <= 4.5 * row.earned_se + 1e-9


@pytest.mark.parametrize(("name", "k"), [("follow", 2), ("tmaze:4", 3), ("random-2", 2)])
def test_one_run_step_by_step(name: str, k: int) -> None:
    """Every k calls come from one reply, and what they earn is what the controller earns on these observations."""
    model, horizon = task(name, Fraction(1, 4)), study.HORIZONS[name]
    made = commit(model, k)
    solved = solve(made, Criterion(Fraction(1), horizon), gap=1e-4)
    served = ServedTask(model)
    planner = Planner(made, solved.controller, k, horizon, served.names, planned(model))
    for number in range(20):
        done = episode(served, planner, Full(horizon), horizon, 5, number)
        replies = [message.calls for message in done.run.history if message.role == "assistant"]
        assert [len(calls) for calls in replies] == [k] * (horizon // k) + [horizon % k] * (horizon % k > 0)
        assert done.replies == len(replies) and set(done.statuses) == {"ok"}
        node, seen = solved.controller.start, []
        for t, call in enumerate(done.run.calls):
            act = int(np.argmax(solved.controller.act[node]))
            assert model.actions[act] == served.names[call.name]
            seen.append(done.run.results[call.id].content)
            shown = planned(model)
            if (t + 1) % k == 0:
                shown, seen = "&".join(seen), []
            if t + 1 < horizon:
                node = int(solved.controller.successor[node, act, made.observation_index(shown)])


def test_the_served_world_has_the_chances_of_the_task() -> None:
    """Always saying left in follow at rate 1/4: the earned mean is the exact one, within 4.5 standard errors."""
    model, criterion = task("follow", Fraction(1, 4)), Criterion(Fraction(1), 6)
    made = commit(model.blinded(), 6)
    solved = solve(made, criterion, gap=1e-6)
    earned, replies = run_plans(model, made, solved.controller, 6, 6, 400, 3)
    assert set(replies) == {1.0}
    J = evaluate(made, solved.controller, criterion)
    assert abs(earned.mean() - J) <= 4.5 * earned.std(ddof=1) / 20


def test_the_best_length_is_the_longest_of_the_best(frames: dict[str, pd.DataFrame]) -> None:
    best = frames["best_plan"].set_index(["task", "rate"])
    assert best.loc[("follow", 0.0), "best_none"] == 6 and best.loc[("follow", 0.5), "best_none"] == 1
    assert best.loc[("T-maze", 0.0), "best_none"] == 4 and best.loc[("T-maze", 0.5), "best_none"] == 5
    values = frames["committed_values"]
    for _, part in values.groupby(["task", "rate", "level"]):
        assert part["best"].sum() == 1 and part[part["best"] == 1]["rule"].iloc[0] != NAMED
        rows = part[part["rule"] != NAMED]
        assert rows[rows["best"] == 1]["J_upper"].iloc[0] >= rows["J_lower"].max() - 1e-3


@pytest.mark.parametrize(
    "given",
    [{"tasks": ("chess",)}, {"rates": ("0", "1/2")}, {"prices": ("1/50",)}, {"episodes": 1}],
)
def test_impossible_parameters_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        study.Parameters(**given)


def test_unknown_tasks_and_rates_are_refused() -> None:
    with pytest.raises(StudyError, match="no task 'chess'"):
        task("chess", Fraction(0))
    with pytest.raises(StudyError, match="rate of change 3/2"):
        task("follow", Fraction(3, 2))


def test_tables_and_figures_are_complete(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        check_frame(table, frames[table.name])
    assert "predicted sign +" in study.headline(frames)
    for width in style.WIDTHS:
        with style.styled():
            assert style.render(study.figure(frames, width), "png", {})
