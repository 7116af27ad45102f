"""Steps per second of the simulator beside numpy and pomdp-py, in one run on one core, with ratios.

    python benchmarks/monte_carlo.py [--seconds 2]

Two models, as in the design's table: Tiger, and a random dense one (100 states, 5 actions, 10 observations),
both under a window-2 policy (a controller over the last two pairs of action and observation) for 100 steps.
Rates are steps per CPU second of this process, the best of three passes; "wall" is by the clock, which a busy
machine slows down. numpy runs the same alias tables over 10,000 lanes with its own SFC64 words. pomdp-py runs
its environment, without and with its belief update. An accelerator, where JAX finds one, is timed by the
clock.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

if hasattr(os, "sched_setaffinity"):
    # Before JAX is imported: it makes one thread for each core that the process may use.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax
import numpy as np

from pomdp.alias import draw
from pomdp.criterion import Criterion
from pomdp.interop import to_pomdp_py
from pomdp.model import POMDP
from pomdp.policy import Controller
from pomdp.rollout import World
from pomdp.simulate import simulate

STEPS = 100
NUMPY_LANES = 10_000
PASSES = 3


def tiger() -> POMDP:
    """Tiger with accuracy 0.85, as in tiger.95.pomdp."""
    half = [[0.5, 0.5], [0.5, 0.5]]
    return POMDP.build(
        states=["tiger-left", "tiger-right"],
        actions=["listen", "open-left", "open-right"],
        observations=["tiger-left", "tiger-right"],
        T=[np.eye(2), half, half],
        Z=[[[0.85, 0.15], [0.15, 0.85]], half, half],
        R=[[-1, -1], [-100, 10], [10, -100]],
        discount=0.95,
        name="tiger",
    )


def random_model(states: int = 100, actions: int = 5, observations: int = 10) -> POMDP:
    """Every transition and observation possible, from numbers in thousandths."""
    rng = np.random.default_rng(0)

    def rows(shape: tuple[int, int]) -> np.ndarray:
        return rng.multinomial(100_000 - shape[1], np.full(shape[1], 1 / shape[1]), size=shape[0]) + 1

    return POMDP.build(
        states=states,
        actions=actions,
        observations=observations,
        T=[rows((states, states)) / 100_000 for _ in range(actions)],
        Z=[rows((states, observations)) / 100_000 for _ in range(actions)],
        R=rng.integers(-100, 100, size=(actions, states)) / 10,
        discount=0.95,
        name=f"random-{states}",
    )


def window_two(model: POMDP) -> Controller:
    """A controller over the last two pairs (a, o): 1 + AO + (AO)^2 nodes, one random action each."""
    A, O = model.num_actions, model.num_observations
    pairs = A * O
    nodes = 1 + pairs + pairs**2
    last = np.where(np.arange(nodes) > pairs, (np.arange(nodes) - 1 - pairs) % pairs, np.arange(nodes) - 1)
    pair = np.arange(pairs).reshape(A, O)
    successor = np.where(last[:, None, None] < 0, 1 + pair, 1 + pairs + last[:, None, None] * pairs + pair)
    action = np.random.default_rng(1).integers(A, size=nodes)
    return Controller(np.eye(A)[action], successor, 0)


def run_ours(model: POMDP, policy: Controller, device: jax.Device) -> Callable[[], int]:
    """One pass of `simulate`, sums included."""
    episodes = 2**17 if device.platform == "cpu" else 2**22
    criterion = Criterion.of(model)

    def once() -> int:
        found = simulate(model, policy, criterion, episodes=episodes, steps=STEPS, seed=1, devices=[device])
        return found.episodes * found.steps

    return once


def run_numpy(model: POMDP, policy: Controller) -> Callable[[], int]:
    """One pass of the same steps on the same tables, vectorised over lanes."""
    world = World.of(model)
    reward = np.asarray(world.reward)
    action = np.argmax(policy.act, axis=1).astype(np.uint32)
    K, A, O = policy.successor.shape
    follow = policy.successor[np.arange(K), action].ravel().astype(np.uint32)
    rng = np.random.Generator(np.random.SFC64(1))
    states, one_o = np.uint32(model.num_states), np.uint32(O)

    def words() -> np.ndarray:
        return rng.integers(0, 2**32, size=NUMPY_LANES, dtype=np.uint32)

    def once() -> int:
        node = np.zeros(NUMPY_LANES, dtype=np.uint32)
        state = draw(world.start, node, words(), words())
        total = np.zeros(NUMPY_LANES)
        for t in range(STEPS):
            base = np.take(action, node) * states
            total += 0.95**t * np.take(reward, base + state)
            state = draw(world.transition, base + state, words())
            observation = draw(world.observation, base + state, words())
            node = np.take(follow, node * one_o + observation)
        return NUMPY_LANES * STEPS

    return once


def run_pomdp_py(model: POMDP, policy: Controller, believe: bool, episodes: int) -> Callable[[], int]:
    """One pass of pomdp-py's environment loop, with or without the belief update of its agent."""
    action = np.argmax(policy.act, axis=1).tolist()
    successor = policy.successor.tolist()

    def once() -> int:
        random.seed(1)
        for episode in range(episodes):
            # Only a run with beliefs needs an agent that starts afresh.
            if believe or episode == 0:
                problem = to_pomdp_py(model, seed=episode)
                env, agent = problem.env, problem.agent
            chosen = agent.policy_model.all
            node, total = 0, 0.0
            for t in range(STEPS):
                act = chosen[action[node]]
                total += 0.95**t * env.state_transition(act, execute=True)
                observation = env.provide_observation(agent.observation_model, act)
                if believe:
                    agent.update(act, observation)
                node = successor[node][act.index][observation.index]
        return episodes * STEPS

    return once


def rates(once: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Steps per CPU second and per second of the clock, the best of PASSES."""
    once()
    cpu, wall = 0.0, 0.0
    for _ in range(PASSES):
        steps, begun, clock = 0, time.process_time(), time.perf_counter()
        while True:
            steps += once()
            used, passed = time.process_time() - begun, time.perf_counter() - clock
            if used > seconds / PASSES or passed > 2 * seconds:
                break
        cpu, wall = max(cpu, steps / used), max(wall, steps / passed)
    return cpu, wall


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="steps per second beside numpy and pomdp-py")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds for each engine and model")
    seconds = parser.parse_args().seconds
    print(f"{'model':12} {'engine':34} {'steps/CPU s':>12} {'wall':>10} {'ours is':>10}")
    for model in (tiger(), random_model()):
        policy = window_two(model)
        cpu = jax.local_devices(backend="cpu")[0]
        engines = [
            ("ours (JAX, one core)", run_ours(model, policy, cpu)),
            ("numpy, alias tables", run_numpy(model, policy)),
            ("pomdp-py environment", run_pomdp_py(model, policy, False, 20)),
            ("pomdp-py environment and belief", run_pomdp_py(model, policy, True, 1)),
        ]
        ours = 0.0
        for name, once in engines:
            rate, wall = rates(once, seconds)
            ours = ours or rate
            print(f"{model.name:12} {name:34} {rate:12.3g} {wall:10.3g} {ours / rate:9.3g}x", flush=True)
        if jax.default_backend() != "cpu":
            device = jax.local_devices()[0]
            _, wall = rates(run_ours(model, policy, device), seconds)
            label = f"ours ({device.device_kind})"
            print(f"{model.name:12} {label:34} {'':12} {wall:10.3g} {ours / wall:9.3g}x", flush=True)


if __name__ == "__main__":
    main()
