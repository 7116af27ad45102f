"""Formal against running: differences by hand, no step that differs, predictions before the run, stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import langgraph_agreement as study
from experiments import langgraph_agreement_running as running
from experiments import style
from experiments.study import StudyError, grid
from experiments.tables import check_frame, read_tables, to_latex

RESULTS = Path(__file__).resolve().parents[2] / "results" / "langgraph_agreement" / "tables"
TINY = study.Parameters(episodes=3, calibration=100, seconds=1.0)
SHOWN = ("flip:3", "repo_repair", "desk")


def rows_of(cell: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    return [{**cell, "seed": seed, "applied": None, **row} for row in study.run(cell, seed).rows]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    cells = [cell for cell in grid(study, TINY) if cell["task"] in SHOWN]  # type: ignore[arg-type]
    return pd.DataFrame([row for cell in cells for seed in (0, 1) for row in rows_of(cell, seed)])


def test_the_running_side_is_the_paired_difference_of_the_same_episodes(frame: pd.DataFrame) -> None:
    rows = study.differences(frame[frame["task"] == "repo_repair"], "repo_repair")
    arms = {
        name: running.arm("repo_repair", name).run(range(6)).returns for name in (study.CLOSED, study.OPEN)
    }
    apart = [arms[study.CLOSED][n] - arms[study.OPEN][n] for n in range(6)]
    assert rows[0]["quantity"] == "V_f" and rows[0]["episodes"] == 6
    assert rows[0]["run"] == pytest.approx(np.mean(apart))
    assert (
        rows[0]["exact"] == pytest.approx(0.65) and rows[0]["formal_lower"] <= 0.65 <= rows[0]["formal_upper"]
    )


def test_no_step_differs_from_the_simulator(frame: pd.DataFrame) -> None:
    main = study.analyse(frame)["returns"]
    assert main["differences"].sum() == 0 and main["steps"].min() > 0


def test_returns_are_those_of_the_simulator() -> None:
    arm = running.arm("flip:3", study.OPEN)
    assert list(arm.run(range(4)).returns.values()) == pytest.approx(list(arm.simulated(range(4))))


def test_agreement_is_the_interval_of_the_spread() -> None:
    row = {"run": 1.0, "exact": 1.19, "run_error": 0.1}
    assert study.agrees(row, 0.95) and not study.agrees(row, 0.90)
    assert not study.agrees({**row, "run_error": 0.0}, 0.95)
    assert study.agrees({"run": 2.0, "exact": 2.0, "run_error": 0.0}, 0.95)


def test_the_desk_is_predicted_and_then_run(frame: pd.DataFrame) -> None:
    sets = study.analyse(frame)["guard_sets"]
    assert set(sets["measure"]) == set(study.MEASURES) and set(sets["set"]) == {0, 1}
    held = (sets["lower"] <= sets["run"] + 1e-12) & (sets["run"] <= sets["upper"] + 1e-12)
    assert (held.astype(int) == sets["covered"]).all()
    pooled = study.analyse(frame)["guard"].set_index("measure")
    assert pooled.loc["uar", "seeds"] == 2 and pooled.loc["uar", "items"] == 180


def test_parameters_are_checked() -> None:
    with pytest.raises(StudyError, match="give 1 or more"):
        study.Parameters(episodes=0)


@pytest.mark.parametrize("width", style.WIDTHS)
def test_tables_print_and_the_figure_is_drawn_from_them(frame: pd.DataFrame, width: float) -> None:
    frames = study.analyse(frame)
    for table in study.TABLES:
        assert to_latex(table, check_frame(table, frames[table.name]))
    with style.styled():
        figure = study.figure(frames, width)
    assert len(figure.axes) == 5
    assert "predictions" in study.headline(frames)


def test_the_stored_predictions_held_in_at_least_seventeen_of_twenty_sets() -> None:
    """The issue's line on the formal twin."""
    frames = read_tables(study.TABLES, RESULTS)
    guard = frames["guard"].set_index("measure")
    assert (guard["seeds"] == 20).all() and (guard["covered"] >= 17).all()
    assert frames["returns"]["differences"].sum() == 0
