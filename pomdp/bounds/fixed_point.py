"""The point set as one system: all weights fixed, every value solved for at once; imports graph and upper.

Backups along trials shrink an improvement by gamma a step on its way to the root; solving the system propagates all of
it. It also tells which upper values can be *reproduced* from the stored weights alone, which is what a certificate
states. Source: solver design, section 3, "Fixed point on the point set", and section 2, item 3.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, bicgstab

from pomdp.bounds.graph import BeliefGraph
from pomdp.bounds.upper import UpperBound

ROUNDS = 8  # of solving and interpolating anew what came out worse than it was
IMPROVEMENTS = 30  # of Howard's iteration
SWEEPS = 400  # value iterations tried before a linear solve


class PointSystem:
    """Q(i,a) = R(i,a) + gamma sum over the pair's children of max_a' (W Q)(child, a'), or a mixture of older Q(., a).

    `W` `[C, N]` unnormalised weights of the children, `gather` `[N*A, C]` which child belongs to which pair, `rewards`
    `[N, A]`. The pairs `inherited` `[P]` take the mixtures `heritage` `[P, N*A]` instead; these make no circle.
    """

    def __init__(
        self,
        W: csr_array,
        owner: np.ndarray,
        rewards: np.ndarray,
        inherited: np.ndarray | None = None,
        heritage: csr_array | None = None,
    ) -> None:
        """`owner` `[C]` is the pair i*A + a of each child."""
        self.W, self.rewards = W, rewards
        self.inherited = np.zeros(0, dtype=np.int64) if inherited is None else inherited
        self.heritage = csr_array((0, rewards.size)) if heritage is None else heritage
        self.gather = csr_array(
            (np.ones(owner.size), (owner, np.arange(owner.size))), shape=(rewards.size, owner.size)
        )

    def backup(self, Q: np.ndarray, gamma: float) -> np.ndarray:
        """One application to Q `[N, A]`."""
        new = self.rewards.copy()
        if self.W.shape[0] > 0:
            new += gamma * (self.gather @ (self.W @ Q).max(axis=1)).reshape(Q.shape)
        new.flat[self.inherited] = self.heritage @ Q.ravel()
        return new

    @property
    def is_inherited(self) -> np.ndarray:
        """Mask `[N, A]` of the inherited pairs."""
        mask = np.zeros(self.rewards.size, dtype=bool)
        mask[self.inherited] = True
        return mask.reshape(self.rewards.shape)

    def depth(self) -> np.ndarray:
        """`[N, A]`: how many mixtures lie between a pair and values that are backed up; 0 for those."""
        depth = np.zeros(self.rewards.size, dtype=np.int64)
        for row in np.argsort(self.inherited):  # what a mixture rests on has smaller numbers
            span = slice(self.heritage.indptr[row], self.heritage.indptr[row + 1])
            depth[self.inherited[row]] = 1 + depth[self.heritage.indices[span]].max(initial=0)
        return depth.reshape(self.rewards.shape)

    def rounding(self, Q: np.ndarray) -> float:
        """A bound on the rounding error of `backup`: terms of a pair times the unit of the largest value."""
        terms = (
            int(np.max(np.diff(self.W.indptr), initial=0))
            + int(np.max(np.diff(self.heritage.indptr), initial=0))
            + int(np.max(np.diff(self.gather.indptr), initial=0))
            + 8
        )
        return terms * 2.0**-52 * (float(np.max(np.abs(Q))) + float(np.max(np.abs(self.rewards))))

    def solve(self, Q: np.ndarray, gamma: float, discounted: bool, tolerance: float) -> np.ndarray:
        """Values that satisfy Q >= backup(Q) up to rounding, within `tolerance` of the fixed point where it can be.

        Value iteration from `Q` while that converges, else Howard's iteration; what either leaves is added over
        1 - gamma. With a horizon the recursion ends by itself.
        """
        if not discounted:
            while True:
                new = self.backup(Q, gamma)
                if np.array_equal(new, Q):
                    return new
                Q = new
        enough = tolerance * (1.0 - gamma)
        change = np.inf
        for _ in range(min(SWEEPS, int(20 / (1.0 - gamma)) + 20)):
            new = self.backup(Q, gamma)
            change = float(np.max(np.abs(new - Q)))
            Q = new
            if change <= enough:
                break
        for _ in range(IMPROVEMENTS):
            if change <= enough or self.W.shape[0] == 0:
                break
            before = change
            candidate = self._evaluate((self.W @ Q).argmax(axis=1), Q, gamma)
            new = self.backup(candidate, gamma)
            change = float(np.max(np.abs(new - candidate)))
            Q = new
            if change > 0.5 * before:
                break
        excess = max(float(np.max(self.backup(Q, gamma) - Q)), 0.0)
        return Q + excess / (1.0 - gamma)

    def _evaluate(self, choice: np.ndarray, Q: np.ndarray, gamma: float) -> np.ndarray:
        """Solve the linear system in which child c takes action choice[c]."""
        rows = np.arange(choice.size)

        def linear(x: np.ndarray) -> np.ndarray:
            x = x.reshape(Q.shape)
            out = (x - gamma * (self.gather @ (self.W @ x)[rows, choice]).reshape(Q.shape)).ravel()
            out[self.inherited] = x.flat[self.inherited] - self.heritage @ x.ravel()
            return out

        operator = LinearOperator((Q.size, Q.size), matvec=linear, dtype=np.float64)
        constant = self.rewards.ravel().copy()
        constant[self.inherited] = 0.0
        x, _ = bicgstab(operator, constant, x0=Q.ravel(), rtol=1e-14, atol=0.0, maxiter=500)
        return x.reshape(Q.shape) if np.all(np.isfinite(x)) else Q


def supporting_nodes(graph: BeliefGraph, root: int) -> np.ndarray:
    """The corners, then every node that carries weight for the root or for one another, oldest first; all expanded."""
    corners = graph.flat.layers * graph.flat.S
    order = [*range(corners)] + ([root] if root >= corners else [])
    known = set(order)
    for i in order:
        graph.expand(i)
        if graph.nodes.first[i, 0] < 0:
            continue
        kids = graph.children
        span = slice(kids.t_ptr[graph.nodes.first[i, 0]], kids.t_ptr[graph.nodes.first[i, -1]])
        carriers = kids.w_idx[span][kids.w_val[span] > 0]
        if i in graph.heritage:
            carriers = np.concatenate([carriers, graph.heritage[i][0]])
        for j in np.unique(carriers).tolist():
            if j not in known:
                known.add(j)
                order.append(j)
    return np.array(sorted(order))


def inherited_pairs(
    graph: BeliefGraph, members: np.ndarray, backups: np.ndarray
) -> tuple[np.ndarray, csr_array]:
    """The pairs `[P]` whose inherited mixture beats their backup `[N, A]`, and the mixtures `[P, N*A]`."""
    number = np.full(graph.num_nodes, -1)
    number[members] = np.arange(members.size)
    A = graph.flat.A
    pairs: list[int] = []
    rows: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for n in np.flatnonzero(graph.nodes.first[members, 0] >= 0):
        made_of = graph.heritage.get(int(members[n]))
        if made_of is None:
            continue
        parents, weights = made_of
        mixture = weights @ graph.nodes.Q[parents]
        for a in np.flatnonzero(mixture < backups[n] - 1e-12 * (1.0 + np.abs(mixture))):
            rows.append(np.full(parents.size, len(pairs)))
            columns.append(number[parents] * A + a)
            values.append(weights)
            pairs.append(int(n) * A + int(a))
    if not pairs:
        return np.zeros(0, dtype=np.int64), csr_array((0, members.size * A))
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return np.array(pairs), csr_array(entries, shape=(len(pairs), members.size * A))


def system_of(graph: BeliefGraph, members: np.ndarray) -> PointSystem:
    """The system over `members`, which must hold all nodes that carry weight for them."""
    number = np.full(graph.num_nodes, -1)
    number[members] = np.arange(members.size)
    kids, A = graph.children, graph.flat.A
    first = graph.nodes.first[members]
    parents = np.flatnonzero(first[:, 0] >= 0)
    if parents.size == 0:
        return PointSystem(
            csr_array((0, members.size)), np.zeros(0, dtype=np.int64), graph.nodes.reward[members]
        )
    child = np.concatenate([np.arange(first[n, 0], first[n, A]) for n in parents])
    counts = np.concatenate([np.diff(first[n]) for n in parents])
    owner = np.repeat((parents[:, None] * A + np.arange(A)).ravel(), counts)
    lengths = kids.t_ptr[child + 1] - kids.t_ptr[child]
    row = np.repeat(np.arange(child.size), lengths)
    entry = (
        np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths) + kids.t_ptr[child][row]
    )
    used = kids.w_val[entry] > 0
    entry, row = entry[used], row[used]
    values = kids.w_val[entry] * kids.probability[child][row]
    W = csr_array((values, (row, number[kids.w_idx[entry]])), shape=(child.size, members.size))
    plain = PointSystem(W, owner, graph.nodes.reward[members])
    backups = plain.backup(graph.nodes.Q[members], graph.flat.gamma)
    return PointSystem(W, owner, plain.rewards, *inherited_pairs(graph, members, backups))


def settle(upper: UpperBound, root: int, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Solve the system, lower every value to it, and interpolate anew where it came out worse.

    Returns its nodes and the pairs (position*A + a) that inherit. A value of the search may be better than what the
    stored weights reproduce, where they were replaced since; such pairs get fresh weights until the root is
    reproduced to `tolerance`, or ROUNDS are over.
    """
    graph = upper.graph
    gamma, discounted = graph.flat.gamma, graph.flat.discounted
    for _ in range(ROUNDS):
        members = supporting_nodes(graph, root)
        system = system_of(graph, members)
        Q = system.solve(graph.nodes.Q[members], gamma, discounted, 0.1 * tolerance)
        at_root = float(Q[np.flatnonzero(members == root)[0]].max())
        known = graph.nodes.V[members].copy()
        worse = np.argwhere(Q > known[:, None] + 0.1 * tolerance)
        reproduced = at_root <= graph.nodes.V[root] + tolerance
        graph.nodes.Q[members] = np.minimum(graph.nodes.Q[members], Q)
        graph.nodes.V[members] = graph.nodes.Q[members].max(axis=1)
        if reproduced or worse.size == 0:
            break
        changed = 0
        for n, a in worse:
            changed += upper.reweigh(int(members[n]), int(a))
        if changed == 0:
            break
    return members, system.inherited
