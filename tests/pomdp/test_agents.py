"""Agents: alpha vectors choose by the belief that an independent filter computes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pomdp.criterion import Criterion
from pomdp.model import POMDP
from pomdp.policy import AlphaVectors
from pomdp.simulate import Trajectory, simulate, trajectories

S, A, O, STEPS = 5, 3, 4, 30


def random_model(seed: int, states: int = S, observations: int = O) -> POMDP:
    """Rows of small integer weights, some of them zero."""
    rng = np.random.default_rng(seed)

    def rows(columns: int) -> list[dict[int, Fraction]]:
        weights = rng.integers(0, 4, size=(states, columns))
        weights[:, rng.integers(columns)] += 1
        return [{j: Fraction(w, sum(row)) for j, w in enumerate(row) if w} for row in weights.tolist()]

    return POMDP.build(
        states=states,
        actions=A,
        observations=observations,
        T=[rows(states) for _ in range(A)],
        Z=[rows(observations) for _ in range(A)],
        R=rng.integers(-10, 11, size=(A, states)),
        discount="0.9",
        start=rows(states)[0],
    )


def same(one: Trajectory, other: Trajectory) -> bool:
    names = ("states", "actions", "observations", "rewards")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def filtered(model: POMDP, policy: AlphaVectors, run: Trajectory) -> list[int]:
    """Greedy actions on the belief that float64 filtering of the run's own history gives."""
    belief, chosen = model.start, []
    for action, observation in zip(run.actions, run.observations, strict=True):
        chosen.append(int(policy.actions[np.argmax(policy.vectors @ belief)]))
        belief = (belief @ model.T[action]) * model.Z[action].toarray()[:, observation]
        belief = belief / belief.sum()
    return chosen


def every(model: POMDP, policy: AlphaVectors) -> list[Trajectory]:
    return list(trajectories(model, policy, range(301), steps=STEPS, seed=2).values())


@pytest.mark.parametrize("sparse", [False, True])
def test_alpha_vectors_act_greedily_on_the_belief(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if sparse:
        monkeypatch.setattr("pomdp.agents.DENSE_ENTRIES", 0)
        monkeypatch.setattr("pomdp.agents.DENSE_FACTOR", 0)
    model, rng = random_model(7), np.random.default_rng(7)
    policy = AlphaVectors(rng.normal(size=(9, S)), rng.integers(A, size=9))
    ids = [0, 5, 300]
    found = trajectories(model, policy, ids, steps=STEPS, seed=2)
    assert list(found) == ids
    for run in found.values():
        assert filtered(model, policy, run) == run.actions.tolist()
        assert len(set(run.actions.tolist())) > 1
    alone = trajectories(model, policy, [300], steps=STEPS, seed=2)
    assert same(alone[300], found[300])
    if not sparse:
        result = simulate(
            model, policy, Criterion.of(model), episodes=301, steps=STEPS, seed=2, keep=ids, chunk=7
        )
        assert all(same(result.trajectories[i], found[i]) for i in ids)
        returns = [0.9 ** np.arange(STEPS) @ run.rewards for run in every(model, policy)]
        assert result.mean == pytest.approx(np.mean(returns), abs=1e-4)
