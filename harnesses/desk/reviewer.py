"""Reviewers: who answers a paused run's question: by the item's label, with errors, or a person at a terminal.

Imports driver and guard.costs. The first is M14's assumption that a person catches every wrong proposal; it is
optimistic, and the second says by how much. Each counts the questions it was asked.
Source: M14 §5, Exercise 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TextIO

from harnesses.desk.database import DeskError
from harnesses.desk.driver import Question
from harnesses.desk.reviews import Verdict
from harnesses.guard.costs import Reviewer

Allowed = Callable[[Mapping[str, Any]], bool]
"""Whether the email of a question (`email`, `request`, ...) is allowed: an item's verified label."""


@dataclass
class ByLabel:
    """Approves exactly what the label allows."""

    allowed: Allowed
    name: str = "simulated"
    questions: int = 0

    def __call__(self, question: Question) -> Verdict:
        """The verdict."""
        self.questions += 1
        return Verdict.APPROVE if self.allowed(question.shown) else Verdict.REJECT


@dataclass
class Fallible:
    """Approves a disallowed email with probability e0, and rejects an allowed one with e1.

    The error is drawn from the seed, the thread and what is shown: the same question gets the same answer again, in
    another process too.
    """

    allowed: Allowed
    rates: Reviewer
    seed: int
    name: str = "fallible"
    questions: int = 0

    def __post_init__(self) -> None:
        """Refuse rates that are no probabilities."""
        self.rates = self.rates.exact()

    def __call__(self, question: Question) -> Verdict:
        """The verdict."""
        self.questions += 1
        allowed = self.allowed(question.shown)
        errs = _uniform(self.seed, question) < (self.rates.e1 if allowed else self.rates.e0)
        return Verdict.APPROVE if allowed is not bool(errs) else Verdict.REJECT


@dataclass
class AtTerminal:
    """A person: shows the email with its number and thresholds, and asks until one of the two words is typed.

    Raises DeskError where the input ends first: the thread waits on.
    """

    read: TextIO
    write: TextIO
    name: str = "terminal"
    questions: int = 0

    def __call__(self, question: Question) -> Verdict:
        """The verdict."""
        self.questions += 1
        print(as_text(question), file=self.write)
        while True:
            print("approve or reject? ", end="", file=self.write, flush=True)
            line = self.read.readline()
            if not line:
                raise DeskError(
                    f"no answer; thread {question.thread} waits on, and can be reviewed at any time"
                )
            try:
                return Verdict.of(line.strip())
            except DeskError as error:
                print(error, file=self.write)


def as_text(question: Question) -> str:
    """A question as a person reads it."""
    shown, email = question.shown, question.shown["email"]
    act = "never sent alone" if shown["tau_act"] is None else f"sent alone from {shown['tau_act']}"
    bounds = f"handed over below {shown['tau_esc']}, {act}"
    return "\n".join(
        [
            f"Thread {question.thread}, question {question.id[:8]}: may this email be sent?",
            f"Request: {' '.join(map(printable, shown['request'].splitlines()))}",
            f"To: {printable(email['to'])}",
            f"Subject: {printable(email['subject'])}",
            *(f"  {printable(line)}" for line in email["body"].splitlines()),
            f"The guard allows it with probability {shown['p_allow']:.4g}; {bounds}.",
        ]
    )


def printable(text: str) -> str:
    """The text without characters that a terminal acts on: an email must not be able to hide a line of itself."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _uniform(seed: int, question: Question) -> float:
    """A number in [0, 1) that the seed, the thread and what is shown give."""
    text = f"{seed}|{question.thread}|{question.shown['about']}"
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48
