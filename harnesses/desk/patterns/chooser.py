"""Chooser: the one policy of next steps that every pattern is served by, and what a call costs; imports request.

Where a menu has one action the code has chosen. Where it has several the model takes the sensible one of them, and
with probability `error` another at random: each step that the model chooses "adds cost, latency and a way to fail"
(M14 §9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from harnesses.desk.patterns.request import (
    CHECK,
    CLASSIFY,
    DRAFT,
    ESCALATE,
    MODEL_CALLS,
    RETRIEVE,
    SPLIT,
    SUBMIT,
    UNSPLIT,
)

ERROR = Fraction(1, 20)
"""How often the model takes another step than the sensible one, unless told otherwise."""

_DRAFTED = {"new": (CHECK, SUBMIT), "pass": (SUBMIT,), "fail": (CLASSIFY, RETRIEVE)}
_EVIDENCE = {"labelled": (RETRIEVE,), "passage": (DRAFT,)}


def sensible(shown: str, menu: Sequence[str]) -> str:
    """The first action of the menu that makes sense where the desk knows `shown` (`Whole.shown`).

    Questions are named before anything else, documents before they are fetched, a draft is written on a passage and
    checked where that can be; a draft that fails is started over.
    """
    known, evidence, draft = shown.split(".")
    order: tuple[str, ...] = (SPLIT,) if known == UNSPLIT else ()
    order += _DRAFTED[draft] if draft in _DRAFTED else _EVIDENCE.get(evidence, (CLASSIFY, RETRIEVE))
    order += (DRAFT, SUBMIT, ESCALATE)
    return next((action for action in order if action in menu), menu[0])


def choice(shown: str, menu: Sequence[str], error: Fraction = ERROR) -> dict[str, Fraction]:
    """{action: probability} of the next step, in the menu's order; errors go to the other actions in equal shares."""
    if len(menu) == 1:
        return {menu[0]: Fraction(1)}
    best = sensible(shown, menu)
    return {a: 1 - error if a == best else error / (len(menu) - 1) for a in menu}


@dataclass(frozen=True)
class Call:
    """What one step costs: language-model calls, and the tokens that they read and write."""

    calls: int
    tokens: int


@dataclass(frozen=True)
class Tokens:
    """Sizes in tokens, this study's choice: the instructions, the request, a reply, a passage read.

    `item`: a tool's description on the menu; `earlier`: a call and its result, which a loop sends again on each later
    call.
    """

    instructions: int = 100
    request: int = 60
    reply: int = 30
    passage: int = 150
    item: int = 40
    earlier: int = 100

    def step(self, action: str, menu: int, earlier: int) -> Call:
        """The cost of `action` from a menu of that size, after `earlier` steps in the same loop.

        A step that the model chooses is a call that reads the menu and the loop so far; what the model writes itself
        comes in the same reply, but a check is another prompt's. A step of the code is a call if a model carries it
        out, and reads the request and, for a draft or a check, the passage: no history.
        """
        plain = self.instructions + self.request + self.reply
        alone = plain + (self.passage if action in (DRAFT, CHECK) else 0)
        if menu == 1:
            return Call(1, alone) if action in MODEL_CALLS else Call(0, 0)
        chosen = plain + self.item * menu + self.earlier * earlier
        return Call(2, chosen + alone) if action == CHECK else Call(1, chosen)
