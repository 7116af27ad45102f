"""Coordinator: splits a question, hands its parts to subagents, retries, checks coverage and answers; imports research.

Every report comes back here, so that one place sees what failed and what nobody asked. What the participant demanded
travels in every task description. The gaps of an answer are written by code from the records: a model's summary of
three good reports cannot hide the fourth. Source: M14 §9 (five rules for subagents), stretch B.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harnesses.desk.research import ANSWER, Cause, Claim, Failure, Query, Report, Researcher, Search, Task
from harnesses.desk.research_coverage import stated, unbound, uncovered
from harnesses.desk.research_scripted import SPLIT, WRITE, ScriptedCoordinator, ScriptedResearcher
from harnesses.runtime.assembly import Reading
from harnesses.runtime.models import Model

PARTS = 6
"""Parts of a question, at most."""
ATTEMPTS = 2
"""Runs of a part, at most, while it fails in a way that may pass."""


@dataclass
class Spent:
    """Model calls and tokens of one side; tokens as the provider counts them, else four characters each."""

    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Part:
    """One part of the question with the reports of its runs, the last one newest."""

    question: str
    reports: tuple[Report, ...]

    @property
    def claims(self) -> list[Claim]:
        """What all its runs found, each claim once: a later failure takes nothing away."""
        return list(dict.fromkeys(claim for report in self.reports for claim in report.claims))

    @property
    def failures(self) -> list[Failure]:
        """What no run of it got to work; a run's own end, as of the last one."""
        worked = {words for report in self.reports for words in (*report.searched, *report.empty)}
        last = {one.tried: one for report in self.reports for one in report.failures
                if (one.cause is not Cause.MODEL and one.tried != ANSWER) or report is self.reports[-1]}  # fmt: skip
        return [one for tried, one in last.items() if tried not in worked]

    @property
    def empty(self) -> list[str]:
        """The searches that worked and found nothing."""
        return list(dict.fromkeys(words for report in self.reports for words in report.empty))


@dataclass(frozen=True)
class Researched:
    """An answer with its gaps. missing: terms of the question that no part asked about and no summary mentions.

    unmentioned: terms that a part asked about, in vain: no summary mentions them, and no search that failed or found
    nothing accounts for it.
    notes: what the coordinator's model could not be had for, and the code did instead.
    """

    question: str
    constraints: tuple[str, ...]
    parts: tuple[Part, ...]
    missing: tuple[str, ...]
    unmentioned: tuple[str, ...]
    said: str
    notes: tuple[str, ...]
    coordinator: Spent
    subagents: Spent

    @property
    def failures(self) -> list[Failure]:
        """What stayed failed, over all parts."""
        return [one for part in self.parts for one in part.failures]

    @property
    def complete(self) -> bool:
        """Whether no gap is known."""
        return not self.gaps()

    def gaps(self) -> list[str]:
        """Each gap in a line: nobody asked, nobody answered, it failed, nothing was found. None passes for another."""
        lines = []
        if self.missing:
            lines.append(
                f"Not covered: {', '.join(self.missing)} (no part asked about it, and no summary mentions it)."
            )
        if self.unmentioned:
            lines.append(f"Asked, and in no summary: {', '.join(self.unmentioned)}.")
        lines += [f"Partial: {one.text}." for one in self.failures]
        lines += [f"Searched, and nothing found: {words!r}." for part in self.parts for words in part.empty]
        return lines

    def text(self) -> str:
        """The answer, its gaps, and the price."""
        return "\n".join([self.said, *self.gaps(), *self.notes, self.price()])

    def price(self) -> str:
        """Tokens of both sides."""
        return (
            f"Tokens: coordinator {self.coordinator.tokens} in {self.coordinator.calls} calls, "
            f"subagents {self.subagents.tokens} in {self.subagents.calls} calls of {len(self.parts)} parts."
        )


