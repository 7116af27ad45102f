"""The exact check of a certificate in integers; imports certificate and model, nothing of the solver.

This is the file that a reader of a bound has to trust. It uses no floating point, no linear program and no search.

Lower end: with alpha_k(s) <= R(s, a_k) + gamma sum_s' T sum_o Z alpha_next(k, o)(s') for all nodes k and states s, the
controller earns at least alpha_start . b0. Upper end: with Q(i, a) >= R(b_i, a) + gamma sum_o max_a' sum_j w_j Q(j, a')
for all points i and actions a, where the weights w >= 0 reproduce the successor, tau(b_i, a, o) = sum_j w_j b_j, no
policy earns more than max_a' sum_j w_j Q(j, a') at b0 = sum_j w_j b_j. (Q*(., a') is convex and homogeneous, so the
right side bounds V*(tau) whenever Q bounds Q* at the points; discounting makes that self-supporting.) With a horizon
every value has a stage, leads to the next stage, and is 0 after the last. At discount 1 without stages nothing follows,
and nothing is accepted. Source: design of the formal core, section 5 and `lower-certificate`, `upper-certificate`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pomdp.certificate import END, OPEN_LOOP, Certificate, CertificateError
from pomdp.model import POMDP
from pomdp.rational import RationalMatrix


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate holds for a model; `fault` names the first inequality that fails, None when valid."""

    valid: bool
    fault: str | None
    lower: Fraction
    upper: Fraction


def check(certificate: Certificate, model: POMDP) -> Verdict:
    """Check both ends exactly. The discount is the certificate's where it states one, else the model's."""
    try:
        task = ExactTask(model, certificate)
        fault = lower_fault(certificate, task) or upper_fault(certificate, task)
    except CertificateError as error:
        fault = str(error)
    return Verdict(fault is None, fault, certificate.lower, certificate.upper)


class ExactTask:
    """The model's numbers as integers over one denominator an action, and the criterion.

    `T[a]`, `Z[a]`: (indptr, indices, integers) with denominators `T_over[a]`, `Z_over[a]`; `R[a]` `[S]` Fractions.
    """

    def __init__(self, model: POMDP, certificate: Certificate) -> None:
        self.model = model.blinded() if certificate.quantity == OPEN_LOOP else model
        exact = self.model.exact
        discount = exact.discount if certificate.discount is None else certificate.discount
        if discount is None:
            raise CertificateError("neither the certificate nor the model states a discount")
        if not 0 <= discount <= 1 or (discount == 1 and certificate.horizon is None):
            raise CertificateError(f"discount {discount} without a horizon proves nothing")
        if certificate.horizon is not None and certificate.horizon < 1:
            raise CertificateError(f"horizon {certificate.horizon} is not a positive number of steps")
        self.discount = discount
        self.horizon = certificate.horizon
        self.S, self.A, self.O = model.num_states, model.num_actions, self.model.num_observations
        self.T = [_common(m) for m in exact.T]
        self.Z = [_common(m) for m in exact.Z]
        rows = list(exact.R.rows())
        self.R = [[row.get(s, Fraction(0)) for s in range(self.S)] for row in rows]
        self.start = exact.start

    def last(self, stage: int) -> bool:
        """Whether nothing follows this stage."""
        return self.horizon is not None and stage == self.horizon - 1

    def next_stage(self, stage: int) -> int:
        """The stage that follows."""
        return 0 if self.horizon is None else stage + 1


