"""Models that a harness serves: stateless policies pi(a|c) as scores and a temperature; imports harness, bounds.

A model here reads the current context and nothing else (M1 §1.4.3). Each kind scores the actions in each context;
temperature 0 takes the best ones in equal shares, a higher one makes the model weaker (softmax), infinity random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from harnesses.context import Context, Message
from harnesses.harness import Induced
from harnesses.lookahead import Lookahead
from pomdp.model import POMDP, ModelError

KINDS = {
    "optimal": "the best stateless policy found for this context map",
    "bayes": "acts on the exact posterior given the context, all actions having been equally likely before",
    "naive": "runs a Bayes filter of the task from its start over the pairs that are still visible",
    "rules": "a fixed table from contexts to actions",
    "random": "all exposed actions alike",
}
# Scores this close, as a share of the largest, are ties of exact arithmetic.
TIE = 1e-9
# The reference behaviour of a discounted posterior is followed until this share of the weight is left.
TAIL = 1e-6
MAX_STEPS = 400


@dataclass(frozen=True)
class StatelessModel:
    """A model by kind and temperature, defined on the contexts of every harness.

    `temperature` >= 0 is in units of reward: an action that is worse by one temperature is e times rarer. `rules` and
    `otherwise` are for the kind `rules`: context as it is printed -> action. Raises ModelError for what is unknown.
    """

    kind: str
    temperature: float = 0.0
    rules: Mapping[str, str] = field(default_factory=dict)
    otherwise: str | None = None

    def __post_init__(self) -> None:
        """Refuse unknown kinds and temperatures."""
        if self.kind not in KINDS:
            raise ModelError(f"no model {self.kind!r}; known: {', '.join(KINDS)}")
        if not self.temperature >= 0:
            raise ModelError(
                f"model.temperature {self.temperature} is not a number >= 0; give one such as 0.5"
            )
        if (self.kind == "rules") != (self.otherwise is not None):
            raise ModelError(
                'a model of kind rules needs `otherwise`, an action such as "wait", and no other may have it'
            )

    @property
    def fixed(self) -> bool:
        """Whether it is one function of the context, blind to which harness printed that."""
        return self.kind in ("naive", "rules")

    @property
    def text(self) -> str:
        """Kind and temperature, such as `bayes` or `bayes:0.5`."""
        return self.kind + (f":{self.temperature:g}" if self.temperature else "")


def policy(scores: np.ndarray, temperature: float) -> np.ndarray:
    """`[C, A]` probabilities from scores `[C, A]`; -inf is never taken. Ties at temperature 0 share."""
    best = scores.max(axis=1, keepdims=True)
    if temperature == 0.0:
        finite = np.abs(scores[np.isfinite(scores)])
        close = TIE * max(1.0, float(finite.max(initial=0.0)))
        weights = (scores >= best - close).astype(float)
    elif math.isinf(temperature):
        weights = np.isfinite(scores).astype(float)
    else:
        with np.errstate(over="ignore"):  # at a temperature near 0 a worse score is infinitely worse
            weights = np.exp((scores - best) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def random_scores(induced: Induced) -> np.ndarray:
    """`[C, A]` zeros: every exposed action alike."""
    return np.zeros((induced.num_contexts, induced.model.num_actions))


def bayes_scores(induced: Induced, lookahead: Lookahead) -> np.ndarray:
    """`[C, A]` expected Q of M_0 at the posterior of (time, state) given the context.

    The posterior is that of a run in which all actions were equally likely so far; `lookahead` is of `induced.inner`.
    This is the Bayes reader: it knows the task and what the harness dropped, but not what it itself would have done.
    """
    C, S = induced.num_contexts, induced.inner.num_states
    criterion = induced.criterion
    uniform = policy(random_scores(induced), 0.0)
    steps = criterion.horizon or _steps(criterion.gamma)
    live = np.flatnonzero(induced.shown >= 0)
    place = induced.shown[live] * S + induced.origin[live]
    scores, weight = np.zeros((C, induced.model.num_actions)), np.zeros(C)
    summed = np.zeros((C, S))
    for t, measure in enumerate(induced.occupancy(uniform, steps)):
        joint = np.bincount(place, weights=measure[live], minlength=C * S).reshape(C, S)
        if criterion.horizon is None:
            summed += criterion.gamma**t * joint
            continue
        seen = np.flatnonzero(joint.sum(axis=1) > 0.0)
        # Q is homogeneous in the measure, so weighting by the mass is leaving it undivided.
        scores[seen] += lookahead.q(joint[seen], criterion.horizon - t)
        weight[seen] += joint[seen].sum(axis=1)
    if criterion.horizon is None:
        scores, weight = lookahead.q(summed, None), summed.sum(axis=1)
    met = weight > 0.0
    scores[met] /= weight[met, None]
    return scores


def naive_scores(induced: Induced, lookahead: Lookahead) -> np.ndarray:
    """`[C, A]` Q of the task at the belief that the visible pairs give, as if nothing else had happened.

    The non-Bayesian surrogate of M1 §1.5.1. `lookahead` is of `induced.task`, so that the same context has the same
    scores under every harness; actions that the task does not have are never taken. Steps to go are counted by the
    visible calls.
    """
    task, horizon = induced.task, induced.criterion.horizon
    reader = _VisibleFilter(task)
    beliefs = np.array([reader.read(context) for context in induced.contexts])
    calls = np.array([sum(m.role == "call" for m in context.messages) for context in induced.contexts])
    scores = np.full((induced.num_contexts, induced.model.num_actions), -np.inf)
    known = [
        (a, task.actions.index(name)) for a, name in enumerate(induced.model.actions) if name in task.actions
    ]
    if not known:
        raise ModelError(
            "the harness exposes no action of the task by its own name, so a naive model cannot act"
        )
    columns, rows = (list(part) for part in zip(*known, strict=True))
    for n in np.unique(calls):
        chosen = np.flatnonzero(calls == n)
        left = None if horizon is None else max(1, horizon - int(n))
        scores[np.ix_(chosen, columns)] = lookahead.q(beliefs[chosen], left)[:, rows]
    return scores


def visible_belief(task: POMDP, context: Context) -> np.ndarray:
    """`[S]` the belief of a reader that filters the pairs it sees from the start belief on.

    A call whose result is gone moves the belief without an observation; a result whose call is gone, a result that the
    task does not know, and one that is impossible at the belief so far are passed over.
    """
    return _VisibleFilter(task).read(context)


class _VisibleFilter:
    """`visible_belief` of many contexts of one task: operators and beliefs after shared beginnings are kept."""

    def __init__(self, task: POMDP) -> None:
        self._task = task
        self._moves = [csr_array(matrix.T) for matrix in task.T]
        self._columns: dict[tuple[int, int], np.ndarray] = {}
        self._known: dict[tuple[Message, ...], tuple[np.ndarray, int | None]] = {(): (task.start, None)}

    def read(self, context: Context) -> np.ndarray:
        """`[S]` the belief after the visible messages."""
        messages = tuple(context.messages)
        done = len(messages)
        while messages[:done] not in self._known:
            done -= 1
        found = self._known[messages[:done]]
        for i in range(done, len(messages)):
            found = self._known[messages[: i + 1]] = self._after(*found, messages[i])
        belief, action = found
        return belief if action is None else self._moves[action] @ belief

    def _after(
        self, belief: np.ndarray, action: int | None, message: Message
    ) -> tuple[np.ndarray, int | None]:
        """Belief and call without an answer after one more message."""
        if message.role == "call":
            moved = belief if action is None else self._moves[action] @ belief
            return moved, _known(message.text, self._task.actions)
        if message.role not in ("stub", "result") or action is None:
            return belief, action
        moved = self._moves[action] @ belief
        if message.role == "stub":
            return moved, None
        o = _known(message.text, self._task.observations)
        if o is None:
            return belief, None
        joint = moved * self._column(action, o)
        total = float(joint.sum())
        return (joint / total if total > 0.0 else belief), None

    def _column(self, action: int, observation: int) -> np.ndarray:
        """`[S]` Z(o|s', a) over s'."""
        place = action, observation
        if place not in self._columns:
            self._columns[place] = self._task.Z[action][:, [observation]].toarray().ravel()
        return self._columns[place]


def optimal_scores(induced: Induced, pi: np.ndarray, fallback: np.ndarray) -> np.ndarray:
    """`[C, A]` Q of each action in each context when `pi` `[C, A]` is followed before and after; `fallback` elsewhere.

    Q(c, a) averages over the states in which `pi` meets c, weighted by discounted visits.
    """
    model, criterion = induced.model, induced.criterion
    steps = criterion.horizon or _steps(criterion.gamma)
    after = _values_to_go(induced, pi, steps)
    live = np.flatnonzero(induced.shown >= 0)
    scores, weight = np.zeros(fallback.shape), np.zeros(len(fallback))
    for t, measure in enumerate(induced.occupancy(pi, steps)):
        visits = criterion.gamma**t * measure
        following = after[0] if criterion.horizon is None else after[steps - 1 - t]
        for a in range(model.num_actions):
            q = visits * (model.R[a] + criterion.gamma * (model.T[a] @ following))
            scores[:, a] += np.bincount(induced.shown[live], weights=q[live], minlength=len(weight))
        weight += np.bincount(induced.shown[live], weights=visits[live], minlength=len(weight))
    met = weight > 0.0
    scores[met] /= weight[met, None]
    scores[~met] = fallback[~met]
    return scores


def rule_scores(induced: Induced, model: StatelessModel) -> np.ndarray:
    """`[C, A]` 0 for the action that the rules name, -inf elsewhere; ModelError for an unknown action."""
    scores = np.full((induced.num_contexts, induced.model.num_actions), -np.inf)
    for c, context in enumerate(induced.contexts):
        name = model.rules.get(context.text, str(model.otherwise))
        scores[c, induced.model.action_index(name)] = 0.0
    return scores


def _values_to_go(induced: Induced, pi: np.ndarray, steps: int) -> list[np.ndarray]:
    """Values `[N]` of `pi` with 0, 1, ..., steps - 1 steps to go; for ever, the one that is always right."""
    if induced.criterion.horizon is None:
        return [induced.values(pi)]
    return induced.values_by_steps(pi, steps - 1)


def _steps(gamma: float) -> int:
    """Steps after which a discounted sum has TAIL of its weight left, MAX_STEPS at most."""
    return 1 if gamma == 0.0 else min(MAX_STEPS, math.ceil(math.log(TAIL) / math.log(gamma)))


def _known(text: str, names: tuple[str, ...]) -> int | None:
    """Index of a name, or of what a harness added a `+suffix` to; None where the task does not know it."""
    for candidate in (text, text.partition("+")[0]):
        if candidate in names:
            return names.index(candidate)
    return None
