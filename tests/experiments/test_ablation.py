"""The study of ablations: exact differences, fingerprints of runs, sampled arms beside exact ones, tables, figure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import ablation, style
from experiments.ablation_arm import quantum
from experiments.ablation_contrasts import NOT_APPLIED, YES
from experiments.ablation_design import label
from experiments.study import StudyError
from experiments.tables import check_frame
from harnesses.case import Case
from harnesses.spec import parse_spec
from pomdp.model import ModelError


def question(vary: str, design: str = "factorial", **settings: Any) -> ablation.Parameters:
    """An ablation of the tiger task under last:1 with other settings."""
    effort = {name: settings.pop(name) for name in ("repeats", "episodes", "max_states") if name in settings}
    harness = {"tools": [], "control": [], "loop": [], "context": "last:1", **settings.pop("harness", {})}
    model = {"kind": "naive", "temperature": "0", **settings.pop("model", {})}
    base = {
        "task": "library:tiger",
        "horizon": 3,
        "discount": 1,
        "model": model,
        "harness": harness,
        **settings,
    }
    return ablation.Parameters(spec=json.dumps(base), vary=vary, design=design, **effort)


def frame_of(parameters: ablation.Parameters) -> pd.DataFrame:
    """What the runner would hand to `analyse`."""
    cells = ablation.cells(parameters)
    return pd.DataFrame([{**cell, **ablation.run(cell, None).rows[0]} for cell in cells])


def applied(parameters: ablation.Parameters) -> dict[str, str]:
    arms = ablation.analyse(frame_of(parameters))["arms"]
    assert (arms["difference"].isna() == (arms["applied"].isin(["baseline", NOT_APPLIED]))).all()
    return dict(zip(arms["arm"], arms["applied"], strict=True))


def J(**spec: Any) -> float:
    """The return of a spec, computed without the study."""
    base = {"task": "library:tiger", "horizon": 3, "discount": 1, "model": "naive", "context": "last:1"}
    return Case(parse_spec({**base, **spec})).returned


def test_exact_differences_are_those_of_the_cases_computed_alone() -> None:
    frames = ablation.analyse(frame_of(question("context=last:1,full loop.malformed=none,1/4:1/2")))
    arms = frames["arms"].set_index("arm")
    truth = {
        "context=full": J(context="full"),
        "loop.malformed=1/4:1/2": J(loop=["malformed:1/4:1/2"]),
        "context=full, loop.malformed=1/4:1/2": J(context="full", loop=["malformed:1/4:1/2"]),
    }
    base = J()
    for name, value in truth.items():
        assert arms.loc[name, "J"] == pytest.approx(value, abs=1e-11)
        assert arms.loc[name, "difference"] == pytest.approx(value - base, abs=1e-11)
    assert arms["range_lower"].isna().all() and set(arms["method"]) == {"exact"}
    contrasts = frames["contrasts"].set_index("contrast")
    one, two, both = truth.values()
    assert contrasts.loc["context=full", "effect"] == pytest.approx((one - base + both - two) / 2, abs=1e-11)
    cross = contrasts.loc["context=full x loop.malformed=1/4:1/2", "effect"]
    assert cross == pytest.approx(both - one - two + base, abs=1e-11)
    assert contrasts["p_value"].isna().all() and contrasts["detectable"].isna().all()


@pytest.mark.parametrize("limit", [50_000, 1])
def test_steps_and_tokens_are_those_of_the_runs(limit: int) -> None:
    """Who always listens takes 3 steps and sees 0, 1 and 1 pairs under last:1, 0, 1 and 2 under full."""
    listener = {"kind": "rules", "otherwise": "listen"}
    few = question("context=last:1,full", model=listener, max_states=limit, repeats=2, episodes=60)
    rows = frame_of(few).to_dict("records")
    sizes = parse_spec({"task": "library:tiger", "horizon": 3, "context": "last:1"}).sizes
    left, right = (sizes.event("listen", name) for name in ("tiger-left", "tiger-right"))
    pair = left.call.tokens + left.result.tokens
    assert left.result.tokens == right.result.tokens
    assert [row["steps"] for row in rows] == pytest.approx([3.0, 3.0])
    assert [row["tokens"] for row in rows] == pytest.approx([2 * pair / 3, 3 * pair / 3])
    assert [row["contexts_met"] for row in rows] == [3, 7]


@pytest.mark.parametrize("limit", [50_000, 1])
def test_what_can_never_happen_is_not_applied(limit: int) -> None:
    """A detector that fires at the third identical call, of which there are two; a longer window than the run."""
    few = {"max_states": limit, "repeats": 2, "episodes": 20}
    assert applied(question("control.stall=none,3-4", horizon=2, **few))["control.stall=3:4"] == NOT_APPLIED
    assert applied(question("control.step_limit=none,9", **few))["control.step_limit=9"] == NOT_APPLIED
    wide = applied(question("context=full,last:6,last:1", horizon=4, harness={"context": "full"}, **few))
    assert wide["context=last:6"] == NOT_APPLIED and wide["context=last:1"] == YES


@pytest.mark.parametrize("limit", [50_000, 1])
def test_what_changes_the_model_or_a_charge_is_applied(limit: int) -> None:
    few = {"max_states": limit, "repeats": 2, "episodes": 200}
    assert applied(question("model.temperature=0,5", **few))["model.temperature=5"] == YES
    assert applied(question("model.temperature=0,1e-9", **few))["model.temperature=1e-09"] == NOT_APPLIED
    charge = question("loop.malformed=1/4,1/4:1/2", harness={"loop": ["malformed:1/4"]}, **few)
    assert applied(charge)["loop.malformed=1/4:1/2"] == YES


def test_in_a_combination_the_idle_change_is_named() -> None:
    found = applied(question("context=last:1,full control.step_limit=none,9"))
    assert found["context=full, control.step_limit=9"] == f"{NOT_APPLIED}: control.step_limit=9"
    frames = ablation.analyse(frame_of(question("context=last:1,full control.step_limit=none,9")))
    contrasts = frames["contrasts"].set_index("contrast")
    for name in ("control.step_limit=9", "context=full x control.step_limit=9"):
        assert contrasts.loc[name, "applied"] == NOT_APPLIED and np.isnan(contrasts.loc[name, "effect"])
    assert contrasts.loc["context=full", "applied"] == YES


def test_sampled_arms_agree_with_exact_ones_and_pairs_reduce_variance() -> None:
    vary = "context=last:1,full loop.malformed=none,1/20:1/2"
    exact = frame_of(question(vary, model={"temperature": "20"}))
    few = question(vary, model={"temperature": "20"}, max_states=1, repeats=24, episodes=400)
    sampled = frame_of(few)
    assert set(sampled["method"]) == {"sampled"}
    for (_, one), (_, other) in zip(exact.iterrows(), sampled.iterrows(), strict=True):
        returns = np.array(other["returns"])
        assert abs(returns.mean() - one["returns"][0]) < 4 * returns.std(ddof=1) / np.sqrt(len(returns))
        assert other["steps"] == pytest.approx(one["steps"], abs=0.02)
        assert other["tokens"] == pytest.approx(one["tokens"], rel=0.02)
        assert other["contexts"] <= one["contexts"]
    truth = ablation.analyse(exact)["contrasts"].set_index("contrast")["effect"]
    found = ablation.analyse(sampled)["contrasts"].set_index("contrast")
    within = (found["range_lower"] <= truth) & (truth <= found["range_upper"])
    assert within.sum() >= len(truth) - 1
    assert (found["p_holm"] >= found["p_value"]).all() and (found["detectable"] > 0).all()
    base, noisy = (np.array(sampled["returns"].iloc[i]) for i in (0, 1))
    assert label(sampled["arm"].iloc[1]).startswith("loop.malformed")
    assert np.var(noisy - base) < 0.6 * (np.var(noisy) + np.var(base))


def test_a_model_that_weighs_histories_cannot_be_sampled() -> None:
    cell = ablation.cells(question("context=last:1,full", model={"kind": "bayes"}, max_states=1))[0]
    with pytest.raises(ModelError, match="raise --max-states, or take one of naive, rules, random"):
        ablation.run(cell, None)


def test_an_exact_and_a_sampled_arm_are_compared_but_not_checked() -> None:
    small, large = frame_of(question("context=last:1,full"))["states"]
    assert small < large
    frame = frame_of(question("context=last:1,full", max_states=small, repeats=4, episodes=50))
    assert list(frame["method"]) == ["exact", "sampled"]
    assert list(ablation.analyse(frame)["arms"]["applied"]) == ["baseline", "unchecked"]


def test_an_arm_that_is_missing_leaves_the_others_their_rows_and_no_mean_is_taken_without_it() -> None:
    frame = frame_of(question("context=last:1,full control.step_limit=none,2"))
    without = frame.drop(index=1).reset_index(drop=True)
    found = ablation.analyse(without)
    assert list(found["arms"]["applied"]) == ["baseline", YES, YES]
    assert found["contrasts"].empty
    headless = ablation.analyse(frame.drop(index=0).reset_index(drop=True))
    assert set(headless["arms"]["applied"]) == {"no baseline"} and headless["contrasts"].empty


@pytest.mark.parametrize("width", style.WIDTHS)
def test_tables_are_whole_and_the_figure_is_drawn(width: float) -> None:
    frame = frame_of(question("context=last:1,full control.step_limit=none,9"))
    frames = ablation.analyse(frame)
    for table in ablation.TABLES:
        frames[table.name] = check_frame(table, frames[table.name])
    assert "2 arms, or changes in them, were not applied" in ablation.headline(frames)
    with style.styled():
        assert style.render(ablation.figure(frames, width), "png", {"study": "ablation"})
    assert ablation.equals(frame) == ["the same runs: context=full; context=full, control.step_limit=9"]


def test_small_is_a_question_that_can_be_planned_and_counts_are_checked() -> None:
    assert len(ablation.cells(ablation.PRESETS["small"])) == 12
    with pytest.raises(StudyError, match="repeats is 0"):
        replace(ablation.PRESETS["small"], repeats=0)


def test_rounding_does_not_change_a_fingerprint() -> None:
    for p in (1 / 1024, 0.5, 1.0, 1 / 3, 0.0):
        assert quantum(p) == quantum(p + 1e-16) == quantum(p - 1e-16)
