"""Times J of a finite-state controller three ways in one run and prints ratios; imports pomdp, numpy, scipy.

    python benchmarks/exact_value.py [--largest 100000]

The ways: `pomdp.discounted.solve` on the factored product, plain sweeps on it from the same first guess to
the same verified error, and a sparse LU of the assembled matrix. Models are random with fixed seeds: "dense"
has every transition and observation possible, "sparse" five successors and two observations a state, and
"slow" is sparse where a state stays with probability 0.98 and so does the controller's node. Seconds are CPU
seconds of this process, so that ratios hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import splu

from pomdp.discounted import RTOL, solve
from pomdp.model import POMDP
from pomdp.policy import Controller
from pomdp.product import ProductChain

DISCOUNT = 0.99
STATES, ACTIONS, OBSERVATIONS = 100, 5, 10
# The factors fill up: beyond this they take minutes.
LARGEST_FACTORED = 2_000


def random_model(kind: str, seed: int) -> POMDP:
    """A random model of 100 states, 5 actions and 10 observations."""
    rng = np.random.default_rng(seed)

    def rows(columns: int, few: int) -> list[dict[int, Fraction]]:
        used = columns if kind == "dense" else few
        places = [rng.choice(columns, used, replace=False).tolist() for _ in range(STATES)]
        return [distribution(rng, row) for row in places]

    T = [rows(STATES, 5) for _ in range(ACTIONS)]
    if kind == "slow":
        T = [[stay(s, row) for s, row in enumerate(matrix)] for matrix in T]
    return POMDP.build(
        states=STATES,
        actions=ACTIONS,
        observations=OBSERVATIONS,
        T=T,
        Z=[rows(OBSERVATIONS, 2) for _ in range(ACTIONS)],
        R=rng.integers(-10, 11, (ACTIONS, STATES)).tolist(),
        discount=DISCOUNT,
    )


def distribution(rng: np.random.Generator, places: list[int]) -> dict[int, Fraction]:
    """Random probabilities with one small denominator on `places`."""
    weights = rng.integers(1, 1000, len(places)).tolist()
    return {j: Fraction(w, sum(weights)) for j, w in zip(places, weights, strict=True)}


def stay(state: int, row: dict[int, Fraction]) -> dict[int, Fraction]:
    """The row mixed with staying, 1 to 49."""
    mixed = {j: p / 50 for j, p in row.items()}
    mixed[state] = mixed.get(state, Fraction(0)) + Fraction(49, 50)
    return mixed


def random_controller(kind: str, nodes: int, seed: int) -> Controller:
    """Each node does one action and goes on to random nodes; where slow, mostly to itself."""
    rng = np.random.default_rng(seed)
    act = np.eye(ACTIONS)[rng.integers(0, ACTIONS, nodes)]
    successor = rng.integers(0, nodes, (nodes, ACTIONS, OBSERVATIONS))
    if kind == "slow":
        same = np.arange(nodes)[:, None, None]
        successor = np.where(rng.random(successor.shape) < 0.98, same, successor)
    return Controller(act, successor)


def sweeps(chain: ProductChain, immediate: np.ndarray) -> np.ndarray:
    """Plain sweeps until the verified error is that of `solve`."""
    values = immediate / (1.0 - DISCOUNT)
    while True:
        following = immediate + DISCOUNT * chain.apply(values)
        change = float(np.max(np.abs(following - values)))
        values = following
        if DISCOUNT * change / (1.0 - DISCOUNT) <= RTOL * float(np.max(np.abs(values))):
            return values


def factorised(chain: ProductChain, immediate: np.ndarray) -> np.ndarray:
    """Sparse LU of the assembled matrix, assembly included."""
    system = csc_array(eye_array(immediate.size, format="csc") - DISCOUNT * chain.assembled)
    return splu(system).solve(immediate.ravel()).reshape(immediate.shape)


def timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """CPU seconds and result, the best of three or of what fits two seconds."""
    best, spent = math.inf, 0.0
    while spent == 0.0 or (spent < 2.0 and spent < 3 * best):
        before = time.process_time()
        result = work()
        seconds = time.process_time() - before
        best, spent = min(best, seconds), spent + seconds
    return best, result


def report(kind: str, product_states: int) -> str:
    """One line of the table."""
    model = random_model(kind, seed=1)
    controller = random_controller(kind, product_states // STATES, seed=2)
    prepare, _ = timed(lambda: ProductChain(model, controller).shape)
    chain = ProductChain(model, controller)
    immediate = chain.expected(model.R)
    solved = solve(chain.apply, immediate, DISCOUNT)
    ours, values = timed(lambda: solve(chain.apply, immediate, DISCOUNT).values)
    plain, swept = timed(lambda: sweeps(chain, immediate))
    difference = float(np.max(np.abs(values - swept)))
    line = f"{kind:7}{product_states:9}{prepare:9.3f}{ours:9.3f}{solved.products:10}"
    line += f"{plain:9.3f}{plain / ours:8.1f}"
    if product_states > LARGEST_FACTORED or kind == "dense":
        return f"{line}{'-':>9}{'-':>8}{difference:12.1e}"
    direct, exact = timed(lambda: factorised(ProductChain(model, controller), immediate))
    difference = max(difference, float(np.max(np.abs(values - exact))))
    return f"{line}{direct:9.3f}{direct / ours:8.1f}{difference:12.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=100_000, help="largest number of product states")
    largest = parser.parse_args().largest
    print(
        f"{'model':7}{'unknowns':>9}{'prepare':>9}{'ours':>9}{'products':>10}{'sweeps':>9}{'ratio':>8}",
        end="",
    )
    print(f"{'LU':>9}{'ratio':>8}{'difference':>12}")
    for kind in ("dense", "sparse", "slow"):
        for size in (1_000, 10_000, 100_000):
            if size <= largest:
                print(report(kind, size), flush=True)


if __name__ == "__main__":
    main()
