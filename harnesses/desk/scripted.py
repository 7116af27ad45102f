"""Scripted deciders: fixed numbers, and an item's own label; imports decider.

They decide nothing: the first drives worked examples and tests, the second is what a perfect decider would say. Both
carry that in the label that stands beside every number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesses.desk.decider import SCRIPTED, Answer, Choice, DeciderError, Noul, checked


@dataclass(frozen=True)
class Scripted:
    """Says `route` with probability p_route to every Choice, the rest shared alike, and p_allow to every Noul.

    Raises DeciderError for what is no probability.
    """

    route: str
    p_route: float
    p_allow: float
    name: str = field(default=SCRIPTED, init=False)
    model: str = field(default="fixed numbers (no model)", init=False)

    def __post_init__(self) -> None:
        """Refuse numbers that are none."""
        checked(self.p_route, "p_route")
        checked(self.p_allow, "p_allow")

    def choose(self, question: Choice) -> Answer:
        """The fixed route."""
        if self.route not in question.options:
            raise DeciderError(f"{self.route!r} is none of the options {', '.join(question.options)}")
        others = [option for option in question.options if option != self.route]
        rest = (1.0 - float(self.p_route)) / len(others)
        return Answer(self.route, {self.route: float(self.p_route), **dict.fromkeys(others, rest)})

    def noul(self, question: Noul) -> float:
        """The fixed number."""
        return float(self.p_allow)


@dataclass(frozen=True)
class ByState:
    """Answers from a table of states, such as the labels of a decision set: `routes` and `allowed` by request.

    What a perfect decider would say, as far as the table goes; DeciderError for a state that it does not hold.
    """

    routes: Mapping[str, str]
    allowed: Mapping[str, bool]
    name: str = field(default=SCRIPTED, init=False)
    model: str = field(default="the items' own labels (no model)", init=False)

    def choose(self, question: Choice) -> Answer:
        """The label, with certainty."""
        route = self._found(self.routes, question.state)
        return Answer(route, {option: float(option == route) for option in question.options})

    def noul(self, question: Noul) -> float:
        """1 where the label allows it, else 0."""
        return float(self._found(self.allowed, question.state))

    @staticmethod
    def _found(table: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
        request = str(state.get("request"))
        if request not in table:
            raise DeciderError(f"there is no label for the request {request[:40]!r}")
        return table[request]
