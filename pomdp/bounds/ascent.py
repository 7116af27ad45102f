"""Good stateless policies: gradient ascent in exact J with restarts, and local search; imports context_chain.

Every policy that is kept has been evaluated exactly; how it was found does not matter to the bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import numpy as np
from scipy.optimize import minimize

from pomdp.bounds.context_chain import ContextChain

# A row this close to one action is tried as that action alone.
NEARLY = 1e-2
MAX_ROUNDS = 200
IMPROVED = 1e-12
# Iterations of one ascent; where it crawls after that, another start is worth more.
ITERATIONS = 300


class Ascent:
    """The best policy found so far, `pi` `[C, A]` with its `value`, and the best with one action a context.

    `choice` `[C]` are the actions of the latter, `sure` its value.
    """

    def __init__(self, chain: ContextChain, end: float = math.inf) -> None:
        """Begin with local search from the best single deviations from the uniform policy, until the time `end`."""
        self.chain = chain
        self.value = self.sure = -math.inf
        self.pi = np.full((chain.contexts, chain.num_actions), 1.0 / chain.num_actions)
        self.choice = np.zeros(chain.contexts, dtype=np.int64)
        self.improve(chain.gradient(self.pi)[1].argmax(axis=1), end)

    def offer(self, value: float, pi: np.ndarray) -> None:
        """Keep a policy that is better than the best so far by more than rounding."""
        if value > self.value + IMPROVED * max(1.0, self.chain.scale):
            self.value, self.pi = value, pi

    def improve(self, choice: np.ndarray, end: float) -> np.ndarray:
        """Local search from one action a context: all better actions at once, else the best single change."""
        chain = self.chain
        value, gradient = chain.gradient(chain.policy(choice))
        small = IMPROVED * max(1.0, chain.scale)
        here = np.arange(len(choice))
        for _ in range(MAX_ROUNDS):
            gains = gradient - gradient[here, choice][:, None]
            better = gains.max(axis=1) > small
            if not better.any() or time.perf_counter() > end:
                break
            single = choice.copy()
            c = int(gains.max(axis=1).argmax())
            single[c] = gradient[c].argmax()
            for candidate in (np.where(better, gradient.argmax(axis=1), choice), single):
                found = chain.gradient(chain.policy(candidate))
                if found[0] > value + small:
                    (value, gradient), choice = found, candidate
                    break
            else:
                break
        value = chain.evaluate(chain.policy(choice))
        if value > self.sure:
            self.sure, self.choice = value, choice
        self.offer(value, chain.policy(choice))
        return choice

    def climb(self, start: np.ndarray, end: float) -> None:
        """Quasi-Newton ascent from `start` `[C, A]` in the logits of a softmax, whose gradient is exact."""
        chain, scale = self.chain, max(1e-12, self.chain.scale)

        def loss(logits: np.ndarray) -> tuple[float, np.ndarray]:
            pi = _softmax(logits.reshape(start.shape))
            value, gradient = chain.gradient(pi)
            slope = pi * (gradient - (pi * gradient).sum(axis=1, keepdims=True))
            return -value / scale, -slope.ravel() / scale

        def stop(_: np.ndarray) -> None:
            if time.perf_counter() > end:
                raise StopIteration

        logits = np.log(np.maximum(start, 1e-3))
        options = {"maxiter": ITERATIONS, "ftol": 1e-15, "gtol": 1e-12}
        found = minimize(loss, logits.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
        pi = _softmax(found.x.reshape(start.shape))
        nearly = pi.max(axis=1) > 1.0 - NEARLY
        snapped = np.where(nearly[:, None], chain.policy(pi.argmax(axis=1)), pi)
        for candidate in (snapped, pi):
            self.offer(chain.evaluate(candidate), candidate)

    def run(self, starts: Iterable[np.ndarray], end: float, enough: float) -> None:
        """Local search and ascent from each of `starts` `[C, A]` until J is `enough` or the time `end` has come."""
        for start in starts:
            if self.value >= enough or time.perf_counter() > end:
                return
            choice = self.improve(self.chain.gradient(start)[1].argmax(axis=1), end)
            for begin in (start, 0.8 * self.chain.policy(choice) + 0.2 / self.chain.num_actions):
                if self.value < enough and time.perf_counter() <= end:
                    self.climb(begin, end)


def random_policies(chain: ContextChain, count: int, seed: int) -> Iterable[np.ndarray]:
    """`count` random policies `[C, A]`, most rows leaning to few actions."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield rng.dirichlet(np.full(chain.num_actions, 0.5), size=chain.contexts)


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
