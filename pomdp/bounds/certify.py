"""From the floats of a search to a certificate that holds exactly; imports the search's parts and pomdp.check.

Beliefs and weights are rounded to integers such that the exact successors can bear the weights; then the values are
shifted by the worst residual over 1 - gamma (with a horizon: by its sum over the remaining stages), after which every
inequality holds exactly. Whether it does is for `pomdp.check` to say, which trusts neither this file nor the search.
Source: formal core, section 5.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from pomdp.bounds.fixed_point import PointSystem, settle
from pomdp.bounds.graph import BeliefGraph
from pomdp.bounds.search import Search
from pomdp.certificate import END, INHERITED, Certificate, Controller, Node, Point, Points, Weights
from pomdp.check import ExactTask, Successors, UpperTable, lower_slacks

BITS = 80  # beliefs and weights: doubles are exact down to 2**-27 of 1
VALUE_BITS = 64  # significant binary places of a value
MARGIN = 1e-12  # of each weight, given to the corners so that rounding seldom makes a remainder negative
TINY = 1e-13  # belief entries below this are given to the largest one


def certify(search: Search, quantity: str, discount: Fraction | None) -> Certificate:
    """The certificate of what `search` knows; `discount` None where it is the model's own.

    The ends are those that can be proved from the search's controller and point set: never better than its bounds,
    and worse by rounding only. Cost: a few exact backups of every node.
    """
    horizon = search.criterion.horizon
    nothing = Points(BITS, 1, (), (), {}, {})
    empty = Certificate(quantity, discount, horizon, Fraction(0), Fraction(0), Controller(0, 1, ()), nothing)
    task = ExactTask(search.model, empty)
    with_lower = _lower_end(search, empty, task)
    return _upper_end(search, with_lower, task)


def _shifts(eps: int, discount: Fraction, horizon: int | None) -> list[int]:
    """By stage, how far to move integer values so that every inequality gains `eps`: c_t >= eps + discount c_{t+1}."""
    if horizon is None:
        return [math.ceil(eps / (1 - discount))]
    shifts = [eps]
    for _ in range(horizon - 1):
        shifts.append(eps + math.ceil(discount * shifts[-1]))
    return shifts[::-1]


def _scaled(value: float, bits: int) -> int:
    """The integer part of value * 2**bits, exactly."""
    return (
        math.floor(Fraction(value) * (1 << bits)) if bits >= 0 else math.floor(Fraction(value) / (1 << -bits))
    )


def _places(values: np.ndarray) -> int:
    """Binary places after the point that leave VALUE_BITS significant ones."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return max(VALUE_BITS - (math.frexp(largest)[1] if largest > 0 else 0), 8)


# ---- the lower end


def _lower_end(search: Search, certificate: Certificate, task: ExactTask) -> Certificate:
    """Add the controller reachable from the best vector at the start, lowered to hold exactly."""
    idx, val = search.graph.belief(search.root)
    _, best = search.lower.best_at(idx, val)
    vectors = search.lower.vectors
    order = reachable(vectors.link, best)
    number = {k: n for n, k in enumerate(order)}
    places = _places(vectors.value[order])
    nodes = tuple(
        Node(
            stage=int(vectors.layer[k]),
            action=int(vectors.action[k]),
            following=tuple(number.get(int(j), END) for j in vectors.link[k]),
            alpha=tuple(_scaled(float(x), places) for x in vectors.value[k]),
        )
        for k in order
    )
    draft = replace(certificate, controller=Controller(0, 1 << places, nodes))
    worst = min(slack for _, slack in lower_slacks(draft, task))
    drop = _shifts(math.ceil(max(-worst, Fraction(0)) * (1 << places)), task.discount, task.horizon)
    nodes = tuple(replace(n, alpha=tuple(x - drop[n.stage] for x in n.alpha)) for n in nodes)
    claim = sum((p * nodes[0].alpha[s] for s, p in task.start.items()), Fraction(0)) / (1 << places)
    return replace(certificate, lower=claim, controller=Controller(0, 1 << places, nodes))


def reachable(link: np.ndarray, start: int) -> list[int]:
    """Vectors that the links of `start` lead to, itself first."""
    order, known = [start], {start}
    for k in order:
        for j in np.unique(link[k]):
            if j >= 0 and int(j) not in known:
                known.add(int(j))
                order.append(int(j))
    return order


# ---- the upper end


