"""V* against the model checker Storm: its belief unfolding and its belief grid share nothing with our solver.

Storm knows expected total reward until a state is reached, observations of states, and no discount. So a
state here is (stage, state, last observation), discounting is a step to the end with probability 1 - gamma,
and rewards are shifted to be nonnegative, by an amount known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pomdp.bounds import solve
from pomdp.criterion import Criterion
from pomdp.model import POMDP

stormpy = pytest.importorskip("stormpy", reason="published for Linux on x86-64 only")
pytest.importorskip("stormpy.pomdp")
pytest.importorskip("stormpy.io")

PRECISION = 1e-5  # of Storm's value iteration, 1e-6 relative by default, on values of some tens

END = 1
Node = tuple[int, int, int]


@dataclass
class Encoding:
    """A model as Storm's text; `add` numbers the nodes (stage, state, observation) as they are met."""

    model: POMDP
    horizon: int | None
    gamma: float

    def __post_init__(self) -> None:
        self.shift = -float(self.model.R.min())
        self.order: list[Node] = []
        self.numbers: dict[Node, int] = {}
        self.T = [kernel.toarray() for kernel in self.model.T]
        self.Z = [kernel.toarray() for kernel in self.model.Z]

    def add(self, node: Node) -> int:
        """The number of `node`: 0 is the root, 1 the end."""
        if node not in self.numbers:
            self.numbers[node] = len(self.order) + 2
            self.order.append(node)
        return self.numbers[node]

    def choice(self, name: str, reward: float, successors: dict[int, float]) -> list[str]:
        """One action of a state."""
        lines = [f"\taction {name} [{reward!r}]"]
        return lines + [f"\t\t{target} : {float(p)!r}" for target, p in sorted(successors.items())]

    def step(self, node: Node, action: int) -> dict[int, float]:
        """Where `action` leads from `node`."""
        stage, state, _ = node
        if self.horizon is not None and stage + 1 == self.horizon:
            return {END: 1.0}
        later = 0 if self.horizon is None else stage + 1
        found = {END: 1.0 - self.gamma} if self.horizon is None else {}
        kept = self.gamma if self.horizon is None else 1.0
        for s in np.flatnonzero(self.T[action][state]):
            for o in np.flatnonzero(self.Z[action][s]):
                target = self.add((later, int(s), int(o)))
                p = kept * self.T[action][state, s] * self.Z[action][s, o]
                found[target] = found.get(target, 0.0) + p
        return found

    def text(self) -> str:
        """The whole model in Storm's explicit format."""
        start = {self.add((0, s, -1)): float(p) for s, p in enumerate(self.model.start) if p > 0}
        lines = ["state 0 {0} init", *self.choice("0", 0.0, start)]
        lines += ["state 1 {1} end", *self.choice("0", 0.0, {END: 1.0})]
        for number, node in enumerate(self.order, start=2):  # grows while it is read
            lines.append(f"state {number} {{{node[2] + 3}}}")
            for a in range(self.model.num_actions):
                gain = float(self.model.R[a, node[1]]) + self.shift
                lines += self.choice(str(a), gain, self.step(node, a))
        states, choices = len(self.order) + 2, len(self.order) * self.model.num_actions + 2
        head = ["@type: POMDP", "@parameters", "", "@reward_models", "gain"]
        head += ["@nr_states", str(states), "@nr_choices", str(choices), "@model"]
        return "\n".join([*head, *lines, ""])

    def back(self, value: float) -> float:
        """Storm's value without the shift."""
        return value - self.shift * (self.horizon if self.horizon is not None else 1 / (1 - self.gamma))


def storm_interval(encoding: Encoding, file: Path) -> tuple[float, float]:
    """A lower and an upper end of V*; equal where all reachable beliefs were visited."""
    file.write_text(encoding.text())
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    model = stormpy.build_model_from_drn(str(file), options=options)
    wanted = stormpy.parse_property('R{"gain"}max=? [F "end"]')
    unfolded = stormpy.pomdp.verify_with_belief_unfolding(model, wanted, max_exploration_size=20_000)
    lower = encoding.back(unfolded.value)
    if unfolded.completed_exploration:
        return lower, lower
    grid = stormpy.pomdp.verify_with_belief_discretization(model, wanted, resolution=60)
    return lower, encoding.back(grid.value)


def random_model(seed: int) -> POMDP:
    """Three states, two actions, two observations; sparse rows, rewards of both signs."""
    rng = np.random.default_rng(seed)

    def rows(count: int, width: int) -> np.ndarray:
        weights = rng.integers(1, 9, (2, count, width)) * (rng.random((2, count, width)) < 0.8)
        weights[..., 0] += weights.sum(-1) == 0
        return weights / weights.sum(-1, keepdims=True)

    R = rng.integers(-9, 10, (2, 3))
    return POMDP.build(states=3, actions=2, observations=2, T=rows(3, 3), Z=rows(3, 2), R=R)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("blind", [False, True])
def test_with_a_horizon_the_interval_contains_storms_value(seed: int, blind: bool, tmp_path: Path) -> None:
    model = random_model(seed).blinded() if blind else random_model(seed)
    lower, upper = storm_interval(Encoding(model, 5, 1.0), tmp_path / "model.drn")
    assert lower == upper, "five steps lead to finitely many beliefs"
    ours = solve(model, Criterion.of(model, discount=1, horizon=5), gap=1e-6, time_limit=20.0).interval
    assert ours.lower - PRECISION <= lower <= ours.upper + PRECISION
    assert ours.width <= 1e-5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("discount", "width"), [("0.5", 0.05), ("0.75", 1.0)])
def test_discounted_the_intervals_meet(seed: int, discount: str, width: float, tmp_path: Path) -> None:
    model = random_model(seed)
    lower, upper = storm_interval(Encoding(model, None, float(discount)), tmp_path / "model.drn")
    assert upper - lower < width, "Storm's interval is narrow enough to say something"
    ours = solve(model, Criterion.of(model, discount=discount), gap=1e-4, time_limit=20.0).interval
    assert ours.lower <= upper + PRECISION and lower <= ours.upper + PRECISION
    assert ours.width <= 1e-3