@dataclass(frozen=True)
class _Integers:
    """A row-stochastic matrix as CSR integers over one denominator."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    over: int


def _common(matrix: RationalMatrix) -> _Integers:
    over = math.lcm(*(int(d) for d in matrix.denominators))
    factor = np.repeat(np.array([over // d for d in matrix.denominators], dtype=object), np.diff(matrix.indptr))
    return _Integers(matrix.indptr, matrix.indices, matrix.numerators * factor, over)


# ---- the lower end


def lower_fault(certificate: Certificate, task: ExactTask) -> str | None:
    """The first inequality of the controller that fails, or None."""
    proof = certificate.controller
    fault = _malformed_controller(certificate, task)
    if fault is not None:
        return fault
    over = proof.denominator
    for k, slack in enumerate(lower_slacks(certificate, task)):
        bad = next((s for s in range(task.S) if slack[s] < 0), None)
        if bad is not None:
            return f"lower end: alpha of node {k} at state {task.model.states[bad]} is {float(-slack[bad]):.3g} too high"
    start = proof.nodes[proof.start]
    value = sum((p * start.alpha[s] for s, p in task.start.items()), Fraction(0)) / over
    if certificate.lower > value:
        return f"lower end: the claim is {float(certificate.lower - value):.3g} above the start node's value"
    return None


def _malformed_controller(certificate: Certificate, task: ExactTask) -> str | None:
    proof, stages = certificate.controller, certificate.stages
    count = len(proof.nodes)
    if not 0 <= proof.start < count or proof.nodes[proof.start].stage != 0:
        return "lower end: the start node does not exist at stage 0"
    for k, node in enumerate(proof.nodes):
        if not (0 <= node.stage < stages and 0 <= node.action < task.A):
            return f"lower end: node {k} has a stage or an action that does not exist"
        if len(node.alpha) != task.S or len(node.following) != task.O:
            return f"lower end: node {k} does not have {task.S} values and {task.O} links"
        for j in node.following:
            if task.last(node.stage):
                right = j == END
            else:
                right = 0 <= j < count and proof.nodes[j].stage == task.next_stage(node.stage)
            if not right:
                return f"lower end: node {k} leads to {j}, which is not a node of the next stage"
    return None


def lower_slacks(certificate: Certificate, task: ExactTask) -> Iterator[list[Fraction]]:
    """For each node, R + gamma sum T Z alpha_next - alpha `[S]`: the certificate holds where none is negative."""
    proof = certificate.controller
    alphas = np.empty((len(proof.nodes), task.S), dtype=object)
    for k, node in enumerate(proof.nodes):
        alphas[k, :] = node.alpha
    for k, node in enumerate(proof.nodes):
        yield _lower_slack(node.action, node.following, alphas[k], alphas, proof.denominator, task)


def _lower_slack(
    action: int, following: tuple[int, ...], alpha: np.ndarray, alphas: np.ndarray, over: int, task: ExactTask
) -> list[Fraction]:
    T, Z = task.T[action], task.Z[action]
    if following[0] == END:
        return [task.R[action][s] - Fraction(alpha[s], over) for s in range(task.S)]
    links = np.array(following, dtype=np.int64)
    rows = np.repeat(np.arange(task.S), np.diff(Z.indptr))
    # Rows of T and Z sum to 1, so none is empty and reduceat adds exactly one group a row.
    reached = np.add.reduceat(Z.data * alphas[links[Z.indices], rows], Z.indptr[:-1])
    ahead = np.add.reduceat(T.data * reached[T.indices], T.indptr[:-1])
    factor = task.discount / (T.over * Z.over * over)
    return [task.R[action][s] + factor * int(ahead[s]) - Fraction(alpha[s], over) for s in range(task.S)]


# ---- the upper end


def upper_fault(certificate: Certificate, task: ExactTask) -> str | None:
    """The first inequality of the point set that fails, or None."""
    fault = _malformed_points(certificate, task)
    if fault is not None:
        return fault
    table = UpperTable(certificate, task)
    for i in range(table.count):
        for a in range(task.A):
            slack = Fraction(table.Q[i][a], table.over) - table.backup(i, a)
            if slack < 0:
                return f"upper end: Q of {table.label(i)} for action {task.model.actions[a]} is {float(-slack):.3g} too low"
    value = table.start_value()
    if certificate.upper < value:
        return f"upper end: the claim is {float(value - certificate.upper):.3g} below the points' value at the start"
    return None


def _malformed_points(certificate: Certificate, task: ExactTask) -> str | None:
    p, stages = certificate.points, certificate.stages
    if not 1 <= p.bits <= 4096:
        return f"upper end: bits is {p.bits}, not between 1 and 4096"
    if len(p.corners) != stages or any(len(rows) != task.S for rows in p.corners):
        return f"upper end: corners must list {task.S} states at {stages} stages"
    if any(len(q) != task.A for rows in p.corners for q in rows):
        return f"upper end: every corner needs {task.A} values"
    one = 1 << p.bits
    for i, point in enumerate(p.points):
        if not 0 <= point.stage < stages or len(point.Q) != task.A:
            return f"upper end: point {i} has a stage that does not exist or not {task.A} values"
        inside = all(0 <= s < task.S and n >= 0 for s, n in point.belief.items())
        if not inside or sum(point.belief.values()) != one:
            return f"upper end: point {i} is not a distribution over the states"
    return None


class UpperTable:
    """The points of a certificate by node number, and the exact backup of each."""

    def __init__(self, certificate: Certificate, task: ExactTask) -> None:
        p = certificate.points
        self.task = task
        self.one = 1 << p.bits
        self.over = p.denominator
        self.weights = p.weights
        self.start = p.start
        self.corners = certificate.stages * task.S
        self.stage = [t for t in range(certificate.stages) for _ in range(task.S)] + [q.stage for q in p.points]
        self.belief = [{s: self.one} for _ in range(certificate.stages) for s in range(task.S)]
        self.belief += [q.belief for q in p.points]
        self.Q = np.empty((len(self.belief), task.A), dtype=object)
        rows = [q for stage in p.corners for q in stage] + [q.Q for q in p.points]
        for i, row in enumerate(rows):
            self.Q[i, :] = row
        self.count = len(self.belief)

    def label(self, i: int) -> str:
        """What an error calls node i."""
        if i < self.corners:
            return f"the corner {self.task.model.states[i % self.task.S]} at stage {self.stage[i]}"
        return f"point {i - self.corners}"

    def backup(self, i: int, a: int) -> Fraction:
        """R(b_i, a) + gamma sum_o max_a' sum_j w_j Q(j, a'); CertificateError where the weights are not a split."""
        task = self.task
        reward = self.reward(i, a)
        if task.last(self.stage[i]):
            return reward
        successor, scale = self.successors(i, a)
        total = 0
        stage = task.next_stage(self.stage[i])
        for o, tau in successor.items():
            total += self.interpolate(tau, scale, self.weights.get((i, a, o), {}), stage, f"node {i}, {a}, {o}")
        return reward + task.discount * Fraction(total, scale * self.one * self.one * self.over)

    def reward(self, i: int, a: int) -> Fraction:
        """R(b_i, a)."""
        R = self.task.R[a]
        return sum((n * R[s] for s, n in self.belief[i].items()), Fraction(0)) / self.one

    def successors(self, i: int, a: int) -> tuple[dict[int, dict[int, int]], int]:
        """(observation -> {state: integer}, scale): tau(b_i, a, o) in units of 1/(scale * one)."""
        T, Z = self.task.T[a], self.task.Z[a]
        predicted: dict[int, int] = {}
        for s, n in self.belief[i].items():
            for e in range(T.indptr[s], T.indptr[s + 1]):
                column = int(T.indices[e])
                predicted[column] = predicted.get(column, 0) + n * T.data[e]
        successor: dict[int, dict[int, int]] = {}
        for s, n in predicted.items():
            for e in range(Z.indptr[s], Z.indptr[s + 1]):
                if n:
                    successor.setdefault(int(Z.indices[e]), {})[s] = n * Z.data[e]
        return successor, T.over * Z.over

    def interpolate(self, tau: dict[int, int], scale: int, weights: dict[int, int], stage: int, where: str) -> int:
        """max_a' sum_j w_j Q(j, a') over points and corners; tau in units of 1/(scale * one).

        The result is in units of 1/(scale * one^2 * over).
        """
        rest = {s: n * self.one for s, n in tau.items()}
        for j, w in weights.items():
            if not 0 <= j < self.count or self.stage[j] != stage or w < 0:
                raise CertificateError(f"upper end: a weight of {where} is negative or on a node of another stage")
            for s, n in self.belief[j].items():
                if n:
                    rest[s] = rest.get(s, 0) - w * n * scale
        bad = next((s for s, n in rest.items() if n < 0), None)
        if bad is not None:
            raise CertificateError(f"upper end: the weights of {where} exceed the successor at state {bad}")
        corner = stage * self.task.S
        nodes = [*weights, *(corner + s for s in rest)]
        shares = [*(w * scale * self.one for w in weights.values()), *rest.values()]
        return int(max(np.array(shares, dtype=object) @ self.Q[nodes]))

    def start_value(self) -> Fraction:
        """max_a' sum_j w_j Q(j, a') at the start belief."""
        scale = math.lcm(*(p.denominator for p in self.task.start.values()))
        tau = {s: int(p * scale) * self.one for s, p in self.task.start.items()}
        return Fraction(self.interpolate(tau, scale, self.start, 0, "the start"), scale * self.one**2 * self.over)