def _upper_end(search: Search, certificate: Certificate, task: ExactTask) -> Certificate:
    """Add the point set that the start's weights lead to, raised to hold exactly."""
    graph = search.graph
    corners = graph.flat.layers * graph.flat.S
    lower, upper = search.bounds
    tolerance = 0.02 * max(upper - lower, 1e-9 * (1.0 + abs(upper)))
    members, inherited = settle(search.upper, search.root, tolerance)
    owners = members.tolist()
    points = owners[corners:]
    number = {i: n for n, i in enumerate(owners)}
    beliefs = [_rounded(*graph.belief(i)) for i in points]
    stages = tuple(int(graph.nodes.layer[i]) for i in points)
    blank = (0,) * task.A
    draft_points = Points(
        BITS,
        1,
        tuple(tuple(blank for _ in range(task.S)) for _ in range(graph.flat.layers)),
        tuple(Point(t, b, blank) for t, b in zip(stages, beliefs, strict=True)),
        {},
        {},
    )
    table = UpperTable(replace(certificate, points=draft_points), task)
    weights, system = _weights(search, owners, number, table, set(inherited.tolist()))
    start = {} if search.root < corners else {number[search.root]: table.one}
    fit(start, table.start_successor(), 0, 0, table)
    Q = system.solve(graph.nodes.Q[owners], search.flat.gamma, search.flat.discounted, 0.1 * tolerance)
    places = _places(Q)
    # A mixture gains nothing from raising all values alike, so each inherited pair is raised above those it rests on.
    # Units are added because rounding Q down lowers the left side of an inequality by less than one.
    step = max(float(np.max(system.backup(Q, 0.0) - Q, where=system.is_inherited, initial=0.0)), 0.0)
    Q = Q + system.depth() * (step + system.rounding(Q) + 2.0 ** (1 - places))
    residual = float(np.max(system.backup(Q, search.flat.gamma) - Q)) + system.rounding(Q)
    raise_by = _shifts(math.ceil(max(residual, 0.0) * 2.0**places) + 1, task.discount, task.horizon)
    rows = [
        [_scaled(float(x), places) + raise_by[t] for x in row] for row, t in zip(Q, table.stage, strict=True)
    ]
    final = _with_values(certificate, draft_points, weights, start, rows, places, corners)
    return replace(final, upper=UpperTable(final, task).start_value())


def _with_values(
    certificate: Certificate,
    points: Points,
    weights: Weights,
    start: dict[int, int],
    rows: list[list[int]],
    places: int,
    corners: int,
) -> Certificate:
    """The certificate with Q integers `rows`, one a node, corners first."""
    S = len(points.corners[0])
    stages = [tuple(tuple(q) for q in rows[t * S : (t + 1) * S]) for t in range(len(points.corners))]
    filled = tuple(replace(p, Q=tuple(q)) for p, q in zip(points.points, rows[corners:], strict=True))
    new = replace(
        points, denominator=1 << places, corners=tuple(stages), points=filled, weights=weights, start=start
    )
    return replace(certificate, points=new)


def _rounded(idx: np.ndarray, val: np.ndarray) -> dict[int, int]:
    """A belief in units of 2**-BITS: entries rounded down, what is missing given to the largest."""
    one = 1 << BITS
    entries = {int(s): int(Fraction(float(p)) * one) for s, p in zip(idx, val, strict=True) if p > TINY}
    largest = max(entries, key=lambda s: entries[s])
    entries[largest] += one - sum(entries.values())
    return entries


def _weights(
    search: Search, owners: list[int], number: dict[int, int], table: UpperTable, inherited: set[int]
) -> tuple[Weights, PointSystem]:
    """Integer weights that the exact successors can bear, and the float system that they define."""
    graph, task = search.graph, table.task
    weights: Weights = {}
    build = _Builder()
    for n, i in enumerate(owners):
        for a in range(task.A):
            build.row(float(table.reward(n, a)))
            if task.last(table.stage[n]):
                continue
            if n * task.A + a in inherited:
                parents, shares = graph.heritage[i]
                row = _integers(parents, shares, number, table)
                rest = fit(row, table.own(n), 0, table.stage[n], table)
                weights[n, a, INHERITED] = row
                build.inherit(a, row, table.stage[n] * task.S + table.states[n], rest, table.one)
                continue
            found = table.successors(n, a)
            stage = task.next_stage(table.stage[n])
            given = _given(graph, i, a, number, table)
            for c, o in enumerate(found.observation.tolist()):
                row = given.get(o, {})
                rest = fit(row, found, c, stage, table)
                if row:
                    weights[n, a, o] = row
                states = found.state[found.first[c] : found.first[c + 1]]
                build.child(row, stage * task.S + states, rest, found.scale, table.one)
    return weights, build.system(len(owners), task.A)


def _given(
    graph: BeliefGraph, i: int, a: int, number: dict[int, int], table: UpperTable
) -> dict[int, dict[int, int]]:
    """Observation -> {point: integer weight} of the search's children of (i, a), corners left out."""
    kids = graph.children
    first, last = graph.nodes.first[i, a], graph.nodes.first[i, a + 1]
    span = slice(kids.t_ptr[first], kids.t_ptr[last])
    child = np.repeat(np.arange(first, last), np.diff(kids.t_ptr[first : last + 1]))
    used = (kids.w_val[span] > 0) & (kids.w_idx[span] >= table.corners)
    shares = kids.w_val[span] * kids.probability[child]
    return {
        int(kids.observation[c]): _integers(
            kids.w_idx[span][used & (child == c)], shares[used & (child == c)], number, table
        )
        for c in np.unique(child[used]).tolist()
    }


