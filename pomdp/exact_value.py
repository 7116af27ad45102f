"""J of a finite-memory policy as an exact rational, for small products; imports pomdp.policy and flint.

The oracle for `pomdp.value`, and the lower end of W: an action sequence is certified by its own exact J.
Only product states that the policy reaches take part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any

import flint

from pomdp.criterion import Criterion
from pomdp.model import POMDP, ModelError
from pomdp.policy import Controller, OpenLoop, Policy, as_controller, check_fits
from pomdp.rational import read_rational

# Exact elimination takes some ten seconds at this size and grows with its fourth power.
MAX_UNKNOWNS = 1000

Measure = dict[Any, Fraction]
Step = Callable[[Any], tuple[Fraction, Measure]]


def evaluate_exact(model: POMDP, policy: Policy, criterion: Criterion) -> Fraction:
    """The exact J of an open loop, controller or reactive policy from the model's exact start.

    Action probabilities, which are floats, are read by their shortest decimals and divided by their exact
    sum. Raises ModelError for alpha vectors, and without a horizon where more than MAX_UNKNOWNS product
    states (of an open loop: states at the start of its cycle) are reached.
    """
    check_fits(policy, model)
    if isinstance(policy, OpenLoop):
        return _open_loop(model, policy, criterion)
    controller = as_controller(policy, model, criterion.horizon)
    step = _controller_step(model, controller)
    start = {(controller.start, s): p for s, p in model.exact.start.items()}
    if criterion.horizon is None:
        return _discounted(start, step, criterion.discount)
    return _finite(start, lambda _: step, criterion.discount, criterion.horizon)[0]


def _open_loop(model: POMDP, policy: OpenLoop, criterion: Criterion) -> Fraction:
    """The prefix forward; then the cycle as one step, discounted by its length."""
    steps = [_action_step(model, a) for a in range(model.num_actions)]
    discount, horizon = criterion.discount, criterion.horizon
    start = dict(model.exact.start)
    if horizon is not None:
        plan = policy.actions(horizon)
        return _finite(start, lambda t: steps[plan[t]], discount, horizon)[0]
    policy.require(None)
    n, length = len(policy.prefix), len(policy.cycle)
    total, reached = _finite(start, lambda t: steps[policy.prefix[t]], discount, n)

    def around(state: int) -> tuple[Fraction, Measure]:
        return _finite({state: Fraction(1)}, lambda t: steps[policy.cycle[t]], discount, length)

    return total + discount**n * _discounted(reached, around, discount**length)


def _finite(
    start: Measure, step_at: Callable[[int], Step], discount: Fraction, horizon: int
) -> tuple[Fraction, Measure]:
    """Discounted rewards of `horizon` steps from a measure, and the measure after them."""
    total, factor, measure = Fraction(0), Fraction(1), start
    for t in range(horizon):
        step = step_at(t)
        following: Measure = {}
        for node, mass in measure.items():
            reward, moves = step(node)
            total += factor * mass * reward
            for target, p in moves.items():
                following[target] = following.get(target, Fraction(0)) + mass * p
        measure = following
        factor *= discount
    return total, measure


def _discounted(start: Measure, step: Step, discount: Fraction) -> Fraction:
    """Solve `V = r + discount P V` on what is reached from `start`."""
    index: dict[Hashable, int] = {node: i for i, node in enumerate(start)}
    order = list(start)
    rewards: list[Fraction] = []
    rows: list[Measure] = []
    for node in order:  # grows while it is read
        reward, moves = step(node)
        rewards.append(reward)
        rows.append(moves)
        for target in moves:
            if target not in index:
                index[target] = len(order)
                order.append(target)
        if len(order) > MAX_UNKNOWNS:
            raise ModelError(
                f"the policy reaches more than {MAX_UNKNOWNS} product states, too many for an exact rational "
                "J; use evaluate, or give a horizon"
            )
    n = len(order)
    system = flint.fmpq_mat(n, n)
    for i, moves in enumerate(rows):
        for target, p in moves.items():
            system[i, index[target]] = _flint(-discount * p)
        system[i, i] = system[i, i] + 1
    right = flint.fmpq_mat(n, 1, [_flint(reward) for reward in rewards])
    values = system.solve(right)
    result = sum((_flint(mass) * values[index[node], 0] for node, mass in start.items()), flint.fmpq(0))
    return Fraction(int(result.p), int(result.q))


def _action_step(model: POMDP, action: int) -> Step:
    """One action on states, each row read once."""
    reward = model.exact.R.row(action)
    rows: dict[int, Measure] = {}

    def step(state: int) -> tuple[Fraction, Measure]:
        if state not in rows:
            rows[state] = model.exact.T[action].row(state)
        return reward.get(state, Fraction(0)), rows[state]

    return step


def _controller_step(model: POMDP, controller: Controller) -> Step:
    """One step on (node, state), each row computed once."""
    rewards = [model.exact.R.row(a) for a in range(model.num_actions)]
    seen: dict[tuple[int, int], tuple[Fraction, Measure]] = {}

    def step(node: tuple[int, int]) -> tuple[Fraction, Measure]:
        if node in seen:
            return seen[node]
        k, s = node
        total, moves = Fraction(0), Measure()
        for a, weight in _exact_act(controller, k).items():
            total += weight * rewards[a].get(s, Fraction(0))
            for reached, p in model.exact.T[a].row(s).items():
                for o, q in model.exact.Z[a].row(reached).items():
                    target = (int(controller.successor[k, a, o]), reached)
                    moves[target] = moves.get(target, Fraction(0)) + weight * p * q
        seen[node] = total, moves
        return seen[node]

    return step


def _exact_act(controller: Controller, node: int) -> Mapping[int, Fraction]:
    """The action probabilities of a node, summing to 1 exactly."""
    row = {a: read_rational(p) for a, p in enumerate(controller.act[node].tolist()) if p}
    total = sum(row.values(), Fraction(0))
    return {a: p / total for a, p in row.items()}


def _flint(value: Fraction) -> flint.fmpq:
    return flint.fmpq(value.numerator, value.denominator)
