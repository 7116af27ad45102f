"""Formal: each pattern as a harness around the request, and its exact J and cost; imports constructors and harness.

    request --workflow (who chooses the next step), side_by_side--> M_0 --last:1--> M_H

Every result shows the typed facts of the case, so a context of one pair holds all that the policy of next steps reads
(M14 §9: keep the facts in the state). No LangGraph here: the graphs of `graphs` are built apart from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from harnesses.constructors.parallel import BESIDE, side_by_side
from harnesses.constructors.workflow import Node, node_of, workflow
from harnesses.context import Sizes, parse_map
from harnesses.desk.patterns.chooser import ERROR, Tokens, choice
from harnesses.desk.patterns.request import (
    ACTIONS,
    CHECK,
    CLASSIFY,
    DRAFT,
    ESCALATE,
    RETRIEVE,
    SPLIT,
    SUBMIT,
    UNSPLIT,
    Competence,
    Part,
    Payoff,
    request_model,
)
from harnesses.harness import Induced, induce
from pomdp.criterion import Criterion
from pomdp.interval import Interval
from pomdp.model import POMDP, ModelError

VOTERS = 3
ROUNDS = 3
"""Drafts of the evaluator-optimizer before it hands over."""
LOOP = 8
"""Steps of a loop over the three tools before it is stopped."""
AUTONOMOUS = 16
"""Steps of the loop that has every action."""
HORIZON = 48
"""No pattern makes as many steps."""

ROUNDING = 1e-12
"""A probability below this is one of 0 with the rounding of a sum."""

PRICE = Fraction(1, 20_000)
"""What a token costs, in right answers: 1/20 for a thousand."""

TOOLS = (CLASSIFY, RETRIEVE, DRAFT)
Nodes = Mapping[str, Node]


def _line(*steps: str) -> dict[str, Node]:
    """Fixed steps, each node named after its action; the last leads nowhere."""
    following = zip(steps, (*steps[1:], None), strict=True)
    return {a: Node((a,), {"*": after} if after else {}) for a, after in following}


def _loop(done: str, limit: int, then: str | None) -> Node:
    """A free loop over the three tools; its final answer is a draft."""
    return Node(TOOLS, {"*.new": done}, limit, then)


def _evaluator() -> dict[str, Node]:
    """Draft and check in turn; after the last failure a person gets it."""
    nodes: dict[str, Node] = {}
    for k in range(1, ROUNDS + 1):
        again = f"{CLASSIFY}-{k + 1}" if k < ROUNDS else ESCALATE
        nodes |= {
            f"{CLASSIFY}-{k}": Node((CLASSIFY,), {"*": f"{RETRIEVE}-{k}"}),
            f"{RETRIEVE}-{k}": Node((RETRIEVE,), {"*": f"{DRAFT}-{k}"}),
            f"{DRAFT}-{k}": Node((DRAFT,), {"*": f"{CHECK}-{k}"}),
            f"{CHECK}-{k}": Node((CHECK,), {"*.pass": SUBMIT, "*.fail": again}),
        }
    return nodes | {SUBMIT: Node((SUBMIT,)), ESCALATE: Node((ESCALATE,))}


def _orchestrator() -> dict[str, Node]:
    """The coordinator names the questions; each gets a worker; a worker that fails is a gap, and a person gets it."""
    return {
        SPLIT: Node((SPLIT,), {"first.*": "first", "one.*": "alone"}),
        "alone": _loop("send", LOOP, ESCALATE),
        "first": _loop("join", LOOP, "gap"),
        "join": Node((SUBMIT,), {"second.*": "second"}),
        "gap": Node((SUBMIT,), {"second.*": "second-after-gap"}),
        "second": _loop("send", LOOP, ESCALATE),
        "second-after-gap": _loop(ESCALATE, LOOP, ESCALATE),
        "send": Node((SUBMIT,)),
        ESCALATE: Node((ESCALATE,)),
    }


def _hybrid() -> dict[str, Node]:
    """Outer graph: name the questions, run the loop, check, once more if it fails, send or hand over."""
    return {
        SPLIT: Node((SPLIT,), {"*": "loop"}),
        "loop": _loop(CHECK, LOOP, ESCALATE),
        CHECK: Node((CHECK,), {"*.pass": SUBMIT, "*.fail": "again"}),
        "again": _loop("recheck", LOOP, ESCALATE),
        "recheck": Node((CHECK,), {"*.pass": SUBMIT, "*.fail": ESCALATE}),
        SUBMIT: Node((SUBMIT,), {"second.*": "loop"}),
        ESCALATE: Node((ESCALATE,)),
    }


CHAIN = _line(CLASSIFY, RETRIEVE, DRAFT, SUBMIT)
NODES: dict[str, Nodes] = {
    "chain": CHAIN,
    "routing": {
        SPLIT: Node((SPLIT,), {"*": CLASSIFY}),
        **CHAIN,
        SUBMIT: Node((SUBMIT,), {"second.*": CLASSIFY}),
    },
    "parallel": CHAIN,
    "tool_use": {"agent": _loop(SUBMIT, LOOP, None), SUBMIT: Node((SUBMIT,))},
    "evaluator": _evaluator(),
    "orchestrator": _orchestrator(),
    "autonomous": {"agent": Node(ACTIONS, {}, AUTONOMOUS)},
    "hybrid": _hybrid(),
}
"""The graph of each pattern; `parallel` runs the chain in three copies."""

PATTERNS = tuple(NODES)


@dataclass(frozen=True)
class Measures:
    """What a pattern does with a request on average: shares of the four ends, calls, tokens, and J.

    J = solved - wrong - PRICE * tokens, at the payoff 1, -1, 0.
    """

    solved: float
    wrong: float
    handed: float
    unfinished: float
    calls: float
    tokens: float
    J: Interval


@dataclass(frozen=True, eq=False)
class Twin:
    """A pattern as a formal harness, at one competence and one table of token sizes.

    Raises ModelError for an unknown pattern.
    """

    pattern: str
    rates: Competence = Competence()
    tokens: Tokens = Tokens()

    def __post_init__(self) -> None:
        """Refuse an unknown pattern."""
        if self.pattern not in NODES:
            raise ModelError(f"no pattern {self.pattern!r}; known: {', '.join(PATTERNS)}")

    @property
    def nodes(self) -> Nodes:
        """The pattern's graph."""
        return NODES[self.pattern]

    def inner(self, payoff: Payoff, call: Fraction, token: Fraction) -> POMDP:
        """M_0 where outcomes are worth `payoff`, and each call and token costs so much."""

        def charge(node: str, earlier: int, action: str) -> Fraction:
            cost = self.tokens.step(action, len(self.nodes[node].menu), earlier)
            return call * cost.calls + token * cost.tokens

        behind = workflow(request_model(self.rates, payoff), self.nodes, charge)
        return side_by_side(behind, VOTERS, SUBMIT, _majority) if self.pattern == "parallel" else behind

    @cached_property
    def induced(self) -> Induced:
        """M_H at the payoff and price of J, under the context of the last pair."""
        inner = self.inner(Payoff(), Fraction(0), PRICE)
        criterion, sizes = Criterion(Fraction(1), HORIZON), Sizes()
        return induce(inner, inner, parse_map("last:1").bind(inner, HORIZON, sizes), criterion, sizes)

    @cached_property
    def counted(self) -> dict[str, np.ndarray]:
        """Rewards `[A, S]` of M_0 that count one thing each: the four measures that are not J.

        Each is the difference of two models that pay for right and for wrong answers: where neither is paid for, no
        state is worth anything, and a run in which that is so counts as over.
        """
        zero, one = Fraction(0), Fraction(1)
        each = Payoff(one, one, one)
        plain = self._rewards(each, zero, zero)
        return {
            "solved": self._rewards(replace(each, right=2 * one), zero, zero) - plain,
            "wrong": self._rewards(replace(each, wrong=2 * one), zero, zero) - plain,
            "ended": plain,
            "calls": plain - self._rewards(each, one, zero),
            "tokens": plain - self._rewards(each, zero, one),
        }

    def _rewards(self, payoff: Payoff, call: Fraction, token: Fraction) -> np.ndarray:
        """`[A, S]` of M_0 at other payoffs; its states are the same ones."""
        inner = self.inner(payoff, call, token)
        assert inner.states == self.induced.inner.states
        return inner.R

    def visits(self, error: Fraction = ERROR) -> np.ndarray:
        """`[A, S]` how often each action is taken in each state of M_0 in a run, on average."""
        induced, pi = self.induced, self.policy(error)
        total = sum(induced.occupancy(pi, HORIZON), np.zeros(induced.model.num_states))
        found = np.zeros((induced.inner.num_actions, induced.inner.num_states))
        live = (induced.shown >= 0) & (induced.origin >= 0)
        np.add.at(found.T, induced.origin[live], total[live, None] * pi[induced.shown[live]])
        return found

    def policy(self, error: Fraction = ERROR) -> np.ndarray:
        """`[C, A]` the one policy of next steps, read off each context: the facts shown, and the node's menu."""
        induced = self.induced
        pi = np.zeros((induced.num_contexts, induced.model.num_actions))
        start, first = f"{UNSPLIT}.{Part().shown}", next(iter(self.nodes))
        for c, context in enumerate(induced.contexts):
            seen = context.messages[-1].text.partition(BESIDE)[0] if context.messages else start
            node = self.nodes.get(node_of(seen, first))
            shown = seen.partition("+")[0]
            if node is None or shown.count(".") != 2:  # the run is over, or no call was on the menu
                pi[c, 0] = 1.0
                continue
            for action, p in choice(shown, node.menu, error).items():
                pi[c, induced.model.action_index(action)] = float(p)
        return pi

    def returned(self, error: Fraction = ERROR) -> Interval:
        """J at the chooser's error, exact but for rounding."""
        return self.induced.around(self.induced.evaluate(self.policy(error)))

    def measures(self, error: Fraction = ERROR) -> Measures:
        """All measures at the chooser's error."""
        visits = self.visits(error)
        found = {name: float(np.sum(visits * rewards)) for name, rewards in self.counted.items()}
        ended = found.pop("ended")
        handed = ended - found["solved"] - found["wrong"]
        return Measures(
            **found,
            handed=0.0 if handed < ROUNDING else handed,
            unfinished=0.0 if ended > 1.0 - ROUNDING else 1.0 - ended,
            J=self.returned(error),
        )


@lru_cache(maxsize=32)
def twin(pattern: str, rates: Competence | None = None, tokens: Tokens | None = None) -> Twin:
    """The twin of a pattern, built once a process."""
    return Twin(pattern, rates or Competence(), tokens or Tokens())


def _majority(states: tuple[str, ...]) -> int:
    """The copy whose draft agrees with most: answers are yes or no, so two wrong ones agree."""
    right = [".right." in state for state in states]
    return right.index(2 * sum(right) > len(right))
