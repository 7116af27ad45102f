"""Online play: the mean return of a fixed policy is its exact J, and an episode ends where it should."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from pomdp.belief import filter_history
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP, ModelError
from pomdp.online import CUT, play_online, steps_until
from pomdp.policy import Reactive
from pomdp.value import evaluate


@dataclass
class Trusting:
    """Opens the door opposite to the last growl, or listens after a door and at the start."""

    model: POMDP
    seen: list[tuple[int, int, np.ndarray]] = field(default_factory=list)
    recovered: int = 0

    def choose(self) -> int:
        if not self.seen or self.seen[-1][0] != 0:
            return 0
        return 2 - self.seen[-1][1]

    def observe(self, action: int, observation: int, belief: np.ndarray) -> None:
        self.seen.append((action, observation, belief))


@dataclass
class Fixed:
    """Takes one action for ever."""

    action: int
    steps: int = 0
    recovered: int = 1

    def choose(self) -> int:
        return self.action

    def observe(self, action: int, observation: int, belief: np.ndarray) -> None:
        assert action == self.action
        self.steps += 1


def test_the_mean_of_a_fixed_policy_is_its_exact_value() -> None:
    model, criterion = task("tiger").model, Criterion(Fraction(1), 2)
    played = play_online(model, criterion, lambda episode: Trusting(model), episodes=2000, seed=1)
    # Listening, then 0.85 of 10 and 0.15 of -100.
    assert abs(played.mean - (-1 + 8.5 - 15)) < 4 * played.standard_error
    assert played.standard_error == pytest.approx(np.std(played.returns, ddof=1) / np.sqrt(2000))
    assert played.mean == pytest.approx(np.mean(played.returns))


def test_a_reactive_policy_played_long_agrees_with_the_exact_discounted_value() -> None:
    maze, q = task("tmaze:2:0.7").model, Fraction(1, 2)
    turn = Reactive(pi=np.tile([0.0, 1.0, 0.0], (4, 1)), first=np.array([1.0, 0.0, 0.0]))
    played = play_online(maze, Criterion(q), lambda episode: _Reacting(turn), episodes=50)
    assert evaluate(maze, turn, Criterion(q)) == pytest.approx(-0.5)
    assert played.mean == pytest.approx(-0.5)  # a turn at step 1 always loses 1, discounted once
    assert played.standard_error == 0


class _Reacting:
    """A deterministic reactive policy."""

    recovered = 0

    def __init__(self, policy: Reactive) -> None:
        self.policy = policy
        self.now = policy.first

    def choose(self) -> int:
        return int(np.argmax(self.now))

    def observe(self, action: int, observation: int, belief: np.ndarray) -> None:
        self.now = self.policy.pi[observation]


def test_a_session_is_told_the_exact_belief() -> None:
    model, sessions = task("tiger").model, []

    def start(episode: int) -> Trusting:
        sessions.append(Trusting(model))
        return sessions[-1]

    play_online(model, Criterion(Fraction(1), 5), start, episodes=3)
    for session in sessions:
        assert len(session.seen) == 5
        exact = filter_history(model, [(a, o) for a, o, _ in session.seen]).beliefs
        np.testing.assert_allclose([belief for _, _, belief in session.seen], exact[1:], rtol=1e-12)


def test_an_episode_ends_at_a_terminal_state_at_the_horizon_or_where_it_is_cut() -> None:
    repair, tiger = task("repo_repair").model, task("tiger").model

    def length(model: POMDP, criterion: Criterion, action: str, steps: int | None = None) -> int:
        sessions = [Fixed(model.action_index(action)) for _ in range(2)]
        played = play_online(model, criterion, sessions.__getitem__, episodes=2, steps=steps)
        assert played.recovered == 2
        assert sessions[0].steps == sessions[1].steps
        return sessions[0].steps

    assert length(repair, Criterion(Fraction(1), 9), "finish") == 1
    assert length(repair, Criterion(Fraction(1), 9), "run-tests") == 9
    assert length(tiger, Criterion(Fraction(19, 20)), "listen") == 135
    assert length(tiger, Criterion(Fraction(19, 20)), "listen", steps=7) == 7
    assert length(tiger, Criterion(Fraction(19, 20), 5), "listen", steps=7) == 5


def test_truncation_bounds_what_is_cut() -> None:
    tiger, criterion = task("tiger").model, Criterion(Fraction(1, 2))
    played = play_online(tiger, criterion, lambda episode: Fixed(0), episodes=2, steps=3)
    assert played.returns == (-1.75, -1.75)
    assert played.truncation == pytest.approx(100 * 0.25)
    assert abs(played.mean - (-2)) <= played.truncation


@pytest.mark.parametrize("discount", [Fraction(0), Fraction(1, 1000), Fraction(1, 2), Fraction(19, 20)])
def test_steps_until_is_the_first_step_with_little_discount_left(discount: Fraction) -> None:
    steps = steps_until(Criterion(discount), CUT)
    assert discount**steps <= Fraction(1, 1000)
    assert steps == 1 or discount ** (steps - 1) > Fraction(1, 1000)
    assert steps_until(Criterion(discount, 1), CUT) == 1
    assert steps_until(Criterion(Fraction(1), 12), CUT) == 12


def test_counts_out_of_range_are_refused() -> None:
    tiger, criterion = task("tiger").model, Criterion(Fraction(1), 2)
    with pytest.raises(ModelError, match="episodes 1 is below 2"):
        play_online(tiger, criterion, lambda episode: Fixed(0), episodes=1)
    with pytest.raises(ModelError, match="steps 0 is below 1"):
        play_online(tiger, criterion, lambda episode: Fixed(0), episodes=2, steps=0)
