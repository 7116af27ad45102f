"""Good stateless policies: gradient ascent in exact J with restarts, and local search; imports context_chain.

Every policy that is returned has been evaluated exactly; how it was found does not matter to the bound.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import minimize

from pomdp.bounds.context_chain import ContextChain

# A row this close to one action is tried as that action alone.
NEARLY = 1e-2
MAX_ROUNDS = 200
IMPROVED = 1e-12


def ascend(
    chain: ContextChain,
    seeds: list[np.ndarray],
    *,
    restarts: int,
    seed: int,
    seconds: float,
    enough: float,
    stochastic: bool = True,
) -> tuple[float, np.ndarray]:
    """The best J found and its policy `[C, A]`, from the policies `seeds`, the uniform one and random ones.

    Without `stochastic` only deterministic policies are searched. Ends after `seconds`, after `restarts` random
    starts, or once J is at least `enough`.
    """
    rng = np.random.default_rng(seed)
    C, A = chain.contexts, chain.num_actions
    end = time.perf_counter() + seconds
    uniform = np.full((C, A), 1.0 / A)
    best = max(((chain.evaluate(pi), i) for i, pi in enumerate([uniform, *seeds])), key=lambda pair: pair[0])
    value, pi = best[0], [uniform, *seeds][best[1]]
    starts = [uniform, *seeds]
    for k in range(len(starts) + restarts):
        if k and (value >= enough or time.perf_counter() > end):
            break
        begin = starts[k] if k < len(starts) else rng.dirichlet(np.full(A, 0.5), size=C)
        for found in _from(chain, begin, end, stochastic):
            if found[0] > value + IMPROVED * max(1.0, chain.scale):
                value, pi = found
    return value, pi


def improve(chain: ContextChain, choice: np.ndarray, end: float) -> tuple[float, np.ndarray]:
    """Local search over deterministic policies `[C]`: all better actions at once, else the best single change."""
    value, gradient, visits = chain.gradient(chain.policy(choice))
    small = IMPROVED * max(1.0, chain.scale)
    for _ in range(MAX_ROUNDS):
        gains = gradient - gradient[np.arange(len(choice)), choice][:, None]
        better = gains.max(axis=1) > small
        if not better.any() or time.perf_counter() > end:
            break
        whole = np.where(better, gradient.argmax(axis=1), choice)
        single = choice.copy()
        c = int(gains.max(axis=1).argmax())
        single[c] = gradient[c].argmax()
        for candidate in (whole, single):
            found = chain.gradient(chain.policy(candidate))
            if found[0] > value + small:
                value, gradient, visits = found
                choice = candidate
                break
        else:
            break
    return value, choice


def _from(
    chain: ContextChain, begin: np.ndarray, end: float, stochastic: bool
) -> list[tuple[float, np.ndarray]]:
    """What one start gives: the local optimum of its best actions, and the ascent from there and from itself."""
    _, gradient, _ = chain.gradient(begin)
    value, choice = improve(chain, gradient.argmax(axis=1), end)
    found = [(value, chain.policy(choice))]
    starts = (begin, 0.8 * chain.policy(choice) + 0.2 / chain.num_actions)
    for start in starts if stochastic else ():
        if time.perf_counter() <= end:
            pi = _climb(chain, start, end)
            found.append((chain.evaluate(pi), pi))
            found.append(_rounded(chain, *found[-1]))
    return found


def _climb(chain: ContextChain, start: np.ndarray, end: float) -> np.ndarray:
    """Quasi-Newton ascent in the logits of a softmax, whose gradient is exact."""
    C, A = chain.contexts, chain.num_actions
    scale = max(1e-12, chain.scale)

    def loss(logits: np.ndarray) -> tuple[float, np.ndarray]:
        pi = _softmax(logits.reshape(C, A))
        value, gradient, _ = chain.gradient(pi)
        slope = pi * (gradient - (pi * gradient).sum(axis=1, keepdims=True))
        return -value / scale, -slope.ravel() / scale

    def stop(_: np.ndarray) -> None:
        if time.perf_counter() > end:
            raise StopIteration

    logits = np.log(np.maximum(start, 1e-3))
    options = {"maxiter": 300, "ftol": 1e-15, "gtol": 1e-12}
    found = minimize(loss, logits.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
    return _softmax(found.x.reshape(C, A))


def _rounded(chain: ContextChain, value: float, pi: np.ndarray) -> tuple[float, np.ndarray]:
    """The policy with nearly certain rows made certain, where that earns no less."""
    sure = pi.max(axis=1) > 1.0 - NEARLY
    snapped = np.where(sure[:, None], np.eye(pi.shape[1])[pi.argmax(axis=1)], pi)
    exact = chain.evaluate(snapped)
    return (exact, snapped) if exact >= value else (value, pi)


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
