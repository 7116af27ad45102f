"""Loop detectors: the forward sum against the constructor and against every history, runs against both, figures."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import stall_rules as study
from experiments import style
from experiments.stall_rules_exact import MEASURES, formal, forward, premature
from experiments.stall_rules_running import Desk, run_rules
from experiments.stall_rules_tasks import MODELS, RULES, WORKFLOWS, Node, Rule, StuckModel, rule
from experiments.study import StudyError, grid
from experiments.tables import check_frame
from harnesses.runtime.control import StallRule
from harnesses.runtime.records import Message, Reason, ToolCall, ToolResult

SMALL = study.Parameters(firsts=(2, 3), stuck=("1/5",), run_models=("listening",), episodes=12)
STEADY = StuckModel("steady", 0.0, 0.0, 0.0)


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


@pytest.mark.parametrize("task", WORKFLOWS)
@pytest.mark.parametrize("name", ["none", "terminate", "escalate", "total"])
@pytest.mark.parametrize("first", [2, 3])
def test_the_forward_sum_is_the_constructor(task: str, name: str, first: int) -> None:
    """stall, once or twice around the workflow, with the model as a finite-state controller."""
    for model in (MODELS["listening"], MODELS["circling"]):
        given = WORKFLOWS[task], model, 0.2, rule(name, first), 20
        exact = forward(*given)
        for counts in ("success", "waste", "calls"):
            assert formal(*given, counts) == pytest.approx(exact[counts], abs=1e-12)


def every_history(model: StuckModel, detector: Rule, budget: int) -> dict[str, float]:
    """MEASURES by a sum over all histories of messages, each judged by the runtime's own StallRule."""
    flow, stop = WORKFLOWS["waiting"], detector.stop or 99
    judge = StallRule(detector.mode, detector.warn, stop)
    found = dict.fromkeys(MEASURES, 0.0)

    def go_on(history: tuple[Message, ...], node: Node, mass: float, left: int) -> None:
        if not left:
            return
        id = f"c{left}"
        for call, p in model.choices(flow, node, 0.3):
            if not p:
                continue
            asked = (*history, Message("assistant", "", 0, (ToolCall(id, call, {}),)))
            if detector.mode != "growth" and judge.count(asked, id) >= stop:
                found["stalled"] += mass * p
                continue
            found["calls"] += mass * p
            found["waste"] += mass * p * (call != flow.right(node.stage))
            for _, answer, q in flow.outcomes(node.stage, call):
                share = mass * p * float(q)
                told = (*asked, Message("tool", answer, 0, (), ToolResult(id, "ok", answer, 0.0)))
                times = judge.count(told, id)
                reached = model.follow(flow, node, call, answer, judge.advice(times) is not None)
                if reached.stage == len(flow.stages):
                    found["success"] += share
                elif times >= stop:
                    found["stalled"] += share
                else:
                    go_on(told, reached, share, left - 1)

    go_on((), Node(), 1.0, budget)
    return found


@pytest.mark.parametrize("name", RULES[1:])
@pytest.mark.parametrize("model", ["listening", "circling"])
def test_the_forward_sum_is_that_over_all_histories(name: str, model: str) -> None:
    for detector in (rule(name, 2), Rule(rule(name, 2).mode, (1,), None)):  # type: ignore[union-attr]
        assert detector is not None
        exact = forward(WORKFLOWS["waiting"], MODELS[model], 0.3, detector, 8)
        assert exact == pytest.approx(every_history(MODELS[model], detector, 8), abs=1e-12)


def test_what_each_rule_takes_for_a_stall() -> None:
    """Without getting stuck: retests fall to a total count, rising answers to a row, equal ones to growth too."""
    ended = {
        (task, name): forward(flow, STEADY, 0.0, rule(name, 3), 20)["stalled"]
        for task, flow in WORKFLOWS.items()
        for name in RULES
    }
    waiting = float(Fraction(2, 3) ** 3)
    assert {place: p for place, p in ended.items() if p} == pytest.approx(
        {
            ("tests between", "total"): 1.0,
            ("progress", "terminate"): 1.0,
            ("progress", "total"): 1.0,
            ("waiting", "terminate"): waiting,
            ("waiting", "total"): waiting,
            # The fifth answer that is pending is the fourth that repeats one.
            ("waiting", "growth"): float(Fraction(2, 3) ** 5),
            ("waiting", "escalate"): float(Fraction(2, 3) ** 5),
        },
        abs=1e-12,
    )


def test_a_row_is_blind_to_a_model_that_circles() -> None:
    round_and_round = StuckModel("round", 0.0, 1.0, 1.0, circling=True)
    flow = WORKFLOWS["edits"]
    # Once two calls are done; before, circling is repeating.
    none, row, total, growth = (
        forward(flow, round_and_round, 0.2, rule(name, 3), 20)
        for name in ("none", "terminate", "total", "growth")
    )
    assert row["stalled"] == 0.0 and none["waste"] > row["waste"] > 3 * total["waste"] > 0
    assert growth["waste"] < row["waste"] / 3 and total["success"] > row["success"]


