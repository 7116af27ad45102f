"""Harness patterns: rows against direct runs, pooled means and agreement by hand, tables, figure, stored results."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import harness_patterns as study
from experiments import style
from experiments.study import StudyError, grid
from experiments.tables import check_frame, read_tables, to_latex
from harnesses.desk.patterns.formal import PATTERNS, PRICE, twin
from harnesses.desk.patterns.runs import run_episodes

RESULTS = Path(__file__).resolve().parents[2] / "results" / "harness_patterns"
TINY = study.Parameters(episodes=4, errors=("0", "1/5"))
SHOWN = ("chain", "evaluator_blind", "tool_use")


def rows_of(cell: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    return [{**cell, "seed": seed, "applied": None, **row} for row in study.run(cell, seed).rows]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    cells = [cell for cell in grid(study, TINY) if cell["pattern"] in SHOWN]  # type: ignore[arg-type]
    return pd.DataFrame([row for cell in cells for seed in (0, 1) for row in rows_of(cell, seed)])


def test_rows_are_the_runs_and_the_exact_values(frame: pd.DataFrame) -> None:
    part = frame[frame["pattern"] == "tool_use"]
    exact, found = part[part["part"] == "exact"].iloc[0], twin("tool_use").measures(Fraction(1, 20))
    assert (exact["solved"], exact["tokens"]) == (found.solved, found.tokens)
    assert (exact["J_lower"], exact["J_upper"]) == (found.J.lower, found.J.upper)
    curve = part[part["part"] == "curve"].set_index("curve_error")
    assert curve.loc["1/5", "J_lower"] == twin("tool_use").returned(Fraction(1, 5)).lower
    runs = part[part["part"] == "run"].set_index("seed")
    episodes = run_episodes("tool_use", 1, range(4), error=Fraction(1, 20))
    assert runs.loc[1, "tokens_sum"] == sum(e.tokens for e in episodes)
    assert runs.loc[1, "J_squares"] == pytest.approx(sum(e.worth(PRICE) ** 2 for e in episodes))


def test_means_are_pooled_over_seeds(frame: pd.DataFrame) -> None:
    part = frame[frame["pattern"] == "tool_use"]
    row = study.pooled(part, 0.95)
    tokens = [e.tokens for s in (0, 1) for e in run_episodes("tool_use", s, range(4), error=Fraction(1, 20))]
    assert row["episodes"] == 8 and row["tokens_run"] == pytest.approx(np.mean(tokens))
    assert row["tokens_error"] == pytest.approx(np.std(tokens, ddof=1) / math.sqrt(8))


def test_agreement_counts_the_intervals_that_hold_the_exact_value(frame: pd.DataFrame) -> None:
    part = frame[frame["pattern"] == "tool_use"].copy()
    assert study.pooled(part, 1 - 1e-6)["agree"] == 4
    far = part.assign(tokens=part["tokens"] + 1e6, calls=part["calls"] + 100.0)
    assert study.pooled(far, 0.95)["agree"] == 2
    sure = frame[frame["pattern"] == "chain"]
    assert study.pooled(sure.assign(tokens=530.001), 0.95)["agree"] == study.pooled(sure, 0.95)["agree"] - 1


def test_the_rows_are_M14s_patterns_and_one_that_checks_blindly() -> None:
    assert {study.pattern_of(name) for name in study.CHOOSERS} == set(PATTERNS)
    assert set(study.CHOOSERS) - set(PATTERNS) == {"evaluator_blind"}
    blind = study.rates_of("evaluator_blind")
    assert blind.passes == blind.slips and study.rates_of("chain").passes > study.rates_of("chain").slips


def test_costs_are_those_of_the_published_table(frame: pd.DataFrame) -> None:
    frames = study.analyse(frame)
    costs = frames["pattern_cost"].set_index("pattern")
    main = frames["harness_patterns"].set_index("pattern")
    assert costs.loc["chain", "per_solved"] == pytest.approx(530 / main.loc["chain", "solved"])
    gain = main.loc["tool_use", "solved"] - main.loc["chain", "solved"]
    assert costs.loc["tool_use", "marginal"] == pytest.approx((main.loc["tool_use", "tokens"] - 530) / gain)
    assert math.isnan(costs.loc["chain", "marginal"]) and math.isnan(costs.loc["evaluator_blind", "marginal"])
    arc = frames["arc_agi"].set_index("model").loc["Gemini 3 Pro"]
    shown = (arc["per_solved_alone"], arc["per_solved_harness"], arc["marginal"])
    assert [round(value, 2) for value in shown] == [2.6, 56.61, 129.96]


@pytest.mark.parametrize("given", [{"episodes": 1}, {"errors": ("3/2",)}, {"error": "-1"}])
def test_impossible_parameters_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match="give"):
        study.Parameters(**given)


def test_the_stored_results_are_whole_and_true() -> None:
    frames = read_tables(study.TABLES, RESULTS / "tables")
    main = frames["harness_patterns"].set_index("pattern")
    assert list(main.index) == list(study.CHOOSERS)
    for name in ("chain", "hybrid"):
        found = twin(name).measures(Fraction(study.PRESETS["small"].error))
        assert main.loc[name, "solved"] == pytest.approx(found.solved, abs=1e-9)
        assert main.loc[name, "J_lower"] <= found.J.upper and found.J.lower <= main.loc[name, "J_upper"]
    # Each interval holds with 1 - 0.05 / 36: more than one miss would be no accident.
    assert (main["agree"] >= 3).all() and main["agree"].sum() >= len(study.COUNTED) * len(main) - 1
    assert "predicted sign +" in study.headline(frames)


@pytest.mark.parametrize("width", style.WIDTHS)
def test_tables_and_figure_are_complete(width: float) -> None:
    frames = read_tables(study.TABLES, RESULTS / "tables")
    for table in study.TABLES:
        assert to_latex(table, check_frame(table, frames[table.name])).count(r"\\") > len(frames[table.name])
    with style.styled():
        drawn = study.figure(frames, width)
        drawn.draw_without_rendering()
        costs, errors, scores = [axes for part in drawn.subfigs for axes in part.axes]
        assert len(costs.texts) == len(study.CHOOSERS)
        legend = errors.get_legend()
        assert legend is not None and {text.get_text() for text in legend.texts} == {
            "tool use", "orchestrator", "autonomous", "hybrid",
        }  # fmt: skip
        assert len(scores.get_yticklabels()) == len(frames["arc_agi"])
        box = drawn.get_tightbbox()
        assert box.x0 >= -0.01 and box.x1 <= width + 0.01
        assert style.render(drawn, "png", {})
