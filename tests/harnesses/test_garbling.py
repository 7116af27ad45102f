"""Theorems about pairs of context maps on a thousand random models: garbling, data processing, the order, the chain."""

from __future__ import annotations

import itertools
import os
import random
from fractions import Fraction

import numpy as np
import pytest

from harnesses.context import Branches, Context, Event, Message, Sizes, parse_map
from harnesses.context.order import coarsens
from harnesses.context_bits import bits
from harnesses.harness import Induced, induce
from pomdp.bounds.stateless import stateless
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP

HORIZON = 3
CRITERION = Criterion(Fraction(1), HORIZON)
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
# The finer map, and what a memoryless psi or a shorter memory makes of it.
PAIRS = (
    ("last:1", "compose:calls:last:1"),
    ("last:1", "compose:results:last:1"),
    ("last:1", "null"),
    ("last:2", "last:1"),
    ("last:2", "null"),
    ("last:2", "compose:calls:last:2"),
)
MAPS = tuple(dict.fromkeys(itertools.chain(*PAIRS)))


def random_model(rng: random.Random) -> POMDP:
    """Two or three states, two actions, two observations; weights from 0 to 6, rewards from -5 to 5."""
    S = rng.choice((2, 2, 3))

    def row(size: int) -> list[Fraction]:
        weights = [rng.choice((0, 0, 1, 5)) for _ in range(size)]
        weights[rng.randrange(size)] += 1
        return [Fraction(w, sum(weights)) for w in weights]

    return POMDP.build(
        states=S, actions=2, observations=2,
        T=[[row(S) for _ in range(S)] for _ in range(2)],
        Z=[[row(2) for _ in range(S)] for _ in range(2)],
        R=[[rng.randint(-5, 5) for _ in range(S)] for _ in range(2)],
        start=row(S),
    )  # fmt: skip


def under(model: POMDP, text: str) -> Induced:
    phi = parse_map(f"counter:{text}").bind(model, HORIZON)
    return induce(model, model, phi, CRITERION, Sizes())


class Optimum:
    """Exact optima of an induced model by brute force; its floats are sums of few terms, compared to 1e-9."""

    def __init__(self, induced: Induced) -> None:
        self.model, self.shown = induced.model, induced.shown
        self.T = [matrix.toarray() for matrix in induced.model.T]

    def recall(self, measure: np.ndarray, left: int) -> float:
        """The best policy that remembers all contexts: one decision for each sequence of them."""
        if left == 0:
            return 0.0
        return max(
            float(measure @ self.model.R[a])
            + sum(self.recall(part, left - 1) for part in self.split(measure @ self.T[a]).values())
            for a in range(self.model.num_actions)
        )

    def stateless(self, measure: np.ndarray, left: int) -> float:
        """The best action for each context, contexts of different times being different: all assignments tried."""
        parts = list(self.split(measure).values())
        gains = np.array([self.model.R @ part for part in parts]).reshape(len(parts), -1)
        if left == 1:
            return float(gains.max(axis=1, initial=-np.inf).sum()) if parts else 0.0
        best = -np.inf
        for chosen in itertools.product(range(self.model.num_actions), repeat=len(parts)):
            after = sum(
                (part @ self.T[a] for a, part in zip(chosen, parts, strict=True)), np.zeros(len(measure))
            )
            now = sum(gains[i, a] for i, a in enumerate(chosen))
            best = max(best, now + self.stateless(after, left - 1))
        return best

    def split(self, measure: np.ndarray) -> dict[int, np.ndarray]:
        shown = sorted({int(self.shown[s]) for s in np.flatnonzero(measure) if self.shown[s] >= 0})
        return {c: np.where(self.shown == c, measure, 0.0) for c in shown}


def check_bounds(induced: Induced, value: float) -> None:
    """The package's own bounds hold the brute-force value."""
    found = stateless(induced.model, 0, CRITERION, gap=1e-8, time_limit=5.0)
    assert found.interval.lower - 1e-9 <= value <= found.interval.upper + 1e-9
    assert found.interval.width <= 1e-6 and found.timed


