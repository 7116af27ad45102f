"""The anytime search: trials and point-set rounds until the gap, the time or the memory ends it.

Imports the two sides (pomdp.bounds.upper, lower) and the graph. At every moment the root's bounds are valid; a time
limit or Ctrl-C between two steps keeps the best. Source: solver design, section 3, "Trials" and "Where to add points".
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from pomdp.bounds.flat import Flat, flatten
from pomdp.bounds.graph import BeliefGraph
from pomdp.bounds.initial import blind_values, fast_informed_bound
from pomdp.bounds.lower import LowerBound
from pomdp.bounds.upper import UpperBound, score_children
from pomdp.criterion import Criterion
from pomdp.model import POMDP

MEMORY = 3 * 2**30  # bytes of belief points at which the search stops adding more
PRECISION = 1e-15  # of the value: what doubles can tell apart
TRIALS = 4  # walks a round
DEPTH = 2_000  # longest walk
# No step takes more than this share of the time so far, and a little: else one step could outlast a short limit.
STEP_SHARE, STEP_SECONDS = 0.1, 0.2

Progress = Callable[[float, float, float], None]  # (seconds, lower, upper)


class Search:
    """State of one search: graph, both sides, the root."""

    def __init__(self, model: POMDP, criterion: Criterion, seed: int = 0) -> None:
        """Initial bounds; the search itself is `run`."""
        self.model = model
        self.criterion = criterion
        self.flat: Flat = flatten(model, criterion)
        self.graph = BeliefGraph(self.flat, fast_informed_bound(self.flat))
        self.upper = UpperBound(self.graph)
        self.lower = LowerBound(self.graph, blind_values(self.flat))
        idx = np.flatnonzero(model.start)
        val = model.start[idx]
        self.root = self.graph.add(0, idx, val, idx, val)
        self.lower.look_up(self.root)
        self.random = np.random.default_rng(seed)
        self.trials = 0

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound at the start belief."""
        return float(self.graph.nodes.L[self.root]), float(self.graph.nodes.V[self.root])

    def run(self, gap: float, time_limit: float, progress: Progress | None = None) -> str:
        """Search until the gap is at most `gap`; says why: `gap`, `precision`, `time`, `memory`, `interrupt`."""
        self._began = time.perf_counter()
        self._deadline = self._step_ends = self._began + time_limit
        self._interrupted = False
        spent = {"trials": 0.0, "upper": 0.0, "lower": 0.0}
        try:
            with self._interrupts_wait():
                return self._rounds(gap, time_limit, progress, spent)
        except KeyboardInterrupt:  # from `progress`, between two steps
            return "interrupt"

    def _rounds(
        self, gap: float, time_limit: float, progress: Progress | None, spent: dict[str, float]
    ) -> str:
        """The steps in turn, each side given its share of the time."""
        while True:
            lower, upper = self.bounds
            if progress is not None:
                progress(self._elapsed(), lower, upper)
            if upper - lower <= gap:
                return "gap"
            if upper - lower <= PRECISION * max(abs(lower), abs(upper)):
                return "precision"
            if self._interrupted:
                return "interrupt"
            if self._elapsed() >= time_limit:
                return "time"
            if self.graph.memory > MEMORY:
                return "memory"
            spent["trials"] += self._timed(self._trials)
            if spent["upper"] <= spent["trials"] + spent["lower"]:
                spent["upper"] += self._timed(self._upper_round)
            if self.flat.discounted and spent["lower"] <= 0.5 * self._elapsed():
                spent["lower"] += self._timed(self._lower_round)

    @contextmanager
    def _interrupts_wait(self) -> Iterator[None]:
        """Let Ctrl-C end the step and then the search: raised within a step it would leave half a node behind."""
        here = threading.current_thread() is threading.main_thread()
        if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield  # somebody else decides what Ctrl-C does
            return

        def note(*_: object) -> None:
            self._interrupted = True

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _elapsed(self) -> float:
        return time.perf_counter() - self._began

    def _late(self) -> bool:
        """Whether the current step has used its share of the time, or Ctrl-C was pressed."""
        return self._interrupted or time.perf_counter() >= self._step_ends

    def _timed(self, step: Callable[[], None]) -> float:
        """Run a step within its share of the time; returns its seconds."""
        began = time.perf_counter()
        self._step_ends = min(self._deadline, began + STEP_SHARE * (began - self._began) + STEP_SECONDS)
        step()
        return time.perf_counter() - began

    def _trials(self) -> None:
        """Up to TRIALS walks."""
        for _ in range(TRIALS):
            self.trial()
            if self._late():
                return

    def trial(self) -> None:
        """One walk from the root along greatest uncertainty, then backups of both bounds in reverse."""
        graph, gamma = self.graph, self.flat.gamma
        self.trials += 1
        by_lower = self.trials % 4 == 0
        sample = self.trials % 2 == 0
        path = [self.root]
        node = self.root
        lower, upper = self.bounds
        # If every child's gap were below half the root's, grown by 1/gamma a step, backups would halve the root's.
        allowed = 0.5 * (upper - lower)
        for _ in range(DEPTH):
            layer = graph.following(int(graph.nodes.layer[node]))
            if layer < 0:
                break
            self.upper.update(node)
            self.lower.refresh(node)
            a = self._lower_greedy(node) if by_lower else int(np.argmax(graph.nodes.Q[node]))
            allowed = allowed / gamma if gamma > 0 else np.inf
            first, last = graph.nodes.first[node, a], graph.nodes.first[node, a + 1]
            kids = graph.children
            gaps = kids.U[first:last] - kids.L[first:last]
            excess = np.where(np.isfinite(gaps), kids.probability[first:last] * (gaps - allowed), 0.0)
            if first == last or excess.max() <= 0.0 or self._late():
                break
            if sample:
                positive = np.maximum(excess, 0.0)
                pick = int(self.random.choice(positive.size, p=positive / positive.sum()))
            else:
                pick = int(np.argmax(excess))
            node = self.upper.node_of(int(first) + pick, layer)
            if graph.nodes.L[node] == -np.inf:
                self.lower.look_up(node)
            path.append(node)
        for node in reversed(path):
            self.lower.update(node)
            self.upper.update(node)

    def _lower_greedy(self, node: int) -> int:
        """The action whose backup of the lower bound is greatest."""
        graph = self.graph
        values = np.full(self.flat.A, -np.inf)
        for a in range(self.flat.A):
            span = slice(graph.nodes.first[node, a], graph.nodes.first[node, a + 1])
            expected = graph.children.probability[span] @ graph.children.L[span]
            values[a] = graph.nodes.reward[node, a] + self.flat.gamma * expected
        return int(np.argmax(values))

    def _upper_round(self) -> None:
        """Add the points that carry most of the gap, update visited nodes, sweep."""
        graph = self.graph
        visits = self.upper.visits(self.root)
        lower, upper = self.bounds
        for i in np.flatnonzero(visits > 0):
            if visits[i] * (graph.nodes.V[i] - max(graph.nodes.L[i], lower - upper)) > 1e-3 * (upper - lower):
                graph.expand(int(i))
                self.lower.refresh(int(i))
                if graph.nodes.L[i] == -np.inf:
                    self.lower.look_up(int(i))
        worth = score_children(self.flat, graph.nodes, graph.children, visits)[: graph.num_children]
        count = int(np.clip(graph.num_nodes // 10, 8, 200))
        best = np.argsort(-worth)[:count]
        owner = self._owners()
        for c in best:
            if worth[c] <= 0.0:
                break
            layer = graph.following(int(graph.nodes.layer[owner[c]]))
            node = self.upper.node_of(int(c), layer)
            self.lower.look_up(node)
            if self._late():
                return
        order = np.flatnonzero(visits > 0)
        for i in order[np.argsort(-visits[order])]:
            self.upper.update(int(i))
            if self._late():
                return
        for _ in range(10):
            if self.upper.sweep() <= 1e-3 * (upper - lower) or self._late():
                return

    def _owners(self) -> np.ndarray:
        """The node of which each child is a successor."""
        graph = self.graph
        owner = np.zeros(graph.num_children, dtype=np.int64)
        firsts = graph.nodes.first[: graph.num_nodes]
        for i in np.flatnonzero(firsts[:, 0] >= 0):
            owner[firsts[i, 0] : firsts[i, -1]] = i
        return owner

    def _lower_round(self) -> None:
        """Evaluate the controller, forget vectors that are best nowhere."""
        self.lower.prune()
        self.lower.evaluate(self._late)
