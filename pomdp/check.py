"""The exact check of a certificate in integers; imports certificate and model, nothing of the solver.

This is the file that a reader of a bound has to trust. It uses no floating point, no linear program and no search.

Lower end: with alpha_k(s) <= R(s, a_k) + gamma sum_s' T sum_o Z alpha_next(k, o)(s') for all nodes k and states s,
the controller earns at least alpha_start . b0.

Upper end: with Q(i, a) >= R(b_i, a) + gamma sum_o max_a' sum_j w_j Q(j, a') for all points i and actions a, where the
weights w >= 0 reproduce the successor, tau(b_i, a, o) = sum_j w_j b_j, no policy earns more than
max_a' sum_j w_j Q(j, a') at b0 = sum_j w_j b_j. (Q*(., a') is convex and homogeneous, so the right side bounds V*(tau)
whenever Q bounds Q* at the points; discounting makes that self-supporting.) A pair may instead be inherited,
Q(i, a) >= sum_j w_j Q(j, a) with b_i = sum_j w_j b_j over corners and points before i, an order that excludes circles.

With a horizon every value has a stage, leads to the next stage, and is 0 after the last. At discount 1 without stages
nothing is accepted. Source: formal core, section 5, `lower-certificate` and `upper-certificate`; the values Q(i, a) in
place of v_i, and inheritance, are this project's extension: with Q(i, .) = v_i it is the form given there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pomdp.certificate import END, INHERITED, OPEN_LOOP, Certificate, CertificateError
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

    `T[a]`, `Z[a]`: CSR integers over one denominator; `rewards[a]`: integers `[S]` and their denominator.
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
        self.rewards: list[tuple[np.ndarray, int]] = []
        for a, row in enumerate(exact.R.rows()):
            over = int(exact.R.denominators[a])
            self.rewards.append((_objects([int(row.get(s, 0) * over) for s in range(self.S)]), over))
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
    factor = np.repeat(
        np.array([over // d for d in matrix.denominators], dtype=object), np.diff(matrix.indptr)
    )
    return _Integers(matrix.indptr, matrix.indices, matrix.numerators * factor, over)


# ---- the lower end


def lower_fault(certificate: Certificate, task: ExactTask) -> str | None:
    """The first inequality of the controller that fails, or None."""
    proof = certificate.controller
    fault = _malformed_controller(certificate, task)
    if fault is not None:
        return fault
    over = proof.denominator
    for k, (s, slack) in enumerate(lower_slacks(certificate, task)):
        if slack < 0:
            return f"lower end: alpha of node {k} at state {task.model.states[s]} is {_size(-slack)} too high"
    start = proof.nodes[proof.start]
    value = sum((p * start.alpha[s] for s, p in task.start.items()), Fraction(0)) / over
    if certificate.lower > value:
        return f"lower end: the claim is {_size(certificate.lower - value)} above the start node's value"
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


def lower_slacks(certificate: Certificate, task: ExactTask) -> Iterator[tuple[int, Fraction]]:
    """For each node the state where R + gamma sum T Z alpha_next - alpha is least, and how much it is there."""
    proof = certificate.controller
    alphas = np.empty((len(proof.nodes), task.S), dtype=object)
    for k, node in enumerate(proof.nodes):
        alphas[k, :] = node.alpha
    for k, node in enumerate(proof.nodes):
        yield _lower_slack(node.action, node.following, alphas[k], alphas, proof.denominator, task)


def _lower_slack(
    action: int, following: tuple[int, ...], alpha: np.ndarray, alphas: np.ndarray, over: int, task: ExactTask
) -> tuple[int, Fraction]:
    T, Z = task.T[action], task.Z[action]
    reward, unit = task.rewards[action]
    if following[0] == END:
        return _least(reward * over - alpha * unit, unit * over)
    links = np.array(following, dtype=np.int64)
    rows = np.repeat(np.arange(task.S), np.diff(Z.indptr))
    # Rows of T and Z sum to 1, so none is empty and reduceat adds exactly one group a row.
    reached = np.add.reduceat(Z.data * alphas[links[Z.indices], rows], Z.indptr[:-1])
    ahead = np.add.reduceat(T.data * reached[T.indices], T.indptr[:-1])
    gain, scale = task.discount.numerator, T.over * Z.over * task.discount.denominator
    return _least((reward * over - alpha * unit) * scale + ahead * (gain * unit), unit * over * scale)


def _least(numbers: np.ndarray, over: int) -> tuple[int, Fraction]:
    s = min(range(numbers.size), key=numbers.__getitem__)
    return s, Fraction(int(numbers[s]), over)


# ---- the upper end


def upper_fault(certificate: Certificate, task: ExactTask) -> str | None:
    """The first inequality of the point set that fails, or None."""
    fault = _malformed_points(certificate, task)
    if fault is not None:
        return fault
    table = UpperTable(certificate, task)
    for i in range(table.count):
        for a in range(task.A):
            slack = Fraction(table.Q[i][a], table.over) - table.bound(i, a)
            if slack < 0:
                return f"upper end: Q of {table.label(i)} for action {task.model.actions[a]} is {_size(-slack)} too low"
    value = table.start_value()
    if certificate.upper < value:
        return (
            f"upper end: the claim is {_size(value - certificate.upper)} below the points' value at the start"
        )
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


@dataclass(frozen=True)
class Successors:
    """All successors tau(b, a, o) of one belief and action, unnormalised, as integers over `scale` * 2**bits.

    Child c has observation `observation[c]` and lives on `state[k]`, with `number[k]`, for k from `first[c]` to
    `first[c + 1]`, states ascending.
    """

    observation: np.ndarray
    first: np.ndarray
    state: np.ndarray
    number: np.ndarray
    scale: int


class UpperTable:
    """The points of a certificate by node number, and the exact backup of each."""

    def __init__(self, certificate: Certificate, task: ExactTask) -> None:
        p = certificate.points
        self.task = task
        self.one = 1 << p.bits
        self.over = p.denominator
        self.start = p.start
        self.weights: dict[tuple[int, int], dict[int, dict[int, int]]] = {}
        for (i, a, o), row in p.weights.items():
            self.weights.setdefault((i, a), {})[o] = row
        self.corners = certificate.stages * task.S
        self.stage = [t for t in range(certificate.stages) for _ in range(task.S)] + [
            q.stage for q in p.points
        ]
        self.count = len(self.stage)
        self.states = [np.array([s]) for _ in range(certificate.stages) for s in range(task.S)]
        self.numbers = [_objects([self.one])] * self.corners
        for q in p.points:
            entries = sorted((s, n) for s, n in q.belief.items() if n)
            self.states.append(np.array([s for s, _ in entries]))
            self.numbers.append(_objects([n for _, n in entries]))
        self.Q = np.empty((self.count, task.A), dtype=object)
        for i, values in enumerate([q for stage in p.corners for q in stage] + [q.Q for q in p.points]):
            self.Q[i, :] = values
        # What a point's values save against the corners' at its belief: one * Q(j) - sum_s b_j(s) Q(corner s).
        self.saving = self.one * self.Q
        for j in range(self.count):
            self.saving[j] -= self.numbers[j] @ self.Q[self.stage[j] * task.S + self.states[j]]
        self._place = np.full(task.S, -1)

    def label(self, i: int) -> str:
        """What an error calls node i."""
        if i < self.corners:
            return f"the corner {self.task.model.states[i % self.task.S]} at stage {self.stage[i]}"
        return f"point {i - self.corners}"

    def reward(self, i: int, a: int) -> Fraction:
        """R(b_i, a)."""
        number, over = self.task.rewards[a]
        return Fraction(int(self.numbers[i] @ number[self.states[i]]), over * self.one)

    def successors(self, i: int, a: int) -> Successors:
        """The children of node i under action a."""
        T, Z = self.task.T[a], self.task.Z[a]
        entry, parent = _rows(T.indptr, self.states[i])
        order, state, start = _grouped(T.indices[entry])
        predicted = np.add.reduceat((T.data[entry] * self.numbers[i][parent])[order], start)
        entry, parent = _rows(Z.indptr, state)
        order, observation, first = _grouped(Z.indices[entry])
        number = (Z.data[entry] * predicted[parent])[order]
        return Successors(
            observation, np.append(first, order.size), state[parent][order], number, T.over * Z.over
        )

    def bound(self, i: int, a: int) -> Fraction:
        """What Q(i, a) must not be below: the mixture it is inherited from where there is one, else its backup."""
        row = self.weights.get((i, a), {}).get(INHERITED)
        if row is None:
            return self.backup(i, a)
        if i < self.corners or any(j >= i for j in row):
            raise CertificateError(f"upper end: {self.label(i)} inherits from a point that is not before it")
        own = self.own(i)
        stage = self.stage[i]
        rest = self.rest(own, 0, row, stage, self.label(i))
        if any(n < 0 for n in rest):
            raise CertificateError(f"upper end: what {self.label(i)} inherits exceeds its belief")
        shares = _objects([w * self.one for w in row.values()])
        total = shares @ self.Q[list(row), a] + rest @ self.Q[stage * self.task.S + own.state, a]
        return Fraction(int(total), self.one * self.one * self.over)

    def own(self, i: int) -> Successors:
        """The belief of node i in the form of a single child."""
        return Successors(
            np.array([INHERITED]), np.array([0, self.states[i].size]), self.states[i], self.numbers[i], 1
        )

    def backup(self, i: int, a: int) -> Fraction:
        """R(b_i, a) + gamma sum_o max_a' sum_j w_j Q(j, a'); CertificateError where the weights are not a split."""
        if self.task.last(self.stage[i]):
            return self.reward(i, a)
        found = self.successors(i, a)
        stage = self.task.next_stage(self.stage[i])
        given = self.weights.get((i, a), {})
        total = self.interpolate(found, given, stage, f"{self.label(i)}, action {self.task.model.actions[a]}")
        return self.reward(i, a) + self.task.discount * total

    def interpolate(
        self, found: Successors, given: dict[int, dict[int, int]], stage: int, where: str
    ) -> Fraction:
        """sum_o max_a' sum_j w_j Q(j, a'), what the weights leave of a successor falling to the corners of `stage`."""
        corner = stage * self.task.S
        values = (
            np.add.reduceat(found.number[:, None] * self.Q[corner + found.state], found.first[:-1]) * self.one
        )
        for c, o in enumerate(found.observation.tolist()):
            row = given.get(o)
            if row:
                rest = self.rest(found, c, row, stage, where)
                if any(n < 0 for n in rest):
                    raise CertificateError(
                        f"upper end: the weights of {where} exceed the successor on observation {o}"
                    )
                values[c] += (_objects(list(row.values())) * found.scale) @ self.saving[list(row)]
        return Fraction(
            sum(max(row) for row in values.tolist()), found.scale * self.one * self.one * self.over
        )

    def rest(self, found: Successors, c: int, row: dict[int, int], stage: int, where: str) -> np.ndarray:
        """tau - sum_j w_j b_j on the states of child c, as integers over scale * one**2."""
        span = slice(found.first[c], found.first[c + 1])
        states, rest = found.state[span], found.number[span] * self.one
        if not row:
            return rest
        self._place[states] = np.arange(states.size)
        try:
            for j, w in row.items():
                if not 0 <= j < self.count or self.stage[j] != stage or w < 0:
                    raise CertificateError(f"upper end: a weight of {where} is negative or at another stage")
                place = self._place[self.states[j]]
                if (place < 0).any():
                    raise CertificateError(f"upper end: a weight of {where} is outside the successor")
                rest[place] -= self.numbers[j] * (w * found.scale)
        finally:
            self._place[states] = -1
        return rest

    def start_successor(self) -> Successors:
        """The start belief in the form of a single child."""
        states = sorted(self.task.start)
        scale = math.lcm(*(p.denominator for p in self.task.start.values()))
        number = _objects([int(self.task.start[s] * scale) * self.one for s in states])
        return Successors(np.array([0]), np.array([0, len(states)]), np.array(states), number, scale)

    def start_value(self) -> Fraction:
        """max_a' sum_j w_j Q(j, a') at the start belief."""
        return self.interpolate(self.start_successor(), {0: self.start}, 0, "the start")


def _size(amount: Fraction) -> str:
    """A positive amount to three digits; a forged file may hold numbers that no float does."""
    try:
        return f"{float(amount):.3g}"
    except OverflowError:
        return "more than 1e308"


def _objects(values: list[int]) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _rows(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(entries of the given CSR rows in order, position in `rows` of each)."""
    lengths = indptr[rows + 1] - indptr[rows]
    parent = np.repeat(np.arange(rows.size), lengths)
    return np.arange(parent.size) - np.repeat(np.cumsum(lengths) - lengths, lengths) + indptr[rows][
        parent
    ], parent


def _grouped(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(stable order by key, distinct keys ascending, where each begins in that order)."""
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    return order, distinct, first