def test_a_later_end_spares_runs_and_wastes_calls() -> None:
    for task, flow in WORKFLOWS.items():
        for model in MODELS.values():
            ends = [Rule("consecutive", (3,), stop) for stop in (4, 5, 6, 9)]
            early = [premature(flow, model, 0.2, end, 20) for end in ends]
            wasted = [forward(flow, model, 0.2, end, 20)["waste"] for end in ends]
            assert early == sorted(early, reverse=True) and wasted == sorted(wasted), task
            assert all(p >= -1e-12 for p in early)


def told(history: tuple[Message, ...]) -> list[tuple[object, ...]]:
    """What a model reads, but for the number at which a second warning threatens the end."""
    return [(m.role, re.sub(r"at \d+ the run ends", "", m.content), m.calls, m.about) for m in history]


def test_a_run_without_its_end_goes_on_from_it() -> None:
    """The counterfactual has the same messages up to the call that ended the run."""
    desk, model = Desk(WORKFLOWS["waiting"], 20), MODELS["slow"]
    ended = 0
    for name in RULES[1:]:
        detector = rule(name, 2)
        assert detector is not None
        for number in range(12):
            run = desk.run(model, 0.2, detector, 4, number)
            if run.state.termination_reason is not Reason.STALLED:
                continue
            ended += 1
            again = desk.run(model, 0.2, detector.heard_only, 4, number)
            same = len(run.history) - (1 if detector.mode != "growth" else 0)
            assert told(again.history[:same]) == told(run.history[:same])
            assert len(again.history) > len(run.history)
    assert ended > 12


@pytest.mark.parametrize(("task", "model"), [("waiting", "listening"), ("tests between", "circling")])
def test_runs_come_to_what_was_computed(task: str, model: str) -> None:
    flow, worker = WORKFLOWS[task], MODELS[model]
    rules = {name: rule(name, 3) for name in RULES}
    runs = run_rules(flow, worker, 0.2, rules, 20, 80, 11)
    far = []
    for name, detector in rules.items():
        exact = forward(flow, worker, 0.2, detector, 20)
        exact["premature"] = premature(flow, worker, 0.2, detector, 20) if detector else 0.0
        for measure, p in exact.items():
            values = runs[name][measure]
            assert (values[runs[name]["stalled"] == 0] == 0).all() or measure != "premature"
            # A share that no run met has the error of its exact value.
            error = max(float(values.std(ddof=1)), (p * (1 - p)) ** 0.5 if 0 < p < 1 else 1e-9) / 80**0.5
            far.append(abs(float(values.mean()) - p) / error)
    assert max(far) < 4.5 and np.mean(far) < 2.0


def test_the_rules_of_a_cell_share_their_draws() -> None:
    desk, model = Desk(WORKFLOWS["edits"], 20), MODELS["deaf"]
    for number in range(10):
        free, ended = (desk.run(model, 0.2, detector, 2, number) for detector in (None, rule("terminate", 3)))
        calls = [call.name for call in ended.calls]
        assert [call.name for call in free.calls][: len(calls)] == calls


def test_the_world_answers_old_calls_as_before_and_breaks_on_others() -> None:
    flow = WORKFLOWS["tests between"]
    assert flow.old(4) == {"test": "fails-2", "edit-2": "edited"} and flow.old(3) == {
        "edit-2": "edited",
        "edit-1": "edited",
    }
    model = flow.model()
    early = model.action_index("edit-4")
    assert model.T[early][[model.state_index("stage-0")], :].toarray()[0, model.state_index("broken")] == 1.0
    assert float(model.R.sum()) == 1.0


@pytest.mark.parametrize(
    "given",
    [{"firsts": (2, 4)}, {"firsts": (1, 3)}, {"run_models": ("chess",)}, {"run_stuck": ("1/3",)}, {"budget": 5},
     {"episodes": 1}],
)  # fmt: skip
def test_impossible_parameters_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        study.Parameters(**given)


def test_tables_and_figures_are_complete(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        check_frame(table, frames[table.name])
    assert len(frames["stall_contrast"]) == 16 and len(frames["stall_runs"]) == 4 * 4
    assert set(frames["stall_runs"].query("rule != 'growth'")["apart"]) == {0.0}
    assert frames["stall_runs"].query("rule == 'growth'")["apart"].isna().all()
    assert "predicted sign +" in study.headline(frames)
    for width in style.WIDTHS:
        with style.styled():
            assert style.render(study.figure(frames, width), "png", {})
