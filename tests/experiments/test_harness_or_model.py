"""Harness or model: identities of the split, exact returns behind a rank reversal, verdicts on parts, figures."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from experiments import harness_or_model as study
from experiments import style
from experiments.study import grid
from experiments.tables import check_frame
from harnesses.attribution import attribute
from harnesses.case import Case, Effort
from harnesses.spec import parse_spec
from pomdp.interval import Interval

SMALL = study.Parameters(
    horizon=4, models=("optimal", "bayes:0.2", "naive", "random"), temperatures=(0.0, 0.2), seconds=5.0
)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = []
    for cell in grid(study, SMALL):  # type: ignore[arg-type]
        if cell["table"] == "parts":
            if cell["part"] not in ("stall guard", "step limit", "full output"):
                continue
            cell = {**cell, "horizon": 4}
        rows += [{**cell, "seed": None, "applied": None, **row} for row in study.run({**cell}, None).rows]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def frames(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return study.analyse(frame)


def exact_return(policy: Any, induced: Any, horizon: int) -> Fraction:
    """J by following exact kernels forward: M_0's rows as stored rationals, policy rows as ties in equal shares."""
    model = induced.inner.exact
    # (state of M_0, memory of phi) -> probability; the map is folded again, not read from the induced model.
    place = {context: c for c, context in enumerate(induced.contexts)}
    sizes = study.case_of(study.HARNESSES["H1"], "naive", horizon, 5.0).spec.sizes
    now = {(s, induced.phi.start()): p for s, p in model.start.items()}
    total = Fraction(0)
    for _ in range(horizon):
        following: dict[Any, Fraction] = {}
        for (s, memory), weight in now.items():
            row = policy[place[induced.phi.show(memory)]]
            chosen = [a for a in range(len(row)) if row[a] > 1e-12]
            assert all(abs(row[a] - 1 / len(chosen)) < 1e-9 for a in chosen)
            for a in chosen:
                share = weight / len(chosen)
                total += share * model.R.row(a).get(s, Fraction(0))
                for t, p in model.T[a].row(s).items():
                    for o, q in model.Z[a].row(t).items():
                        event = sizes.event(induced.inner.actions[a], induced.inner.observations[o])
                        key = t, induced.phi.step(memory, event)[0]
                        following[key] = following.get(key, Fraction(0)) + share * p * q
        # Contexts after the end are asked for no action.
        now = {
            key: p
            for key, p in following.items()
            if p and induced.inner.states[key[0]] != "end" and induced.phi.show(key[1]) in place
        }
    return total


def test_a_rank_reversal_is_exact_in_rationals(frames: dict[str, pd.DataFrame]) -> None:
    """The naive reader is above random play in H1 and below it in H2: J by an independent exact recursion."""
    found: dict[tuple[str, str], Fraction] = {}
    for model in ("naive", "random"):
        for name in ("H1", "H2"):
            case = study.case_of(study.HARNESSES[name], model, 4, 5.0)
            found[model, name] = exact_return(case.pi, case.induced, 4)
            assert case.achieved.contains(found[model, name])
    assert found["naive", "H1"] == Fraction(17, 20) and found["naive", "H2"] == Fraction(-1, 5)
    assert found["random", "H1"] == found["random", "H2"] and found["naive", "H2"] < found["random", "H2"]
    table = frames["rank_reversals"]
    keys = set(zip(table["model"], table["other"], table["above_in"], table["below_in"], strict=True))
    assert ("naive", "random", "H1", "H2") in keys


def test_the_parts_of_every_loss_sum_to_it(frames: dict[str, pd.DataFrame]) -> None:
    """attribution: the interval sum of the parts contains the total's interval."""
    for _, row in frames["harness_or_model"].iterrows():
        lower, upper = (
            sum(row[f"{name}_{end}"] for name in ("tools", "context", "reader")) for end in ("lower", "upper")
        )
        assert lower <= row["total_lower"] + 1e-12 and row["total_upper"] <= upper + 1e-12
        assert row["context_lower"] >= 0 and row["reader_lower"] >= 0


def test_both_causes_share_the_whole_gap(frames: dict[str, pd.DataFrame]) -> None:
    """Shapley efficiency, and the two-player formula: the mean of both orders."""
    returns = frames["harness_or_model"].set_index(["model", "harness"])
    J = (returns["J_lower"] + returns["J_upper"]) / 2
    for _, row in frames["two_causes"].iterrows():
        m = row["model"]
        gap, window, output = (
            (row[f"{n}_lower"] + row[f"{n}_upper"]) / 2 for n in ("gap", "window", "output")
        )
        assert window + output == pytest.approx(gap, abs=1e-8)
        orders = (J[m, "H1"] - J[m, "window only"], J[m, "output only"] - J[m, "H2"])
        assert window == pytest.approx(sum(orders) / 2, abs=1e-8)


def test_a_coarser_output_never_raises_the_best_return(frames: dict[str, pd.DataFrame]) -> None:
    """garbling: the optimal model loses by hiding output; closed forms 17/20 and 2/5 of the task."""
    J = frames["harness_or_model"].set_index(["model", "harness"])
    for name, value in (("H1", 17 / 20), ("output only", 2 / 5)):
        row = J.loc[("optimal", name)]
        assert row["J_lower"] <= value <= row["J_upper"]
    assert J.loc[("optimal", "H2"), "J_upper"] <= J.loc[("optimal", "window only"), "J_upper"]


def test_shared_quantities_equal_those_of_a_fresh_case(frames: dict[str, pd.DataFrame]) -> None:
    case = Case(parse_spec(study.HARNESSES["H2"].spec(4, "naive")), Effort(seconds=5.0))
    row = frames["harness_or_model"].set_index(["model", "harness"]).loc[("naive", "H2")]
    found = attribute(case)
    assert found.achieved.json() == {"lower": row["J_lower"], "upper": row["J_upper"]}
    assert found.model.meets(Interval(row["reader_lower"], row["reader_upper"]))


def test_value_of_a_part_is_a_difference_of_two_returns(frames: dict[str, pd.DataFrame]) -> None:
    for _, row in frames["part_values"].iterrows():
        assert row["value_lower"] <= row["with_part_lower"] - row["without_lower"] + 1e-7
        assert row["value_upper"] >= row["with_part_upper"] - row["without_upper"] - 1e-7


@pytest.mark.parametrize(
    ("strong", "weak", "expected"),
    [
        (0.1, -0.1, "useful"),
        (0.0, 0.1, "redundant"),
        (0.0, 0.0, "idle"),
        (-0.1, 0.1, "harmful, helps weaker"),
        (-0.1, -0.1, "harmful"),
    ],
)
def test_verdict_reads_strength_and_weakness(strong: float, weak: float, expected: str) -> None:
    values = [(0.0, Interval(strong, strong)), (0.5, Interval(weak, weak))]
    assert study.verdict(values) == expected


def test_tables_and_figures_are_complete(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        check_frame(table, frames[table.name])
    assert "predicted sign +" in study.headline(frames)
    for width in style.WIDTHS:
        with style.styled():
            assert style.render(study.figure(frames, width), "png", {})
