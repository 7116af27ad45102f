"""The guard's study: the demo to the last count, closed forms on the curves, exact chances under simulated ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments import guard_bounds as study
from experiments import style
from experiments.study import StudyError, grid
from experiments.tables import check_frame
from harnesses.guard.costs import Reviewer, expected_costs
from harnesses.guard.demo import COSTS

SMALL = study.Parameters(
    datasets=400, items=(160, 240), methods=("fallback", "fixed-sequence"), kappas=(1, 4, 4.25, 8), points=9,
    streams=((1, "report"), (8, "report"), (4, "1/32")), horizon=60, bins=4,
)  # fmt: skip
MIDDLES = (np.arange(200_000) + 0.5) / 200_000
"""u of a population of 200,000 equally likely items: the oracle sums where the study has closed forms."""


def rows(seed: int) -> list[dict[str, Any]]:
    return [
        {**cell, "seed": seed, "applied": None, **row}
        for cell in grid(study, SMALL)  # type: ignore[arg-type]
        for row in study.run(cell, seed).rows
    ]


@pytest.fixture(scope="module")
def frames() -> dict[str, pd.DataFrame]:
    return study.analyse(pd.DataFrame(rows(0) + rows(1)))


def test_the_demo_agrees_with_its_source_to_the_last_count(frames: dict[str, pd.DataFrame]) -> None:
    """The table of the design page; costs there are per case, here also in all."""
    known = {
        ("calibrated", "0.969"): (129, 2, 218, 57, 53, 41, 0.020, 173, 536.0, 1.34),
        ("calibrated", "31/32"): (130, 2, 217, 57, 53, 41, 0.020, 172, 535.5, 1.33875),
        ("overconfident", "0.969"): (211, 10, 189, 90, 0, 0, 0.100, 99, 654.5, 1.63625),
        ("overconfident", "31/32"): (212, 10, 188, 90, 0, 0, 0.100, 98, 654.0, 1.635),
    }
    names = [
        "sent",
        "bad",
        "asked",
        "asked_disallowed",
        "escalated",
        "escalated_disallowed",
        "uar",
        "held_back",
    ]
    table = frames["guard_demo"].set_index(["guard", "tau_act"])
    found = {place: tuple(row[[*names, "total_cost", "cost_per_case"]]) for place, row in table.iterrows()}
    assert found == known
    assert set(table["verdict"]) == {"undecided"}


def test_bins_hold_every_item_once(frames: dict[str, pd.DataFrame]) -> None:
    for _, part in frames["guard_bins"].groupby("guard"):
        assert part["count"].sum() == 400 and part["allowed"].sum() == 300
        assert (part["observed"] == part["allowed"] / part["count"]).all()


def test_the_bound_breaks_above_kappa_4_and_not_at_it(frames: dict[str, pd.DataFrame]) -> None:
    """T2: an overconfident guard; at kappa 4 the share is exactly 1/32. UAR, asked, cost: the design page's numbers."""
    table = frames["guard_kappa"].set_index("kappa")
    assert table["holds"].to_dict() == {1.0: 1, 4.0: 1, 4.25: 0, 8.0: 0}
    assert table.loc[4.0, "share"] == 1 / 32
    for kappa, known in {
        1.0: (0.3204, 0.0078, 0.0105, 0.5493, 0.1303, 1.2491),
        4.0: (0.5086, 0.03125, 0.0669, 0.4914, 0.0, 1.4500),
        8.0: (0.6408, 0.0625, 0.1686, 0.3592, 0.0, 1.7704),
    }.items():
        row = table.loc[kappa, ["sent", "share", "uar", "asked", "escalated", "cost"]]
        np.testing.assert_allclose(row.to_numpy(dtype=float), known, atol=6e-5)


def test_injection_curves_are_those_of_the_population(frames: dict[str, pd.DataFrame]) -> None:
    """T7: summed over the population; independent shifts keep 1 - tau + D, aimed ones need not."""
    doubt = 0.95 * MIDDLES**3
    tau = 31 / 32
    for row in frames["guard_injection"].itertuples():
        every, bad = 1 - doubt + row.rise >= tau, doubt * (1 - doubt + row.rise >= tau)
        good = (1 - doubt) * (1 - doubt >= tau)
        assert row.blind == pytest.approx(doubt[every].mean(), rel=1e-3)
        assert row.aimed == pytest.approx(bad.sum() / (bad.sum() + good.sum()), rel=1e-3)
        assert row.uar_aimed == pytest.approx(bad.sum() / doubt.sum(), rel=1e-3)
        assert row.sent_clean == pytest.approx((1 - doubt >= tau + row.rise).mean(), abs=1e-5)
        assert row.blind <= row.bound
        # Beyond 1/32 no threshold is left: only never acting helps.
        assert np.isnan(row.restored) == (row.rise > 1 / 32)
        assert row.rise <= 1 / 32 or (row.sent_clean, row.uar_restored) == (0.0, 0.0)


