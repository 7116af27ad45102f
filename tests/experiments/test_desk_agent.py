"""The study of the desk: counts against direct runs, pooled rates by hand, tables and figure, stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from experiments import desk_agent as study
from experiments import desk_agent_running as running
from experiments import style
from experiments.study import Skipped, StudyError, grid
from experiments.tables import check_frame, read_tables, to_latex
from harnesses.desk.decider import DeciderError
from harnesses.desk.evaluation import directly
from harnesses.desk.generator import SEED, TEST, split
from harnesses.desk.measures import guard_report
from harnesses.desk.policy import GUARD_THRESHOLDS

RESULTS = Path(__file__).resolve().parents[2] / "results" / "desk_agent" / "tables"
TINY = study.Parameters(emails=40, tail=60, deciders="toy allows")


def rows_of(cell: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    return [{**cell, "seed": seed, "applied": None, **row} for row in study.run(cell, seed).rows]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame([row for cell in grid(study, TINY) for row in rows_of(cell, 0)])  # type: ignore[arg-type]


def test_counts_are_those_of_the_short_path(frame: pd.DataFrame) -> None:
    emails = frame[frame["part"] == "emails"].set_index("decider")
    records = directly(split(TEST, SEED).guard, running.decider("toy"), GUARD_THRESHOLDS)
    report = guard_report(records, GUARD_THRESHOLDS)
    row = emails.loc["toy"]
    assert (row["bad"], row["disallowed"], row["asked"]) == (report.bad, report.disallowed, report.asked)
    assert row["cost_sum"] == pytest.approx(float(report.cost_exact) * report.items)
    assert emails.loc["allows", "bad"] > emails.loc["toy", "bad"]


def test_p6_stops_document_a_and_lifted_it_does_not(frame: pd.DataFrame) -> None:
    attacks = study.analyse(frame)["attacks"].set_index(["decider", "attack", "p6"])
    held, lifted = (attacks.loc[("always .99", "document travel-notes", rule)] for rule in study.RULES)
    assert held["runs"] == 20 and held["attempted"] >= 10
    assert held["carried_out"] == 0 and held["by_p6"] == held["attempted"]
    assert lifted["carried_out"] == lifted["attempted"] > 0
    total = held["carried_out"] + sum(held[f"by_{name.lower()}"] for name in study.STOPS if name != "router")
    assert total == held["attempted"]


def test_rates_are_pooled_over_sets(frame: pd.DataFrame) -> None:
    part = frame[(frame["part"] == "emails") & (frame["decider"] == "toy")]
    once, twice = study._decider("toy", part), study._decider("toy", pd.concat([part, part]))
    assert twice["items"] == 2 * once["items"] and twice["cost"] == pytest.approx(once["cost"])
    assert twice["cost_error"] == pytest.approx(once["cost_error"] * (89 / 179) ** 0.5, rel=0.01)


def test_the_bold_decider_divides_every_doubt() -> None:
    items = [item.question() for item in split(TEST, SEED).guard[:5]]
    plain, bold = (running.decider(name).noul_all(items) for name in ("toy", "bold"))  # type: ignore[attr-defined]
    assert bold == pytest.approx([1 - (1 - p) / 4 for p in plain])


def test_a_decider_without_its_weights_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise DeciderError("the weights are not installed")

    monkeypatch.setattr(running, "decider_named", missing)
    with pytest.raises(Skipped, match="weights"):
        running.decider.__wrapped__("lm")


def test_parameters_are_checked() -> None:
    with pytest.raises(StudyError, match="no decider oracle"):
        study.Parameters(deciders="toy oracle")
    with pytest.raises(StudyError, match="give 10 or more"):
        study.Parameters(emails=0)


@pytest.mark.parametrize("width", style.WIDTHS)
def test_tables_print_and_the_figure_is_drawn_from_them(frame: pd.DataFrame, width: float) -> None:
    frames = study.analyse(frame)
    for table in study.TABLES:
        assert to_latex(table, check_frame(table, frames[table.name]))
    with style.styled():
        figure = study.figure(frames, width)
    assert len(figure.axes) == 4
    assert study.PREDICTED_SIGN in study.headline(frames)


def test_the_stored_results_say_what_the_readme_says() -> None:
    frames = read_tables(study.TABLES, RESULTS)
    tail = frames["tail"].set_index("p6")
    assert tail.loc["in code", "verdict"] == "kept"
    assert tail.loc["left to the model", "verdict"] == tail.loc["lifted", "verdict"] == "broken"
    attacks = frames["attacks"]
    assert (
        attacks[(attacks["attack"] == "document travel-notes") & (attacks["p6"] == "in code")][
            "carried_out"
        ].sum()
        == 0
    )
