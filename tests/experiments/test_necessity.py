"""The four elements: the formal arms against a forward sum of their own, running arms against both, what each lacks."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments import necessity as study
from experiments import style
from experiments.necessity_formal import ARMS, FORBIDDEN, INTACT, SIZES, Formal, Setting, hazardous
from experiments.necessity_running import MEASURED, Arm, rows_of, run_arms
from experiments.study import StudyError, grid
from experiments.tables import check_frame
from harnesses.constructors import deny, difference, malformed, stall, step_limit
from harnesses.constructors.base import Base
from harnesses.context import Context, Event, parse_map
from harnesses.harness import induce
from harnesses.runtime.assembly import history_tokens
from harnesses.runtime.records import AgentError, Reason
from pomdp.criterion import Criterion
from pomdp.library import task

SMALL = study.Parameters(errors=("0", "1/10"), episodes=60, tasks=("tmaze:2:0.9", "repo_repair:2:2"))


@lru_cache
def formal(arm: str, error: str = "1/5", name: str = "tmaze:2:0.9") -> Formal:
    return Formal.of(Setting(name, 6, 2, Fraction(error), arm, 12))


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


def forward(arm: str, error: float) -> dict[str, float]:
    """Every measure of an arm by a sum over what can happen, with the rules of each arm written out once more."""
    made = formal(arm, str(Fraction(error).limit_denominator()))
    model, rows = made.task, rows_of(made)
    base = Base(model)
    lacks = made.setting.lacks
    found = dict.fromkeys(MEASURED, 0.0)
    steps = 12 if lacks("limits", "control") else 6
    places: dict[Any, float] = {(s, (), "", 0): float(p) for s, p in enumerate(model.start) if p}
    for t in range(steps):
        following: dict[Any, float] = defaultdict(float)
        for (s, shown, last, count), mass in places.items():
            if lacks("context") and t > 2:
                found["overflow"] += mass
                continue
            found["replies"] += mass
            if lacks("tools"):
                continue
            text = Context(tuple(item for event in shown for item in event)).text
            for a, p in enumerate(made.pi[rows[text]]):
                action, share = model.actions[a], mass * float(p)
                times = count + 1 if action == last else 1
                if not lacks("limits", "control") and times == 4:
                    continue  # stalled: not executed
                warned = "+warning" if times == 3 and not lacks("limits", "control") else ""
                for broken, q in ((True, error), (False, 1 - error)):
                    here, failed = share * q, broken
                    if not here:
                        continue
                    if broken:
                        outcomes = [(s, "error", 1.0)]
                    elif action == FORBIDDEN and not lacks("permissions", "control"):
                        outcomes, failed = [(s, "denied", 1.0)], True
                    else:
                        found["executed"] += here
                        found["forbidden"] += here * (action == FORBIDDEN)
                        found["return"] += here * float(model.R[a, s])
                        outcomes = [(u, o, float(r)) for u, o, r in base.kernel.step(s, a)]
                    if failed and lacks("errors", "control"):
                        found["fatal"] += here
                        continue
                    for u, o, r in outcomes:
                        if u not in base.over and not lacks("loop"):
                            pair = Event(*SIZES.event(action, o + warned))
                            following[u, (*shown, pair)[-2:], action, times] += here * r
        places = following
    if lacks("limits", "control"):
        found["cap"] = sum(places.values())
    return found


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("error", [0.0, 0.2])
def test_exact_measures_are_those_of_a_forward_sum(arm: str, error: float) -> None:
    exact = formal(arm, str(Fraction(error).limit_denominator())).exact()
    assert set(exact) == set(MEASURED)
    assert exact == pytest.approx(forward(arm, error), abs=1e-12)


def test_the_arms_are_the_constructors_that_they_name() -> None:
    model = hazardous(task("tiger").model)
    intact = formal(INTACT, "1/5", "tiger").induced.inner
    assert difference(intact, stall(malformed(deny(model, FORBIDDEN), "1/5"), 3, 4)) is None
    free = formal("permissions", "1/5", "tiger").induced.inner
    assert difference(free, stall(malformed(model, "1/5"), 3, 4)) is None
    endless = formal("limits", "1/5", "tiger").induced.inner
    assert difference(endless, malformed(deny(model, FORBIDDEN), "1/5")) is None


def test_a_full_window_is_a_step_limit() -> None:
    """Up to two pairs `last:2` shows all there is; the third call is the last that fits."""
    made = formal("context", "1/5", "repo_repair:2:2")
    whole = formal(INTACT, "1/5", "repo_repair:2:2")
    criterion = Criterion.of(whole.task, 1, 6)
    limited = step_limit(whole.induced.inner, 3)
    induced = induce(whole.task, limited, parse_map("last:2").bind(limited), criterion, SIZES)
    rows = rows_of(whole)
    pi = np.array([whole.pi[rows.get(context.text, 0)] for context in induced.contexts])
    assert induced.evaluate(pi) == pytest.approx(made.exact()["return"], abs=1e-12)


def test_delete_ends_a_run_at_the_largest_price() -> None:
    model = hazardous(task("tiger").model)
    a = model.action_index(FORBIDDEN)
    assert model.R[a].tolist() == [-100.0, -100.0, 0.0]
    assert len(Base(model).over) == 1


def run_of(arm: str, number: int, error: str = "1/5") -> Any:
    return arm_of(arm, error).run(6, number)


@lru_cache
def arm_of(arm: str, error: str) -> Arm:
    return Arm(formal(arm, error, "tiger"))


def test_what_each_running_arm_lacks() -> None:
    seen = dict.fromkeys(ARMS, 0)
    for number in range(25):
        runs = {arm: run_of(arm, number) for arm in ARMS}
        reasons = {arm: found.run.state.termination_reason for arm, found in runs.items()}
        assert runs["loop"].run.state.step == 1
        assert runs["tools"].run.calls == () and reasons["tools"] is Reason.COMPLETED
        for arm in (INTACT, "errors", "limits"):
            assert runs[arm].measured["forbidden"] == 0
        for arm, found in runs.items():
            context = found.run.context
            assert context is not None and (context.token_estimate <= 400 or arm == "context")
            assert found.run.state.step <= (12 if arm in ("limits", "control") else 6)
            seen[arm] += found.transcript != runs[INTACT].transcript
        whole = runs["context"].run
        assert not whole.context.dropped and whole.state.step <= 3
        assert (reasons["context"] is Reason.CONTEXT_OVERFLOW) == (whole.context.token_estimate > 400)
        statuses = [result.status for result in runs["errors"].run.results.values()]
        assert not {"denied", "error"} & set(statuses[:-1])
    assert seen[INTACT] == 0 and min(seen[arm] for arm in ARMS[1:]) > 0, seen


def test_the_intact_harness_drops_what_the_other_keeps() -> None:
    dropped = 0
    for number in range(10):
        run, arm = run_of(INTACT, number).run, arm_of(INTACT, "1/5")
        reading = arm.harness(None).reading  # type: ignore[arg-type]
        context = run.context
        assert context is not None and context.token_estimate <= 400
        dropped += bool(context.dropped) and history_tokens(run.history, reading) > 400
    assert dropped > 5


def test_runs_come_to_what_was_computed() -> None:
    formals = {arm: formal(arm) for arm in ARMS}
    runs = run_arms(formals, 250, 5)
    far = []
    for arm, made in formals.items():
        exact = made.exact()
        for name in MEASURED:
            values = runs[arm][name]
            error = max(float(values.std(ddof=1)), 1e-3) / 250**0.5
            far.append(abs(float(values.mean()) - exact[name]) / error)
    assert max(far) < 4.5 and np.mean(far) < 1.5


def test_a_model_without_errors_needs_no_permissions(frames: dict[str, pd.DataFrame]) -> None:
    """Not applied is not the same as no effect: the share of changed runs says which."""
    lost = frames["lost_return"].query("error == 0.0").set_index(["removed", "task"])
    for name in ("permissions", "errors"):
        assert (lost.loc[name]["changed"] == 0.0).all() and (lost.loc[name]["lost_exact"] == 0.0).all()
    assert (lost.loc["tools"]["changed"] == 1.0).all()
    assert (frames["lost_return"].query("error == 0.1")["changed"] > 0).all()


def test_each_property_is_lost_with_its_element(frames: dict[str, pd.DataFrame]) -> None:
    table = frames["lost_property"].set_index(["removed", "task", "error"]).sort_index()
    loop = table.loc["loop"]
    assert (loop["without_exact"] == 1.0).all() and (loop["intact_exact"] > 3).all()
    assert (table.loc["tools"]["without_exact"] == 0.0).all() and (table.loc["tools"]["without"] == 0.0).all()
    for name in ("context", "limits", "permissions", "errors"):
        part = table.loc[name]
        assert (part["intact_exact"] == 0.0).all() and (part["intact"] == 0.0).all()
        assert (part.xs(0.1, level="error")["without_exact"] > 0.01).all()


def test_contexts_that_read_alike_must_be_acted_on_alike() -> None:
    made = formal(INTACT, "0")
    induced = type(made.induced)(**{**vars(made.induced), "contexts": (made.induced.contexts[1],) * 20})
    pi = np.eye(made.pi.shape[1])[np.arange(20) % 2]
    with pytest.raises(AgentError, match="reads like another one"):
        rows_of(Formal(made.setting, made.task, induced, pi))


@pytest.mark.parametrize(
    "given", [{"pairs": 5}, {"cap": 6}, {"episodes": 1}, {"errors": ("0", "1")}, {"errors": ("-1/10",)}]
)
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
