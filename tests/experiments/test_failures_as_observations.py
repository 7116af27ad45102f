"""Failures as observations: the formal harness against its parts, runs against exact values, orders, figures."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import failures_as_observations as study
from experiments import style
from experiments.failures_as_observations_running import (
    FailingTask,
    Hiding,
    TabularModel,
    run_policy,
    text_of,
)
from experiments.failures_as_observations_tables import CERTAIN
from experiments.served_task import episode, tool_name
from experiments.study import StudyError, grid
from experiments.tables import check_frame
from harnesses.case import Case
from harnesses.constructors import difference, malformed, timeout
from harnesses.constructors.base import Base
from harnesses.constructors.hidden import usual
from harnesses.runtime.records import AgentError
from harnesses.runtime.tools import Dispatcher
from pomdp.library import task

SMALL = study.Parameters(rates=("0", "1/5"), episodes=40, tasks=("tmaze:2:0.9", "tiger"))


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


def cell(name: str, failure: str, shown: str, rate: str = "1/5") -> dict[str, Any]:
    return {
        "task": name,
        "failure": failure,
        "shown": shown,
        "rate": rate,
        "episodes": 0,
        "seconds_allowed": 0.3,
    }


def test_the_formal_harness_is_its_constructors() -> None:
    model, rate = task("tiger").model, Fraction(1, 5)
    timed = study.case_of(cell("tiger", "timeout", "visible"), "naive").induced.inner
    assert difference(timed, timeout(model, "*", rate, Fraction(1, 2))) is None
    hidden = study.case_of(cell("tiger", "malformed", "blank"), "naive").induced.inner
    assert difference(hidden, malformed(model, rate, visible=False)) is None


def test_a_result_of_the_task_that_is_called_error_is_no_failure() -> None:
    inner = study.case_of(cell("repo_repair:2:2", "malformed", "blank"), "naive").induced.inner
    assert "import-error" in inner.observations and "error" not in inner.observations


def test_without_failures_all_ways_are_the_same(frame: pd.DataFrame) -> None:
    part = frame[frame["rate"] == "0"]
    for _, group in part.groupby(["task", "model"]):
        assert np.ptp(group["J_lower"]) < 1e-6


def test_the_whole_history_never_gains_from_hiding(frames: dict[str, pd.DataFrame]) -> None:
    """garbling: a hidden failure is a function of the history with failures shown."""
    worth = frames["worth_of_seeing"]
    part = worth[worth["model"] == study.HISTORY]
    for way in ("blank", "stale"):
        assert (part[f"{way}_upper"] >= -CERTAIN * part["largest"]).all()
    tiger = part[part["task"] == "tiger"]
    assert (tiger["blank_lower"] > 0.1).all() and (tiger["stale_lower"] > 0.1).all()


def test_blank_results_never_help_the_best_reader_of_a_window(frames: dict[str, pd.DataFrame]) -> None:
    """A window of blank results is a function of the window with failures; a stale one is not, being memory."""
    part = frames["worth_of_seeing"].query("model == 'optimal'")
    assert (part["blank_upper"] >= -CERTAIN * part["largest"]).all()
    maze = part[part["task"] == "T-maze"]
    assert (maze["stale_upper"] < 0).all()


def test_runs_earn_what_was_computed(frame: pd.DataFrame) -> None:
    """On tiger a wrong door is rare and dear, so that the error of few runs says too little."""
    runs = frame[frame["episodes_run"] > 0]
    assert len(runs) == 2 * 2 * 3 * 3 and (runs["failed"] > 0).all()
    maze = runs[runs["task"] == "tmaze:2:0.9"]
    assert (abs(maze["earned"] - maze["J"]) <= 4.5 * maze["earned_se"] + 1e-9).all()
    case = study.case_of(cell("tiger", "timeout", "blank"), "bayes")
    many = study._runs({**cell("tiger", "timeout", "blank"), "episodes": 600}, case, 0)
    assert abs(many["earned"] - case.returned) <= 4.5 * many["earned_se"]


@lru_cache
def anything(name: str, failure: str, shown: str) -> tuple[Case, FailingTask, TabularModel]:
    """The case of the model that does anything, its task behind tools, and that model; one for all its runs."""
    case = study.case_of(cell(name, failure, shown), "random")
    served_task = case.spec.task
    dispatcher: Any = Dispatcher
    if shown != "visible":
        base = Base(served_task)
        blanks = {tool_name(a): usual(base, i, ()) for i, a in enumerate(served_task.actions)}
        dispatcher = partial(Hiding, blanks=blanks, stale=shown == "stale")
    timed = failure == "timeout"
    served = FailingTask(served_task, dispatcher, 0.4 if timed else 0.0, 0.5)
    return case, served, TabularModel(case.induced, case.pi, served.names, 0.0 if timed else 0.4)


def happened(name: str, failure: str, shown: str, number: int) -> list[tuple[str, str, str]]:
    """One run of that model: (action, status, content) of each call; its contexts are among the formal ones."""
    case, served, model = anything(name, failure, shown)
    model.begin(7, number)
    run = episode(served, model, case.induced.phi, 5, 7, number).run
    return [(c.name, run.results[c.id].status, run.results[c.id].content) for c in run.calls]


@pytest.mark.parametrize("failure", ["timeout", "malformed"])
def test_a_hidden_run_is_the_shown_one_rewritten(failure: str) -> None:
    """The same draws and the same random actions: only what stands in place of a failure differs."""
    blanks = {"listen": "tiger-left", "open_left": "tiger-left", "open_right": "tiger-left"}
    statuses, mixed = set(), 0
    for number in range(30):
        shown, blank, stale = (happened("tiger", failure, way, number) for way in study.SHOWN)
        newest = dict(blanks)
        mixed += len({status for _, status, _ in shown}) == 2 and len({name for name, _, _ in shown}) > 1
        assert len(shown) == len(blank) == len(stale) == 5
        for (name, status, content), flat, old in zip(shown, blank, stale, strict=True):
            statuses.add(status)
            ok = status == "ok"
            newest |= {name: content} if ok else {}
            assert flat == (name, "ok", content if ok else blanks[name])
            assert old == (name, "ok", newest[name])
    assert statuses == {"ok", "timeout" if failure == "timeout" else "error"} and mixed > 15


def test_a_malformed_call_never_reaches_the_world() -> None:
    case = study.case_of(cell("tiger", "malformed", "visible"), "random")
    served = FailingTask(case.spec.task, Dispatcher)
    model = TabularModel(case.induced, case.pi, served.names, malformed=1.0)
    model.begin(0, 0)
    done = episode(served, model, case.induced.phi, 5, 0, 0)
    assert set(done.statuses) == {"error"} and done.earned == 0.0 and served._steps == 0


def test_contexts_that_read_alike_must_be_acted_on_alike() -> None:
    case = study.case_of(cell("tiger", "malformed", "visible"), "random")
    induced = case.induced
    twins = type(induced)(**{**vars(induced), "contexts": (*induced.contexts[:-1], induced.contexts[0])})
    pi = case.pi.copy()
    pi[-1] = [1.0, 0.0, 0.0]
    with pytest.raises(AgentError, match="reads like another one"):
        TabularModel(twins, pi, {})


def test_messages_read_as_the_context_that_they_show() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "open_left", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Earn."},
        {"role": "user", "content": "n=1"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "[timeout] took 2 s"},
    ]
    assert text_of(messages, {"open_left": "open-left"}) == "n=1;open-left=timeout"


def test_effects_of_calls_that_time_out() -> None:
    """All calls time out: with effect 1 every one acts, with effect 0 none; half of them at 1/2."""
    case = study.case_of(cell("tiger", "timeout", "visible", "1/5"), "random")
    acted = {}
    for effect in (0.0, 0.5, 1.0):
        earned, failed, first = run_policy(
            case.induced, case.pi, Dispatcher, timeout=1.0, effect=effect, malformed=0.0, episodes=100, seed=1
        )
        assert failed == 500 and "'ok'" not in first
        acted[effect] = float(np.mean(earned))
    assert acted[0.0] == 0.0 and acted[1.0] < acted[0.5] < 0.0
    # One third listens for -1, one third opens each door for -45 on average.
    assert acted[1.0] == pytest.approx(-5 * 91 / 3, rel=0.25)
    half, failed, _ = run_policy(
        case.induced, case.pi, Dispatcher, timeout=0.5, effect=0.5, malformed=0.0, episodes=400, seed=1
    )
    assert failed == pytest.approx(1000, rel=0.1)
    # Half of the calls work, and half of the others act all the same.
    assert abs(half.mean() + 0.75 * 5 * 91 / 3) < 4 * half.std() / 20 < 0.2 * 5 * 91 / 3


@pytest.mark.parametrize("given", [{"tasks": ("chess",)}, {"rates": ("0", "1/2")}, {"episodes": 1}])
def test_impossible_parameters_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        study.Parameters(**given)


def test_tables_and_figures_are_complete(frames: dict[str, pd.DataFrame]) -> None:
    for table in study.TABLES:
        check_frame(table, frames[table.name])
    assert "predicted sign +" in study.headline(frames)
    for width in style.WIDTHS:
        with style.styled():
            assert style.render(study.figure(frames, width), "png", {})
