"""Policy model: a policy as a chat model that reads nothing but the rendered messages; imports the table, reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harnesses.conformance.reading import BROKEN, read
from harnesses.conformance.served import tool_name
from harnesses.conformance.table import Table
from harnesses.runtime.models import ModelFailure, RawCall, Reply
from harnesses.runtime.records import AgentError
from pomdp.alias import draw
from pomdp.rng import ACTION, words


@dataclass(frozen=True, eq=False)
class PolicyModel:
    """The rows of a table as a model; its reply at a step is drawn from (seed, episode, step) and from no state."""

    table: Table
    names: Mapping[str, str]
    seed: int
    episode: int
    name: str = "policy"
    row_of: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, names: Mapping[str, str], seed: int, episode: int) -> PolicyModel:
        """The model of one episode. AgentError where two contexts read alike and have different rows."""
        return cls(table, names, seed, episode, row_of=rows_by_text(table))

    def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], step: int) -> Reply:
        """One call, or one that does not parse."""
        text = read(messages, self.names)
        if text not in self.row_of:
            raise ModelFailure(f"the policy has no row for the context {text}")
        word, second = words(self.seed, ACTION, [self.episode], step)
        drawn = int(draw(self.table.draws, np.array([self.row_of[text]], np.uint32), word, second)[0])
        action, malformed = self.table.split.actions[drawn // 2], bool(drawn % 2)
        return Reply(calls=(RawCall(tool_name(action), BROKEN if malformed else "{}"),))


def rows_by_text(table: Table) -> dict[str, int]:
    """The row of each context by its text."""
    found: dict[str, int] = {}
    for c, context in enumerate(table.contexts):
        before = found.setdefault(context.text, c)
        if not np.array_equal(table.rows[before], table.rows[c]):
            raise AgentError(
                f"two contexts read {context.text!r} and ask for different actions, so no model can follow the policy; "
                "take another context map, such as last:2"
            )
    return found
