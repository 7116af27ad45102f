"""Pattern: which pairs of action and observation a map treats apart, `flip/t2`, `read/*`; imports message.

Source: design of the formal core, section 2 (patterns over (a, o)).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from harnesses.context.message import Event
from pomdp.model import POMDP, ModelError
from pomdp.rational import RationalMatrix


@dataclass(frozen=True)
class Pattern:
    """Names of an action and an observation, in which `*` stands for any text."""

    action: str
    observation: str = "*"

    def __post_init__(self) -> None:
        """Refuse a pattern without a name."""
        if not self.action or not self.observation:
            raise ModelError(
                f"the pattern {self.text!r} lacks a name; write ACTION/OBSERVATION, such as flip/*"
            )

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """From `action/observation`, or `action` for any observation."""
        action, slash, observation = text.strip().partition("/")
        return cls(action.strip(), observation.strip() if slash else "*")

    @property
    def text(self) -> str:
        """Canonical text."""
        return f"{self.action}/{self.observation}"

    def matches(self, event: Event) -> bool:
        """Whether the event's action and observation fit."""
        return _fits(self.action, event.action) and _fits(self.observation, event.observation)


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Patterns separated by commas, at least one."""
    return tuple(Pattern.parse(part) for part in text.split(","))


def require_names(model: POMDP | None, patterns: Iterable[Pattern]) -> None:
    """ModelError where a pattern names an action or observation that the model lacks; no model lacks none."""
    if model is None:
        return
    for pattern in patterns:
        for wanted, names, noun in (
            (pattern.action, model.actions, "action"),
            (pattern.observation, model.observations, "observation"),
        ):
            if not any(_fits(wanted, name) for name in names):
                near = difflib.get_close_matches(wanted, names, 3) or list(names[:8])
                raise ModelError(f"pattern {pattern.text}: no {noun} {wanted!r}; known: {', '.join(near)}")


def can_recur(model: POMDP | None, patterns: Iterable[Pattern]) -> bool:
    """Whether some run makes pairs that match without end: one is made on a cycle of reachable states.

    True where no model says otherwise.
    """
    if model is None:
        return True
    moves = [_support(matrix) for matrix in model.exact.T]
    any_move = csr_array(sum(moves[1:], moves[0]))
    reached = np.zeros(model.num_states, dtype=bool)
    for s in model.exact.start:
        if not reached[s]:
            reached[breadth_first_order(any_move, s, return_predecessors=False)] = True
    component = connected_components(any_move, connection="strong")[1]
    for pattern in patterns:
        seen = np.array([_fits(pattern.observation, name) for name in model.observations], dtype=float)
        for a, move in enumerate(moves):
            if not _fits(pattern.action, model.actions[a]):
                continue
            edges = move.tocoo()
            shown = (_support(model.exact.Z[a]) @ seen) > 0
            cyclic = component[edges.row] == component[edges.col]
            if np.any(cyclic & shown[edges.col] & reached[edges.row]):
                return True
    return False


def _support(matrix: RationalMatrix) -> csr_array:
    """1 where the exact matrix is not 0; a float copy may round a tiny probability away."""
    return csr_array((np.ones(len(matrix.indices)), matrix.indices, matrix.indptr), shape=matrix.shape)


@lru_cache(maxsize=1 << 16)
def _fits(pattern: str, name: str) -> bool:
    """Whether the name is the pattern, `*` standing for any text."""
    if "*" not in pattern:
        return pattern == name
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
