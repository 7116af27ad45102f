"""Study: what windows, token budgets and remedies lose of what a run saw; imports harnesses, pomdp and the figure late.

Source: M1 §1.5 (the context window as a belief state), E1.5 (success against the trimming threshold).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from experiments.lossy_context_tables import TABLES, analyse, headline
from experiments.study import Outcome, StudyError
from harnesses.case import Case, Effort
from harnesses.context import parse_map
from harnesses.context_loss import ContextLoss
from harnesses.harness import Induced, induce
from harnesses.lookahead import Lookahead
from harnesses.models import StatelessModel, bayes_scores, naive_scores, policy, rule_scores
from harnesses.smallest import BlockMap, frontier, smallest
from harnesses.spec import parse_spec
from pomdp.bounds import feedback
from pomdp.bounds.stateless import stateless, stateless_found
from pomdp.interval import Interval

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

QUESTION = "How much return does a model lose because its context is cut, and which remedy gives it back at what size?"
METRIC = "context loss V*(M_0) - Vo(phi): best policy with the whole history minus best that sees the context alone"
CONTRAST = "loss of the shortest window minus loss of the longest one, per task"
PREDICTED_SIGN = "+"
SEEDS = 0
BASELINE = None

__all__ = ["TABLES", "analyse", "headline"]

WINDOWS, BUDGET, GRID = ("last", "counter:last"), "oldest_first", "belief_grid"


@dataclass(frozen=True)
class Question:
    """A task of the library with its horizon, undiscounted; windows, budgets and grids to try; remedies by name."""

    task: str
    horizon: int
    windows: int
    budgets: tuple[int, ...]
    grids: int
    remedies: tuple[tuple[str, str], ...]


FLIP = (
    ("pin", "pin:flip/t2:last:1"), ("retrieve", "retrieve:read/*>flip/t2:last:1"),
    ("summary", "summary:count"), ("scratchpad", "last:1"),
)  # fmt: skip
TMAZE = (
    ("pin", "pin:go/cue-*:last:1"), ("retrieve", "retrieve:go/T>go/cue-*:last:1"),
    ("summary", "summary:count"), ("scratchpad", "last:1"),
)  # fmt: skip
REPO = (
    ("pin", "pin:run-tests/fails*:last:1"), ("retrieve", "retrieve:read-file/*>run-tests/fails*:last:1"),
    ("summary", "summary:count"), ("scratchpad", "last:1"),
)  # fmt: skip
TIGER = (
    ("pin", "pin:listen/*:last:1"), ("retrieve", "retrieve:listen/*>listen/*:last:1"),
    ("summary", "summary:count"), ("scratchpad", "counter:last:1"),
)  # fmt: skip
SMALL = (
    Question("flip:3", 5, 4, (0, 40, 80, 100, 120, 140), 3, FLIP),
    Question("tmaze:4", 5, 5, (0, 40, 80, 100, 120, 140, 160), 3, TMAZE),
    Question("repo_repair:2:2", 4, 3, (0, 400, 440, 600, 760, 1200), 4, REPO),
    Question("tiger", 4, 3, (0, 40, 60, 80, 100, 120, 140), 8, TIGER),
)
LARGE = (
    Question("flip:4", 6, 5, (0, 40, 60, 80, 100, 120, 140, 160, 180), 4, FLIP),
    Question("tmaze:8", 9, 9, tuple(range(0, 361, 20)), 4, TMAZE),
    Question("repo_repair:3:2", 4, 3, tuple(range(0, 1201, 100)), 8, REPO),
    Question("tiger", 5, 5, tuple(range(0, 201, 20)), 12, TIGER),
)
# Tiger with these accuracies: where grids of different fineness round the same beliefs up or down.
SMALL_GRIDS, LARGE_GRIDS = ("9/10",), ("3/4", "4/5", "9/10")


@dataclass(frozen=True)
class Parameters:
    """`questions` to ask; `accuracies` of Tiger whose belief grids are compared; per value a `gap` in units of reward
    and `seconds` of search.
    """

    questions: tuple[Question, ...] = SMALL
    accuracies: tuple[str, ...] = SMALL_GRIDS
    gap: float = 1e-6
    seconds: float = 1.5

    def __post_init__(self) -> None:
        """Refuse a curve of a single window."""
        for question in self.questions:
            if question.windows < 1:
                raise StudyError(
                    f"windows of {question.task} is {question.windows}; a curve needs at least 1"
                )


PRESETS = {"small": Parameters(), "full": Parameters(LARGE, LARGE_GRIDS, seconds=60.0)}


def cells(parameters: Parameters) -> list[dict[str, Any]]:
    """Per task one cell for the frontier and one a map, the dear ones first; one for each grid on Tiger."""
    effort = {"gap": parameters.gap, "seconds_allowed": parameters.seconds}
    found: list[dict[str, Any]] = []
    for question in parameters.questions:
        common = {"task": question.task, "horizon": question.horizon, **effort}
        found.append({"part": "frontier", **common})
        for arm in arms(question):
            # Twice the actions: more to search for what a note is good for.
            longer = 4 if arm["family"] == "scratchpad" else 1
            found.append({"part": "map", **arm, **common, "seconds_allowed": longer * parameters.seconds})
    for accuracy in parameters.accuracies:
        found += [
            {"part": "grid", "task": f"tiger:{accuracy}", "horizon": 4, "size": size,
             "map": f"counter:{GRID}:{size}", **effort}
            for size in range(1, 9)
        ]  # fmt: skip
    return sorted(found, key=lambda cell: (cell["part"] != "frontier", -(cell.get("size") or 0)))


def arms(question: Question) -> Iterator[dict[str, Any]]:
    """Family, size and map of everything tried on a task."""
    sizes: dict[str, Iterable[int]] = {family: range(question.windows + 1) for family in WINDOWS}
    sizes |= {BUDGET: question.budgets, GRID: range(1, question.grids + 1)}
    for family, tried in sizes.items():
        for size in tried:
            yield {"family": family, "size": size, "map": f"{family}:{size}"}
    for family, name in question.remedies:
        yield {"family": family, "size": None, "map": name}


def case_of(cell: Mapping[str, Any]) -> Case:
    """The task, undiscounted within its horizon, under the cell's context map; a scratchpad holds one note."""
    tools = ("scratchpad:a",) if cell.get("family") == "scratchpad" else ()
    blind = _blind(cell["task"], cell["horizon"], tools, cell["gap"], cell["seconds_allowed"])
    return blind.with_context(blind.spec.with_context(parse_map(cell.get("map", "null"))))


