"""Tool schema: numbers against direct cases, orders that theorems give, the best size, figures."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from experiments import style
from experiments import tool_schema as study
from experiments.study import StudyError, grid
from experiments.tables import check_frame
from harnesses.case import Case, Effort
from harnesses.spec import parse_spec

MAZE = "library:tmaze:2:0.9"
SMALL = study.Parameters(rates=("1/50", "2/5"), sizes=(0, 120, 300))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = [
        {**cell, "seed": None, "applied": None, **row}
        for cell in grid(study, SMALL)  # type: ignore[arg-type]
        for row in study.run(cell, None).rows
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def frames(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return study.analyse(frame)


def test_a_cell_is_the_case_of_its_spec(frame: pd.DataFrame) -> None:
    row = frame[(frame["task"] == MAZE) & (frame["rate"] == "2/5") & (frame["size"] == 300)].iloc[0]
    spec = parse_spec(
        {
            "task": MAZE,
            "horizon": 5,
            "model": "naive",
            "loop": ["malformed:2/5"],
            "context": "oldest_first:100",
            "tokens": {"results": {"error": 60}},
        }
    )
    case = Case(spec, Effort())
    assert row["J_lower"] <= case.returned <= row["J_upper"]
    assert row["contexts"] == case.induced.num_contexts


def test_the_parts_of_every_loss_sum_to_it(frame: pd.DataFrame) -> None:
    """attribution: the interval sum of the parts contains the total's interval."""
    lower = frame[["loop_lower", "context_lower", "model_lower"]].sum(axis=1)
    upper = frame[["loop_upper", "context_upper", "model_upper"]].sum(axis=1)
    assert (lower <= frame["loss_lower"] + 1e-12).all() and (frame["loss_upper"] <= upper + 1e-12).all()
    assert (frame[["context_lower", "model_lower"]] >= 0).all().all()


def test_a_larger_schema_never_lowers_the_context_loss(frame: pd.DataFrame) -> None:
    """garbling: trimming to a smaller budget is trimming what the larger one shows; p and so V*(M_0) are fixed."""
    part = frame[frame["part"] == "grid"]
    for _, group in part.groupby(["task", "rate"]):
        group = group.sort_values("size")
        for small, large in zip(group.iloc, list(group.iloc)[1:], strict=False):
            assert large["context_upper"] >= small["context_lower"]
            assert large["loop_lower"] <= small["loop_upper"] and small["loop_lower"] <= large["loop_upper"]


def test_more_malformed_calls_cost_the_loop_more(frame: pd.DataFrame) -> None:
    """V*(M_0) falls with p where stopping early and waiting are free (the maze) and here on tiger as well."""
    part = frame[(frame["part"] == "grid") & (frame["size"] == 0)].set_index(["task", "rate"])
    for task in study.TOKENS:
        assert part.loc[(task, "1/50"), "loop_upper"] < part.loc[(task, "2/5"), "loop_lower"]


def test_a_fixed_model_may_gain_from_malformed_calls(frame: pd.DataFrame) -> None:
    """No order of J in p is claimed: on tiger without room for results a free failed call spares a cost."""
    part = frame[(frame["part"] == "grid") & (frame["task"] == "library:tiger") & (frame["size"] == 300)]
    part = part.set_index("rate")
    assert part.loc["2/5", "J_lower"] > part.loc["1/50", "J_upper"]


def test_rates_fall_to_the_floor() -> None:
    for family in study.FAMILIES:
        rates = [study.rate(family, size) for size in range(0, 400, 20)]
        assert rates[0] == Fraction(21, 50) and rates == sorted(rates, reverse=True)
        assert rates[-1] >= study.FLOOR


def test_best_size_has_the_highest_return(frames: dict[str, pd.DataFrame]) -> None:
    for _, part in frames["schema_family"].groupby(["task", "family"]):
        assert part["best"].sum() == 1
        best = part[part["best"] == 1].iloc[0]
        assert best["J_upper"] >= part["J_lower"].max() - study.LEVEL * best["largest"]
        size, gain = study.contrast(part)
        assert size == best["size"] and (gain > 0) == (size == 120)


@pytest.mark.parametrize("given", [{"sizes": (0, 100)}, {"sizes": (0, 100, 500)}, {"sizes": (0, 200, 100)}])
def test_impossible_sizes_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match="sizes are"):
        study.Parameters(**given)


def test_tables_and_figures_are_complete(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        check_frame(table, frames[table.name])
    assert "predicted sign +" in study.headline(frames)
    for width in style.WIDTHS:
        with style.styled():
            assert style.render(study.figure(frames, width), "png", {})
