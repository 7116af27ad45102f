"""Exact J of a policy in float64, its value vectors and its expected steps; imports pomdp's policies, chains.

`evaluate` solves the product chain of model and policy (`pomdp.product`, `pomdp.discounted`) and returns
nothing whose verified error exceeds 1e-10 of the largest value; `evaluate_exact` is rational, for small
products.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from pomdp.belief_chain import greedy_return
from pomdp.criterion import Criterion
from pomdp.discounted import FACTOR_ENTRIES, solve
from pomdp.exact_value import evaluate_exact
from pomdp.model import POMDP, ModelError
from pomdp.policy import AlphaVectors, Controller, OpenLoop, Policy, as_controller, check_fits
from pomdp.product import ProductChain

__all__ = ["evaluate", "evaluate_exact", "expected_steps", "value_vectors"]

# A vector of this many unknowns takes 240 MB, and the iteration keeps about ten.
MAX_UNKNOWNS = 30_000_000
# The matrix of a cycle of several actions fills up; beyond this many states it is not formed.
CYCLE_STATES = 1_500


def evaluate(model: POMDP, policy: Policy, criterion: Criterion) -> float:
    """J: the expected discounted return of `policy` from the model's start. Source: formal core, section 3.

    Raises ModelError where the policy does not fit the model or the horizon, where alpha vectors reach too
    many beliefs, and where the chain mixes too slowly for a verified result.
    """
    return _expected_return(model, policy, criterion, model.R)


def expected_steps(model: POMDP, policy: Policy, criterion: Criterion) -> float:
    """`E[sum_t gamma^t 1{s_t is not terminal}]` over the criterion's t: the sum of a cost of 1 a step.

    A terminal state is one that every action leaves unchanged with reward 0 (`model.terminal`). A step's
    cost is discounted like any reward, so J with cost c a step is `J - c * expected_steps`. Undiscounted
    this is the mean number of steps taken before the end or the horizon; for ever without terminal states it
    is the number of discounted steps, `1 / (1 - gamma)`. Source: M1 §1.7.3 (the E[steps] of the cost of
    agency).
    """
    steps = np.broadcast_to(np.where(model.terminal, 0.0, 1.0), model.R.shape)
    return _expected_return(model, policy, criterion, steps)


def value_vectors(model: POMDP, controller: Controller, criterion: Criterion) -> np.ndarray:
    """`[K, S]` expected return from each node and state, over the whole horizon of the criterion."""
    check_fits(controller, model)
    return _vectors(model, controller, criterion, model.R)


def _expected_return(model: POMDP, policy: Policy, criterion: Criterion, rewards: np.ndarray) -> float:
    """Expected discounted sum of `rewards` `[A, S]`."""
    check_fits(policy, model)
    if isinstance(policy, OpenLoop):
        return _open_loop(model, policy, criterion, rewards)
    if isinstance(policy, AlphaVectors):
        return greedy_return(model, policy, criterion, rewards)
    controller = _reachable(as_controller(policy, model, criterion.horizon))
    return float(model.start @ _vectors(model, controller, criterion, rewards)[controller.start])


def _vectors(model: POMDP, controller: Controller, criterion: Criterion, rewards: np.ndarray) -> np.ndarray:
    """`[K, S]` values of `rewards` `[A, S]`: a fixed point, or one product a step."""
    unknowns = controller.num_nodes * model.num_states
    if unknowns > MAX_UNKNOWNS:
        raise ModelError(
            f"{controller.num_nodes} nodes times {model.num_states} states are {unknowns} unknowns, over "
            f"{MAX_UNKNOWNS}; estimate J by Monte Carlo (hpomdp simulate)"
        )
    chain = ProductChain(model, controller)
    immediate = chain.expected(rewards)
    if criterion.horizon is None:
        affordable = chain.size_assembled <= FACTOR_ENTRIES
        assemble = (lambda: chain.assembled) if affordable else None
        return solve(chain.apply, immediate, criterion.gamma, assemble).values
    values = immediate
    for _ in range(criterion.horizon - 1):
        values = immediate + criterion.gamma * chain.apply(values)
    return values


def _open_loop(model: POMDP, policy: OpenLoop, criterion: Criterion, rewards: np.ndarray) -> float:
    """The state distribution forward along the plan; for ever, the cycle as one step of S unknowns."""
    policy.require(criterion.horizon)
    gamma = criterion.gamma
    plan = policy.prefix if criterion.horizon is None else policy.actions(criterion.horizon)
    total, factor, measure = 0.0, 1.0, model.start
    for a in plan:
        total += factor * float(measure @ rewards[a])
        measure = measure @ model.T[a]
        factor *= gamma
    if criterion.horizon is not None:
        return total

    def around(values: np.ndarray) -> np.ndarray:
        for a in reversed(policy.cycle):
            values = model.T[a] @ values
        return values

    def matrix() -> csr_array:
        product = model.T[policy.cycle[0]]
        for a in policy.cycle[1:]:
            product = product @ model.T[a]
        return csr_array(product)

    once = np.zeros(model.num_states)
    for a in reversed(policy.cycle):
        once = rewards[a] + gamma * (model.T[a] @ once)
    small = model.num_states <= CYCLE_STATES or len(policy.cycle) == 1
    solved = solve(around, once, gamma ** len(policy.cycle), matrix if small else None)
    return total + factor * float(measure @ solved.values)


def _reachable(controller: Controller) -> Controller:
    """The controller without the nodes that no action and observation leads to from its start."""
    K = controller.num_nodes
    seen = np.zeros(K, dtype=bool)
    frontier = np.array([controller.start])
    while len(frontier):
        seen[frontier] = True
        taken = controller.successor[frontier][controller.act[frontier] > 0.0]
        candidates = np.unique(taken)
        frontier = candidates[~seen[candidates]]
    if seen.all():
        return controller
    kept = np.flatnonzero(seen)
    renumbered = np.zeros(K, dtype=np.int64)
    renumbered[kept] = np.arange(len(kept))
    # Actions of probability 0 may lead to nodes that are gone; what follows them is never used.
    return Controller(
        controller.act[kept], renumbered[controller.successor[kept]], int(renumbered[controller.start])
    )
