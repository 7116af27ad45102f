"""Whether two POMDPs are the same process, whatever their states are called; imports pomdp.model.

A POMDP is a weighted automaton: a history maps to its unnormalised belief, from which its probability and the
expected rewards are read linearly. Two of them agree on all histories if they agree on a basis of the reachable
pairs of beliefs, of which there are at most S + S'.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction

from harnesses.kernel import Kernel, of_model
from pomdp.model import POMDP, ModelError

History = tuple[tuple[str, str], ...]
_Vector = dict[tuple[int, int], Fraction]  # (which model, state) -> mass


def difference(one: POMDP, other: POMDP) -> History | None:
    """A shortest history ((action, observation), ...) after which the models differ, None where they never do.

    They differ where its probability or, after it, an expected reward does; actions and observations go by name.
    Exact, by rational elimination in the dimension of the reachable beliefs: for models of some hundred states.
    Raises ModelError where the action names differ.
    """
    if set(one.actions) != set(other.actions):
        raise ModelError(
            f"the models have the actions {one.actions} and {other.actions}; compare what has the same"
        )
    kernels = (of_model(one), of_model(other))
    start = {(i, s): p for i, kernel in enumerate(kernels) for s, p in kernel.start.items()}
    basis: dict[tuple[int, int], _Vector] = {}
    queue: deque[tuple[History, _Vector]] = deque([((), start)])
    while queue:
        history, vector = queue.popleft()
        if _disagree(kernels, vector):
            return history
        reduced = _reduced(vector, basis)
        if not reduced:
            continue
        pivot = next(iter(reduced))
        basis[pivot] = {key: value / reduced[pivot] for key, value in reduced.items()}
        queue.extend(((*history, pair), follower) for pair, follower in _followers(kernels, vector).items())
    return None


def _disagree(kernels: tuple[Kernel, Kernel], vector: _Vector) -> bool:
    """Whether mass or an expected reward of the two sides differ."""
    sides = [[(s, m) for (i, s), m in vector.items() if i == side] for side in (0, 1)]
    if sum((m for _, m in sides[0]), Fraction(0)) != sum((m for _, m in sides[1]), Fraction(0)):
        return True
    for action in kernels[0].actions:
        totals = []
        for kernel, side in zip(kernels, sides, strict=True):
            a = kernel.actions.index(action)
            totals.append(sum((m * kernel.reward(s, a) for s, m in side), Fraction(0)))
        if totals[0] != totals[1]:
            return True
    return False


def _followers(kernels: tuple[Kernel, Kernel], vector: _Vector) -> dict[tuple[str, str], _Vector]:
    """The unnormalised beliefs after each action and observation."""
    found: dict[tuple[str, str], _Vector] = {}
    for action in kernels[0].actions:
        for (i, s), mass in vector.items():
            for t, o, p in kernels[i].step(s, kernels[i].actions.index(action)):
                follower = found.setdefault((action, o), {})
                follower[i, t] = follower.get((i, t), Fraction(0)) + mass * p
    return found


def _reduced(vector: _Vector, basis: dict[tuple[int, int], _Vector]) -> _Vector:
    """The vector less its part in the span of the basis, whose members come in the order of their pivots' birth."""
    rest = dict(vector)
    for pivot, member in basis.items():
        factor = rest.get(pivot)
        if not factor:
            continue
        for key, value in member.items():
            rest[key] = rest.get(key, Fraction(0)) - factor * value
    return {key: value for key, value in rest.items() if value}
