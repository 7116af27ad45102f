"""Sampled runs of a guarded task, drawn from its base model and the guard's definition; imports guarded, pomdp.rng.

Nothing of the guard constructor's kernel is used: the base model is stepped, the report, its region and the reviewer's
answer are drawn here. So the runs check the exact numbers of `Guarded` and the constructor alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from harnesses.constructors.guards import ESCALATED, REJECTED, Check
from harnesses.guard.guarded import exact_rows
from harnesses.guard.region import REGIONS, GuardError, Region, cut, region
from harnesses.guard.scores import Scores
from pomdp.criterion import Criterion
from pomdp.policy import Policy, as_controller
from pomdp.rational import RationalMatrix
from pomdp.rng import ACTION, DYNAMICS, LIMIT, START, words

GUARD = 4
"""The stream of random words of report and reviewer, after those of `pomdp.rng`."""
ACT, ASK, ESCALATE = (REGIONS.index(kind) for kind in (Region.ACT, Region.ASK, Region.ESCALATE))

# Runs side by side, and the most entries that a table may have: rows are dense.
CHUNK, MAX_ENTRIES = 8192, 2**24
_WORD = 2.0**-32


@dataclass(frozen=True, eq=False)
class Runs:
    """`N` sampled runs and their `M` submissions, step by step.

    `returns`, `costs` float64 `[N]`: what a run earned less what the guard charged, and that charge, both discounted.
    `questions` int `[N]`. Of each submission `[M]`: `run`, `step`; `p` float64, the report, NaN where repeated; `y`
    int8; `code` int8, its region or that of the answer held; `repeated` bool.
    """

    returns: np.ndarray
    costs: np.ndarray
    questions: np.ndarray
    run: np.ndarray
    step: np.ndarray
    p: np.ndarray
    y: np.ndarray
    code: np.ndarray
    repeated: np.ndarray

    @property
    def scores(self) -> Scores:
        """The judged submissions, in the order of `run[~repeated]`. Raises GuardError where there are none.

        Those of one run depend on each other, and the binomial ends of a report need independent items: let each run
        submit once, or take one submission of each.
        """
        judged = ~self.repeated
        return Scores.of(self.p[judged], self.y[judged], source="sampled runs")


def sample_runs(check: Check, policy: Policy, criterion: Criterion, runs: int, seed: int = 0) -> Runs:
    """Run the guarded task `runs` times; seed and run number fix all draws.

    The reward of a step is its expectation R(s,a) where the call is executed. A report is the least float whose
    shortest decimal reaches it, so that `regions` cuts it as the guard did. Raises GuardError without a horizon.
    """
    if criterion.horizon is None:
        raise GuardError("sampled runs end at a horizon; give the criterion one, such as 20")
    if not 1 <= runs <= LIMIT:
        raise GuardError(f"runs is {runs}; give from 1 to {LIMIT}, such as 10000")
    world = _World(check, policy, criterion.horizon)
    parts = [
        _chunk(world, np.arange(first, min(first + CHUNK, runs)), criterion, seed)
        for first in range(0, runs, CHUNK)
    ]
    return Runs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class _World:
    """Tables of the base model, the guard and the policy: ends of shares of [0, 1), row by row."""

    def __init__(self, check: Check, policy: Policy, horizon: int) -> None:
        model, controller = check.model, as_controller(policy, check.guarded, horizon)
        S, A, O = model.num_states, model.num_actions, model.num_observations
        if A * S * max(S, O) > MAX_ENTRIES:
            raise GuardError(
                f"{S} states and {A} actions are too many to sample from dense tables; shrink the model"
            )
        self.check, self.controller = check, controller
        self.start = _ends([model.exact.start], S)[0]
        self.moves = np.stack([_matrix_ends(m) for m in model.exact.T])
        self.shows = np.stack([_matrix_ends(m) for m in model.exact.Z])
        self.acts = _ends(exact_rows(controller.act), A)
        number = {name: o for o, name in enumerate(check.guarded.observations)}
        self.seen = np.array([number.get(name, -1) for name in model.observations])
        self.answers = np.array([-1, number.get(REJECTED, -1), number.get(ESCALATED, -1)])
        reports = sorted({p for row in check.reports for p in row})
        place = {p: k for k, p in enumerate(reports)}
        self.reports = _ends([{place[p]: w for p, w in row.items()} for row in check.reports], len(reports))
        self.p = np.array([cut(p) for p in reports])
        self.codes = np.array([REGIONS.index(region(p, check.thresholds)) for p in reports], dtype=np.int8)
        self.good = np.isin(np.arange(S), list(check.good))
        self.over = np.isin(np.arange(S), list(check.over))
        kinds = [(s in check.good, tuple(sorted(row.items()))) for s, row in enumerate(check.reports)]
        self.kind = np.array([kinds.index(kind) for kind in kinds])
        costs, judge = check.costs, check.reviewer
        self.ask, self.miss, self.escalate, self.wrong = map(
            float, (costs.ask, costs.miss, costs.escalate, costs.wrong)
        )
        self.e0, self.e1, self.r = map(float, (judge.e0, judge.e1, judge.r))


class _Judged(NamedTuple):
    """Of each lane: whether it submits, is judged, is executed; its answer's code, report's number and cost."""

    submits: np.ndarray
    judged: np.ndarray
    blocked: np.ndarray
    code: np.ndarray
    report: np.ndarray
    cost: np.ndarray


def _judge(
    world: _World, s: np.ndarray, a: np.ndarray, held: np.ndarray, u: np.ndarray, v: np.ndarray
) -> _Judged:
    """What the guard does with the calls `a` in states `s`; `u` draws reports and `v` the reviewer's answers."""
    submits = (a == world.check.action) & ~world.over[s]
    judged, good = submits & (held == 0), world.good[s]
    report = _drawn(world.reports[s], u)
    code = np.where(held == 0, world.codes[report], held)
    approved = judged & np.where(good, v >= world.e1, v < world.e0)
    executed = judged & ((code == ACT) | ((code == ASK) & approved))
    refused = np.where(good, world.r, world.miss)
    wrong = np.where(executed & ~good, world.wrong, 0.0)
    asked = world.ask + np.where(executed, 0.0, refused)
    cost = wrong + np.select([code == ASK, code == ESCALATE], [asked, world.escalate], 0.0)
    return _Judged(submits, judged, submits & ~executed, code, report, np.where(submits, cost, 0.0))