@lru_cache(maxsize=16)
def _blind(task: str, horizon: int, tools: tuple[str, ...], gap: float, seconds: float) -> Case:
    """The blind case, V*(M) and V*(M_0) computed: they are those of every map of the task."""
    given = {
        "task": f"library:{task}",
        "horizon": horizon,
        "discount": 1,
        "tools": list(tools),
        "context": "null",
    }
    case = Case(parse_spec(given), Effort(gap, seconds))
    for solution in (case.task, case.inner):
        if not solution.interval.certified:
            raise ArithmeticError(f"V* of {task} was not certified: {solution.ended}")
    return case


def run(cell: Mapping[str, Any], seed: int | None) -> Outcome:
    """One map's loss, baselines and bits; the value of one grid; or the frontier of a task."""
    case = case_of(cell)
    if cell["part"] == "frontier":
        return Outcome(tuple(_frontier(case)))
    if cell["part"] == "grid":
        return Outcome(({"contexts": case.induced.num_contexts, **_ends("Vo", case.best.interval)},))
    return Outcome((_map(case),))


def _map(case: Case) -> dict[str, Any]:
    began = time.perf_counter()
    found, induced = ContextLoss(case), case.induced
    pi = note_policy(induced, case.spec.task_text)
    if pi is None:
        Vo, pi = found.stateless, case.pi
    else:
        lower = induced.around(induced.evaluate(pi)).lower
        Vo = Interval(lower, max(lower, found.optimal.upper))
    verdict, bits = found.sufficiency, found.bits
    readers = {
        "bayes": bayes_scores(induced, Lookahead.of(case.inner)),
        "naive": naive_scores(induced, Lookahead.of(case.task)),
    }
    return {
        "contexts": induced.num_contexts,
        "tokens": max(context.tokens for context in induced.contexts),
        **_ends("Vo", Vo),
        **_ends("loss", (found.optimal - Vo).at_least(0.0)),
        **{name: induced.evaluate(policy(scores, 0.0)) + 0.0 for name, scores in readers.items()},
        "bits": round(bits.mean("belief_context"), 12) + 0.0,
        "bits_history": round(bits.mean("belief_history"), 12) + 0.0,
        "sufficient": {True: "yes", False: "no", None: "unknown"}[verdict.sufficient],
        "kind": "none" if verdict.witness is None else verdict.witness.loss,
        "failure": failure(induced, pi),
        "seconds": time.perf_counter() - began,
    }


