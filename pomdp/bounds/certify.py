"""From the floats of a search to a certificate that holds exactly; imports the search's parts and pomdp.check.

Floats are rounded to integers, the exact residual of every inequality is computed once by the checker's own functions,
and the values are shifted by the worst residual over 1 - gamma (with a horizon: by its sum over the remaining stages),
after which the inequalities hold exactly. The search is trusted with nothing. Source: formal core, section 5.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from pomdp.bounds.fixed_point import PointSystem, settle
from pomdp.bounds.search import Search
from pomdp.certificate import END, Certificate, Controller, Node, Point, Points, Weights
from pomdp.check import ExactTask, UpperTable, lower_slacks

BITS = 80  # beliefs and weights: doubles are exact down to 2**-27 of 1
VALUE_BITS = 64  # significant binary places of a value
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
    return math.floor(Fraction(value) * (1 << bits)) if bits >= 0 else math.floor(Fraction(value) / (1 << -bits))


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
    order = _reachable(vectors.link, best)
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
    worst = min(min(slack) for slack in lower_slacks(draft, task))
    drop = _shifts(math.ceil(max(-worst, Fraction(0)) * (1 << places)), task.discount, task.horizon)
    nodes = tuple(replace(n, alpha=tuple(x - drop[n.stage] for x in n.alpha)) for n in nodes)
    claim = sum((p * nodes[0].alpha[s] for s, p in task.start.items()), Fraction(0)) / (1 << places)
    return replace(certificate, lower=claim, controller=Controller(0, 1 << places, nodes))


def _reachable(link: np.ndarray, start: int) -> list[int]:
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
    owners = settle(search.upper, search.root, tolerance).tolist()
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
    weights, system = _weights(search, owners, number, table)
    start = {} if search.root < corners else {number[search.root]: 1 << BITS}
    start = _fitted_start(table, task, start)
    Q = system.solve(graph.nodes.Q[owners], search.flat.gamma, search.flat.discounted, 0.1 * tolerance)
    places = _places(Q)
    rows = [[_scaled(float(x), places) + 1 for x in row] for row in Q]
    draft = _with_values(certificate, draft_points, weights, start, rows, places, corners)
    table = UpperTable(draft, task)
    eps = Fraction(0)
    for i in range(table.count):
        for a in range(task.A):
            eps = max(eps, table.backup(i, a) - Fraction(int(table.Q[i][a]), table.over))
    raise_by = _shifts(math.ceil(eps * (1 << places)), task.discount, task.horizon)
    rows = [[x + raise_by[table.stage[i]] for x in row] for i, row in enumerate(rows)]
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
    search: Search, owners: list[int], number: dict[int, int], table: UpperTable
) -> tuple[Weights, PointSystem]:
    """Integer weights that the exact successors can bear, and the float system that they define."""
    graph, task = search.graph, table.task
    kids = graph.children
    weights: Weights = {}
    build = _Builder(task.A)
    for n, i in enumerate(owners):
        for a in range(task.A):
            build.row(float(table.reward(n, a)))
            if task.last(table.stage[n]):
                continue
            successor, scale = table.successors(n, a)
            given = {int(kids.observation[c]): c for c in range(graph.nodes.first[i, a], graph.nodes.first[i, a + 1])}
            stage = task.next_stage(table.stage[n])
            for o, tau in successor.items():
                row: dict[int, int] = {}
                if o in given:
                    c = given[o]
                    for e in range(kids.t_ptr[c], kids.t_ptr[c + 1]):
                        j = int(kids.w_idx[e])
                        if kids.w_val[e] > 0 and j >= table.corners:
                            share = Fraction(float(kids.w_val[e] * kids.probability[c]))
                            row[number[j]] = row.get(number[j], 0) + int(share * table.one)
                rest = fit(row, tau, scale, table)
                row = {j: w for j, w in row.items() if w > 0}
                if row:
                    weights[n, a, o] = row
                build.child(row, rest, scale, stage * task.S, table.one)
    return weights, build.system(len(owners))


def fit(row: dict[int, int], tau: dict[int, int], scale: int, table: UpperTable) -> dict[int, int]:
    """Lower weights in place until they leave nothing negative of the successor; returns what they leave."""
    rest = {s: n * table.one for s, n in tau.items()}
    for j, w in row.items():
        for s, n in table.belief[j].items():
            rest[s] = rest.get(s, 0) - w * n * scale
    for s in [s for s, left in rest.items() if left < 0]:
        while rest[s] < 0:
            j = max((j for j in row if row[j] > 0), key=lambda j: table.belief[j].get(s, 0))
            n = table.belief[j][s]
            cut = min(row[j], -(rest[s] // (n * scale)))
            row[j] -= cut
            for other, m in table.belief[j].items():
                rest[other] += cut * m * scale
    return rest


def _fitted_start(table: UpperTable, task: ExactTask, start: dict[int, int]) -> dict[int, int]:
    """Weights of the start belief that leave nothing negative."""
    scale = math.lcm(*(p.denominator for p in task.start.values()))
    fit(start, {s: int(p * scale) * table.one for s, p in task.start.items()}, scale, table)
    return {j: w for j, w in start.items() if w > 0}


class _Builder:
    """Collects rewards and child weights into a system of floats."""

    def __init__(self, A: int) -> None:
        self.A = A
        self.rewards: list[float] = []
        self.owner: list[int] = []
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._values: list[float] = []

    def row(self, reward: float) -> None:
        """Begin the pair (node, action)."""
        self.rewards.append(reward)

    def child(self, row: dict[int, int], rest: dict[int, int], scale: int, corner: int, one: int) -> None:
        """Add a child of the current pair: weights over points, and what they leave to the corners from `corner`."""
        c = len(self.owner)
        self.owner.append(len(self.rewards) - 1)
        whole = scale * one * one
        for j, w in row.items():
            self._rows.append(c)
            self._columns.append(j)
            self._values.append(w / one)
        for s, left in rest.items():
            if left:
                self._rows.append(c)
                self._columns.append(corner + s)
                self._values.append(left / whole)

    def system(self, nodes: int) -> PointSystem:
        """The system over `nodes` nodes."""
        C = len(self.owner)
        W = csr_array((self._values, (self._rows, self._columns)), shape=(C, nodes))
        return PointSystem(W, np.array(self.owner, dtype=np.int64), np.array(self.rewards).reshape(nodes, self.A))
