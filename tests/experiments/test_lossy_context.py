"""The study of lossy contexts: closed forms of the library inside its intervals, tables, saturation, figure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import lossy_context as study
from experiments import lossy_context_tables as shown
from experiments import style
from experiments.study import StudyError, grid, shipped_studies
from experiments.tables import check_frame, to_latex, to_text

TINY = study.Parameters(
    questions=(
        study.Question("flip:2", 4, 2, (0, 80), 1, study.FLIP),
        study.Question("tmaze:2", 3, 2, (0, 80), 2, study.TMAZE),
        study.Question("repo_repair:2:2", 4, 1, (400,), 1, ()),
        study.Question("tiger", 3, 2, (0, 80), 2, study.TIGER),
    ),
    accuracies=(),
)


def cell(task: str, horizon: int, name: str, family: str = "last") -> dict[str, Any]:
    return {
        "part": "map", "task": task, "horizon": horizon, "map": name, "family": family, "size": None,
        "gap": 1e-6, "seconds_allowed": 5.0,
    }  # fmt: skip


def row(task: str, horizon: int, name: str, family: str = "last") -> dict[str, Any]:
    (only,) = study.run(cell(task, horizon, name, family), None).rows
    return dict(only)


def holds(found: dict[str, Any], name: str, value: Fraction | int) -> bool:
    lower, upper = (Fraction(found[f"{name}_{end}"]) for end in ("lower", "upper"))
    return lower <= value <= upper and upper - lower <= Fraction(1, 10**5)


@pytest.fixture(scope="module")
def frames() -> dict[str, pd.DataFrame]:
    rows = []
    for one in [*grid(study, TINY), *({**grid_cell(size)} for size in (3, 4))]:
        for found in study.run(one, None).rows:
            rows.append({**one, "seed": None, "applied": None, **found})
    return study.analyse(pd.DataFrame(rows))


def grid_cell(size: int) -> dict[str, Any]:
    return {
        "part": "grid", "task": "tiger:9/10", "horizon": 4, "size": size, "map": f"counter:belief_grid:{size}",
        "gap": 1e-6, "seconds_allowed": 5.0,
    }  # fmt: skip


@pytest.mark.parametrize(("window", "value"), [(1, 0), (2, 0), (3, 1)])
def test_flip_is_worth_nothing_until_the_window_reaches_the_flip(window: int, value: int) -> None:
    found = row("flip:3", 5, f"last:{window}")
    assert holds(found, "Vo", value) and holds(found, "loss", 1 - value)
    assert (found["sufficient"] == "yes") == (window == 3)
    assert found["failure"] == pytest.approx((1 - value) / 2)


@pytest.mark.parametrize(("window", "value"), [(0, 0), (2, 0), (3, 1)])
def test_the_maze_is_worth_nothing_until_the_window_reaches_the_cue(window: int, value: int) -> None:
    found = row("tmaze:3", 4, f"last:{window}")
    assert holds(found, "Vo", value)
    assert found["tokens"] == 40 * window


def test_repository_repair_with_one_pair_is_worth_five_eighths() -> None:
    found = row("repo_repair:2:2", 4, "last:1")
    # The upper end depends on the time that the search has; the lower one is the best deterministic policy.
    assert found["Vo_lower"] == pytest.approx(5 / 8, abs=1e-6) and found["Vo_upper"] <= 17 / 20
    assert holds(row("repo_repair:2:2", 4, "last:2"), "Vo", Fraction(17, 20))


@pytest.mark.parametrize(("window", "value"), [(0, "-4"), (2, "1.72"), (3, "2.42125")])
def test_tiger_with_the_step_number_has_its_exact_values(window: int, value: str) -> None:
    assert holds(row("tiger", 4, f"counter:last:{window}", "counter:last"), "Vo", Fraction(value))


def test_the_written_use_of_a_note_repairs_the_repository_within_a_window_of_one() -> None:
    found = row("repo_repair:2:2", 4, "last:1", "scratchpad")
    assert holds(found, "Vo", Fraction(17, 20)) and found["failure"] == pytest.approx(0.0)
    case = study.case_of(cell("repo_repair:2:2", 4, "last:1"))
    assert study.note_policy(case.induced, "library:repo_repair:2:2") is None


def test_failure_is_that_of_the_random_model_by_hand() -> None:
    """tmaze:2 in 3 steps at random: three `go` or turns; right turn at the end after go, go: 1/27."""
    induced = study.case_of(cell("tmaze:2", 3, "last:1")).induced
    pi = np.full((induced.num_contexts, 3), 1 / 3)
    assert study.failure(induced, pi) == pytest.approx(26 / 27)
    # Tiger resets: a right door with probability 1/3 in each of two steps, and only the first success counts.
    induced = study.case_of(cell("tiger", 2, "last:1")).induced
    pi = np.full((induced.num_contexts, 3), 1 / 3)
    assert study.failure(induced, pi) == pytest.approx(4 / 9)


def test_a_finer_belief_grid_can_be_worse(frames: dict[str, pd.DataFrame]) -> None:
    grids = frames["grids"].set_index("size")
    assert grids.loc[4, "Vo_upper"] < grids.loc[3, "Vo_lower"] - 3.9
    assert "resolution 4 reaches -4 and 3 reaches -0.04" in shown.finer_is_worse(frames["grids"])
    assert shown.finer_is_worse(frames["grids"].iloc[:1]) == ""


def test_every_table_is_whole_and_prints(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        checked = check_frame(table, frames[table.name])
        assert len(checked) and to_text(table, checked) and "toprule" in to_latex(table, checked)


def test_every_share_of_a_frontier_ends_without_loss_and_never_rises(frames: dict[str, pd.DataFrame]) -> None:
    for _, part in frames["frontier"].groupby("task"):
        upper = part.sort_values("contexts")["share_upper"].to_numpy()
        assert (np.diff(upper) <= 1e-9).all() and upper[-1] <= 1e-6


def test_the_best_maps_trade_tokens_for_loss_and_none_is_beaten(frames: dict[str, pd.DataFrame]) -> None:
    maps = frames["lossy_context"]
    for (task, among), part in frames["best_map"].groupby(["task", "among"]):
        assert (part["tokens"].diff().dropna() > 0).all() and (part["share_upper"].diff().dropna() < 0).all()
        every = maps[(maps["task"] == task) & ((among == "all") | maps["family"].isin(shown.MESSAGES))]
        for _, one in every.iterrows():
            affordable = part[part["tokens"] <= one["tokens"]]
            assert affordable["share_upper"].min() <= one["share_upper"] + shown.TOLERANCE


def test_saturation_is_the_first_size_from_which_nothing_changes() -> None:
    def curve(*losses: float) -> pd.Series:
        maps = pd.DataFrame(
            {
                "task": "t", "family": "last", "size": range(len(losses)), "tokens": range(len(losses)),
                "share_lower": losses, "share_upper": losses,
            }
        )  # fmt: skip
        return shown.saturation(maps).iloc[0]

    cliff = curve(1.0, 1.0, 0.0, 0.0)
    assert (cliff["size"], cliff["before"], cliff["falls"], cliff["verdict"]) == (2, 1, 1, "saturated")
    rising = curve(1.0, 0.8, 0.6, 0.4)
    assert (rising["size"], rising["falls"], rising["verdict"]) == (3, 3, "still falling")
    assert curve(0.5, 0.5)["size"] == 0
    # A dip on the way is not yet the end.
    assert curve(1.0, 0.0, 0.5, 0.0)["size"] == 3


def test_the_headline_says_sign_saturation_and_bits(frames: dict[str, pd.DataFrame]) -> None:
    text = study.headline(frames)
    assert "in 4 of 4 tasks" in text and "flip:2 2" in text and "Bits do not order maps" in text


@pytest.mark.parametrize("width", style.WIDTHS)
def test_the_figure_is_drawn_from_tables_alone(frames: dict[str, pd.DataFrame], width: float) -> None:
    with style.styled():
        page = study.figure(frames, width)
        content = style.render(page, "png", {"study": "lossy_context"})
    assert content.startswith(b"\x89PNG") and page.get_size_inches()[0] == width


def test_the_study_is_found_and_a_curve_needs_two_windows() -> None:
    assert "lossy_context" in shipped_studies()
    assert not {"lossy_context_tables", "lossy_context_figure"} & set(shipped_studies())
    with pytest.raises(StudyError, match="windows of flip:3 is 0"):
        study.Parameters(questions=(study.Question("flip:3", 5, 0, (), 1, ()),))
