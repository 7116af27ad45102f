"""Episodes against a loop in plain Python that shares only the tables, and over sharded devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from pomdp.alias import AliasTable
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP
from pomdp.policy import Controller, Reactive
from pomdp.rollout import Events, World
from pomdp.simulate import Trajectory, simulate, trajectories

S, A, O, STEPS = 5, 3, 4, 30
WORD = 2**32


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds, from its published description."""
    schedule = (key[0], key[1], 0x1BD11BDA ^ key[0] ^ key[1])
    a, b = (counter[0] + key[0]) % WORD, (counter[1] + key[1]) % WORD
    turns = (13, 15, 26, 6, 17, 29, 16, 24)
    for i in range(20):
        a = (a + b) % WORD
        turn = turns[i % 8]
        b = (b << turn | b >> (32 - turn)) % WORD ^ a
        if i % 4 == 3:
            n = i // 4 + 1
            a = (a + schedule[n % 3]) % WORD
            b = (b + schedule[(n + 1) % 3] + n) % WORD
    return a, b


def drawn(table: AliasTable, row: int, word: int, second: int) -> int:
    """The outcome that a word names, by the table's description."""
    bits = table.bits if table.row_bits is None else int(table.row_bits[row])
    start = row * 2**bits if table.offsets is None else int(table.offsets[row])
    column, place = divmod(word * 2**bits, WORD)
    entry = int(table.entries[start + column])
    if table.aliases is None:
        own, alias = place // 2**10 < entry // 2**10, entry % 2**10
    else:
        own, alias = second < entry, int(table.aliases[start + column])
    chosen = column if own else alias
    return chosen if table.outcomes is None else int(table.outcomes[start + chosen])


def play(
    model: POMDP, world: World, controller: Controller, seed: int, episode: int, steps: int
) -> Trajectory:
    """The episode, step by step. Streams: 0 dynamics, 1 action, 2 start, 3 wide rows."""
    act = AliasTable.build(csr_array(controller.act))
    S = model.num_states
    state = drawn(world.start, 0, *threefry((seed, 2), (episode, 0)))
    node = controller.start
    states, actions, observations = [state], [], []
    for t in range(steps):
        first, second = threefry((seed, 0), (episode, t))
        wide_first, wide_second = threefry((seed, 3), (episode, t))
        action = drawn(act, node, *threefry((seed, 1), (episode, t)))
        state = drawn(world.transition, action * S + state, first, wide_first)
        observation = drawn(world.observation, action * S + state, second, wide_second)
        node = int(controller.successor[node, action, observation])
        states.append(state)
        actions.append(action)
        observations.append(observation)
    rewards = model.R[actions, states[:-1]]
    return Trajectory(*(np.array(x) for x in (states, actions, observations)), rewards)


@cache
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


def random_controller(seed: int, stochastic: bool, nodes: int = 6) -> Controller:
    rng = np.random.default_rng(seed + 1000)
    act = np.eye(A)[rng.integers(A, size=nodes)]
    if stochastic:
        act = (act + rng.dirichlet(np.ones(A), size=nodes)) / 2
    return Controller(act, rng.integers(nodes, size=(nodes, A, O)), int(rng.integers(nodes)))


def same(one: Trajectory, other: Trajectory) -> bool:
    names = ("states", "actions", "observations", "rewards")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("stochastic", [False, True])
def test_episodes_equal_those_of_a_plain_loop(stochastic: bool) -> None:
    for seed in range(3):
        model, controller = random_model(seed), random_controller(seed, stochastic)
        ids = [0, 1, 77, 2**32 - 1]
        found = trajectories(model, controller, ids, steps=STEPS, seed=seed)
        assert list(found) == ids
        for number in ids:
            assert same(found[number], play(model, World.of(model), controller, seed, number, STEPS))


def test_episodes_equal_those_of_a_plain_loop_where_tables_are_wide_and_ragged() -> None:
    n = 1100
    # From state 0 everything can happen, elsewhere little; both actions come back to state 0 often.
    anything = {j: Fraction(1, n) for j in range(n)}
    moves = [[{0: Fraction(1, 2), (s + a) % (n - 1) + 1: Fraction(1, 2)} for s in range(n)] for a in (1, 3)]
    sees = [[{s % 7: Fraction(1, 3), 8: Fraction(2, 3)} for s in range(n)] for _ in (0, 1)]
    for rows in (*moves, *sees):
        rows[0] = anything
    rewards = np.random.default_rng(5).integers(-5, 6, size=(2, n))
    model = POMDP.build(states=n, actions=2, observations=n, T=moves, Z=sees, R=rewards, discount=0.9)
    world = World.of(model)
    for table in (world.transition, world.observation):
        assert table.wide and table.row_bits is not None and table.outcomes is not None
    assert world.start.wide and world.start.row_bits is None
    nodes = np.broadcast_to(np.arange(n), (n + 1, 2, n))
    controller = Controller(np.full((n + 1, 2), 0.5), nodes, n)
    found = trajectories(model, controller, range(3), steps=12, seed=9)
    assert all(same(run, play(model, world, controller, 9, i, 12)) for i, run in found.items())
    assert len({*found[0].states, *found[1].states}) > 4


