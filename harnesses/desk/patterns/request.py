"""Request: the common task of the eight harness patterns, as a kernel of one question and as a POMDP; imports pomdp.

A participant's request has one question, or two (hidden). Each question is answered from one of the desk's documents.
The model can name the questions, name the document of a question, draft an answer and check a draft; the desk can
retrieve, send the email and hand the request to a person. All numbers are this module's invention; what they stand
for is M14 §4 and §9. Every call errs by itself; a real model repeats its mistakes, so votes and second drafts help it
less than they help here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, NamedTuple

from harnesses.kernel import Kernel, tabulate
from pomdp.model import POMDP, ModelError

SPLIT, CLASSIFY, RETRIEVE, DRAFT, CHECK, SUBMIT, ESCALATE = (
    "split",
    "classify",
    "retrieve",
    "draft",
    "check",
    "submit",
    "escalate",
)
ACTIONS = (SPLIT, CLASSIFY, RETRIEVE, DRAFT, CHECK, SUBMIT, ESCALATE)
MODEL_CALLS = frozenset({SPLIT, CLASSIFY, DRAFT, CHECK})
"""The actions that a language model carries out; the others are code."""

UNSPLIT, ONE, FIRST, SECOND = "unsplit", "one", "first", "second"
"""What is known of the number of questions: nothing; taken for one; the first of two; the second of two."""

END = "end"
_ONE = Fraction(1)


@dataclass(frozen=True)
class Competence:
    """How well each call is done: probabilities, the same in every harness.

    `two`: a request has two questions. `split`: both of two are seen, else they are taken for one. `classify`: the
    document named is the right one. `found`: retrieval by the right name gives the passage, else nothing; `astray`: by
    a wrong name it gives a passage that misleads, else nothing; without a name it gives the passage with `blind`, one
    that misleads with `blind_astray`. A draft is right with `grounded` on the passage, `misled` on another, `guessed`
    on nothing; for two questions at once with `grounded_two` on the passage, else `guessed_two`. A check passes a right
    draft with `passes`, a wrong one with `slips`.
    """

    two: Fraction = Fraction(1, 3)
    split: Fraction = Fraction(9, 10)
    classify: Fraction = Fraction(9, 10)
    found: Fraction = Fraction(9, 10)
    astray: Fraction = Fraction(1, 4)
    blind: Fraction = Fraction(1, 2)
    blind_astray: Fraction = Fraction(1, 6)
    grounded: Fraction = Fraction(19, 20)
    misled: Fraction = Fraction(1, 10)
    guessed: Fraction = Fraction(3, 10)
    grounded_two: Fraction = Fraction(3, 10)
    guessed_two: Fraction = Fraction(1, 20)
    passes: Fraction = Fraction(9, 10)
    slips: Fraction = Fraction(1, 5)

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not 0 <= value <= 1:
                raise ModelError(f"competence {entry.name} is {value}; give a probability, such as 9/10")
        if self.blind + self.blind_astray > 1:
            raise ModelError(
                f"competence blind and blind_astray sum to {self.blind + self.blind_astray}; give at most 1"
            )


@dataclass(frozen=True)
class Payoff:
    """What an outcome is worth, in units of one right answer: right, wrong, handed to a person; else 0."""

    right: Fraction = Fraction(1)
    wrong: Fraction = Fraction(-1)
    handed: Fraction = Fraction(0)


class Part(NamedTuple):
    """A question being answered: what is held of documents, the draft, and its verdict; quality is hidden.

    `evidence`: fresh, nothing, label-right, label-wrong, passage-right or passage-astray. `draft`: none, right or
    wrong. `verdict`: none, pass or fail.
    """

    evidence: str = "fresh"
    draft: str = "none"
    verdict: str = "none"

    @property
    def shown(self) -> str:
        """What anybody can see: `labelled.none`, `passage.new`, `passage.fail`, ..."""
        held = self.evidence.partition("-")[0].replace("label", "labelled")
        done = "none" if self.draft == "none" else "new" if self.verdict == "none" else self.verdict
        return f"{held}.{done}"


def outcomes(part: Part, action: str, double: bool, rates: Competence) -> dict[Part, Fraction]:
    """What one call does to a question: {part after: probability}; `double` if it is two taken for one.

    Naming a document or retrieving starts the answer over. A check without a draft, and the calls that concern the
    whole request, leave it.
    """
    if action == CLASSIFY:
        return _nonzero({Part("label-right"): rates.classify, Part("label-wrong"): 1 - rates.classify})
    if action == RETRIEVE:
        right, astray = {
            "label-right": (rates.found, Fraction(0)),
            "label-wrong": (Fraction(0), rates.astray),
        }.get(part.evidence, (rates.blind, rates.blind_astray))
        return _nonzero(
            {
                Part("passage-right"): right,
                Part("passage-astray"): astray,
                Part("nothing"): 1 - right - astray,
            }
        )
    if action == DRAFT:
        if double:
            p = rates.grounded_two if part.evidence == "passage-right" else rates.guessed_two
        else:
            held = {"passage-right": rates.grounded, "passage-astray": rates.misled}
            p = held.get(part.evidence, rates.guessed)
        return _nonzero({Part(part.evidence, "right"): p, Part(part.evidence, "wrong"): 1 - p})
    if action == CHECK and part.draft != "none":
        p = rates.passes if part.draft == "right" else rates.slips
        return _nonzero({part._replace(verdict="pass"): p, part._replace(verdict="fail"): 1 - p})
    return {part: _ONE}


class Whole(NamedTuple):
    """A request: its number of questions (hidden), what is known of it, whether the first answer is right, and the
    question in hand."""

    questions: int
    known: str = UNSPLIT
    first: str = "none"
    part: Part = Part()

    @property
    def double(self) -> bool:
        """Whether the question in hand is in truth two."""
        return self.questions == 2 and self.known in (UNSPLIT, ONE)

    @property
    def shown(self) -> str:
        """What the desk knows: `unsplit.fresh.none`, `second.passage.new`, ..."""
        return f"{self.known}.{self.part.shown}"


def after(whole: Whole, action: str, rates: Competence) -> dict[Whole | str, Fraction]:
    """What one call does to a request: {request after, or END: probability}."""
    if action == ESCALATE or (action == SUBMIT and whole.known != FIRST):
        return {END: _ONE}
    if action == SUBMIT:
        right = "right" if whole.part.draft == "right" else "wrong"
        return {Whole(2, SECOND, right): _ONE}
    if action == SPLIT:
        if whole.known != UNSPLIT:
            return {whole: _ONE}
        taken = whole._replace(known=ONE)
        if whole.questions == 1:
            return {taken: _ONE}
        return _nonzero({Whole(2, FIRST): rates.split, taken: 1 - rates.split})
    found = outcomes(whole.part, action, whole.double, rates)
    return {whole._replace(part=part): p for part, p in found.items()}


def answered(whole: Whole) -> bool:
    """Whether the email sent now is right: the draft in hand, and of two questions the first answer too."""
    return whole.part.draft == "right" and whole.first != "wrong"


def request_model(rates: Competence | None = None, payoff: Payoff | None = None) -> POMDP:
    """The task: seven actions, one submission a question; the last sends the email, +right or +wrong.

    Observations are what the desk knows after the call (`Whole.shown`), or `end`. No discount is given: use a horizon.
    """
    known, worth = rates or Competence(), payoff or Payoff()

    def step(state: Whole | str, a: int) -> Iterator[tuple[Whole | str, str, Fraction]]:
        if isinstance(state, str):
            yield state, END, _ONE
            return
        for reached, p in after(state, ACTIONS[a], known).items():
            yield reached, reached if isinstance(reached, str) else reached.shown, p

    def reward(state: Whole | str, a: int) -> Fraction:
        if isinstance(state, str):
            return Fraction(0)
        if ACTIONS[a] == ESCALATE:
            return worth.handed
        if ACTIONS[a] == SUBMIT and state.known != FIRST:
            return worth.right if answered(state) else worth.wrong
        return Fraction(0)

    def label(state: Whole | str) -> str:
        if isinstance(state, str):
            return state
        return f"{state.questions}.{state.known}.{state.first}.{'.'.join(state.part)}"

    start = _nonzero({Whole(1): 1 - known.two, Whole(2): known.two})
    return tabulate(
        Kernel(
            start=start,
            actions=ACTIONS,
            observations=(),
            step=step,
            reward=reward,
            label=label,
            name="request",
        )
    )


def _nonzero(row: Mapping[Any, Fraction]) -> dict[Any, Fraction]:
    """The row without its zeros."""
    return {key: p for key, p in row.items() if p}
