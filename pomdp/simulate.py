"""Monte Carlo: the return of a policy by simulation, rates of events, and single episodes drawn again.

Every draw of an episode is a function of (seed, episode, step) and of the model and policy alone: its states,
actions and observations are the same in any batch, chunk size, number of devices, and alone (`trajectories`).
Returns are summed in float32 within an episode and in float64 over blocks of episodes that depend on
nothing but their number. Imports jax and pomdp's rollout, agents, criterion and rng.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pomdp.agents import Agent, agent_for
from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import Policy
from pomdp.rng import LIMIT, as_word
from pomdp.rollout import MAX_EVENTS, Events, World, batch, paths

# What is left out of an endless episode by default, as a share of the largest return.
TAIL = 1e-4
MAX_STEPS = 2**24
# Lanes of one chunk. On a CPU, so few that XLA does not split an operation over threads, which costs more
# than it gains: several batches run at a time instead. An accelerator wants as many as it can get.
CPU_LANES, ACCELERATOR_LANES = 1024, 2**20
# A batch takes well under a second, so that progress shows and an interrupt is answered.
BATCH_STEPS, BATCH_EPISODES = 2**25, 2**20
# Episodes whose returns are summed at one time; part of a result's definition, to the last bit.
BLOCK = 4096


@dataclass(frozen=True)
class EventRate:
    """How often an event happened: per step, and the share of episodes in which it happened at all.

    The errors are standard errors over episodes, None for a single episode.
    """

    per_step: float
    per_step_error: float | None
    per_episode: float
    per_episode_error: float | None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode: `states` `[N + 1]`, `actions`, `observations` and `rewards` `[N]`.

    Observation t is seen after action t; `rewards` are expected immediate rewards R[a, s], as in
    `Simulation`.
    """

    states: np.ndarray
    actions: np.ndarray
    observations: np.ndarray
    rewards: np.ndarray


@dataclass(frozen=True, eq=False)
class Simulation:
    """An estimate of J, which is no interval: `mean` with its `standard_error` (None for one episode).

    J lies within `truncation` of the mean's expectation: what was cut off after `steps` steps, at most. Float
    sums add less than 1e-6 of the largest return, and draws follow probabilities rounded by less than 2^-22
    (`pomdp.alias`). `episodes` were finished, fewer than asked if `interrupted`.
    """

    mean: float
    standard_error: float | None
    truncation: float
    episodes: int
    steps: int
    seed: int
    interrupted: bool
    events: dict[str, EventRate]
    trajectories: dict[int, Trajectory]


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared deviations of numbers, merged without cancellation."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray) -> Moments:
        """Of float64 `values` `[n]`, n >= 1."""
        mean = float(np.mean(values))
        return cls(len(values), mean, float(np.sum((values - mean) ** 2)))

    def merge(self, other: Moments) -> Moments:
        """Of both together."""
        count = self.count + other.count
        if not other.count:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * other.count / count
        squares = self.squares + other.squares + step**2 * self.count * other.count / count
        return Moments(count, mean, squares)

    @property
    def standard_error(self) -> float | None:
        """Of the mean; None for fewer than two numbers."""
        return math.sqrt(self.squares / (self.count - 1) / self.count) if self.count > 1 else None