def test_episodes_equal_those_of_a_plain_loop_where_actions_are_many() -> None:
    many = 1100
    weights = np.random.default_rng(6).integers(1, 9, size=(2, many))
    flip = [[0, 1], [1, 0]]
    model = POMDP.build(
        states=2,
        actions=many,
        observations=2,
        T=[np.eye(2), flip] * (many // 2),
        Z=[np.eye(2)] * many,
        R=np.tile(np.arange(2), (many, 1)),
    )
    nodes = np.broadcast_to(np.arange(2), (2, many, 2))
    controller = Controller(weights / weights.sum(axis=1, keepdims=True), nodes)
    found = trajectories(model, controller, range(3), steps=12, seed=2)
    assert all(same(run, play(model, World.of(model), controller, 2, i, 12)) for i, run in found.items())
    assert len(set(found[0].actions)) > 6


def test_thirty_two_events_of_each_kind_are_counted_apart() -> None:
    model, rng = random_model(4), np.random.default_rng(4)
    masks = [rng.random((A, S)) < 0.5 for _ in range(32)] + [rng.random(O) < 0.5 for _ in range(32)]
    order = rng.permutation(64)
    events = Events.of([masks[i] for i in order], model)
    pairs, observations = rng.integers(A * S, size=500), rng.integers(O, size=500)
    before = tuple(jnp.full(500, i, dtype=jnp.uint32) for i in range(64))
    after = events.add(before, jnp.asarray(pairs, jnp.uint32), jnp.asarray(observations, jnp.uint32))
    for place, i in enumerate(order):
        where = masks[i].ravel()[pairs if i < 32 else observations]
        assert np.array_equal(after[place], place + where)


@pytest.mark.gpu
@pytest.mark.parametrize("stochastic", [False, True])
def test_an_accelerator_gives_the_same_episodes_as_the_cpu(stochastic: bool) -> None:
    model, controller = random_model(5), random_controller(5, stochastic)
    places = (jax.devices("cpu")[0], jax.devices()[0])
    runs, results = [], []
    for place in places:
        with jax.default_device(place):
            runs.append(trajectories(model, controller, range(200), steps=STEPS, seed=8))
        results.append(
            simulate(
                model,
                controller,
                Criterion.of(model),
                episodes=50_000,
                steps=STEPS,
                seed=8,
                events={"end": np.arange(O) == 1},
                devices=[place],
            )
        )
    assert all(same(runs[0][i], runs[1][i]) for i in range(200))
    assert results[0].events == results[1].events
    assert results[0].mean == pytest.approx(results[1].mean, rel=1e-6, abs=1e-5)


TWO_DEVICES = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, PartitionSpec as P
from pomdp.agents import agent_for
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.policy import Reactive
from pomdp.rollout import Events, World, paths
from pomdp.simulate import simulate

assert len(jax.devices()) == 2
model = task("tiger").model
policy = Reactive(np.array([[0.5, 0.1, 0.4], [0.5, 0.4, 0.1]]), np.array([1.0, 0.0, 0.0]))
found = simulate(model, policy, Criterion.of(model, "0.9"), episodes=9000, seed=5, steps=25)
mesh = jax.make_mesh((2,), ("episodes",), axis_types=(AxisType.Auto,))
world, agent = World.of(model), agent_for(policy, model, 25)
shard = lambda ids: paths(world, agent, jnp.uint32(5), ids, 25)
lanes = P(None, "episodes")
split = jax.jit(jax.shard_map(shard, mesh=mesh, in_specs=P("episodes"),
                              out_specs=(P("episodes"), lanes, lanes, lanes), check_vma=False))
arrays = split(jnp.arange(64, dtype=jnp.uint32))
assert len(arrays[1].sharding.device_set) == 2
print(json.dumps([found.mean, found.standard_error, *(np.asarray(a).tolist() for a in arrays)]))
"""


def test_two_devices_and_sharded_arrays_give_the_same_episodes_and_the_same_estimate() -> None:
    root = Path(__file__).resolve().parents[2]
    flags = "--xla_force_host_platform_device_count=2 " + os.environ.get("XLA_FLAGS", "")
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True, check=True
    )
    mean, error, first, actions, states, observations = json.loads(done.stdout)

    model = task("tiger").model
    policy = Reactive(np.array([[0.5, 0.1, 0.4], [0.5, 0.4, 0.1]]), np.array([1.0, 0.0, 0.0]))
    here = simulate(
        model, policy, Criterion.of(model, "0.9"), episodes=9000, seed=5, steps=25, keep=range(64)
    )
    assert (mean, error) == (here.mean, here.standard_error)
    for lane, run in here.trajectories.items():
        assert run.states.tolist() == [first[lane], *(row[lane] for row in states)]
        assert run.actions.tolist() == [row[lane] for row in actions]
        assert run.observations.tolist() == [row[lane] for row in observations]