def test_a_guard_with_a_fallible_reviewer_collapses_at_nineteen_twenty_fourths(
    frames: dict[str, pd.DataFrame],
) -> None:
    """T5, and the costs summed over the population by the cheapest region of each item."""
    table = frames["guard_reviewer"]
    assert (table["collapsed"] == (table["e0"] >= 19 / 24)).all() and (table["e0"] == 19 / 24).any()
    last = table[table["collapsed"] == 1]
    np.testing.assert_allclose(last[["tau_act", "tau_esc"]], 0.85)
    p = 1 - 0.95 * MIDDLES[200::400] ** 3
    for e0 in (Fraction(0), Fraction(1, 4), Fraction(19, 24)):
        best = [min(expected_costs(float(x), COSTS, Reviewer(e0)).values()) for x in p]
        row = table[np.isclose(table["e0"], float(e0))].iloc[0]
        assert row["cost"] == pytest.approx(float(sum(best) / len(best)), abs=1e-4)
    assert (table["cost"] <= table["cost_unaware"] + 1e-12).all()
    assert table["cost"].iloc[0] == table["cost_unaware"].iloc[0]


def test_simulated_violations_agree_with_their_exact_chances(frames: dict[str, pd.DataFrame]) -> None:
    """T9: both seeds pooled, naive near one half, PAC at most delta."""
    table = frames["guard_rules"]
    assert set(table["rule"]) == {"naive", "conformal", "PAC", "LTT", "LTT in sequence"}
    assert (table["datasets"] == 800).all()
    for row in table.dropna(subset=["exact"]).itertuples():
        low, high = stats.binom.ppf([0.0005, 0.9995], 800, row.exact)
        assert low <= row.broken <= high
    kept = table[table["rule"].isin(["PAC", "LTT", "LTT in sequence"])]
    assert (kept["broken"] <= stats.binom.ppf(0.999, 800, 0.1)).all()
    assert ((table[table["rule"] == "naive"]["rate"] - 0.5).abs() < 0.15).all()
    assert (table[(table["rule"] == "PAC") & (table["items"] == 160)]["never_rate"] == 1.0).all()


def test_alarms_rise_with_time_and_overconfidence(frames: dict[str, pd.DataFrame]) -> None:
    """T10: false alarms at most delta at every time."""
    table = frames["guard_alarms"]
    for _, part in table.groupby(["kappa", "against"]):
        assert (
            part.sort_values("sends")["alarmed"].is_monotonic_increasing and (part["datasets"] == 800).all()
        )
    end = table[table["sends"] == 60].set_index(["kappa", "against"])["alarmed"]
    most = stats.binom.ppf(0.999, 800, 0.05)
    assert end[(1.0, "report")] <= most and end[(4.0, "1/32")] <= most < end[(8.0, "report")]


def test_seeds_move_simulated_parts_only() -> None:
    for cell in grid(study, SMALL):  # type: ignore[arg-type]
        if cell["part"] not in ("rules", "alarms"):
            assert study.run(cell, 0).rows == study.run(cell, 1).rows
        elif cell.get("family") == "order" or cell.get("kappa") == 8:
            assert study.run(cell, 0).rows == study.run(cell, 0).rows != study.run(cell, 1).rows


@pytest.mark.parametrize("given", [{"items": (100,)}, {"points": 2}, {"datasets": 0}, {"horizon": 1}])
def test_impossible_parameters_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        study.Parameters(**given)


def test_tables_and_figures_are_complete(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        check_frame(table, frames[table.name])
    told = study.headline(frames)
    assert "predicted sign +" in told and "breaks from kappa 4.25 on" in told and "0.79167" in told
    for width in style.WIDTHS:
        with style.styled():
            assert style.render(study.figure(frames, width), "png", {})