def test_a_thousand_pairs_of_maps_lose_in_the_order_of_what_they_show() -> None:
    """garbling, dpi, chain: phi2 = psi . phi1 never beats phi1, never says more of the belief; a fifth strictly."""
    rng, pairs, strict, told = random.Random(20), 0, 0, 0
    for i in range(2000 if DEEP else 167):
        model, said, values = random_model(rng), {}, {}
        maps = {text: under(model, text) for text in MAPS}
        for text, induced in maps.items():
            optimum, start = Optimum(induced), induced.model.start
            best, recalled = optimum.stateless(start, HORIZON), optimum.recall(start, HORIZON)
            assert best <= recalled + 1e-9, (i, text, "chain")
            values[text], said[text] = (best, recalled), bits(model, induced.phi, CRITERION)
        for finer, coarser in PAIRS:
            assert values[coarser][0] <= values[finer][0] + 1e-9, (i, coarser, "Vo")
            assert values[coarser][1] <= values[finer][1] + 1e-9, (i, coarser, "V*")
            pairs += 1
            strict += any(
                less < more - 1e-6 for less, more in zip(values[coarser], values[finer], strict=True)
            )
            for more, less in zip(said[finer].steps, said[coarser].steps, strict=True):
                assert less.belief_context <= more.belief_context + 1e-9
                assert more.belief_context <= more.belief_history + 1e-9
                assert less.state_context <= more.state_context + 1e-9
            told += said[coarser].mean("belief_context") < said[finer].mean("belief_context") - 1e-6
        if i % 10 == 0:
            for finer, coarser in PAIRS:
                # The order finds psi where there is one.
                psi = coarsens(model, maps[finer].phi, maps[coarser].phi, HORIZON, Sizes())
                assert isinstance(psi, dict), (i, coarser)
            text = MAPS[i // 10 % len(MAPS)]
            check_bounds(maps[text], values[text][0])
    assert pairs >= 1000 and strict >= 200 and told >= 200


class Remembers:
    """psi with memory on top of last(1): shows the first result again with every later one."""

    name, bounded = "first-and-last", True

    def start(self) -> tuple[str, str]:
        return ("", "")

    def branches(self, memory: tuple[str, str], event: Event) -> Branches:
        return ((self.step(memory, event)[0], Fraction(1)),)

    def step(self, memory: tuple[str, str], event: Event) -> tuple[tuple[str, str], tuple]:
        return (memory[0] or event.observation, event.observation), ()

    def show(self, memory: tuple[str, str]) -> Context:
        return Context(tuple(Message("note", text, 1) for text in memory if text))


@pytest.mark.parametrize("n", [2, 3])
def test_a_psi_with_memory_can_win_what_phi_loses(n: int) -> None:
    """garbling needs psi memoryless: on the T-maze Vo rises from 0 under last(1) to 1 under a psi that remembers."""
    model, criterion = task(f"tmaze:{n}").model, Criterion(Fraction(1), n + 1)
    values = []
    for phi in (parse_map("last:1").bind(model, n + 1), Remembers()):
        induced = induce(model, model, phi, criterion, Sizes())  # type: ignore[arg-type]
        values.append(stateless(induced.model, 0, criterion, time_limit=10.0).interval)
    assert abs(values[0].lower) <= 1e-6 and values[0].upper <= 1e-6
    assert values[1].lower >= 1 - 1e-6 and values[1].upper <= 1 + 1e-6


def test_windows_of_the_tiger_with_the_step_counter_never_fall_and_end_at_the_optimum() -> None:
    """chain: Tiger, horizon 4, discount 1: W = -4, then -389/100, 43/25 and V* = 2.42125 with all four pairs told."""
    model, criterion = task("tiger").model, Criterion(Fraction(1), 4)
    found = []
    for k in range(4):
        induced = induce(model, model, parse_map(f"counter:last:{k}").bind(model, 4), criterion, Sizes())
        found.append(stateless(induced.model, 0, criterion, gap=1e-7, time_limit=20.0).interval)
        assert found[-1].width <= 1e-6
    for interval, exact in zip(found, ("-4", "-3.89", "1.72", "2.42125"), strict=True):
        assert float(Fraction(exact)) == pytest.approx(interval.lower, abs=1e-6)
    assert all(a.lower <= b.upper for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_is_a_policy_on_contexts_that_count(seed: int) -> None:
    """chain: W <= Vo of every map with a counter to n; W by trying all action sequences."""
    model = random_model(random.Random(seed))
    found = under(model, "null")
    plans = []
    for plan in itertools.product(range(2), repeat=HORIZON):
        measure, total = model.start, 0.0
        for a in plan:
            total, measure = total + float(measure @ model.R[a]), measure @ model.T[a]
        plans.append(total)
    blind = Optimum(found).stateless(found.model.start, HORIZON)
    assert blind == pytest.approx(max(plans))
    finer = under(model, "last:1")
    assert max(plans) <= Optimum(finer).stateless(finer.model.start, HORIZON) + 1e-9


def test_one_action_a_state_can_lose_to_a_coin_without_the_time_in_the_context() -> None:
    """no-loss and stateless-upper need the time: pay 1 and stay, or 2 and end; horizon 2: 2 < 9/4 < V* = 3."""
    model = POMDP.build(
        states=["on", "over"], actions=["stay", "end"], observations=["on", "over"],
        T=[[{0: 1}, {1: 1}], [{1: 1}, {1: 1}]], Z=[[{0: 1}, {1: 1}]] * 2, R=[[1, 0], [2, 0]], start="on",
    )  # fmt: skip
    criterion = Criterion(Fraction(1), 2)
    values = {}
    for text in ("belief_grid:1", "counter:belief_grid:1"):
        induced = induce(model, model, parse_map(text).bind(model, 2), criterion, Sizes())
        values[text] = stateless(induced.model, 0, criterion, time_limit=10.0)
    plain, counted = values.values()
    assert plain.interval.contains(Fraction(9, 4)) and plain.interval.lower >= 2.25 - 1e-6
    assert plain.deterministic.lower == pytest.approx(2) and plain.deterministic.upper < 2.25
    assert counted.interval.lower == pytest.approx(3, abs=1e-6)