def _integers(
    points: np.ndarray, shares: np.ndarray, number: dict[int, int], table: UpperTable
) -> dict[int, int]:
    """Integer weights of the points among the given nodes, corners left out."""
    return {
        number[j]: int(math.ldexp(share * (1.0 - MARGIN), BITS))
        for j, share in zip(points.tolist(), shares.tolist(), strict=True)
        if j >= table.corners
    }


def fit(row: dict[int, int], found: Successors, c: int, stage: int, table: UpperTable) -> np.ndarray:
    """Lower the weights of child c in place until nothing they leave is negative; returns what they leave.

    A point outside the child's support (by an entry that rounding dropped) loses its weight.
    """
    if not row:
        return found.number[found.first[c] : found.first[c + 1]] * table.one
    states = found.state[found.first[c] : found.first[c + 1]]
    for j in [j for j in row if not _inside(table.states[j], states)]:
        del row[j]
    rest = table.rest(found, c, row, stage, "a fit")
    for k in np.flatnonzero(rest < 0):
        while rest[k] < 0:
            entry = {j: _entry(table, j, int(states[k])) for j, w in row.items() if w > 0}
            j = max(entry, key=lambda j: entry[j])
            cut = min(row[j], -(rest[k] // (entry[j] * found.scale)))
            row[j] -= cut
            rest[np.searchsorted(states, table.states[j])] += table.numbers[j] * (cut * found.scale)
    for j in [j for j, w in row.items() if w == 0]:
        del row[j]
    return rest


def _inside(part: np.ndarray, whole: np.ndarray) -> bool:
    """Whether every element of one ascending array is in another."""
    place = np.searchsorted(whole, part)
    return bool(place[-1] < whole.size and (whole[place] == part).all())


def _entry(table: UpperTable, j: int, state: int) -> int:
    """The integer that node j's belief gives a state."""
    k = int(np.searchsorted(table.states[j], state))
    return int(table.numbers[j][k]) if k < table.states[j].size and table.states[j][k] == state else 0


class _Builder:
    """Collects rewards and child weights into a system of floats."""

    def __init__(self) -> None:
        self.rewards: list[float] = []
        self.owner: list[int] = []
        self.inherited: list[int] = []
        self._mixtures: list[tuple[np.ndarray, np.ndarray, int]] = []
        self._columns: list[np.ndarray] = []
        self._values: list[np.ndarray] = []

    def row(self, reward: float) -> None:
        """Begin the pair (node, action)."""
        self.rewards.append(reward)

    def child(self, row: dict[int, int], corners: np.ndarray, rest: np.ndarray, scale: int, one: int) -> None:
        """Add a child of the current pair: weights over points, and what they leave to the corners."""
        self.owner.append(len(self.rewards) - 1)
        self._columns += [np.array(list(row), dtype=np.int64), corners]
        self._values += [
            np.array([w / one for w in row.values()]),
            (rest / (scale * one * one)).astype(float),
        ]

    def inherit(self, a: int, row: dict[int, int], corners: np.ndarray, rest: np.ndarray, one: int) -> None:
        """Let the current pair be a mixture of the values for action a of points and corners."""
        nodes = np.concatenate([np.array(list(row), dtype=np.int64), corners])
        shares = np.concatenate(
            [np.array([w / one for w in row.values()]), (rest / (one * one)).astype(float)]
        )
        self.inherited.append(len(self.rewards) - 1)
        self._mixtures.append((nodes, shares, a))

    def system(self, nodes: int, A: int) -> PointSystem:
        """The system over `nodes` nodes."""
        rewards = np.array(self.rewards).reshape(nodes, A)
        owner = np.array(self.owner, dtype=np.int64)
        if owner.size == 0:
            return PointSystem(csr_array((0, nodes)), owner, rewards)
        pairs = len(self.inherited)
        heritage = csr_array((pairs, nodes * A))
        if pairs:
            rows = np.repeat(np.arange(pairs), [m[0].size for m in self._mixtures])
            columns = np.concatenate([m[0] * A + m[2] for m in self._mixtures])
            shares = np.concatenate([m[1] for m in self._mixtures])
            heritage = csr_array((shares, (rows, columns)), shape=(pairs, nodes * A))
        lengths = [x.size for x in self._columns]
        rows = np.repeat(
            np.arange(owner.size), [p + q for p, q in zip(lengths[::2], lengths[1::2], strict=True)]
        )
        values = np.concatenate(self._values)
        W = csr_array((values, (rows, np.concatenate(self._columns))), shape=(owner.size, nodes))
        return PointSystem(W, owner, rewards, np.array(self.inherited, dtype=np.int64), heritage)
