"""Builds an induced POMDP of over 100,000 states and checks its J by Monte Carlo; imports pomdp, harnesses.

    python benchmarks/induce.py [--episodes 200000]

A T-maze behind four constructors: a step that may time out, a budget of calls, replies that do not parse, a limit of
steps. Printed: states and numbers stored, seconds of this process's CPU, peak memory, J of a policy by exact
evaluation and by simulation with its standard error, and, on a smaller instance in the same run, how much longer the
naive way takes: every row through `POMDP.build` as a mapping of Fractions, Z by dividing joint probabilities.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

import numpy as np

from harnesses.constructors.catalogue import joined, parse_part
from harnesses.kernel import Kernel, of_model, tabulate
from pomdp.criterion import Criterion
from pomdp.library import task
from pomdp.model import POMDP
from pomdp.policy import Controller
from pomdp.value import evaluate

LARGE = ("tmaze:24:0.9", ("timeout:go:1/10", "call_budget:32", "malformed:1/20:1/100", "step_limit:44"))
SMALL = ("tmaze:12:0.9", ("timeout:go:1/10", "call_budget:16", "malformed:1/20:1/100", "step_limit:24"))
LIMIT_SECONDS, LIMIT_BYTES = 30.0, 2e9
T = TypeVar("T")


def induced(name: str, parts: tuple[str, ...]) -> POMDP:
    """The library task behind the constructors, first innermost."""
    model = task(name).model
    for part in joined([parse_part(text) for text in parts]):
        model = part.apply(model)
    return model


def walker(model: POMDP) -> Controller:
    """Go until the junction shows, then turn as the last cue said; without a cue, left."""
    go, left, right = (model.action_index(a) for a in ("go", "turn-left", "turn-right"))
    act = np.zeros((4, model.num_actions))
    act[[0, 1, 2, 3], [go, go, left, right]] = 1.0  # going with cue left, with cue right, turning left, right
    successor = np.tile(np.arange(4)[:, None, None], (1, model.num_actions, model.num_observations))
    successor[:2, :, model.observation_index("cue-left")] = 0
    successor[:2, :, model.observation_index("cue-right")] = 1
    successor[0, :, model.observation_index("T")] = 2
    successor[1, :, model.observation_index("T")] = 3
    return Controller(act, successor, 0)


def naively(kernel: Kernel) -> POMDP:
    """The same table the plain way: rows of Fractions by state, each entry of Z a quotient of joint sums."""
    index = {s: i for i, s in enumerate(kernel.start)}
    order, A = list(kernel.start), len(kernel.actions)
    seen = {o: i for i, o in enumerate(kernel.observations or ())}
    moves: list[list[dict[int, Fraction]]] = [[] for _ in range(A)]
    shown: list[dict[int, dict[int, Fraction]]] = [{} for _ in range(A)]
    for s in order:  # grows while it is read
        for a in range(A):
            row: dict[int, Fraction] = {}
            for t, o, p in kernel.step(s, a):
                if t not in index:
                    index[t] = len(order)
                    order.append(t)
                row[index[t]] = row.get(index[t], Fraction(0)) + p
                line = shown[a].setdefault(index[t], {})
                line[seen[o]] = line.get(seen[o], Fraction(0)) + p
            moves[a].append(row)
    Z = []
    for a in range(A):
        rows = [shown[a].get(i, {0: Fraction(1)}) for i in range(len(order))]
        Z.append([{o: p / sum(row.values(), Fraction(0)) for o, p in row.items()} for row in rows])
    return POMDP.build(
        states=[kernel.label(s) for s in order],
        actions=kernel.actions,
        observations=list(seen),
        T=moves,
        Z=Z,
        R=[[kernel.reward(s, a) for s in order] for a in range(A)],
        start={index[s]: p for s, p in kernel.start.items()},
        discount=kernel.discount,
    )


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """The result and CPU seconds."""
    begun = time.process_time()
    result = work()
    return result, time.process_time() - begun


def main() -> int:
    """Print the table; 1 where a limit is passed or J and Monte Carlo disagree by over four standard errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200_000, help="episodes of the simulation")
    episodes = parser.parse_args().episodes
    model, seconds = timed(lambda: induced(*LARGE))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    numbers = sum(len(m.indices) for m in (*model.exact.T, *model.exact.Z))
    print(f"model            {LARGE[0]} behind {', '.join(LARGE[1])}")
    print(f"size             {model.num_states} states, {numbers} exact probabilities")
    print(
        f"built in         {seconds:.1f} s CPU (limit {LIMIT_SECONDS:.0f}), peak {peak / 1e9:.2f} GB (limit 2)"
    )

    small = induced(*SMALL)
    ours, our_seconds = timed(lambda: tabulate(of_model(small)))
    plain, naive_seconds = timed(lambda: naively(of_model(small)))
    same = ours.states == plain.states and all(
        np.array_equal(x.numerators, y.numerators) for x, y in zip(ours.exact.T, plain.exact.T, strict=True)
    )
    print(
        f"naive reference  {naive_seconds / our_seconds:.1f} times as long on {small.num_states} states",
        end="",
    )
    print(f" ({naive_seconds:.1f} s against {our_seconds:.1f} s; same T: {'yes' if same else 'NO'})")

    from pomdp.simulate import simulate  # JAX would count in the peak above

    policy, criterion = walker(model), Criterion.of(model, horizon=44)
    value, evaluation = timed(lambda: evaluate(model, policy, criterion))
    found = simulate(model, policy, criterion, episodes=episodes, seed=1)
    distance = abs(found.mean - value) / found.standard_error
    print(f"J                {value:.6f} exactly evaluated ({evaluation:.1f} s CPU)")
    print(
        f"Monte Carlo      {found.mean:.6f} +- {found.standard_error:.6f}, {episodes} episodes: {distance:.1f} errors"
    )
    good = (
        model.num_states >= 100_000
        and seconds < LIMIT_SECONDS
        and peak < LIMIT_BYTES
        and same
        and distance < 4
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