def _chunk(world: _World, runs: np.ndarray, criterion: Criterion, seed: int) -> tuple[np.ndarray, ...]:
    """The columns of `Runs` for these runs."""
    check, controller, lanes = world.check, world.controller, len(runs)
    s = _drawn(world.start, _uniform(seed, START, runs, 0)[0])
    node, held = np.full(lanes, controller.start), np.zeros(lanes, dtype=np.int8)
    returns, costs, questions, rows = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes, dtype=int), []
    for t in range(criterion.horizon or 0):
        a = _drawn(world.acts[node], _uniform(seed, ACTION, runs, t)[0])
        found = _judge(world, s, a, held, *_uniform(seed, GUARD, runs, t))
        submits, weight = found.submits, criterion.gamma**t
        cost = weight * found.cost
        costs += cost
        returns += weight * np.where(found.blocked, 0.0, check.model.R[a, s]) - cost
        questions += submits & (found.code == ASK)
        rows.append(
            (
                runs[submits],
                np.full(int(submits.sum()), t),
                np.where(found.judged, world.p[found.report], np.nan)[submits],
                world.good[s][submits].astype(np.int8),
                found.code[submits],
                ~found.judged[submits],
            )
        )
        move, show = _uniform(seed, DYNAMICS, runs, t)
        reached = np.where(found.blocked, s, _drawn(world.moves[a, s], move))
        shown = world.seen[_drawn(world.shows[a, reached], show)]
        shown = np.where(found.blocked, world.answers[found.code], shown)
        held = _held(world, found, held, s, reached)
        s, node = reached, controller.successor[node, a, shown]
    return returns, costs, questions, *(np.concatenate(column) for column in zip(*rows, strict=True))


def _held(world: _World, found: _Judged, held: np.ndarray, s: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The code of the answer that a resubmission would meet, 0 for none."""
    kept = np.where(world.over[reached] | (world.kind[s] != world.kind[reached]), 0, held)
    answer = 0 if world.check.fresh else found.code
    return np.where(found.blocked, answer, kept).astype(np.int8)


def _uniform(seed: int, stream: int, runs: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Two draws float64 `[N]` in [0, 1)."""
    first, second = words(seed, stream, runs, step)
    return first * _WORD, second * _WORD


def _drawn(ends: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Index int `[N]` drawn by `u` `[N]` from ends `[N, K]` or `[K]`."""
    return (u[:, None] >= ends).sum(axis=1)


def _matrix_ends(matrix: RationalMatrix) -> np.ndarray:
    return _ends(list(matrix.rows()), matrix.shape[1])


def _ends(rows: Sequence[Any], size: int) -> np.ndarray:
    """Ends float64 `[N, size]` of the shares of distributions {index: Fraction}, from their exact sums."""
    zero = Fraction(0)
    return np.array([[float(e) for e in accumulate(row.get(i, zero) for i in range(size))] for row in rows])