def note_policy(induced: Induced, task: str) -> np.ndarray | None:
    """`[C, A]` a way to use the scratchpad on repo_repair, with two places: a note says that the tests named the first.

    None on other tasks and without a scratchpad. Local search misses it: the note pays only once it is both written
    and read.
    """
    if not task.startswith("library:repo_repair:2") or "read-file+write-a" not in induced.model.actions:
        return None
    causes = [name.removeprefix("cause-") for name in induced.task.observations if name.startswith("cause-")]
    rules = {
        "-": "run-tests",
        "run-tests=fails-in-0": "read-file+write-a",
        "run-tests=fails-in-1": "read-file",
    }
    for j in causes:
        rules[f"read-file+write-a=cause-{j}+note-a"] = f"patch-0-{j}"
        rules[f"read-file=cause-{j}"] = f"patch-1-{j}"
    known = {context.text for context in induced.contexts}
    rules = {text: action for text, action in rules.items() if text in known}
    return policy(rule_scores(induced, StatelessModel("rules", rules=rules, otherwise="finish")), 0.0)


def failure(induced: Induced, pi: np.ndarray) -> float:
    """Chance that a run of `pi` `[C, A]` never takes an action that pays the task's largest reward."""
    import numpy as np

    model, left = induced.model, induced.model.start.copy()
    live = induced.shown >= 0
    act = np.where(live[:, None], pi[np.maximum(induced.shown, 0)], 0.0)
    pays = np.asarray(model.R).T >= float(induced.task.R.max()) - 1e-9
    won = 0.0
    for _ in range(induced.criterion.horizon or 0):
        chosen = left[:, None] * act
        won += float(chosen[pays].sum())
        chosen[pays] = 0.0
        left = np.sum([chosen[:, a] @ model.T[a] for a in range(model.num_actions)], axis=0)
    return max(0.0, 1.0 - won)


def _frontier(case: Case) -> Iterator[dict[str, Any]]:
    """V_f of the task, and the loss of each map between the smallest sufficient one and the blind one."""
    spec, effort = case.spec, case.effort
    worth = feedback(spec.task, spec.criterion, gap=effort.gap, time_limit=10 * effort.seconds)
    V_f, optimal = worth.value_of_feedback, case.inner.interval
    phi = smallest(case.induced.inner, spec.criterion.horizon).phi
    points = frontier(phi, lambda merged: _at_least(case, merged))
    least, rows = points[-1].value.lower, []
    for point in reversed(points):
        # A map sees no less than one whose contexts are merged, so what the coarser one reaches it reaches too.
        Vo = _bounded(case, point.phi)
        least = max(least, point.value.lower, Vo.lower)
        rows.append((point.contexts, Interval(least, max(least, Vo.upper))))
    for contexts, Vo in rows:
        loss = (optimal - Vo).at_least(0.0)
        yield {"contexts": contexts, "V_f": (V_f.lower + V_f.upper) / 2, **_ends("loss", loss)}


def _at_least(case: Case, phi: BlockMap) -> Interval:
    """Vo of a map by a quick search; what it misses is made up for once the frontier's points are chosen."""
    found = stateless_found(_under(case, phi).model, 0, case.spec.criterion, starts=3)
    return Interval(found, max(found, case.inner.interval.upper))


def _bounded(case: Case, phi: BlockMap) -> Interval:
    """Vo of a map of the frontier, from both sides."""
    induced = _under(case, phi)
    return stateless(
        induced.model, 0, case.spec.criterion, gap=case.effort.gap, time_limit=case.effort.seconds,
        recall=case.inner.interval, behind=(induced.inner, induced.origin),
    ).interval  # fmt: skip


def _under(case: Case, phi: BlockMap) -> Induced:
    spec = case.spec
    return induce(spec.task, case.induced.inner, phi, spec.criterion, spec.sizes)


def _ends(name: str, interval: Interval) -> dict[str, float]:
    # A rounded-up zero is -0.0, which prints and compares oddly.
    return {f"{name}_lower": interval.lower + 0.0, f"{name}_upper": interval.upper + 0.0}


def figure(frames: Mapping[str, pd.DataFrame], width: float) -> Figure:
    """Loss as a share of V_f, per task: against tokens of the largest context, and against number of contexts."""
    from experiments.lossy_context_figure import drawn

    return drawn(frames, width)