def simulate(
    model: POMDP,
    policy: Policy | Agent,
    criterion: Criterion,
    *,
    episodes: int,
    seed: int = 0,
    steps: int | None = None,
    events: Mapping[str, np.ndarray] | None = None,
    keep: Iterable[int] = (),
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Run `episodes` episodes of `policy` and estimate its J.

    steps: where an episode is cut; None for the horizon or, without one, where 1e-4 of the largest return
    is left. events: name -> boolean mask `[A, S]` of (action, state before it) or `[O]` of observations; at
    most 32 of each. keep: ids of episodes, counted from 0, whose trajectories are returned. chunk: episodes
    side by side. devices: None for all; one named twice runs two batches at a time. progress: called with
    the number of finished episodes. An interrupt (Ctrl-C) ends the run with what is finished, unless
    nothing is. Memory does not grow with `episodes`. The reward of a step is its expectation R[a, s], which
    has J's mean and a smaller variance than draws of R(a, s, s', o). Raises ModelError where an argument is
    wrong, before anything runs.
    """
    length, truncation = cut(model, criterion, steps)
    check_counts(episodes, seed, chunk)
    kept = _episode_ids(keep)
    named = _checked_events(events or {}, model)
    agent, world = agent_for(policy, model, length), _world(model)
    weights = (criterion.gamma ** np.arange(length)).astype(np.float32)
    tables = (world, agent, Events.of(list(named.values()), model), weights, np.uint32(seed))
    tally = _Tally.empty(len(named))
    interrupted = False
    try:
        for returns, counts in _batches(tables, episodes, length, chunk, devices):
            tally = tally.add(returns, counts)
            if progress is not None:
                progress(tally.count)
    except KeyboardInterrupt:
        if not tally.count:
            raise
        interrupted = True
    total = tally.total()
    return Simulation(
        mean=total.mean,
        standard_error=total.standard_error,
        truncation=truncation,
        episodes=total.count,
        steps=length,
        seed=seed,
        interrupted=interrupted,
        events={name: tally.rate(i, length) for i, name in enumerate(named)},
        trajectories=_replay(model, world, agent, kept, length, seed),
    )


def trajectories(
    model: POMDP, policy: Policy | Agent, episodes: Iterable[int], *, steps: int, seed: int = 0
) -> dict[int, Trajectory]:
    """The episodes with the given ids, `steps` steps of each: those of `simulate` with the same seed.

    Raises ModelError where an argument is wrong.
    """
    check_counts(1, seed)
    _check_steps(steps)
    ids = _episode_ids(episodes)
    return _replay(model, _world(model), agent_for(policy, model, steps), ids, steps, seed)


def cut(model: POMDP, criterion: Criterion, steps: int | None) -> tuple[int, float]:
    """Steps of an episode, and a bound on what the steps after them add to or take from its return.

    The bound is gamma^N max|R| / (1 - gamma) without a horizon, and 0 at the horizon.
    """
    gamma, horizon = criterion.gamma, criterion.horizon
    if steps is not None:
        length = min(steps, horizon or steps)
    elif horizon is not None:
        length = horizon
    else:
        length = math.ceil(math.log(TAIL) / math.log(gamma)) if gamma > 0 else 1
    _check_steps(length)
    return length, criterion.tail(length) * float(np.max(np.abs(model.R)))


@lru_cache(maxsize=4)
def _world(model: POMDP) -> World:
    """The tables of a model, kept for the next runs on it: building them can take longer than a short run."""
    return World.of(model)


def _check_steps(steps: int) -> None:
    if not 1 <= steps <= MAX_STEPS:
        raise ModelError(f"{steps} steps an episode are outside 1..{MAX_STEPS}; give a number such as 200")


def check_counts(episodes: int, seed: int, chunk: int | None = None) -> None:
    """ModelError naming the count that is out of range."""
    if not 1 <= episodes <= LIMIT:
        raise ModelError(f"{episodes} episodes are outside 1..{LIMIT}; give a number such as 100000")
    if not 0 <= seed < LIMIT:
        raise ModelError(f"seed {seed} is outside 0..{LIMIT - 1}; give one such as 0")
    if chunk is not None and not 1 <= chunk <= BATCH_EPISODES:
        raise ModelError(f"chunk {chunk} is outside 1..{BATCH_EPISODES}; give one such as {CPU_LANES}")


def _episode_ids(given: Iterable[int]) -> np.ndarray:
    """Distinct ids uint32, ascending."""
    ids = list(given)
    for number in ids:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < LIMIT:
            raise ModelError(f"episode {number!r} is no id from 0 to {LIMIT - 1}")
    return as_word(np.unique(np.array(ids, dtype=np.int64)), "episode")


def _checked_events(events: Mapping[str, np.ndarray], model: POMDP) -> dict[str, np.ndarray]:
    """The masks as arrays; ModelError naming the event that fits neither shape."""
    pair, seen = (model.num_actions, model.num_states), (model.num_observations,)
    masks = {name: np.asarray(mask) for name, mask in events.items()}
    for name, mask in masks.items():
        if mask.dtype != bool or mask.shape not in (pair, seen):
            raise ModelError(
                f"event {name!r} is {mask.dtype} of shape {mask.shape}; give booleans [A, S] = {pair} "
                f"or [O] = {seen}"
            )
    for axes in (1, 2):
        if sum(mask.ndim == axes for mask in masks.values()) > MAX_EVENTS:
            raise ModelError(f"more than {MAX_EVENTS} events of one kind; count them in several runs")
    return masks


@dataclass(frozen=True, eq=False)
class _Tally:
    """What is kept of finished episodes: moments of whole blocks, returns of the block begun, event counts.

    `hits` int `[E, 3]`: sum, sum of squares and number of episodes with at least one, as Python integers.
    """

    moments: Moments
    begun: np.ndarray
    hits: tuple[tuple[int, int, int], ...]

    @classmethod
    def empty(cls, events: int) -> _Tally:
        return cls(Moments(), np.zeros(0), ((0, 0, 0),) * events)

    @property
    def count(self) -> int:
        return self.moments.count + len(self.begun)

    def add(self, returns: np.ndarray, counts: Sequence[np.ndarray]) -> _Tally:
        """With the next episodes: returns `[n]` and a count `[n]` for each event."""
        values = np.concatenate([self.begun, returns.astype(np.float64)])
        whole = len(values) // BLOCK * BLOCK
        moments = self.moments
        for block in values[:whole].reshape(-1, BLOCK):
            moments = moments.merge(Moments.of(block))
        hits = []
        for (total, squares, some), new in zip(self.hits, counts):
            wide = new.astype(np.int64)
            hits.append(
                (
                    total + int(wide.sum()),
                    squares + int((wide**2).sum()),
                    some + int(np.count_nonzero(wide)),
                )
            )
        return _Tally(moments, values[whole:], tuple(hits))

    def total(self) -> Moments:
        """Moments of all returns."""
        return self.moments.merge(Moments.of(self.begun)) if len(self.begun) else self.moments

    def rate(self, event: int, steps: int) -> EventRate:
        """Frequency of one event in episodes of `steps` steps."""
        total, squares, some = self.hits[event]
        n = self.count
        share = some / n
        if n == 1:
            return EventRate(total / steps, None, share, None)
        spread = max(squares - total * total / n, 0.0) / (n - 1)
        return EventRate(
            per_step=total / n / steps,
            per_step_error=math.sqrt(spread / n) / steps,
            per_episode=share,
            per_episode_error=math.sqrt(share * (1 - share) / (n - 1)),
        )


def _batches(
    tables: tuple[Any, ...], episodes: int, steps: int, chunk: int | None, devices: Sequence[Any] | None
) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Returns and event counts of all episodes in order, a batch at a time, from every device at once."""
    places = list(devices) if devices is not None else _all_devices()
    agent: Agent = tables[1]
    usual = CPU_LANES if places[0].platform == "cpu" else ACCELERATOR_LANES
    lanes = agent.lanes or chunk or usual
    # Sizes that depend on the number of episodes would each be compiled anew.
    capacity = max(1, min(BATCH_STEPS // (lanes * steps), BATCH_EPISODES // lanes))
    size = lanes * min(capacity, -(-episodes // (lanes * len(places))))
    local = {device: jax.device_put(tables, device) for device in dict.fromkeys(places)}

    def work(device: Any, first: int, count: int) -> tuple[np.ndarray, list[np.ndarray]]:
        chunks = -(-count // lanes)
        arguments = (*local[device], jnp.uint32(first), jnp.int32(chunks))
        returns, counts = batch(device, *arguments, lanes=lanes, capacity=capacity)
        return np.asarray(returns).ravel()[:count], [np.asarray(c).ravel()[:count] for c in counts]

    pending: deque[Future[tuple[np.ndarray, list[np.ndarray]]]] = deque()
    pool = ThreadPoolExecutor(len(places))
    try:
        for i, first in enumerate(range(0, episodes, size)):
            if len(pending) > len(places):
                yield pending.popleft().result()
            count = min(size, episodes - first)
            pending.append(pool.submit(work, places[i % len(places)], first, count))
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _all_devices() -> list[Any]:
    """Every device; a lone CPU once for each core that this process may use."""
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return devices
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return devices * cores


def _power(number: int) -> int:
    """The smallest power of two >= `number`."""
    return 1 << (number - 1).bit_length()


def _replay(
    model: POMDP, world: World, agent: Agent, ids: np.ndarray, steps: int, seed: int
) -> dict[int, Trajectory]:
    """Trajectories of the given episodes; an agent with a batch size of its own runs their whole batches."""
    if not len(ids):
        return {}
    if agent.lanes is None:
        # At least so many lanes, lest each small number of episodes be compiled anew.
        groups = [np.resize(ids, max(64, _power(len(ids))))]
    else:
        starts = np.unique(ids // agent.lanes) * np.uint32(agent.lanes)
        groups = [start + np.arange(agent.lanes, dtype=np.uint32) for start in starts]
    found: dict[int, Trajectory] = {}
    for group in groups:
        arrays = paths(world, agent, jnp.uint32(seed), jnp.asarray(group), steps)
        first, actions, following, observations = (np.asarray(a).astype(np.int64) for a in arrays)
        states = np.concatenate([first[None], following])
        for lane in np.flatnonzero(np.isin(group, ids)):
            rewards = model.R[actions[:, lane], states[:-1, lane]]
            found[int(group[lane])] = Trajectory(
                states[:, lane], actions[:, lane], observations[:, lane], rewards
            )
    return found