@dataclass(frozen=True)
class Coordinator:
    """What answers a question by subagents. attempts: runs of a part, retries among them.

    further: rounds in which terms that are not covered get a part of their own, 0 to name them only.
    """

    researcher: Researcher
    model: Model = field(default_factory=ScriptedCoordinator)
    attempts: int = ATTEMPTS
    further: int = 0

    @classmethod
    def scripted(cls, search: Search, **settings: Any) -> Coordinator:
        """One without a language model on either side."""
        return cls(Researcher(ScriptedResearcher(), search), **settings)

    def answer(
        self,
        question: str,
        conversation: Sequence[str] = (),
        known: Sequence[str] = (),
        constraints: Sequence[str] = (),
    ) -> Researched:
        """Research a question. conversation: what the participant wrote before; known: facts for every subagent.

        constraints: demands that are known as such; those that the texts state in plain words are found besides.
        """
        constraints = tuple(dict.fromkeys([*constraints, *stated([*conversation, question])]))
        spent, below = Spent(), Spent()
        notes: list[str] = []
        split = self._split(question, constraints, spent, notes)
        parts = [self._part(goal, queries, constraints, tuple(known), below) for goal, queries in split]
        missing = _missing(question, parts)
        for _ in range(self.further):
            if not missing:
                break
            goal = f"{', '.join(missing)}, in the question: {question}"
            parts.append(self._part(goal, (Query(" ".join(missing)),), constraints, tuple(known), below))
            missing = _missing(question, parts)
        claims = list(dict.fromkeys(claim for part in parts for claim in part.claims))
        asked = {"question": question, "constraints": constraints, "claims": [c._asdict() for c in claims]}
        said = self._ask(WRITE, asked, spent, notes)
        if said is None:
            said = "\n".join(f"{claim.text} [{claim.source}]" for claim in claims) or "Nothing was found."
        return Researched(
            question, constraints, tuple(parts), tuple(missing), tuple(_unmentioned(question, parts)),
            said, tuple(notes), spent, below,
        )  # fmt: skip

    def _part(
        self, goal: str, queries: tuple[Query, ...], constraints: tuple[str, ...], known: tuple[str, ...],
        below: Spent,
    ) -> Part:  # fmt: skip
        """Run one part, and again, for what failed in passing alone, while attempts are left."""
        reports: list[Report] = []
        task = Task(goal, constraints, known, queries)
        for _ in range(self.attempts):
            report = self.researcher.report(task)
            reports.append(report)
            below.calls += report.calls
            below.tokens += report.tokens
            again = [one for one in Part(goal, tuple(reports)).failures if one.retryable]
            if not again:
                break
            found = tuple(f"{claim.text} [{claim.source}]" for claim in Part(goal, tuple(reports)).claims)
            task = Task(goal, constraints, (*known, *found), tuple(Query(o.tried, o.meant) for o in again))
        return Part(goal, tuple(reports))

    def _split(
        self, question: str, constraints: Sequence[str], spent: Spent, notes: list[str]
    ) -> list[tuple[str, tuple[Query, ...]]]:
        """The parts; the whole question as one where the model's answer is none."""
        asked = {"question": unbound(question), "constraints": constraints}
        said = self._ask(SPLIT, asked, spent, notes)
        try:
            listed = json.loads(said[said.index("[") : said.rindex("]") + 1]) if said is not None else []
            asks = [(str(one["question"]).strip(), _queries(one.get("searches"))) for one in listed]
            parts = [(goal, queries) for goal, queries in asks if goal]
        except (ValueError, KeyError, TypeError, AttributeError):
            parts = []
        if said is not None and not parts:
            notes.append("The question was not split: the coordinator's answer was no list of parts.")
        if len(parts) > PARTS:
            notes.append(
                f"The question was split into {len(parts)} parts; the first {PARTS} were researched."
            )
        return parts[:PARTS] or [(question, ())]

    def _ask(self, system: str, asked: dict[str, Any], spent: Spent, notes: list[str]) -> str | None:
        """One call of the coordinator's model; None, and a note, where it gave no words."""
        user = json.dumps(asked, ensure_ascii=False)
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        spent.calls += 1
        size = Reading().tokens(system) + Reading().tokens(user)
        try:
            reply = self.model.reply(messages, [], spent.calls - 1)
        except Exception as error:  # a provider's library may raise anything; the parts that worked are kept
            spent.tokens += size
            notes.append(f"The coordinator's model failed ({type(error).__name__}); code did its step.")
            return None
        spent.tokens += size + Reading().tokens(reply.text) if reply.tokens is None else reply.tokens
        if reply.fault is not None or not reply.text.strip():
            notes.append("The coordinator's model gave no words; code did its step.")
            return None
        return reply.text.strip()


def _queries(searches: Any) -> tuple[Query, ...]:
    """Searches as a model lists them, or names the only one."""
    listed = [searches] if isinstance(searches, str) else searches or ()
    return tuple(Query(str(words)) for words in listed if str(words).strip())


def _missing(question: str, parts: Sequence[Part]) -> list[str]:
    """The coverage check, against the original question."""
    said = [part.question for part in parts] + [claim.text for part in parts for claim in part.claims]
    return uncovered(question, said)


def _unmentioned(question: str, parts: Sequence[Part]) -> list[str]:
    """The terms that parts asked about, and that neither a claim nor a named failure or empty search speaks of."""
    said = [f"{claim.text} {claim.source}" for part in parts for claim in part.claims]
    said += [f"{one.tried} {one.meant}" for part in parts for one in part.failures]
    said += [words for part in parts for words in part.empty]
    nobody = _missing(question, parts)
    return [term for term in uncovered(question, said) if term not in nobody]
