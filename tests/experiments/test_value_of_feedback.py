"""The first study: exact zeros where theory says so, closed forms inside its intervals, tables and figure."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import style
from experiments import value_of_feedback as study
from experiments.study import Skipped, grid
from experiments.tables import check_frame, read_table, to_latex, to_text
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.library import task
from pomdp.model import POMDP

RESULTS = Path(__file__).resolve().parents[2] / "results" / "value_of_feedback"
SMALL = study.PRESETS["small"]


def accuracy_cell(name: str, accuracy: Fraction) -> dict[str, Any]:
    return {"part": "accuracy", "task": name, "accuracy": str(accuracy), "gap": 1e-6, "seconds_allowed": 10.0}


def run(cell: dict[str, Any]) -> dict[str, Any]:
    (row,) = study.run(cell, None).rows
    return dict(row)


def contains(row: dict[str, Any], name: str, value: Fraction) -> bool:
    return Fraction(row[f"{name}_lower"]) <= value <= Fraction(row[f"{name}_upper"])


@pytest.mark.parametrize("name", study.CHANCE)
def test_value_of_feedback_is_exactly_zero_where_observations_say_nothing(name: str) -> None:
    row = run(accuracy_cell(name, study.CHANCE[name]))
    assert (row["V_f_lower"], row["V_f_upper"], row["proof"]) == (0.0, 0.0, "M1-E1.8")
    assert (row["price_lower"], row["price_upper"], row["informative"]) == (0.0, 0.0, 0.0)
    assert row["V_star_lower"] <= row["W_upper"] and row["W_lower"] <= row["V_star_upper"]


@pytest.mark.parametrize("name", study.CHANCE)
def test_no_exact_zero_is_claimed_just_above_chance(name: str) -> None:
    model, criterion = study.with_accuracy(name, study.CHANCE[name] + Fraction(1, 1000))
    assert not study.silent(model, criterion)


@pytest.mark.parametrize("name", ["tmaze", "ticket_routing", "tiger", "repo_repair"])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1)])
def test_closed_forms_lie_in_the_intervals(name: str, share: Fraction) -> None:
    accuracy = study.CHANCE[name] + (1 - study.CHANCE[name]) * share
    row = run(accuracy_cell(name, accuracy))
    known = {
        "tmaze": task(f"tmaze:4:{accuracy}"),
        "ticket_routing": task(f"ticket_routing:{accuracy}"),
        "tiger": task(f"tiger:{accuracy}"),
        "repo_repair": task("repo_repair"),
    }[name]
    criterion = known.criterion()
    W, V_star = known.open_loop(criterion), known.optimal(criterion)
    if name == "repo_repair" and share != 1:
        V_star = None
    assert W is not None and contains(row, "W", W)
    if V_star is None:
        assert row["V_f_lower"] > 0
    else:
        assert contains(row, "V_star", V_star) and contains(row, "V_f", V_star - W)
    assert row["V_f_upper"] - row["V_f_lower"] <= 3e-6 * row["largest"]


def test_an_observation_of_what_is_known_already_says_nothing() -> None:
    """The corridor shows the step, which the actions determine; the cue at chance shows nothing."""
    silent_maze = task("tmaze:3:1/2")
    assert study.silent(silent_maze.model, silent_maze.criterion())
    moving = task("drift")
    assert study.silent(moving.model, Criterion(Fraction(1), 6))


def test_an_observation_counts_only_within_the_horizon() -> None:
    late = task("flip:3")
    assert not study.silent(late.model, late.criterion())
    model = POMDP.build(
        states=["start", "a", "b"],
        actions=["go"],
        observations=["x", "y"],
        T=[[{1: "1/2", 2: "1/2"}, {1: 1}, {2: 1}]],
        Z=[[{0: 1}, {0: 1}, {1: 1}]],
        R=[[0, 0, 1]],
        start={0: 1},
    )
    assert not study.silent(model, Criterion(Fraction(1), 1))
    blind = model.blinded()
    assert study.silent(blind, Criterion(Fraction(1), 5))


def test_more_beliefs_than_the_limit_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = task("tmaze:4:1/2")
    assert study.silent(known.model, known.criterion())
    monkeypatch.setattr(study, "MAX_BELIEFS", 2)
    assert not study.silent(known.model, known.criterion())


@pytest.mark.parametrize("chance", [Fraction(0), Fraction(1, 3), Fraction(1)])
def test_garbling_mixes_with_the_uniform_observation(chance: Fraction) -> None:
    base = task("repo_repair").model
    mixed = study.garbled(base, chance)
    for action in range(base.num_actions):
        for before, after in zip(base.exact.Z[action].rows(), mixed.exact.Z[action].rows()):
            for o in range(base.num_observations):
                assert after.get(o, 0) == (1 - chance) * before.get(o, 0) + chance / base.num_observations
    assert (mixed.digest == base.digest) == (chance == 0)


@pytest.mark.parametrize("accuracy", [Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_accuracy_is_the_probability_of_the_true_observation(accuracy: Fraction) -> None:
    true = task("repo_repair").model.exact.Z[0]
    mixed = study.with_accuracy("repo_repair", accuracy)[0].exact.Z[0]
    for before, after in zip(true.rows(), mixed.rows()):
        (shown,) = before
        assert after[shown] == accuracy
    labels = study.with_accuracy("ticket_routing", accuracy)[0].exact.Z[0]
    assert labels.row(3)[3] == accuracy


@given(st.floats(0, 10, allow_subnormal=False), st.floats(0, 5), st.floats(0.01, 1000, allow_subnormal=False))
def test_the_price_encloses_every_quotient(lower: float, width: float, steps: float) -> None:
    V_f = Interval(lower, lower + width)
    price = study.price_of_a_step(V_f, steps)
    for value in (Fraction(V_f.lower), Fraction(V_f.upper)):
        for error in (-Fraction(1, 10**9), Fraction(0), Fraction(1, 10**9)):
            assert price.contains(value / (Fraction(steps) * (1 + error)))
    assert price.width <= (width + 4e-9 * (abs(lower) + width)) / steps + 1e-12


def test_absent_files_are_skipped_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HPOMDP_BENCHMARKS", str(tmp_path))
    with pytest.raises(Skipped, match="HPOMDP_BENCHMARKS"):
        study.named("tiger.95.pomdp", 10)


def test_files_without_a_discount_below_one_get_the_horizon(benchmarks: Path) -> None:
    for name, horizon in (("tiger.95.pomdp", None), ("ejs4.POMDP", 10), ("ejs1.POMDP", 10)):
        assert study.named(name, 10)[1].horizon == horizon
    assert {path.name for path in benchmarks.glob("*.[pP][oO][mM][dD][pP]")} - set(study.FILES) == {
        # The same models as tiger.95 and term3, written another way.
        "tiger.numeric.pomdp",
        "term3_strict.pomdp",
    }


def test_a_file_gives_the_value_that_is_known(benchmarks: Path) -> None:
    cell = {
        "part": "model",
        "model": "tiger.95.pomdp",
        "horizon_allowed": 10,
        "gap": 1e-8,
        "seconds_allowed": 10.0,
    }
    row = run(cell)
    assert contains(row, "W", Fraction(-20))
    assert row["V_f_lower"] <= 39.3713684 and 39.3713683 <= row["V_f_upper"]
    assert row["steps"] == pytest.approx(20.0)
    assert row["price_lower"] <= 39.3713684 / 20 and 39.3713683 / 20 <= row["price_upper"]
    assert row["largest"] == pytest.approx(110 * 20)


def synthetic(files: bool = True) -> pd.DataFrame:
    """Rows as the runner gives them, with numbers made up; every tenth has a wide interval."""
    rows: list[dict[str, Any]] = []
    for place, cell in enumerate(grid(study, SMALL)):
        if not files and cell.get("model", "library:").startswith("library:") is False:
            continue
        width = 0.5 if place % 10 == 0 else 1e-4
        if cell["part"] == "accuracy":
            chance = study.CHANCE[cell["task"]]
            informative = float((Fraction(cell["accuracy"]) - chance) / (1 - chance))
            value, extra = 3.0 * informative**2, {"informative": informative}
            width = 0.0 if informative == 0 else width
        else:
            value = 2.0 ** -(place % 23)
            extra = {"discount": 0.95, "horizon": None if place % 3 else 10}
        ends = {}
        for name, middle in (("V_star", value), ("W", 0.0), ("V_f", value), ("price", value / 4)):
            ends |= {f"{name}_lower": max(0.0, middle - width), f"{name}_upper": middle + width}
        rows.append(
            {**cell, "seed": None, "applied": None, **ends, "steps": 4.0, "largest": 8.0, "proof": "solver",
             "seconds": 0.1, **extra}
        )  # fmt: skip
    return pd.DataFrame(rows)


def test_tables_have_every_cell_once_and_print() -> None:
    frames = study.analyse(synthetic())
    assert len(frames["value_of_feedback"]) == len(study.FILES) + len(study.LIBRARY)
    assert len(frames["accuracy"]) == SMALL.points * len(study.CHANCE)
    for table in study.TABLES:
        frame = check_frame(table, frames[table.name])
        assert len(to_text(table, frame).splitlines()) == len(frame) + 2
        assert to_latex(table, frame).count(r"\\") == len(frame) + 1
    middle = frames["value_of_feedback"].eval("(V_f_lower + V_f_upper) / largest")
    assert middle.is_monotonic_decreasing


def test_the_headline_counts_what_is_certain() -> None:
    text = study.headline(study.analyse(synthetic()))
    assert "in 4 of 4 tasks (predicted sign +) and is exactly 0 at the first end in 4." in text
    assert f"Of {len(study.FILES)} models by other authors" in text
    alone = study.headline(study.analyse(synthetic(files=False)))
    assert alone.endswith("No model by other authors was at hand.")


@pytest.mark.parametrize("width", style.WIDTHS)
@pytest.mark.parametrize("files", [True, False])
def test_the_figure_shows_every_task_and_model_inside_its_page(width: float, files: bool) -> None:
    with style.styled():
        drawn = study.figure(study.analyse(synthetic(files)), width)
        drawn.draw_without_rendering()
        left, right = drawn.axes
        assert len(left.get_lines()) == len(study.CHANCE) and len(left.collections) == len(study.CHANCE)
        names = [label.get_text() for label in right.get_yticklabels()]
        if not files:
            assert right.texts[0].get_text() == "no benchmark files"
            return
        assert len(names) == len(study.FILES) and "hallway" in names
        box = drawn.get_tightbbox()
        assert box.x0 >= -0.01 and box.x1 <= width + 0.01 and box.y0 >= -0.01
        boxes = [label.get_window_extent() for label in right.get_yticklabels()]
        boxes.sort(key=lambda item: item.y0)
        # Neighbouring labels may touch but not cover each other.
        assert all(low.y0 + 0.6 * low.height < high.y0 for low, high in zip(boxes, boxes[1:]))


def test_the_committed_results_are_whole_and_true() -> None:
    models, curve = (read_table(table, RESULTS / "tables") for table in study.TABLES)
    assert set(models["model"]) == {*study.FILES, *(f"library:{name}" for name in study.LIBRARY)}
    assert len(curve) == SMALL.points * len(study.CHANCE)
    for frame in (models, curve):
        assert (frame["V_star_upper"] >= frame["W_lower"]).all() and (frame["V_f_upper"] >= 0).all()
        assert (frame["V_f_lower"] >= 0).all()
    tiger = models.set_index("model").loc["tiger.95.pomdp"]
    assert tiger["V_f_lower"] <= 39.3713684 and 39.3713683 <= tiger["V_f_upper"]
    for name, part in curve.groupby("task"):
        part = part.sort_values("informative")
        assert (part["V_f_lower"].iloc[0], part["V_f_upper"].iloc[0]) == (0.0, 0.0), name
        # A less accurate observation is a garbling of a more accurate one, so V_f cannot fall (Blackwell).
        highest = -math.inf
        for lower, upper in zip(part["V_f_lower"], part["V_f_upper"]):
            assert upper >= highest, name
            highest = max(highest, lower)
